"""Models written for other libraries as modelodds' models, and results as those libraries like them.

Each module imports the library it is named after when one of its functions is called.
"""

from modelodds.adapters.arviz import to_arviz
from modelodds.adapters.bilby import from_bilby
from modelodds.adapters.getdist import to_getdist
from modelodds.adapters.nested import from_dynesty, from_nautilus, from_ultranest
from modelodds.adapters.numpyro import from_numpyro
from modelodds.adapters.pymc import from_pymc

__all__ = [
    "from_bilby",
    "from_dynesty",
    "from_nautilus",
    "from_numpyro",
    "from_pymc",
    "from_ultranest",
    "to_arviz",
    "to_getdist",
]
