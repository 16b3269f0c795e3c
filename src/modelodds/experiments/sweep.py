"""Many independent tasks, each giving rows of a table: in parallel, kept as they come, resumed after a kill.

A task is a named tuple; its fields are the first columns of its rows and tell it from all others. Every
task's rows go to the file in one piece: into a CSV file line by line (for tasks of one row), into a
``.csv.gz`` as one gzip member, so that a kill in the middle of a write costs that task and nothing else.

Two columns come last: the ``seconds`` that a task took, and the ``code`` that did it (``provenance.py``).
"""

import csv
import gzip
import io
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from modelodds.experiments.provenance import code_version, up_to_date

Row = dict[str, Any]
T = TypeVar("T", bound=tuple[Any, ...])


def for_workers(cpu: str) -> dict[str, str]:
    """Environment of processes that do the work, on a machine that describes its processor as ``cpu``.

    What a run finds must depend neither on how many cores there are nor on which: a search that starts from
    almost the same numbers can end elsewhere. So linear algebra has one thread, XLA cuts its sums in two
    whether or not there are two cores, and every x86 processor of the last ten years uses the same
    instructions, as newer ones round differently.
    """
    variables = {
        "JAX_COMPILATION_CACHE_DIR": str(Path.home() / ".cache" / "modelodds" / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PJRT_NPROC": "2",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    }
    if not {"avx2", "fma"} <= set(cpu.split()):
        return variables
    return variables | {
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "XLA_FLAGS": f"{variables['XLA_FLAGS']} --xla_cpu_max_isa=AVX2",
    }


CPU = Path("/proc/cpuinfo")  # where Linux describes it
FOR_WORKERS = for_workers(CPU.read_text() if CPU.exists() else "")


def sweep(
    tasks: Iterable[T],
    work: Callable[[T], Sequence[Row]],
    out: Path | None = None,
    jobs: int = 0,
    executor: Executor | None = None,
    redo: bool = False,
) -> Iterator[Sequence[Row]]:
    """Rows of every task: those that ``out`` has already first, then the others' as they are done.

    ``jobs`` processes do the work, or an ``executor`` of one's own, or this process if there are none. The
    processes compute alike on different machines (`for_workers`). With ``redo``, tasks whose rows are of
    other code are done again, and those rows are dropped.
    """
    tasks = list(tasks)
    if not tasks:
        return
    key = list(tasks[0]._fields)  # type: ignore[attr-defined]
    mend(out)
    if redo and out is not None:
        drop_stale(out, tasks)
    known = {_plain(name): group for name, group in _groups(read(out), key)}
    rest = []
    for task in tasks:
        if _plain(task) in known:
            yield [{str(k): v for k, v in row.items()} for row in known[_plain(task)].to_dict("records")]
        else:
            rest.append(task)
    for rows in _done(rest, Stamped(work), jobs, executor):
        if out is not None:
            append(out, rows)
        yield rows


class Stamped(Generic[T]):
    """Work whose rows say how long it took and which code did it: that of the process that does it."""

    def __init__(self, work: Callable[[T], Sequence[Row]]) -> None:
        self.work = work

    def __call__(self, task: T) -> list[Row]:
        """The task's rows, stamped."""
        start = time.perf_counter()
        rows = self.work(task)
        seconds = float(f"{time.perf_counter() - start:.3g}")
        code = code_version(getattr(task, "method", ""))
        return [{**row, "seconds": row.get("seconds", seconds), "code": code} for row in rows]


def _done(
    tasks: list[T], work: Callable[[T], Sequence[Row]], jobs: int, executor: Executor | None
) -> Iterator[Sequence[Row]]:
    if not tasks or (executor is None and jobs < 1):
        yield from map(work, tasks)
        return
    with environment(FOR_WORKERS if executor is None else {}):
        pool = executor or ProcessPoolExecutor(min(jobs, len(tasks)), get_context("spawn"))
        with nullcontext() if executor is not None else pool:
            futures = {pool.submit(work, task): task for task in tasks}
            failed: list[tuple[T, BaseException]] = []
            try:
                for future in as_completed(futures):
                    if (error := future.exception()) is None:
                        yield future.result()
                    else:
                        failed.append((futures[future], error))
            finally:  # after Ctrl-C nobody wants to wait for what has not begun
                for future in futures:
                    future.cancel()
            if failed:  # the others are done and kept; a rerun tries these again
                raise RuntimeError(f"{len(failed)} of {len(tasks)} tasks failed, first {failed[0]!r}")


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Variables that processes started meanwhile inherit, unless the user has set them."""
    added = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def read(path: Path | None) -> pd.DataFrame:
    """All rows of a file of earlier runs, however it ended; empty if there is no such file.

    The file is left as it is: another process may be adding to it.
    """
    if path is None or not path.exists():
        return pd.DataFrame()
    text, _ = _text(path)
    return pd.read_csv(io.StringIO(text)) if text else pd.DataFrame()


def mend(path: Path | None) -> None:
    """Take a last write that was cut short off a file, which goes on from where it was whole."""
    if path is not None and path.exists():
        text, intact = _text(path)
        if not intact:
            _rewrite(path, text)


def _text(path: Path) -> tuple[str, bool]:
    """The complete part of a file, and whether that is all of it."""
    raw = path.read_bytes()
    if path.suffix != ".gz":
        whole = raw[: raw.rfind(b"\n") + 1]
        return whole.decode(), len(whole) == len(raw)
    parts, rest = [], raw
    while rest:
        member = zlib.decompressobj(wbits=31)
        try:
            part = member.decompress(rest)
        except zlib.error:
            break
        if not member.eof:
            break
        parts.append(part.decode())
        rest = member.unused_data
    return "".join(parts), not rest


def _rewrite(path: Path, text: str) -> None:
    if not text:
        path.unlink()
        return
    scratch = path.with_name(path.name + ".new")
    scratch.write_bytes(gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode())
    scratch.replace(path)


def append(path: Path, rows: Sequence[Row]) -> None:
    """Add ``rows`` to a file in one piece; a file without some of their columns gets them, empty so far."""
    if not rows:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    frame, header = pd.DataFrame(rows), _header(path)
    if header is not None and (new := [name for name in frame.columns if name not in header]):
        first, *lines = _text(path)[0].splitlines()  # as text: numbers stay as they were written
        _rewrite(
            path, "\n".join([",".join([first, *new]), *(line + "," * len(new) for line in lines)]) + "\n"
        )
        header += new
    frame = frame if header is None else frame.reindex(columns=header)
    text = frame.to_csv(index=False, header=header is None, lineterminator="\n")
    with path.open("ab") as file:
        file.write(gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode())


def _header(path: Path) -> list[str] | None:
    """Columns of a file; None where there are none yet."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return next(csv.reader(file), None)


def drop_stale(path: Path, tasks: Sequence[Any]) -> None:
    """Take out the rows of ``tasks`` that other code has made."""
    rows = read(path)
    if rows.empty or not tasks:
        return
    wanted = {_plain(task) for task in tasks}
    there = rows[list(tasks[0]._fields)].itertuples(index=False, name=None)
    stale = [
        not current and _plain(task) in wanted for task, current in zip(there, up_to_date(rows), strict=True)
    ]
    if any(stale):
        first, *lines = _text(path)[0].splitlines(keepends=True)
        kept = [line for line, gone in zip(lines, stale, strict=True) if not gone]
        _rewrite(path, "".join([first, *kept]) if kept else "")


def _groups(frame: pd.DataFrame, key: list[str]) -> Iterable[tuple[Any, pd.DataFrame]]:
    return frame.groupby(key, sort=False) if len(frame) else []


def _plain(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same whether it comes from a task or from a file, where a string of digits is read as a number."""
    return tuple(_number(v.item() if hasattr(v, "item") else v) for v in values)


def _number(value: Any) -> Any:
    try:
        return float(value) if isinstance(value, str) and np.isfinite(float(value)) else value
    except ValueError:
        return value
