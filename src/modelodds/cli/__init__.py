"""The command line: ``modelodds demo``, ``modelodds run``. Numerical imports wait until a command runs."""

from modelodds.cli.demo import demo
from modelodds.cli.main import app
from modelodds.cli.run import run

app.command()(demo)
app.command()(run)

__all__ = ["app"]
