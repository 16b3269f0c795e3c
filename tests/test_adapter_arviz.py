"""Results in ArviZ's and GetDist's hands."""

from pathlib import Path

import numpy as np
import pytest

from example_result import example_result
from modelodds import Result
from modelodds.adapters import to_getdist

pytestmark = [pytest.mark.filterwarnings("default")]  # ArviZ's own


def vectors() -> Result:
    rng = np.random.default_rng(0)
    return example_result(
        parameters={"Bath": ("mu", "beta[a]", "beta[b]"), "York": ("mu",)},
        draws={"Bath": rng.normal([1, 2, 3], size=(402, 3)), "York": rng.normal(size=(402, 1))},
        diagnostics={"Bath": {"draw_log_likelihood": np.arange(402.0)}},
    )


def test_arviz_summarises_and_draws(tmp_path: Path) -> None:
    az = pytest.importorskip("arviz", reason="ArviZ is not installed", exc_type=ImportError)
    data = vectors().to_arviz()
    assert data.posterior["beta"].shape == (4, 100, 2)
    assert list(data.posterior["beta"].coords["beta_dim"].values) == ["a", "b"]
    np.testing.assert_allclose(data.posterior["beta"].mean(("chain", "draw")), [2, 3], atol=0.2)
    attributes = data.posterior.attrs
    assert attributes["model"] == "Bath" and attributes["log_evidence"] == -10.0
    assert {"posterior_Bath", "posterior_York", "sample_stats", "evaluations"} <= set(data.groups())
    assert data.evaluations.sizes == {"evaluation": 50}
    summary = az.summary(data)
    assert list(summary.index) == ["mu", "beta[a]", "beta[b]"] and (summary["r_hat"] < 1.05).all()
    az.plot_pair(data)
    az.plot_trace(data)
    assert vectors().to_arviz("York").posterior.attrs["model"] == "York"
    data.to_netcdf(str(tmp_path / "r.nc"))
    assert az.from_netcdf(str(tmp_path / "r.nc")).posterior["mu"].shape == (4, 100)


def test_draws_and_their_log_likelihoods_stay_together() -> None:
    pytest.importorskip("xarray", reason="xarray is not installed")
    from modelodds.adapters.arviz import posterior, sample_stats

    r = vectors()
    r.draws["Bath"][:, 0] = np.arange(402.0)
    stats = sample_stats(r, "Bath")
    assert stats is not None
    np.testing.assert_array_equal(stats["log_likelihood"], posterior(r, "Bath")["mu"])


def test_getdist_files(tmp_path: Path) -> None:
    roots = to_getdist(vectors(), tmp_path)
    assert [root.name for root in roots] == ["Bath", "York"]
    rows = np.loadtxt(tmp_path / "Bath.txt")
    assert rows.shape == (402, 5) and (rows[:, 0] == 1).all() and rows[3, 1] == -3.0
    assert (tmp_path / "Bath.paramnames").read_text().splitlines()[1] == r"beta_a \mathrm{beta[a]}"
    getdist = pytest.importorskip("getdist", reason="GetDist is not installed", exc_type=ImportError)
    samples = getdist.loadMCSamples(str(roots[0]))
    assert samples.mean("beta_b") == pytest.approx(3.0, abs=0.2)
