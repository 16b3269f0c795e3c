"""Damped Lyman-α absorbers: the likelihood against a plain one, files, priors, the simulator."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from example_dla import absorption, reference, write_survey
from modelodds import evaluate
from modelodds.apps import dla
from modelodds.apps.dla.likelihood import BLOCKS
from modelodds.apps.dla.lines import LYMAN_ALPHA
from modelodds.apps.dla.null import VARIABLE, data_folder
from modelodds.apps.dla.voigt import profiles, transmission
from modelodds.errors import OptionError, SpectrumError

NULL = dla.NullModel.synthetic()
TRUE = [(2.33, 21.2), (2.05, 20.5)]
POINTS = [[(2.33, 21.2)], [(2.1, 20.01)], [(1.98, 22.9)], [(2.4371, 24.9)], [(2.5, 20.3)]]


@pytest.fixture(scope="module")
def spectrum() -> dla.Spectrum:
    return dla.simulate(NULL, 2.6, TRUE, snr=5.0, seed=3, masked=0.05)


@pytest.fixture(scope="module")
def real() -> list[dla.Spectrum]:
    """Two real spectra, where the data folder is at hand."""
    folder = data_folder()
    if folder is None:
        pytest.skip(f"real spectra: set {VARIABLE}")
    names = {"3655-55240-0743": 2.21747, "7102-56666-0190": 2.73}
    return [dla.Spectrum.read(folder / "spectra" / f"spec-{n}.fits", z) for n, z in names.items()]


# ---------------------------------------------------------------------- the likelihood


def test_null_and_absorbers_agree_with_dense_covariances(spectrum: dla.Spectrum) -> None:
    null, one, two = dla.models(spectrum, absorbers=(0, 1, 2), null=NULL)
    assert null.log_likelihood(np.empty((1, 0)))[0] == pytest.approx(reference(spectrum, NULL, []), rel=1e-8)
    for point in POINTS:
        value = one.log_likelihood(np.array([np.ravel(point)]))[0]
        assert value == pytest.approx(reference(spectrum, NULL, point), rel=1e-8)
    value = two.log_likelihood(np.array([np.ravel(TRUE)]))[0]
    assert value == pytest.approx(reference(spectrum, NULL, TRUE), rel=1e-8)


def test_real_spectra_agree_with_dense_covariances(real: list[dla.Spectrum]) -> None:
    learned = dla.NullModel.load()
    for spectrum, point in zip(real, [(2.094, 21.37), (2.193, 20.81)], strict=True):
        null, one = dla.models(spectrum, absorbers=(0, 1), null=learned)
        expected = [reference(spectrum, learned, a) for a in ([], [point])]
        found = [null.log_likelihood(np.empty((1, 0)))[0], one.log_likelihood(np.array([point]))[0]]
        assert found == pytest.approx(expected, rel=1e-8)
        assert found[1] - found[0] > 50  # there is an absorber where the catalogue has it


def test_profiles_are_those_of_scipy() -> None:
    """From the cores of the lines to 1e4 thermal widths, and through the broadening."""
    wavelength = 10 ** np.arange(3.50, 3.63, 1e-4)
    for z, log_nhi in [(2.3, 20.0), (2.300137, 22.5), (2.45, 21.0)]:
        found = np.asarray(transmission64(wavelength, z, log_nhi))
        np.testing.assert_allclose(found, absorption(wavelength[3:-3], z, log_nhi), rtol=0, atol=1e-10)


def transmission64(wavelength: np.ndarray, z: float, log_nhi: float) -> np.ndarray:
    import jax

    with jax.enable_x64(True):
        return np.asarray(transmission(wavelength, np.asarray(z), np.asarray(log_nhi), profiles()))


def test_gradients_agree_with_finite_differences(spectrum: dla.Spectrum) -> None:
    _, two = dla.models(spectrum, null=NULL)
    theta, step = np.array([np.ravel(TRUE)]) + 1e-3, 1e-6
    shifted = np.concatenate([theta + sign * step * np.eye(4) for sign in (1, -1)])
    up, down = np.split(two.log_likelihood(shifted), 2)
    np.testing.assert_allclose(two.log_likelihood.gradient(theta)[0], (up - down) / (2 * step), rtol=1e-5)


def test_many_points_are_the_same_as_one_by_one(spectrum: dla.Spectrum) -> None:
    (one,) = dla.models(spectrum, absorbers=(1,), null=NULL)
    theta = one.prior.to_theta(one.prior.from_unit(np.random.default_rng(0).uniform(size=(130, 2)))[0])
    single = np.array([one.log_likelihood(t[None])[0] for t in theta[:12]])
    for n in (1, 7, 9, BLOCKS[0] + 2, 130):
        values = one.log_likelihood(theta[:n])
        assert values.shape == (n,)
        np.testing.assert_allclose(values[:12], single[:n], rtol=1e-12)


def test_absorbers_are_exchangeable_and_a_faint_one_is_none(spectrum: dla.Spectrum) -> None:
    null, one, two = dla.models(spectrum, absorbers=(0, 1, 2), null=NULL)
    (a, b) = TRUE
    swapped = two.log_likelihood(np.array([[*a, *b], [*b, *a]]))
    assert swapped[0] == pytest.approx(swapped[1], rel=1e-12)
    faint = one.log_likelihood(np.array([[2.2, 5.0]]))[0]
    assert faint == pytest.approx(null.log_likelihood(np.empty((1, 0)))[0], rel=1e-9)


def test_models_are_named_parameterised_and_can_be_sent_to_processes(spectrum: dla.Spectrum) -> None:
    found = dla.models(spectrum, absorbers=(0, 1, 2, 5), null=NULL)
    assert [m.name for m in found] == ["no absorber", "one absorber", "two absorbers", "5 absorbers"]
    assert found[2].parameters == ("z_dla_1", "log_nhi_1", "z_dla_2", "log_nhi_2")
    theta = found[1].prior.to_theta([0.1, 0.2])
    there = pickle.loads(pickle.dumps(found[1]))
    assert evaluate.evaluate(there, theta).value == evaluate.evaluate(found[1], theta).value


def test_impossible_numbers_of_absorbers(spectrum: dla.Spectrum) -> None:
    for absorbers in ((), (-1,), (1.5,), (True,)):
        with pytest.raises(OptionError, match="absorbers must be whole numbers"):
            dla.models(spectrum, absorbers=absorbers, null=NULL)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- sightlines and files


def test_a_sightline_keeps_the_forest_and_its_prior_range(spectrum: dla.Spectrum) -> None:
    line = dla.Sightline.of(spectrum, NULL)
    rest = spectrum.rest
    good = (rest >= 911.75) & (rest <= 1215.75) & (spectrum.ivar > 0)
    assert line.n_pixels == good.sum() and len(line.flux) % 128 == 0
    first = spectrum.wavelength[good].min() / LYMAN_ALPHA - 1
    margin = 3000 / 299792.458
    assert line.z_range[0] == pytest.approx(max(first, 911.7633 * 3.6 / LYMAN_ALPHA - 1 + margin))
    assert line.z_range[1] == pytest.approx(
        min(spectrum.wavelength[good].max() / LYMAN_ALPHA - 1, 2.6) - margin
    )
    assert 0.9 < line.scale < 1.1


def test_units_of_flux_do_not_matter(spectrum: dla.Spectrum) -> None:
    other = dla.Spectrum(
        spectrum.wavelength, 17.0 * spectrum.flux, spectrum.ivar / 17.0**2, spectrum.z_qso, "scaled"
    )
    theta = np.array([[2.33, 21.2]])
    (a,), (b,) = (dla.models(s, absorbers=(1,), null=NULL) for s in (spectrum, other))
    assert a.log_likelihood(theta)[0] == pytest.approx(b.log_likelihood(theta)[0], rel=1e-12)


def test_files_read_back(spectrum: dla.Spectrum, tmp_path: Path) -> None:
    spectrum.write(tmp_path / "spec-1-2-3.fits")
    back = dla.Spectrum.read(tmp_path / "spec-1-2-3.fits")
    assert back.name == "1-2-3" and back.z_qso == 2.6
    np.testing.assert_allclose(back.wavelength, spectrum.wavelength, rtol=1e-12)
    np.testing.assert_array_equal(back.ivar, spectrum.ivar)
    assert dla.Spectrum.read(tmp_path / "spec-1-2-3.fits", z_qso=2.7).z_qso == 2.7


def test_bright_sky_is_masked(spectrum: dla.Spectrum, tmp_path: Path) -> None:
    from astropy.io import fits

    path = tmp_path / "spec-1-2-3.fits"
    spectrum.write(path)
    with fits.open(path, mode="update") as file:
        file[1].data["and_mask"][1000:1010] = 1 << 23
        file[1].data["and_mask"][1010:1020] = 1 << 22
    back = dla.Spectrum.read(path)
    assert not back.ivar[1000:1010].any() and back.ivar[1010:1020].any()


def test_files_that_are_no_spectra_are_refused(spectrum: dla.Spectrum, tmp_path: Path) -> None:
    (tmp_path / "text.fits").write_text("no spectrum")
    with pytest.raises(SpectrumError, match=r"text\.fits is not an SDSS spectrum"):
        dla.Spectrum.read(tmp_path / "text.fits")
    with pytest.raises(SpectrumError, match="There is no file"):
        dla.Spectrum.read(tmp_path / "none.fits")
    near = dla.Spectrum(spectrum.wavelength, spectrum.flux, spectrum.ivar, 1.5, "near")
    with pytest.raises(SpectrumError, match="only 0 good pixels"):
        dla.Sightline.of(near, NULL)
    dark = dla.Spectrum(spectrum.wavelength, 0 * spectrum.flux, spectrum.ivar, 2.6, "dark")
    with pytest.raises(SpectrumError, match="cannot be normalised"):
        dla.Sightline.of(dark, NULL)
    with pytest.raises(SpectrumError, match="redshift is nan"):
        dla.Spectrum(spectrum.wavelength, spectrum.flux, spectrum.ivar, float("nan"))


def test_the_data_folder_is_named_by_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(SpectrumError, match="there is no folder"):
        dla.NullModel.load()
    (tmp_path / "dla").mkdir()
    assert data_folder() == tmp_path / "dla"
    (tmp_path / "dla" / "null_model.mat").write_text("no model")
    with pytest.raises(SpectrumError, match="is not a null model"):
        dla.NullModel.load()


def test_a_null_model_reads_back(tmp_path: Path) -> None:
    write_survey(tmp_path / "dla", NULL, [])
    back = dla.NullModel.read(tmp_path / "dla" / "null_model.mat")
    np.testing.assert_allclose(back.m, NULL.m)
    assert (back.c_0, back.tau_0, back.beta) == pytest.approx((NULL.c_0, NULL.tau_0, NULL.beta))


def test_the_packaged_null_model_is_that_of_the_data_folder() -> None:
    pytest.importorskip("gp_dla_finder")
    folder = data_folder()
    packaged = dla.NullModel.installed()
    assert packaged.m.shape == (2281, 20) and packaged.c_0 == pytest.approx(0.14599, abs=1e-5)
    if folder is not None:
        np.testing.assert_allclose(packaged.m, dla.NullModel.read(folder / "null_model.mat").m)


# ---------------------------------------------------------------------- priors


def test_column_densities_follow_the_stated_mixture() -> None:
    prior = dla.COLUMN_DENSITY
    fitted = integrate.quad(lambda x: np.exp(-1.2695 * x**2 + 50.863 * x - 509.33), 20, 25)[0]
    for x in (20.0, 20.3, 21.7, 22.9, 23.4):
        p = np.exp(-1.2695 * x**2 + 50.863 * x - 509.33) / fitted
        assert prior.pdf(x) == pytest.approx(0.9 * p + 0.1 * (x <= 23) / 3, rel=1e-9)
    normal = stats.norm(20.0327, 0.6276)
    ratio = prior.pdf(20.5) - 0.1 / 3, 0.9 * normal.pdf(20.5) / normal.sf(20)
    assert ratio[0] == pytest.approx(ratio[1], rel=1e-3)
    q = np.concatenate([np.geomspace(1e-12, 0.5, 30), 1 - np.geomspace(0.4, 1e-9, 30)])
    np.testing.assert_allclose(prior.cdf(prior.ppf(q)), q, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(prior.sf(prior.isf(q[:30])), q[:30], rtol=1e-9, atol=1e-14)
    draws = prior.rvs(20_000, random_state=np.random.default_rng(0))
    assert stats.kstest(draws, prior.cdf).pvalue > 0.01


def test_numbers_of_absorbers_follow_the_catalogue() -> None:
    """At least k with probability (M/N)^k; the last model takes the rest."""
    assert dla.absorber_fraction(3.0) == pytest.approx(3475 / 45773)
    assert dla.absorber_fraction(9.0) == dla.absorber_fraction(5.3)
    f = dla.absorber_fraction(3.1)
    assert dla.model_probabilities(3.1, 3) == pytest.approx((1 - f, f - f**2, f**2 - f**3, f**3))
    assert sum(dla.model_probabilities(3.1, 3)) == pytest.approx(1.0)
    assert dla.model_probabilities(3.1, 1, fraction=0.3) == pytest.approx((0.7, 0.3))
    with pytest.raises(OptionError, match="between 0 and 1"):
        dla.model_probabilities(3.1, 2, fraction=1.5)


def test_fractions_are_those_of_the_packaged_catalogue() -> None:
    packaged = pytest.importorskip("gp_dla_finder").load_prior()
    for z in (2.2, 2.5, 3.0, 3.5, 4.2, 5.3):
        exact = packaged.absorber_fraction(z, 30_000 / 299792.458)
        assert dla.absorber_fraction(z) == pytest.approx(exact, abs=2e-3)


# ---------------------------------------------------------------------- the simulator


def test_simulated_spectra_follow_the_null_model() -> None:
    """Whitened residuals of many spectra are standard normal: their squares sum to the number of pixels."""
    squares, pixels = 0.0, 0
    for seed in range(20):
        spectrum = dla.simulate(NULL, 2.4, TRUE[1:], snr=20.0, seed=seed)
        line = dla.Sightline.of(spectrum, NULL)
        keep = line.kept
        (one,) = dla.models(line, absorbers=(1,))
        a = one.log_likelihood.transmission(np.array([TRUE[1]]))[0][keep]
        cov = (a[:, None] * line.m[keep]) @ (a[:, None] * line.m[keep]).T
        cov += np.diag(a**2 * line.omega2[keep] + line.noise[keep])
        r = line.flux[keep] - a * line.mu[keep]
        squares, pixels = squares + r @ np.linalg.solve(cov, r), pixels + keep.sum()
    # Normalising by the median of a noisy window costs a little: 4 sd of a chi-squared and 1 % of its mean.
    assert abs(squares - pixels) < 4 * np.sqrt(2 * pixels) + 0.01 * pixels


def test_the_true_absorber_is_near_the_likelihoods_peak() -> None:
    spectrum = dla.simulate(NULL, 2.6, [(2.33, 21.2)], snr=5.0, seed=11)
    (one,) = dla.models(spectrum, absorbers=(1,), null=NULL)
    z, n = np.meshgrid(np.linspace(*one.log_likelihood.sightline.z_range, 300), np.linspace(20, 22, 41))
    grid = np.stack([z.ravel(), n.ravel()], 1)
    best = grid[one.log_likelihood(grid).argmax()]
    assert abs(best[0] - 2.33) < 0.005 and abs(best[1] - 21.2) < 0.15


def test_the_same_seed_draws_the_same_spectrum() -> None:
    a, b, c = (dla.simulate(NULL, 2.6, TRUE, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(a.flux, b.flux)
    assert not np.array_equal(a.flux, c.flux)
