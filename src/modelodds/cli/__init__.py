"""The command line, one file per command. Numerical imports wait until a command runs."""

from modelodds.cli.bench import bench
from modelodds.cli.demo import demo
from modelodds.cli.main import app
from modelodds.cli.problems import problems
from modelodds.cli.run import run

for command in (demo, run, problems, bench):
    app.command()(command)

__all__ = ["app"]
