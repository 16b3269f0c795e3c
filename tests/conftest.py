"""One cache of compiled functions for all test processes of a run, and for the commands that tests start."""

import os
import shutil
import tempfile

import pytest

CACHE = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}


def pytest_configure(config: pytest.Config) -> None:
    """Make it before the first test process starts, unless the user has one; workers inherit it."""
    if hasattr(config, "workerinput") or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    folder = tempfile.mkdtemp(prefix="modelodds-compiled-")
    os.environ.update(CACHE, JAX_COMPILATION_CACHE_DIR=folder)
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
