"""Damped Lyman-α absorbers in quasar spectra: how many a line of sight crosses, and where.

The models are those of Garnett et al. (2017) and Ho et al. (2021): a Gaussian process of a quasar without
absorber, multiplied by the Voigt transmission of k absorbers. ``models(path)`` reads an SDSS spectrum and
gives them as `modelodds.Model`; ``simulate`` makes spectra where there are none.

>>> from modelodds.apps import dla
>>> spectrum = dla.simulate(dla.NullModel.synthetic(), 2.6, [(2.3, 21.0)], snr=5.0, seed=1)
>>> one, two = dla.models(spectrum, null=dla.NullModel.synthetic())
>>> one.parameters
('z_dla_1', 'log_nhi_1')
"""

from modelodds.apps.dla.likelihood import Likelihood
from modelodds.apps.dla.models import model_name, models
from modelodds.apps.dla.null import NullModel
from modelodds.apps.dla.prior import COLUMN_DENSITY, absorber_fraction, model_probabilities
from modelodds.apps.dla.sightline import Sightline
from modelodds.apps.dla.simulate import simulate
from modelodds.apps.dla.spectrum import Spectrum

__all__ = [
    "COLUMN_DENSITY",
    "Likelihood",
    "NullModel",
    "Sightline",
    "Spectrum",
    "absorber_fraction",
    "model_name",
    "model_probabilities",
    "models",
    "simulate",
]
