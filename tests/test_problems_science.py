"""Problems out of the sciences: their contract, their physics, and their evidences by another route."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, special, stats

from modelodds.errors import ProblemError
from modelodds.model import Model
from modelodds.nodes import Nodes
from modelodds.problems import FAMILIES, load
from modelodds.problems import battery as cell
from modelodds.problems import epidemic as outbreak
from modelodds.problems import nile as river
from modelodds.problems import planets as star
from modelodds.problems.truth import _adapted, importance, log_likelihoods

Array = NDArray[np.float64]

SEEDS = {
    "links": [0],
    "nile": [0],
    "epidemic": range(20),
    "battery": [0, 1, 2, 3, 5, 6, 8, 9],
    "planets": range(5),
}
DIMENSIONS = {"links": (4, 4, 4), "nile": (2, 4, 6), "epidemic": (3, 4), "battery": (4, 6, 8)}
DIMENSIONS |= {"planets": (2, 5, 8)}


def draws(model: Model, n: int, spread: float = 1.0) -> Array:
    """Points of the prior, ``spread`` times as far out in normal coordinates."""
    u = np.random.default_rng(0).uniform(size=(n, model.dim))
    return model.prior.to_theta(model.prior.from_unit(special.ndtr(spread * special.ndtri(u)))[0])


def models_of(name: str, seed: int = 0) -> tuple[Model, ...]:
    candidates = FAMILIES[name].candidates
    assert candidates is not None
    return candidates(0, seed)


@pytest.mark.parametrize("name", SEEDS)
def test_every_model_answers_many_points_as_one_by_one(name: str) -> None:
    models = models_of(name)
    assert tuple(model.dim for model in models) == DIMENSIONS[name]
    for model in models:
        assert model.vectorized
        theta = np.concatenate([draws(model, 12), draws(model, 12, spread=3.0)])
        together = model.log_likelihood(theta)
        assert together.shape == (24,) and np.all(np.isfinite(together))
        one_by_one = [model.log_likelihood(t[None, :])[0] for t in theta]
        assert together == pytest.approx(one_by_one, rel=1e-10)
        assert np.ptp(together) > 5.0  # the data have something to say


@pytest.mark.parametrize("name", ["epidemic", "battery", "planets"])
def test_seeds_freeze_the_data(name: str) -> None:
    for one, same, other in zip(models_of(name, 3), models_of(name, 3), models_of(name, 4), strict=True):
        theta = draws(one, 5)
        assert np.array_equal(one.log_likelihood(theta), same.log_likelihood(theta))
        assert not np.any(one.log_likelihood(theta) == other.log_likelihood(theta))


@pytest.mark.parametrize("name", SEEDS)
def test_truths_are_stored_and_precise(name: str) -> None:
    for seed in SEEDS[name]:
        problem = load(name, seed)
        assert len(problem.models) == len(problem.log_evidence) and problem.origin != "exact"
        assert 0 < problem.error <= (0.05 if name == "battery" else 0.01)
    with pytest.raises(ProblemError):
        load(name, max(SEEDS[name]) + 1)


def trapezoid(model: Model, n: int) -> float:
    """Log-evidence by a product rule over 6.5 posterior standard deviations along their principal axes.

    For smooth functions that vanish at the ends its error is exponentially small in the number of points.
    """
    rng = np.random.default_rng(1)
    mixture = _adapted(model, rng, 2**12, 4)
    assert mixture is not None
    nodes = Nodes.from_prior(model.prior, 2**12, rng).with_mixture(mixture)
    weight = special.softmax(nodes.log_weight + log_likelihoods(model, nodes.x))
    mean = weight @ nodes.x
    values, axes = np.linalg.eigh(np.cov(nodes.x.T, aweights=weight))
    line = np.linspace(-6.5, 6.5, n)
    grid = np.stack(np.meshgrid(*[line] * model.dim, indexing="ij"), axis=-1).reshape(-1, model.dim)
    x = mean + grid * np.sqrt(values) @ axes.T
    log_cell = model.dim * np.log(line[1] - line[0]) + 0.5 * np.log(values).sum()
    return float(special.logsumexp(log_likelihoods(model, x) + model.prior.log_density(x)) + log_cell)


@pytest.mark.parametrize(
    ("name", "which", "nodes"),
    [
        ("links", 0, 21),
        ("links", 1, 21),
        ("links", 2, 21),
        ("nile", 0, 60),
        ("battery", 0, 14),
        ("planets", 0, 60),
    ],
)
def test_truths_by_quadrature_of_the_models_themselves(name: str, which: int, nodes: int) -> None:
    problem = load(name)
    found = trapezoid(problem.models[which], nodes)
    assert found == pytest.approx(problem.log_evidence[which], abs=1e-3)


def test_sir_by_quadrature_of_the_model_itself() -> None:
    problem = load("epidemic", 0)
    assert trapezoid(problem.models[0], 14) == pytest.approx(problem.log_evidence[0], abs=0.01)


def test_one_change_by_importance_sampling() -> None:
    problem = load("nile")
    found, error = importance(problem.models[1], n_search=2**12, n_final=2**12, replicates=8)
    assert error < 0.005
    assert abs(found - problem.log_evidence[1]) < 4 * error


def test_one_planet_by_a_coarser_quadrature() -> None:
    found = star.quadrature(*star.planets_data(1), 1, wider=4 / 3)
    assert found == pytest.approx(load("planets", 1).log_evidence[1], abs=1e-3)


def test_amplitude_and_phase_drop_out_of_a_planet() -> None:
    """At one period and jitter: closed form against a sum over the model's own offset, amplitude, phase."""
    model, (times, velocity) = star.planets_models(0)[1], star.planets_data(0)
    period, jitter = 23.0, 2.0
    offset, amplitude = np.linspace(-15.0, 15.0, 101), np.linspace(0.0, 24.0, 121)[1:]
    phase = np.arange(24) * 2 * np.pi / 24
    grid = np.stack(np.meshgrid(offset, amplitude, phase), axis=-1).reshape(-1, 3)
    one = np.ones(len(grid))
    theta = np.column_stack([grid[:, 0], jitter * one, np.log(period) * one, grid[:, 1], grid[:, 2]])
    prior = stats.norm.logpdf(grid[:, 0], 0, 10) + stats.rayleigh.logpdf(grid[:, 1], scale=4)
    found = special.logsumexp(model.log_likelihood(theta) + prior) + np.log(0.3 * 0.2 / 24)
    angle = 2 * np.pi * times[None] / period
    waves = np.stack([np.cos(angle), np.sin(angle)])
    assert found == pytest.approx(star._given_jitter(waves, np.zeros(1), velocity, jitter, 1), abs=1e-3)


