"""A Dask cluster as an executor: `sweep` takes it as it takes any other.

Start one with ``dask scheduler`` and, on every machine, ``dask worker ADDRESS --nworkers=-1``: a process per
core, each with one thread, since a run keeps one core busy. The workers need the same modelodds installed.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, NamedTuple

from modelodds.errors import OptionError
from modelodds.experiments.provenance import code_version

PATIENCE = 10  # seconds in which a scheduler must answer
RETRIES = 3  # times that a task is tried again after its worker died


class Cluster(NamedTuple):
    """Where tasks are sent, and how many are done at a time."""

    executor: Executor | None  # None: processes of this machine
    workers: int


@contextmanager
def dask_cluster(address: str) -> Iterator[Cluster]:
    """The workers of the scheduler at ``address``, such as ``tcp://10.0.0.1:8786``."""
    try:
        import distributed
    except ImportError:
        raise OptionError("A Dask cluster needs one more package: pip install 'modelodds[dask]'") from None
    connect: Any = distributed.Client  # whose types are incomplete
    try:
        client = connect(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OptionError(f"No Dask scheduler answers at {address}: {error}") from None
    with client:
        check_workers(client.run(code_version, on_error="return"), address)
        with client.get_executor(pure=False, retries=RETRIES) as executor:
            yield Cluster(executor, sum(client.ncores().values()))


def check_workers(codes: dict[str, object], address: str) -> None:
    """Refuse a cluster without workers, or whose workers would not give what this code gives."""
    if not codes:
        raise OptionError(f"The Dask scheduler at {address} has no workers; start some first.")
    wrong = {worker: code for worker, code in codes.items() if code != code_version()}
    if wrong:
        worker, code = next(iter(wrong.items()))
        raise OptionError(
            f"{len(wrong)} of {len(codes)} Dask workers do not run this code ({code_version()}), first "
            f"{worker}: {code!r}. Install the same version of modelodds there."
        )
