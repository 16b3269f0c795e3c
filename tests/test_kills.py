"""kill -9 in the middle loses nothing: a few of what ``benchmarks/kills.py`` does by the hundred."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "kills.py"


@pytest.mark.skipif(not hasattr(os, "fork") or not SCRIPT.exists(), reason="needs fork, and the benchmarks")
def test_a_few_kills() -> None:
    command = [sys.executable, str(SCRIPT), "--kills", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("5 kills") and "ledgers that failed their check: 0\n" in done.stdout
