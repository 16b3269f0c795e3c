"""Which code made a result: the library's version, and a short hash of the sources that can change a number.

It stands in every row of a sweep, as in ``0.1.0+3f9c1a2b``, so that results of different code are never mixed
unnoticed. It needs no version control, and is the same wherever the same sources are installed. Samplers and
other libraries do not go through our surrogates, so what changes in these leaves their hash as it is; nor do
our own methods go through what runs other libraries.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

import pandas as pd

from modelodds._version import __version__

PACKAGE = Path(__file__).parents[1]
CORE = (
    "prior.py",
    "coordinates/",
    "model.py",
    "evaluate.py",
    "surrogate/",
    "nodes.py",
    "evidence.py",
    "odds.py",
    "support.py",
    "acquisition/",
    "propose.py",
    "climb.py",
    "hints.py",
    "family.py",
    "follow.py",
    "learner.py",
    "group.py",
    "coupling.py",
    "correlated.py",
    "design.py",
    "belief.py",
    "session.py",
    "log.py",
    "comparison.py",
    "stopping.py",
    "method.py",
    "result.py",
    "precision.py",
    "problems/",
    "baselines/",
    "experiments/curves.py",
    "experiments/synthetic.py",
    "experiments/model_choice.py",
    "experiments/parts.py",
    "experiments/dla.py",
)
WITHOUT_SURROGATE = (  # of these, all that methods without one go through
    "prior.py",
    "coordinates/",
    "model.py",
    "evaluate.py",
    "nodes.py",
    "odds.py",
    "result.py",
    "problems/",
    "baselines/",
    "experiments/curves.py",
    "experiments/synthetic.py",
    "experiments/dla.py",
)
SURROGATES = ("baselines.ours", "baselines.round_robin")  # modules of the methods that have one
PEERS = "baselines/peers/"  # of these only other libraries go through
UNKNOWN = "unknown"  # of rows from before the code was noted


@cache
def code_version(method: str = "") -> str:
    """Version and hash of the sources that a run of ``method`` goes through; all, if it is not known."""
    from modelodds.baselines import METHODS

    module = METHODS[method].module if method in METHODS else SURROGATES[0]
    sources = CORE if module in SURROGATES else WITHOUT_SURROGATE
    peer = module.replace(".", "/").startswith(PEERS)
    return f"{__version__}+{source_hash(PACKAGE, sources, peer)}"


def source_hash(package: Path, sources: tuple[str, ...] = CORE, peers: bool = True) -> str:
    """Eight hexadecimal digits of the ``.py`` files below ``package``, whatever their line ends are.

    Of ``sources`` those that are in CORE count; those that are in PEERS only with ``peers``.
    """
    digest = sha256()
    for name, path in sorted((p.relative_to(package).as_posix(), p) for p in package.rglob("*.py")):
        if name.startswith(CORE) and name.startswith(sources) and (peers or not name.startswith(PEERS)):
            digest.update(name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:8]


def made_by(rows: pd.DataFrame) -> pd.Series:
    """The code behind each of ``rows``."""
    if "code" not in rows:
        return pd.Series(UNKNOWN, index=rows.index, dtype=object)
    return rows["code"].fillna(UNKNOWN)


def up_to_date(rows: pd.DataFrame) -> pd.Series:
    """Whether each of ``rows`` was made by this code."""
    method = rows["method"] if "method" in rows else pd.Series("", index=rows.index, dtype=object)
    return made_by(rows) == method.map(code_version)


def others(rows: pd.DataFrame, key: list[str]) -> dict[str, int]:
    """How many runs, told apart by the columns ``key``, each code but this one has made."""
    if rows.empty:
        return {}
    runs = rows[key].assign(code=made_by(rows))[~up_to_date(rows)].drop_duplicates()
    return {str(code): int(n) for code, n in runs["code"].value_counts().items()}