def test_nile_dates_share_a_year() -> None:
    held = river.shares(np.array([[1880.25, 1880.75], [1871.0, 1971.0]]))
    assert held.sum(axis=2) == pytest.approx(1.0)
    assert held[0, 1880 - 1871] == pytest.approx([0.25, 0.5, 0.25])
    assert np.array_equal(held[0, 8], [1, 0, 0]) and np.array_equal(held[0, 10], [0, 0, 1])
    assert np.all(held[1] == [0, 1, 0])


def test_one_change_is_a_constant_when_the_levels_agree() -> None:
    constant, one, two = river.nile_models()
    expected = constant.log_likelihood(np.array([[900.0, 140.0]]))
    assert one.log_likelihood(np.array([[900.0, 900.0, 140.0, 1898.6]])) == pytest.approx(expected)
    same = one.log_likelihood(np.array([[1100.0, 850.0, 130.0, 1898.6]]))
    share = (1898.6 - 1871.0) / (1930.0 - 1871.0)
    split = two.log_likelihood(np.array([[1100.0, 850.0, 850.0, 130.0, 1930.0, share]]))
    assert split == pytest.approx(same)


def test_ordered_pairs_are_uniform() -> None:
    """Dates and log-periods: P(earlier < a, later < b) = 2 a b - a^2 for a < b."""
    for model in (river.nile_models()[2], star.planets_models(0)[2]):
        theta, names = draws(model, 40_000), model.prior.names
        later = theta[:, names.index("later" if "later" in names else "log_period2")]
        low, high = later.min(), later.max()
        low, width = (1871.0, 100.0) if "later" in names else (np.log(5.0), np.log(40.0))
        assert low < later.min() and high < low + width
        later = (later - low) / width
        earlier = theta[:, names.index("share")] * later
        for a, b in [(0.3, 0.5), (0.5, 0.9)]:
            assert np.mean((earlier < a) & (later < b)) == pytest.approx(2 * a * b - a * a, abs=0.01)


