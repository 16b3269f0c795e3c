"""Which code made a result: the library's version, and a short hash of the sources that can change a number.

It stands in every row of a sweep, as in ``0.1.0+3f9c1a2b``, so that results of different code are never mixed
unnoticed. It needs no version control, and is the same wherever the same sources are installed.
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
    "comparison.py",
    "stopping.py",
    "method.py",
    "precision.py",
    "problems/",
    "baselines/",
    "experiments/curves.py",
    "experiments/synthetic.py",
    "experiments/model_choice.py",
    "experiments/dla.py",
)
UNKNOWN = "unknown"  # of rows from before the code was noted


@cache
def code_version() -> str:
    """Version and hash of the sources that a comparison or an experiment runs through."""
    return f"{__version__}+{source_hash(PACKAGE)}"


def source_hash(package: Path) -> str:
    """Eight hexadecimal digits of the ``.py`` files below ``package``, whatever their line ends are."""
    digest = sha256()
    for name, path in sorted((p.relative_to(package).as_posix(), p) for p in package.rglob("*.py")):
        if name.startswith(CORE):
            digest.update(name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return digest.hexdigest()[:8]


def made_by(rows: pd.DataFrame) -> pd.Series:
    """The code behind each of ``rows``."""
    if "code" not in rows:
        return pd.Series(UNKNOWN, index=rows.index, dtype=object)
    return rows["code"].fillna(UNKNOWN)


def others(rows: pd.DataFrame, key: list[str]) -> dict[str, int]:
    """How many runs, told apart by the columns ``key``, each code but this one has made."""
    if rows.empty:
        return {}
    runs = rows[key].assign(code=made_by(rows)).drop_duplicates()
    counts = runs["code"].value_counts()
    return {str(code): int(n) for code, n in counts.items() if code != code_version()}
