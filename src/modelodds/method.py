"""The choices that make a method, and the two presets."""

import math
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any

from modelodds.acquisition import ACQUISITIONS
from modelodds.acquisition.coupled import COUPLED
from modelodds.errors import OptionError
from modelodds.evidence import INTEGRANDS
from modelodds.surrogate.coupled import MEANS as COUPLED_MEANS
from modelodds.surrogate.kernels import KERNELS
from modelodds.surrogate.means import MEANS

CHOICES: dict[str, tuple[str, ...]] = {
    "kernel": (*KERNELS, "auto"),
    "mean": MEANS,
    "fit": ("log", "original"),
    "squash": ("auto", "none"),
    "acquisition": (*ACQUISITIONS, "auto"),
    "allocation": ("shared", "in_turn"),
    "nodes": ("adaptive", "prior"),
    "weights": INTEGRANDS,
    "estimate": INTEGRANDS,
    "design": ("quasi", "random"),
    "costs": ("given", "measured", "ignored"),
    "coupling": ("auto", "independent", "shared"),
}


@dataclass(frozen=True)
class Method:
    """How evidences are modelled and evaluations chosen.

    Parameters
    ----------
    kernel : str
        Covariance of the surrogate: ``matern32``, ``matern52``, ``squared_exponential``, or ``auto``:
        whichever of the last two explains the observations better, decided anew at each full refit.
    mean : str
        Its prior mean: ``constant``, ``quadratic`` (negative, axis-aligned) or ``full_quadratic``.
    fit : str
        Hyperparameters fitted to ``log`` likelihoods or in the ``original`` space (the paper).
    squash : str
        Whether log-likelihoods far below the best are drawn closer together (``surrogate/squash.py``):
        ``auto``, where that explains the observations better, or ``none``.
    acquisition : str
        ``mutual_information`` (the paper), ``log_odds``, ``variance``, ``uncertainty``,
        ``uncertainty_capped``; for two models ``model_choice``, ``model_choice_gaussian`` (the paper's) and
        ``difference``; ``auto`` takes ``log_odds`` for up to two models and ``variance`` for more.
    allocation : str
        Which model is evaluated next: the one whose best point says most (``shared``), or each ``in_turn``.
    nodes : str
        ``prior`` quasi-Monte Carlo, or the ``adaptive`` mixture.
    weights, estimate : str
        Integrand (see ``evidence.py``) that guides the search, and the one the evidence is read from.
    shaped_noise : bool
        Observations far below the best get extra noise, so that the surrogate need not follow them.
    n_nodes : int
        Quadrature nodes per model.
    initial : float
        Initial evaluations per model, as a multiple of its dimension ...
    initial_extra : int
        ... plus this many.
    design : str
        Initial evaluations at ``quasi`` or ``random`` points of the prior.
    calibrated : bool
        Widen each evidence's uncertainty by the surrogate's record of predictions and its lack of freedom,
        and report the evidence over fresh sets of nodes, their error included.
    climb : bool
        Go uphill from each model's best observation before its evidence is believed.
    costs : str
        What a model's evaluation costs: ``given`` by the models, ``measured`` as the run goes (which makes
        queries depend on the clock), or ``ignored``.
    coupling : str
        Whether models learn from each other's evaluations: ``independent``, or ``shared`` where they have
        parameters in common and one surrogate of all explains the observations better (``coupling.py``);
        ``auto`` is ``shared`` if the other choices allow it, for up to four such models.
    """

    kernel: str = "auto"
    mean: str = "full_quadratic"
    fit: str = "log"
    squash: str = "auto"
    acquisition: str = "auto"
    allocation: str = "shared"
    nodes: str = "adaptive"
    weights: str = "capped"
    estimate: str = "mean"
    shaped_noise: bool = True
    n_nodes: int = 4096
    initial: float = 2.0
    initial_extra: int = 4
    design: str = "quasi"
    calibrated: bool = True
    climb: bool = True
    costs: str = "given"
    coupling: str = "auto"

    @property
    def coupled(self) -> bool:
        """Whether models may learn from each other's evaluations."""
        return self.coupling == "shared" or (self.coupling == "auto" and self._uncoupled() is None)

    @property
    def exchange(self) -> bool:
        """Whether surrogates heed exchangeable parameters: the paper's do not."""
        return self.fit == "log" and self.mean == "full_quadratic"

    def __post_init__(self) -> None:
        for option, known in CHOICES.items():
            if getattr(self, option) not in known:
                raise OptionError(
                    f"{option}={getattr(self, option)!r} is not known; choose one of {', '.join(known)}."
                )
        if self.fit == "original" and (
            self.mean == "full_quadratic" or self.kernel == "auto" or self.squash == "auto"
        ):
            raise OptionError(
                "fit='original' needs a mean of 'constant' or 'quadratic', a named kernel and squash='none'; "
                f"got mean={self.mean!r}, kernel={self.kernel!r}, squash={self.squash!r}."
            )
        if self.coupling == "shared" and (why := self._uncoupled()) is not None:
            raise OptionError(why)
        for option, kind in (("initial", Real), ("initial_extra", Integral), ("n_nodes", Integral)):
            value = getattr(self, option)
            if isinstance(value, bool) or not isinstance(value, kind) or not math.isfinite(value):
                whole = "whole " if kind is Integral else ""
                raise OptionError(f"{option} must be a {whole}number, not {value!r}.")
        if self.initial < 0:
            raise OptionError(f"initial={self.initial!r} would be less than no points; use 0 or more.")
        if self.n_nodes < 64:
            raise OptionError(f"n_nodes={self.n_nodes} is too few to integrate with; use 64 or more.")

    def _uncoupled(self) -> str | None:
        """Why models cannot learn from each other with these choices; None where they can."""
        if self.fit != "log" or self.mean not in COUPLED_MEANS:
            return (
                f"coupling='shared' needs fit='log' and a mean of {' or '.join(COUPLED_MEANS)}; "
                f"got fit={self.fit!r}, mean={self.mean!r}."
            )
        rules = [name.removeprefix("shared:") for name in COUPLED]
        if self.acquisition not in (*rules, "auto"):
            return (
                f"coupling='shared' works with the acquisitions {', '.join(rules)} and auto, "
                f"not {self.acquisition!r}."
            )
        return None

    def initial_points(self, d: int) -> int:
        """Evaluations of a ``d``-dimensional model before the acquisition takes over."""
        return max(2, round(self.initial * d) + self.initial_extra)


PRESETS: dict[str, Method] = {
    "default": Method(),
    "paper": Method(
        kernel="matern32",
        mean="constant",
        fit="original",
        squash="none",
        acquisition="mutual_information",
        nodes="prior",
        weights="moment",
        estimate="moment",
        shaped_noise=False,
        n_nodes=8192,
        initial=5.0,
        initial_extra=0,
        design="random",
        calibrated=False,
        climb=False,
        costs="ignored",
        coupling="independent",
    ),
}


def resolve_method(method: "str | Method", **changes: Any) -> Method:
    """A ``Method`` from a preset's name or as given, with single options changed."""
    if isinstance(method, str):
        if method not in PRESETS:
            raise OptionError(
                f"method={method!r} is not known; use one of {', '.join(PRESETS)}, or a Method(...)."
            )
        method = PRESETS[method]
    if not isinstance(method, Method):
        raise OptionError(f"method must be a preset's name or a Method, not {type(method).__name__}.")
    known = [f.name for f in fields(Method)]
    for option in changes:
        if option not in known:
            raise OptionError(f"Method has no option {option!r}; it has {', '.join(known)}.")
    return replace(method, **changes)
