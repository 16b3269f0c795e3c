"""The command line, one file per command. Numerical imports wait until a command runs."""

from collections.abc import Callable

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

COMMANDS: dict[
    Callable[..., None], str
] = {  # in the order of the help, where a line has room for about sixty characters
    demo: "Compare three regressions of real data: a first look",
    run: "Compare the models of a Python file or of a TOML study",
    status: "Say where a run stands, also while it is running",
    resume: "Go on with a run that has a ledger",
    evaluations: "List every evaluation of a run: table, CSV or JSON",
    salvage: "Copy what is intact of a damaged ledger",
    report: "Write a result or a run as one HTML page",
    watch: "Show that page while the run goes on",
    problems: "List the benchmark problems and methods",
    bench: "Run methods on problems with known answers",
    leaderboard: "Run methods on every problem, and rank them",
    dla: "Find damped Lyman-α absorbers in quasar spectra",
}

for command, line in COMMANDS.items():
    app.command(short_help=line)(command)
app.add_typer(reproduce, name="reproduce", short_help="Run the experiments of Chai et al. (2019)")

__all__ = ["app"]
