"""The command line, one file per command. Numerical imports wait until a command runs."""

from modelodds.cli.bench import bench
from modelodds.cli.demo import demo
from modelodds.cli.dla import dla
from modelodds.cli.leaderboard import leaderboard
from modelodds.cli.main import app
from modelodds.cli.problems import problems
from modelodds.cli.record import evaluations, salvage, status
from modelodds.cli.report import report, watch
from modelodds.cli.reproduce import app as reproduce
from modelodds.cli.run import resume, run

for command in (
    demo,
    run,
    status,
    resume,
    evaluations,
    salvage,
    report,
    watch,
    problems,
    bench,
    leaderboard,
    dla,
):
    app.command()(command)
app.add_typer(reproduce, name="reproduce")

__all__ = ["app"]
