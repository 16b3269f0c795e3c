"""Quantile functions of PyMC's random variables by their names, with the parameters as PyMC keeps them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

QUANTILES: dict[str, Callable[..., Any]] = {
    "normal": lambda u, mu, sigma: mu + sigma * special.ndtri(u),
    "halfnormal": lambda u, loc, sigma: loc + sigma * np.sqrt(2) * special.erfinv(u),
    "cauchy": lambda u, a, b: stats.cauchy.ppf(u, a, b),
    "halfcauchy": lambda u, beta: beta * np.tan(np.pi * u / 2),
    "t": lambda u, nu, mu, sigma: mu + sigma * special.stdtrit(nu, u),
    "halfstudentt": lambda u, nu, sigma: -sigma * special.stdtrit(nu, (1 - u) / 2),
    "uniform": lambda u, lower, upper: lower + (upper - lower) * u,
    "exponential": lambda u, scale: -scale * np.log1p(-u),
    "gamma": lambda u, alpha, scale: scale * special.gammaincinv(alpha, u),
    "invgamma": lambda u, alpha, beta: beta / special.gammainccinv(alpha, u),
    "beta": lambda u, a, b: special.betaincinv(a, b, u),
    "lognormal": lambda u, mu, sigma: np.exp(mu + sigma * special.ndtri(u)),
    "truncated_normal": lambda u, mu, sigma, lower, upper: stats.truncnorm.ppf(
        u, (lower - mu) / sigma, (upper - mu) / sigma, mu, sigma
    ),
    "laplace": lambda u, mu, b: stats.laplace.ppf(u, mu, b),
    "logistic": lambda u, mu, s: mu + s * special.logit(u),
    "gumbel": lambda u, mu, beta: mu - beta * np.log(-np.log(u)),
    "weibull": lambda u, alpha, beta: beta * (-np.log1p(-u)) ** (1 / alpha),
    "pareto": lambda u, alpha, m: m * (1 - u) ** (-1 / alpha),
    "kumaraswamy": lambda u, a, b: (-np.expm1(np.log1p(-u) / b)) ** (1 / a),
    "triangular": lambda u, lower, c, upper: stats.triang.ppf(
        u, (c - lower) / (upper - lower), lower, upper - lower
    ),
    "multivariate_normal": lambda u, mu, cov: (
        mu + np.einsum("...ij,...j->...i", np.linalg.cholesky(cov), special.ndtri(u))
    ),
}
