"""Quadrature nodes of one model: where integrals over its prior are summed.

Prior quasi-Monte Carlo is enough while the posterior is not much narrower than the prior. Otherwise the nodes
follow the surrogate's mass: a share of them stays with the prior, the rest come from a mixture of Student-t
distributions refitted to the surrogate's own weights, and every node carries the weight prior / proposal (the
balance heuristic of Veach & Guibas 1995). All points descend from one scrambled Sobol sequence drawn once, so
that successive estimates share their quadrature error.

Where parts of a model can be exchanged for each other (``surrogate/exchange.py``), every peak is there in all
orders of them. The mixture knows one order, nodes are dealt to all of them, and the proposal's density is the
mean over orders: no order can be lost.

| symbol   | name          | shape  | meaning                          |
|----------|---------------|--------|----------------------------------|
| x_s      | ``x``         | (S, d) | nodes                            |
| log w_s  | ``log_weight``| (S,)   | integral of f pi = sum w_s f(x_s)|
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special, stats
from scipy.cluster.vq import kmeans2
from scipy.stats import qmc

from modelodds.prior import Prior
from modelodds.surrogate.exchange import Blocks, exchanged, in_order

DEGREES_OF_FREEDOM = 6.0
PRIOR_SHARE = 0.25


@dataclass(frozen=True)
class Mixture:
    """Multivariate Student-t components."""

    weight: np.ndarray  # (K,)
    mean: np.ndarray  # (K, d)
    chol: np.ndarray  # (K, d, d)

    @classmethod
    def of(cls, parts: "Sequence[Mixture]") -> "Mixture":
        """One mixture of several, in equal shares."""
        weight = np.concatenate([part.weight for part in parts]) / len(parts)
        return cls(weight, np.concatenate([p.mean for p in parts]), np.concatenate([p.chol for p in parts]))

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """Log density at ``x`` (n, d), shape (n,)."""
        return np.asarray(special.logsumexp(self._log_components(x), axis=1))

    def _log_components(self, x: np.ndarray) -> np.ndarray:
        d, nu = x.shape[1], DEGREES_OF_FREEDOM
        inverse = np.linalg.inv(self.chol)
        square = [(((x - m) @ i.T) ** 2).sum(1) for m, i in zip(self.mean, inverse, strict=True)]
        norm = special.gammaln((nu + d) / 2) - special.gammaln(nu / 2) - 0.5 * d * np.log(nu * np.pi)
        log_det = np.log(np.abs(np.diagonal(self.chol, axis1=1, axis2=2))).sum(1)
        body = -0.5 * (nu + d) * np.log1p(np.stack(square, axis=1) / nu)
        with np.errstate(divide="ignore"):  # a component that was dealt no node
            return np.asarray(np.log(self.weight) + norm - log_det + body)

    def refitted(self, x: np.ndarray, weight: np.ndarray, rounds: int = 2) -> "Mixture":
        """A few steps of expectation-maximisation towards the weighted points ``x`` (n, d)."""
        mixture = self
        keep = weight > 1e-7 * weight.max()
        x, weight = x[keep], weight[keep] / weight[keep].sum()
        for _ in range(rounds):
            log_part = mixture._log_components(x)
            share = weight[:, None] * special.softmax(log_part, axis=1)
            mixture = _moments(x, share)
        return mixture


def _moments(x: np.ndarray, share: np.ndarray) -> Mixture:
    """Mixture with the moments of points ``x`` (n, d) split by ``share`` (n, K), thin parts dropped."""
    d = x.shape[1]
    total = share.sum(0)
    pooled_mean = share.sum(1) @ x / total.sum()
    centred = x - pooled_mean
    pooled = (share.sum(1)[:, None] * centred).T @ centred / total.sum()
    alive = total > 1e-3 * total.sum()
    share, total = share[:, alive], total[alive]
    mean = (share.T @ x) / total[:, None]
    cov = np.stack(
        [(s[:, None] * (x - m)).T @ (x - m) / t for s, m, t in zip(share.T, mean, total, strict=True)]
    )
    cov = 0.98 * cov + 0.02 * pooled[None] + 1e-10 * np.eye(d)
    return Mixture(total / total.sum(), mean, np.linalg.cholesky(cov))


def seeded(x: np.ndarray, weight: np.ndarray, components: int, rng: np.random.Generator) -> Mixture:
    """Mixture seeded by k-means on draws from the weighted points ``x`` (n, d)."""
    draws = x[systematic(weight, 1024)]
    components = min(components, len(np.unique(draws, axis=0)))
    scale = draws.std(0) + 1e-12
    _, label = kmeans2(draws / scale, components, minit="++", seed=rng, missing="warn")
    return _moments(draws, np.eye(components)[label] / len(draws))


def systematic(weight: np.ndarray, n: int) -> np.ndarray:
    """Indices of ``n`` equally weighted draws by systematic resampling."""
    cumulative = np.cumsum(weight / weight.sum())
    cumulative[-1] = 1.0
    return np.searchsorted(cumulative, (np.arange(n) + 0.5) / n)


def effective_size(log_weight: np.ndarray) -> float:
    """Effective number of nodes (Kish) of unnormalised log weights (S,)."""
    top = log_weight.max()
    if not np.isfinite(top):
        return 0.0
    weight = np.exp(log_weight - top)
    return float(weight.sum() ** 2 / (weight**2).sum())


@dataclass(frozen=True)
class Nodes:
    """The nodes of one model, and the low-discrepancy points they are made of."""

    prior: Prior
    prior_x: np.ndarray  # (S0, d) fixed
    inside: np.ndarray  # those of them that lie in the prior's support
    normal: np.ndarray  # (S1, d) quasi-random standard normal points for the mixture
    scale: np.ndarray  # (S1,) Student-t scales
    mixture: Mixture | None
    x: np.ndarray  # (S, d)
    log_weight: np.ndarray  # (S,)
    blocks: Blocks = ()  # columns of parts that can be exchanged for each other

    @classmethod
    def from_prior(cls, prior: Prior, n: int, rng: np.random.Generator, blocks: Blocks = ()) -> "Nodes":
        """Prior quasi-Monte Carlo."""
        d = prior.dim
        u = _sobol(n, d + 1, rng)
        v = _sobol(n, d + 1, rng)
        scale = np.sqrt(DEGREES_OF_FREEDOM / stats.chi2.ppf(v[:, d], DEGREES_OF_FREEDOM))
        x, _ = prior.from_unit(u[:, :d])
        log_weight = prior.log_density(x) - prior.log_reference(x) - np.log(n)
        inside, normal = x[np.isfinite(log_weight)], special.ndtri(v[:, :d])
        return cls(prior, x, inside, normal, scale, None, x, log_weight, blocks)

    def like(self, rng: np.random.Generator, prior: Prior | None = None) -> "Nodes":
        """Independent nodes of the same mixture, for the same prior or another."""
        nodes = Nodes.from_prior(prior or self.prior, len(self.x), rng, self.blocks)
        return nodes if self.mixture is None else nodes.with_mixture(self.mixture)

    @property
    def in_order(self) -> np.ndarray:
        """The nodes, parts that can be exchanged being in the order of their first columns, (S, d)."""
        return in_order(self.blocks, self.x)

    def with_mixture(self, mixture: Mixture) -> "Nodes":
        """Nodes of the same number that follow ``mixture``, a share of them left with the prior."""
        n = len(self.prior_x)
        n_prior = int(PRIOR_SHARE * n)
        counts = np.round(np.cumsum(mixture.weight) * (n - n_prior)).astype(int)
        component = np.searchsorted(counts, np.arange(n - n_prior), side="right")
        component = np.minimum(component, len(mixture.weight) - 1)
        # Components take consecutive stretches of the sequence: any stretch of a Sobol sequence is even, too.
        noise = self.normal[: n - n_prior] * self.scale[: n - n_prior, None]
        spread = mixture.mean[component] + np.einsum("nij,nj->ni", mixture.chol[component], noise)
        orders = exchanged(self.blocks, self.prior.dim)
        spread = np.take_along_axis(spread, orders[np.arange(n - n_prior) % len(orders)], axis=1)
        x = np.concatenate([self.prior_x[:n_prior], spread])
        log_prior = self.prior.log_density(x)
        # The density is that of the counts, which are whole numbers: the weights' own would bias every sum.
        dealt = replace(mixture, weight=np.bincount(component, minlength=len(mixture.weight)) / (n - n_prior))
        in_orders = special.logsumexp([dealt.log_density(x[:, o]) for o in orders], axis=0)
        log_mixture = np.log1p(-n_prior / n) + in_orders - np.log(len(orders))
        log_proposal = np.logaddexp(np.log(n_prior / n) + self.prior.log_reference(x), log_mixture)
        return replace(self, mixture=mixture, x=x, log_weight=log_prior - log_proposal - np.log(n))


def _sobol(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    points = qmc.Sobol(d, scramble=True, rng=rng).random_base2(int(np.ceil(np.log2(n))))[:n]
    return np.asarray(np.clip(points, 1e-12, 1 - 1e-12))
