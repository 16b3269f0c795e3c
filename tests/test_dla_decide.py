"""Absorbers decided: quadrature, probabilities, catalogues, figures, the commands."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special
from typer.testing import CliRunner

from example_dla import write_survey
from modelodds.apps import dla
from modelodds.apps.dla import check, decide, quadrature, sampling, truth
from modelodds.apps.dla.null import VARIABLE
from modelodds.apps.dla.plots import decision_figure, emission
from modelodds.apps.dla.quadrature import Grid, one_absorber
from modelodds.cli import app
from modelodds.problems.truth import importance

NULL = dla.NullModel.synthetic()
ABSORBER = (2.05, 20.9)
Z_QSO = 2.2  # a short forest: fast


@pytest.fixture(scope="module")
def spectrum() -> dla.Spectrum:
    return dla.simulate(NULL, Z_QSO, [ABSORBER], snr=6.0, seed=4)


@pytest.fixture(scope="module")
def decision(spectrum: dla.Spectrum) -> decide.Decision:
    return decide.decide(spectrum, NULL, decide.Settings(most=1))


@pytest.fixture(scope="module")
def grid(spectrum: dla.Spectrum) -> Grid:
    (one,) = dla.models(spectrum, absorbers=(1,), null=NULL)
    return one_absorber(one.log_likelihood)  # type: ignore[arg-type]


@pytest.fixture
def survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spectrum: dla.Spectrum) -> Path:
    """A data folder of two simulated spectra, the working folder beside it."""
    bare = dla.simulate(NULL, Z_QSO, [], snr=6.0, seed=5)
    write_survey(tmp_path / "data" / "dla", NULL, [(spectrum, [ABSORBER]), (bare, [(1.5, 20.3)])])
    monkeypatch.setenv(VARIABLE, str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    small(monkeypatch)
    return tmp_path


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importance sampling with fewer points than are needed to be exact."""
    for name, size in (("SEARCH", 2**11), ("FINAL", 2**12), ("ROUNDS", 4)):
        monkeypatch.setattr(sampling, name, size)


def invoke(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(w) for w in words])
    return done.exit_code, done.output


# ---------------------------------------------------------------------- quadrature


def test_quadrature_agrees_with_importance_sampling(spectrum: dla.Spectrum, grid: Grid) -> None:
    (one,) = dla.models(spectrum, absorbers=(1,), null=NULL)
    other = importance(one, n_search=2**10, n_final=2**11, replicates=4)
    assert abs(grid.log_evidence - other.log_evidence) < 0.005 + 4 * other.error
    assert other.error < 0.02 and grid.error < 1e-3 and grid.weight.sum() == pytest.approx(1.0)


def test_quadrature_is_exact_for_a_likelihood_that_is_flat(spectrum: dla.Spectrum) -> None:
    """The prior's own mass: 1, on cells that leave no gap and do not overlap."""
    flat = _Flat(dla.Sightline.of(spectrum, NULL), 1)
    assert one_absorber(flat).log_evidence == pytest.approx(0.0, abs=2e-3)


