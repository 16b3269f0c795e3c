"""Two and more absorbers by importance sampling that begins where one absorber's quadrature saw something.

Were absorbers not to share pixels, their likelihoods would multiply, and each would be where a single one may
be. So the first proposal draws every absorber by itself from the one-absorber posterior, at powers of its
likelihood from 1 down to 0 (the prior), on the cells of the quadrature's first grid. Student-t mixtures
(`modelodds.nodes`) are then fitted to the weighted points, and all later points come from both, weighted by
the balance heuristic. Two such runs, and their distance, tell how well the evidence is known.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from modelodds.apps.dla.prior import COLUMN_DENSITY
from modelodds.apps.dla.quadrature import Grid, first_edges
from modelodds.model import Model
from modelodds.nodes import DEGREES_OF_FREEDOM, Mixture, seeded, systematic

Array = NDArray[np.float64]

POWERS = (1.0, 0.3, 0.1, 0.03, 0.0)
SEARCH, FINAL = 2**13, 2**14  # points of each round, and of the estimate
ROUNDS = 8
COMPONENTS = 24
KEPT = 0.3  # share of the points that stays with the first proposal
DRAWS = 2000


class Sampled(NamedTuple):
    """A log-evidence, its error in nats, posterior draws (m, 2 k), and likelihoods spent."""

    log_evidence: float
    error: float
    draws: Array
    evaluations: int


class Cells:
    """A density of z and log N_HI of one absorber, uniform in each cell of the quadrature's first grid."""

    def __init__(self, grid: Grid, z_range: tuple[float, float]) -> None:
        self.edges = first_edges(*z_range)
        mass, _, _ = np.histogram2d(grid.theta[:, 0], grid.theta[:, 1], self.edges, weights=grid.weight)
        prior = np.outer(np.diff(self.edges[0]), np.diff(COLUMN_DENSITY.cdf(self.edges[1])))
        prior /= prior.sum()
        with np.errstate(divide="ignore"):
            log_ratio = np.log(mass) - np.log(prior)
        log_ratio = np.maximum(log_ratio, log_ratio.max() - 700.0)
        parts = [special.softmax(np.log(prior) + power * log_ratio) for power in POWERS]
        self.share = np.mean(parts, axis=0)  # of each cell
        self.log_density = np.log(self.share) - np.log(np.outer(*map(np.diff, self.edges)))

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Points (n, 2)."""
        flat = rng.choice(self.share.size, n, p=self.share.ravel())
        at = np.stack(np.unravel_index(flat, self.share.shape), axis=1)
        low = np.stack([e[i] for e, i in zip(self.edges, at.T, strict=True)], axis=1)
        wide = np.stack([np.diff(e)[i] for e, i in zip(self.edges, at.T, strict=True)], axis=1)
        return np.asarray(low + wide * rng.uniform(size=(n, 2)))

    def log_at(self, theta: Array) -> Array:
        """Log-density (n,) at ``theta`` (n, 2) inside the prior's support."""
        at = [
            np.clip(np.searchsorted(e, column, side="right") - 1, 0, len(e) - 2)
            for e, column in zip(self.edges, theta.T, strict=True)
        ]
        return np.asarray(self.log_density[at[0], at[1]])


class Proposal:
    """The first proposal and, once fitted, a mixture; densities are of the prior's coordinates x."""

    def __init__(self, model: Model, cells: Cells) -> None:
        self.model, self.cells = model, cells
        self.mixture: Mixture | None = None

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Points x (m, d) inside the prior's support; m is about n."""
        d = self.model.dim
        kept = n if self.mixture is None else int(KEPT * n)
        theta = np.concatenate([self.cells.draw(kept, rng) for _ in range(d // 2)], axis=1)
        x = self.model.prior.to_x(theta)
        if self.mixture is None:
            return np.asarray(x)
        chosen = rng.choice(len(self.mixture.weight), n - kept, p=self.mixture.weight)
        scale = np.sqrt(DEGREES_OF_FREEDOM / rng.chisquare(DEGREES_OF_FREEDOM, n - kept))
        noise = rng.standard_normal((n - kept, d)) * scale[:, None]
        spread = self.mixture.mean[chosen] + np.einsum("nij,nj->ni", self.mixture.chol[chosen], noise)
        return np.concatenate([x, spread])

    def log_weight(self, x: Array) -> Array:
        """Log of prior times likelihood over proposal, (n,); -inf outside the prior's support."""
        prior = self.model.prior
        log_prior = prior.log_density(x)
        inside, found = np.isfinite(log_prior), np.full(len(x), -np.inf)
        x, theta = x[inside], prior.to_theta(x[inside])
        first = sum(self.cells.log_at(theta[:, i : i + 2]) for i in range(0, theta.shape[1], 2))
        log_proposal = first - prior.log_density_theta(theta) + log_prior[inside]
        if self.mixture is not None:
            fitted = np.log1p(-KEPT) + self.mixture.log_density(x)
            log_proposal = np.logaddexp(np.log(KEPT) + log_proposal, fitted)
        values = np.asarray(self.model.log_likelihood(theta), dtype=float)
        found[inside] = values + log_prior[inside] - log_proposal
        return found


def sampled(model: Model, grid: Grid, z_range: tuple[float, float], seed: int = 0, times: int = 1) -> Sampled:
    """Evidence of ``model`` with two absorbers or more, from the quadrature ``grid`` of one.

    ``times`` as many points as usual are drawn.
    """
    cells = Cells(grid, z_range)
    runs, points, weights = [], [], []
    for rng in np.random.default_rng(seed).spawn(2):
        proposal = Proposal(model, cells)
        x, log_weight = _searched(proposal, rng, times)
        points.append(x)
        weights.append(log_weight)
        runs.append(_mean(log_weight))
    (a, error_a), (b, error_b) = runs
    joint, x = np.concatenate(weights), np.concatenate(points)
    draws = model.prior.to_theta(x[systematic(np.exp(joint - joint.max()), DRAWS)])
    mean = float(np.logaddexp(a, b) - np.log(2.0))
    error = max(0.5 * abs(a - b), float(np.hypot(error_a, error_b)) / 2.0)
    return Sampled(mean, error, draws, 2 * times * (ROUNDS * SEARCH + FINAL))


def _searched(proposal: Proposal, rng: np.random.Generator, times: int) -> tuple[Array, Array]:
    """Points and log-weights of the estimate, after some rounds of fitting."""
    for _ in range(ROUNDS):
        x = proposal.draw(times * SEARCH, rng)
        log_weight = proposal.log_weight(x)
        weight = np.exp(log_weight - log_weight.max())
        start = seeded(x, weight, COMPONENTS, rng) if proposal.mixture is None else proposal.mixture
        proposal.mixture = start.refitted(x, weight)
    x = proposal.draw(times * FINAL, rng)
    return x, proposal.log_weight(x)


def _mean(log_weight: Array) -> tuple[float, float]:
    """Log of the mean weight, and its standard error."""
    top = log_weight.max()
    share = np.exp(log_weight - top)
    return float(top + np.log(share.mean())), float(share.std() / share.mean() / np.sqrt(len(share)))
