"""One page that tells a result: verdict, table, warnings, plots to play with, and how to reproduce it.

``data.py`` says what the plots show, ``words.py`` writes the text, ``page.py`` puts both and the plotting
library into one file that needs no network, ``live.py`` serves it while a run goes on.
"""

from modelodds.report.loading import load
from modelodds.report.page import page, write

__all__ = ["load", "page", "write"]
