"""Processes that share an accelerator: answers, errors and deaths come back to whoever asked."""

import os
from concurrent.futures import BrokenExecutor
from functools import partial

import numpy as np
import pytest

from modelodds.experiments.fleet import Fleet


def where(x: float) -> tuple[int, float]:
    return os.getpid(), x + 1.0


def fails() -> None:
    raise ArithmeticError("of this run")


def cannot_be_sent() -> object:
    return lambda: None


def dies() -> None:
    os._exit(1)


def steps(seed: int) -> list[np.ndarray]:
    """A made-up run of batched calls."""
    import test_lockstep

    return test_lockstep.steps(seed)


def test_work_is_shared_out_and_answers_and_errors_come_back() -> None:
    with Fleet(2, 2) as fleet:
        found = [future.result() for future in [fleet.submit(where, float(i)) for i in range(6)]]
        with pytest.raises(ArithmeticError, match="of this run"):
            fleet.submit(fails).result()
        with pytest.raises(RuntimeError, match="no answer can be sent"):
            fleet.submit(cannot_be_sent).result()
        batched = [fleet.submit(steps, seed) for seed in range(4)]
        for seed, future in enumerate(batched):
            np.testing.assert_allclose(future.result(), steps(seed), rtol=1e-12)
    assert [x for _, x in found] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert len({process for process, _ in found} - {os.getpid()}) == 2


def test_a_death_is_heard_by_its_runs_alone() -> None:
    with Fleet(2, 1) as fleet:
        dead, alive = fleet.submit(dies), fleet.submit(where, 1.0)
        with pytest.raises(BrokenExecutor, match="has died"):
            dead.result()
        assert alive.result()[1] == 2.0
        with pytest.raises(BrokenExecutor, match="has died"):
            fleet.submit(where, 1.0).result()  # its turn again


def test_nobody_waits_after_an_error() -> None:
    import time

    with pytest.raises(KeyboardInterrupt), Fleet(1, 1) as fleet:
        slow = fleet.submit(partial(time.sleep, 600.0))
        raise KeyboardInterrupt
    assert isinstance(slow.exception(), BrokenExecutor)