def test_epidemics_conserve_people() -> None:
    for model in outbreak.epidemic_models(0):
        people = outbreak.trajectories(draws(model, 50))
        assert people.sum(axis=2) == pytest.approx(outbreak.POPULATION, rel=1e-12)
        assert np.all(people >= -1e-6)
        assert np.all(np.diff(people[..., 0], axis=1) <= 0) and np.all(np.diff(people[..., -1], axis=1) >= 0)


def test_epidemic_agrees_with_an_adaptive_integrator() -> None:
    def seir(t: float, p: Array) -> list[float]:
        infected, started, recovered = 2.4 / 6.0 * p[0] * p[2] / 20_000, p[1] / 2.5, p[2] / 6.0
        return [-infected, infected - started, started - recovered, recovered]

    found = outbreak.trajectories(np.array([[2.4, 6.0, 12.0, 2.5]]))[0]
    expected = integrate.solve_ivp(
        seir, (0, 60), [19_988.0, 0.0, 12.0, 0.0], t_eval=np.arange(61), rtol=1e-10, atol=1e-8
    ).y.T
    assert found == pytest.approx(expected, abs=0.02)


def test_seir_without_latency_is_sir() -> None:
    theta = np.array([[2.4, 6.0, 12.0]])
    sir = outbreak.trajectories(theta, days=30, step=0.01)[0]
    gaps = []
    for latent in (0.04, 0.01):
        seir = outbreak.trajectories(np.array([[2.4, 6.0, 12.0, latent]]), days=30, step=0.01)[0]
        gaps.append(np.abs(seir[:, [0, 2, 3]] - sir).max())
    assert gaps[1] < 100.0 and gaps[1] == pytest.approx(gaps[0] / 4, rel=0.2)  # vanishes in proportion


def test_final_size_of_the_epidemic() -> None:
    """Kermack and McKendrick: the susceptible share left solves s = s0 exp(-r0 (1 - s))."""
    end = outbreak.trajectories(np.array([[2.5, 5.0, 20.0]]), days=400)[0, -1] / outbreak.POPULATION
    assert end[0] == pytest.approx((1 - 20 / 20_000) * np.exp(-2.5 * (1 - end[0])), abs=1e-7)


def test_counts_are_negative_binomial() -> None:
    counts, model = outbreak.epidemic_counts(1), outbreak.epidemic_models(1)[1]
    theta = draws(model, 6)
    mean = outbreak.expected_counts(theta)
    expected = stats.nbinom.logpmf(counts, 10.0, 10.0 / (10.0 + mean)).sum(axis=1)
    assert model.log_likelihood(theta) == pytest.approx(expected, rel=1e-10)


