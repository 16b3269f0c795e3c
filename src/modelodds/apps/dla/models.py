"""The models of one spectrum: 0, 1, 2, ... absorbers."""

from collections.abc import Iterable
from pathlib import Path

from modelodds.apps.dla.likelihood import Likelihood
from modelodds.apps.dla.null import NullModel
from modelodds.apps.dla.prior import absorbers_prior, model_probabilities
from modelodds.apps.dla.sightline import Sightline
from modelodds.apps.dla.spectrum import Spectrum
from modelodds.errors import OptionError
from modelodds.model import Model

WORDS = ("no absorber", "one absorber", "two absorbers", "three absorbers", "four absorbers")


def models(
    spectrum: str | Path | Spectrum | Sightline,
    z_qso: float | None = None,
    absorbers: Iterable[int] = (1, 2),
    null: NullModel | None = None,
    catalogue_prior: bool = False,
    fraction: float | None = None,
) -> list[Model]:
    """Models of a quasar's spectrum with given numbers of absorbers.

    Parameters
    ----------
    spectrum
        An SDSS file, a `Spectrum`, or a `Sightline` made of one.
    z_qso
        The quasar's redshift; the file's own if left out.
    absorbers
        How many absorbers each model has; 0 is the null model, with nothing to fit.
    null
        The null model; the one at hand (`NullModel.load`) if left out.
    catalogue_prior
        Give the models the prior probabilities of Garnett et al. (2017); equal ones otherwise.
    fraction
        With ``catalogue_prior``: the probability of at least one absorber, if not the catalogue's.

    Returns
    -------
    list of Model
        With parameters z_dla_1, log_nhi_1, z_dla_2, ...; the likelihoods take many points at once. The
        absorbers of one model are exchangeable: every permutation of them is as probable.
    """
    counts = _counts(absorbers)
    sightline = _sightline(spectrum, z_qso, null)
    priors = model_probabilities(sightline.z_qso, max(counts), fraction) if catalogue_prior else None
    return [
        Model(
            model_name(k),
            Likelihood(sightline, k),
            absorbers_prior(k, sightline.z_range),
            prior_probability=priors[k] if priors else 1.0,
            vectorized=True,
            exchangeable=[(f"z_dla_{i}", f"log_nhi_{i}") for i in range(1, k + 1)] if 1 < k <= 4 else (),
        )
        for k in counts
    ]


def model_name(absorbers: int) -> str:
    """What the model with so many absorbers is called."""
    return WORDS[absorbers] if absorbers < len(WORDS) else f"{absorbers} absorbers"


def _counts(absorbers: Iterable[int]) -> list[int]:
    counts = list(absorbers)
    if not counts or any(isinstance(k, bool) or not isinstance(k, int) or k < 0 for k in counts):
        raise OptionError(f"absorbers must be whole numbers such as (0, 1, 2), not {counts!r}.")
    return counts


def _sightline(
    spectrum: str | Path | Spectrum | Sightline, z_qso: float | None, null: NullModel | None
) -> Sightline:
    if isinstance(spectrum, Sightline):
        return spectrum
    if not isinstance(spectrum, Spectrum):
        spectrum = Spectrum.read(spectrum, z_qso)
    return Sightline.of(spectrum, NullModel.load() if null is None else null)