def test_quadrature_says_so_when_it_has_not_settled(
    spectrum: dla.Spectrum, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = dla.models(spectrum, absorbers=(1,), null=NULL)
    monkeypatch.setattr(quadrature, "ROUNDS", 2)
    rough = one_absorber(one.log_likelihood)  # type: ignore[arg-type]
    assert len(rough.theta) == len(rough.weight) and rough.error > quadrature.TOLERANCE


@dataclasses.dataclass(frozen=True, eq=False)
class _Flat(dla.Likelihood):
    def __call__(self, theta: Any) -> np.ndarray:
        return np.zeros(len(theta))


def test_quantiles_hold_the_absorber(grid: Grid) -> None:
    for column, value in enumerate(ABSORBER):
        low, middle, high = grid.quantiles(column)
        spread = high - low
        assert low < middle < high and low - spread < value < high + spread
    assert check.share(grid, *ABSORBER) > 0.9 > 0.01 > check.share(grid, 2.1, 20.9)


# ---------------------------------------------------------------------- decisions


def test_a_strong_absorber_is_found(decision: decide.Decision) -> None:
    assert decision.best == 1 and decision.probability[1] > 0.99
    ((z, n),) = decision.absorbers()
    assert z[0] < z[1] < z[2] and abs(z[1] - ABSORBER[0]) < 0.005 and abs(n[1] - ABSORBER[1]) < 0.2


def test_probabilities_follow_from_evidences_and_the_catalogue(decision: decide.Decision) -> None:
    prior = np.log(dla.model_probabilities(Z_QSO, 1))
    np.testing.assert_allclose(
        decision.probability, special.softmax(decision.log_evidence + prior), atol=1e-3
    )


def test_two_absorbers_are_told_from_one(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    true = [(2.01, 21.0), (2.11, 20.8)]
    spectrum = dla.simulate(NULL, Z_QSO, true, snr=8.0, seed=6)
    found = decide.decide(spectrum, NULL)
    assert found.best == 2 and found.probability.sum() == pytest.approx(1.0)
    middle = found.absorbers()[:, :, 1]
    np.testing.assert_allclose(middle, true, atol=0.25)
    np.testing.assert_allclose(middle[:, 0], [z for z, _ in true], atol=0.005)


def test_an_empty_sightline_has_none() -> None:
    found = decide.decide(dla.simulate(NULL, Z_QSO, [], snr=6.0, seed=5), NULL, decide.Settings(most=1))
    assert found.best == 0 and found.absorbers().shape == (0, 2, 3)
    cells = decide.row("x", found, 0.0)
    assert decide.in_words(cells) == "no absorber" and np.isnan(cells["z_dla_1"])


def test_few_evaluations_can_be_asked_for(spectrum: dla.Spectrum) -> None:
    found = decide.decide(spectrum, NULL, decide.Settings(most=1, budget=30))
    assert found.evaluations <= 30 and found.probability.sum() == pytest.approx(1.0)


def test_absorbers_of_a_draw_are_put_in_order() -> None:
    draws = np.array([[2.5, 20.1, 2.2, 21.0], [2.1, 20.5, 2.3, 20.2]])
    assert decide._in_order(draws).tolist() == [[2.2, 21.0, 2.5, 20.1], [2.1, 20.5, 2.3, 20.2]]


def test_a_figure_has_the_fitted_absorption(decision: decide.Decision, tmp_path: Path) -> None:
    line = decision.sightline
    ones = np.ones(len(line.flux))
    bright = emission(line, ones)
    assert np.abs((line.flux - bright)[line.kept]).mean() < np.abs((line.flux - line.mu)[line.kept]).mean()
    decision_figure(decision).savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


# ---------------------------------------------------------------------- the command


def test_the_command_writes_a_catalogue_and_goes_on_with_it(survey: Path) -> None:
    files = sorted((survey / "data" / "dla" / "spectra").glob("*.fits"))
    (survey / "broken.fits").write_text("no spectrum")
    words = [*files, survey / "broken.fits", "--most", 1, "--out", survey / "found.csv"]
    code, output = invoke("dla", *words, "--figures", survey / "figures")
    assert code == 0 and "skipped: " in output and "broken.fits is not an SDSS spectrum" in output
    table = pd.read_csv(survey / "found.csv")
    assert list(table.columns) == decide.columns(1)
    assert table.status.tolist() == ["ok", "ok", "failed"] and table.n_absorbers.tolist()[:2] == [1, 0]
    assert table.z_dla_1[0] == pytest.approx(ABSORBER[0], abs=0.005)
    assert len(list((survey / "figures").glob("*.png"))) == 2
    before = (survey / "found.csv").read_bytes()
    code, _ = invoke("dla", *words)
    assert code == 0 and (survey / "found.csv").read_bytes() == before
    code, output = invoke("dla", *files, "--most", 1, "--out", survey / "found.fits")
    assert code == 0 and (survey / "found.csv").read_bytes() == before
    from astropy.table import Table

    assert len(Table.read(survey / "found.fits")) == 3
    code, output = invoke("dla", *files, "--most", 2, "--out", survey / "found.csv")
    assert code == 2 and "not a catalogue of up to 2 absorbers" in output


def test_the_command_says_what_is_wrong(survey: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (survey / "broken.fits").write_text("no spectrum")
    code, output = invoke("dla", survey / "broken.fits", "--most", 1)
    assert code == 1 and "skipped" in output
    (survey / "z.csv").write_text("a,b\n1,2\n")
    code, output = invoke("dla", survey / "broken.fits", "--redshifts", survey / "z.csv")
    assert code == 2 and "no columns file and z_qso" in output
    monkeypatch.setenv(VARIABLE, str(survey / "nowhere"))
    code, output = invoke("dla", survey / "broken.fits")
    assert code == 2 and "there is no folder" in output


# ---------------------------------------------------------------------- truth and catalogue


def test_truths_are_computed_stored_and_checked(survey: Path) -> None:
    code, output = invoke("reproduce", "dla-truth", "--jobs", 1, "--spectrum", "1-1-0")
    assert code == 0 and "importance sampling" in output
    rows = pd.read_csv(survey / truth.OUT)
    assert rows.absorbers.tolist() == [0, 1, 2] and (rows.error <= 0.5).all()
    values, error = truth.stored("1-1-0", (2, 1))
    assert values == (rows.log_evidence[2], rows.log_evidence[1]) and error == rows.error.max()
    with pytest.raises(ValueError, match=r"modelodds reproduce dla-truth --spectrum 9-9-9"):
        truth.stored("9-9-9", (1, 2))
    code, output = invoke("reproduce", "dla-truth", "--spectrum", "7-7-7", "--jobs", 1)
    assert code == 2 and "There is no spectrum '7-7-7'" in output


def test_importance_sampling_from_the_grid_agrees_with_quadrature(
    spectrum: dla.Spectrum, grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one absorber the answer is known: the same to four standard errors, which are small."""
    small(monkeypatch)
    (one,) = dla.models(spectrum, absorbers=(1,), null=NULL)
    found = sampling.sampled(one, grid, dla.Sightline.of(spectrum, NULL).z_range)
    assert found.error < 0.05 and abs(found.log_evidence - grid.log_evidence) < 4 * found.error + 0.005


def test_truths_that_are_not_good_enough_are_tried_again(
    spectrum: dla.Spectrum, grid: Grid, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def rough(*arguments: Any) -> sampling.Sampled:
        asked.append(arguments[-1])
        return sampling.Sampled(-10.0, 0.1 / asked[-1], np.empty((0, 4)), 1)

    monkeypatch.setattr(truth, "sampled", rough)
    monkeypatch.setattr(truth, "one_absorber", lambda _: grid)
    found = truth.evidence(dla.Sightline.of(spectrum, NULL), 2)
    assert asked == [1, 4] and found == (-10.0, 0.025, "importance sampling")


def test_cells_are_a_density(spectrum: dla.Spectrum, grid: Grid) -> None:
    """It sums to 1, draws fall where it says, and it is at a draw what it is in the draw's cell."""
    cells = sampling.Cells(grid, dla.Sightline.of(spectrum, NULL).z_range)
    z, n = cells.edges
    assert (np.exp(cells.log_density) * np.outer(np.diff(z), np.diff(n))).sum() == pytest.approx(1.0)
    draws = cells.draw(4000, np.random.default_rng(0))
    for rows, columns in (
        (slice(0, 100), slice(None)),
        (slice(None), slice(0, 3)),
        (slice(150, 200), slice(4)),
    ):
        p = cells.share[rows, columns].sum()
        inside = (draws[:, 0] >= z[rows.start or 0]) & (draws[:, 0] < z[rows.stop or -1])
        inside &= draws[:, 1] < n[columns.stop or -1]
        assert abs(inside.mean() - p) < 4 * np.sqrt(p * (1 - p) / len(draws)) + 1e-3
    middle = np.stack(np.meshgrid(z[:-1] + 1e-5, n[:-1] + 1e-3, indexing="ij"), axis=-1).reshape(-1, 2)
    np.testing.assert_array_equal(cells.log_at(middle), cells.log_density.ravel())


def test_catalogued_absorbers_are_checked(survey: Path) -> None:
    code, output = invoke("reproduce", "dla-catalogue", "--jobs", 1)
    assert code == 0 and "Contained: 1 of the 1 absorbers inside the prior's range." in output
    assert "outside the prior" in output