def test_battery_answers_a_step_in_closed_form() -> None:
    """In the first pulse, and after it, for one pair; for three by an integrator."""
    theta = np.array([[1.0, 20.0, 10.0, 8.0]])
    during, after = cell.response(theta, np.array([30.0, 100.0]))[0]
    assert during == pytest.approx(-2.5 * (20 + 10 * (1 - np.exp(-20 / 8))))
    assert after == pytest.approx(-2.5 * 10 * (1 - np.exp(-60 / 8)) * np.exp(-30 / 8))
    theta = np.array([[1.0, 20.0, 10.0, 8.0, 12.0, 5.0, 7.0, 10.0]])
    r, tau = np.array([10.0, 12.0, 7.0]), np.array([8.0, 40.0, 400.0])

    def current(t: float) -> float:
        return 2.5 * (10 <= t < 70) - 2.5 * (370 <= t < 400)

    def charging(t: float, v: Array) -> Array:
        return (r * current(t) - v) / tau

    solved = integrate.solve_ivp(
        charging, (0, 600), np.zeros(3), t_eval=cell.TIMES, max_step=1.0, rtol=1e-8, atol=1e-8
    )
    expected = [-20.0 * current(t) - v.sum() for t, v in zip(solved.t, solved.y.T, strict=True)]
    assert cell.response(theta, cell.TIMES)[0] == pytest.approx(expected, abs=0.05)


def test_battery_circuits_are_nested() -> None:
    one, two = cell.battery_models(0)[:2]
    nothing = two.log_likelihood(np.array([[1.0, 20.0, 10.0, 8.0, 1e-9, 5.0]]))
    assert nothing == pytest.approx(one.log_likelihood(np.array([[1.0, 20.0, 10.0, 8.0]])))


def test_circular_orbit_has_its_period_and_amplitude() -> None:
    t = np.linspace(-300.0, 300.0, 60_001)
    v = star.circular(t, 37.0, 5.0, 0.7)
    assert star.circular(t + 37.0, 37.0, 5.0, 0.7) == pytest.approx(v, abs=1e-9)
    assert v.max() == pytest.approx(5.0, abs=1e-6)
    rising = t[1:][(v[:-1] < 0) & (v[1:] >= 0)]
    assert np.diff(rising) == pytest.approx(37.0, abs=0.02)


def test_planets_are_added() -> None:
    """An outer planet of no amplitude leaves the inner one, at a share of the log-range."""
    _, one, two = star.planets_models(0)
    alone = one.log_likelihood(np.array([[1.0, 2.0, np.log(20.0), 5.0, 0.7]]))
    share = np.log(20.0 / 5.0) / np.log(90.0 / 5.0)
    pair = two.log_likelihood(np.array([[1.0, 2.0, np.log(90.0), 0.0, 1.0, share, 5.0, 0.7]]))
    assert pair == pytest.approx(alone)
    times, velocity = star.planets_data(0)
    mean = 1.0 + star.circular(times, 20.0, 5.0, 0.7)
    assert alone[0] == pytest.approx(stats.norm.logpdf(velocity, mean, np.hypot(1.5, 2.0)).sum())


def test_second_planet_of_the_quadrature() -> None:
    """The recursion over two planets against the same sum, the covariance matrix of each pair in full."""
    times, velocity = star.planets_data(0)
    edges = np.linspace(0.02, 0.03, 8)
    log_share = np.log(np.diff(np.log(edges)) / np.log(1.5))
    angle = np.pi * (edges[1:] + edges[:-1])[:, None] * times
    waves = np.stack([np.cos(angle), np.sin(angle)])
    covariances = 16.0 * np.einsum("kfi,kfj->fij", waves, waves)
    rest = (1.5**2 + 1.1**2) * np.eye(len(times)) + 100.0
    each = [
        stats.multivariate_normal.logpdf(velocity, cov=rest + a + b) for a in covariances for b in covariances
    ]
    expected = special.logsumexp(np.array(each).reshape(7, 7) + log_share + log_share[:, None])
    assert star._given_jitter(waves, log_share, velocity, 1.1, 2) == pytest.approx(expected, abs=1e-9)
