"""Our compiled functions: made anew after they have been forgotten, and forgotten in time."""

from pathlib import Path

import jax.numpy as jnp
import pytest

from modelodds import precision
from modelodds.precision import jit64, make_room


def test_programs_are_forgotten_when_mappings_run_short(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    listed = tmp_path / "maps"
    monkeypatch.setattr(precision, "MAPPINGS", listed)
    monkeypatch.setattr(precision, "MOST_MAPPINGS", 3)
    monkeypatch.setattr(precision, "_compiled", [])
    traced = []

    def double(x: jnp.ndarray) -> jnp.ndarray:
        traced.append(len(x))
        return 2.0 * x

    call = jit64(double)
    assert call(jnp.ones(2)).sum() == 4.0
    assert not make_room()  # not on Linux: nothing is listed

    listed.write_text("a\nb\n")
    assert not make_room()
    assert call(jnp.ones(2)).sum() == 4.0
    assert len(traced) == 1

    listed.write_text("a\nb\nc\n")
    assert make_room()
    assert call(jnp.ones(2)).sum() == 4.0
    assert len(traced) == 2
