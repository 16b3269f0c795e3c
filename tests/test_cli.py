"""The commands as a user meets them: answers, files, messages and exit codes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats
from typer.testing import CliRunner

from modelodds import Result, __version__
from modelodds.cli import app

EXAMPLES = Path(__file__).parents[1] / "examples"
HEADER = "from modelodds import Model, Prior\nfrom scipy import stats\n"
MODEL = "Model('m', lambda theta: 0.0, Prior({'x': stats.norm(0, 1)}))"


def invoke(*arguments: object) -> tuple[int, str]:
    """Exit code, and what was printed to stdout and stderr together."""
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("models = [", "is not Python: line 1: "),
        ("\0", "is not Python"),
        ("x = 1", "defines no models"),
        ("models = 3", "is a int; make it a list of Model"),
        ("models = [3]", "models[0] is a int; make it a Model"),
        ("models = []", "models is empty"),
        ("x = 1\ny = x / 0", "line 2, in <module>\n    y = x / 0"),
        ("def models():\n    raise KeyError('data')", "calling models():\n"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        (HEADER + "Prior({'x': (0, 1)})", "PriorError: "),
        (HEADER + f"models = [{MODEL}, {MODEL}]", "two models are called 'm'"),
        (HEADER + f"models = [{MODEL}]", "budget=2 is too small"),
    ],
)
def test_bad_files_are_refused_in_words(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "file.py").write_text(text, encoding="utf-8")
    code, output = invoke("run", tmp_path / "file.py", "--budget", 2)
    assert code == 2
    assert says in output and "site-packages/typer" not in output and "cli/run.py" not in output


def test_other_bad_input(tmp_path: Path) -> None:
    for arguments, says in [
        (("run", tmp_path / "none.py", "--budget", 9), "there is no file"),
        (("run", tmp_path, "--budget", 9), "cannot be read"),
        (("run", "x.py", "--budget", 9, "--json", tmp_path / "no" / "r.json"), "needs the folder"),
        (
            ("run", EXAMPLES / "from_dynesty.py", "--budget", 9, "--method", "best"),
            "use one of default, paper",
        ),
        (("demo", "--out", tmp_path / "no"), "needs the folder"),
    ]:
        code, output = invoke(*arguments)
        assert code == 2 and says in output and "Traceback" not in output


def test_version_and_help() -> None:
    assert invoke("--version") == (0, f"modelodds {__version__}\n")
    said = invoke("--help")[1]
    assert "demo" in said and "..." not in said.partition("Commands:")[2]  # no line is cut off


def test_no_statsmodels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    code, output = invoke("demo", "--out", tmp_path)
    assert code == 2 and "pip install 'modelodds[demo]'" in output


def test_failures_end_with_code_1(tmp_path: Path) -> None:
    model = "Model('m', lambda theta: 1 / 0, Prior({'x': stats.norm(0, 1)}))"
    (tmp_path / "file.py").write_text(f"{HEADER}models = lambda: [{model}]", encoding="utf-8")
    code, output = invoke("run", tmp_path / "file.py", "--budget", 6, "--quiet")
    assert code == 1 and "6 failed (ZeroDivisionError: division by zero)" in " ".join(output.split())


def test_run_agrees_with_the_closed_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import linear_or_quadratic as example

    file, json, figure = EXAMPLES / "linear_or_quadratic.py", tmp_path / "r.json", tmp_path / "r.png"
    code, output = invoke("run", file, "--budget", 40, "--json", json, "--figure", tmp_path / "r.xyz")
    assert code == 2 and "end its name in one of .png, .svg, .pdf" in output and not json.exists()
    code, output = invoke("run", file, "--budget", 40, "--json", json, "--figure", figure, "--quiet")
    assert (
        code == 0 and output.startswith("linear is favoured") and f"figure {figure}, result {json}" in output
    )
    assert figure.stat().st_size > 10_000
    bases = [np.vander(example.t, d, increasing=True) for d in (2, 3)]
    covs = [4 * x @ x.T + 0.09 * np.eye(20) for x in bases]
    line, parabola = (stats.multivariate_normal(np.zeros(20), cov).logpdf(example.y) for cov in covs)
    mean, sd = Result.from_json(json).log_bayes_factor("linear", "quadratic")
    assert abs(mean - (line - parabola)) < max(0.1, 4 * sd)


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Result]:
    """Output and result of one ``modelodds demo``."""
    pytest.importorskip("statsmodels")
    folder = tmp_path_factory.mktemp("demo")
    code, output = invoke("demo", "--out", folder)
    assert code == 0 and (folder / "modelodds-demo.png").stat().st_size > 10_000
    return output, Result.from_json(folder / "modelodds-demo.json")


def test_demo_names_its_files(demonstration: tuple[str, Result]) -> None:
    assert re.search(r"Written: figure .*modelodds-demo.png, result .*modelodds-demo.json", demonstration[0])


def test_demo_agrees_with_importance_sampling(demonstration: tuple[str, Result]) -> None:
    """Log Bayes factors within 0.1, or 4 sd, of 10^6 draws around each model's Laplace approximation.

    The reference's own standard error is below 0.001 for each log-evidence.
    """
    from modelodds.problems.links import spector_models

    _, result = demonstration
    reference = {model.name: importance_sampled(model) for model in spector_models()}
    for a, b in [("logistic", "probit"), ("logistic", "cloglog"), ("probit", "cloglog")]:
        mean, sd = result.log_bayes_factor(a, b)
        assert abs(mean - (reference[a] - reference[b])) < max(0.1, 4 * sd), (a, b, mean, sd)
        assert sd < 1.0  # an answer, not a shrug


def importance_sampled(model: object, n: int = 1_000_000) -> float:
    """Log-evidence by importance sampling."""
    from modelodds.problems import links

    link, prior = getattr(links, model.name), model.prior  # type: ignore[attr-defined]
    x, y = links.spector_data()

    def log_joint(theta: np.ndarray) -> np.ndarray:
        parts = np.array_split(np.atleast_2d(theta), max(1, theta.size // 200_000))
        return np.concatenate([link(p @ x.T, y).sum(1) for p in parts]) + prior.log_density_theta(
            np.atleast_2d(theta)
        )

    mode = optimize.minimize(lambda theta: -log_joint(theta)[0], np.zeros(4), method="BFGS")
    proposal = stats.multivariate_t(mode.x, 1.3 * mode.hess_inv, df=8)
    theta = proposal.rvs(n, random_state=np.random.default_rng(0))
    log_weight = log_joint(theta) - proposal.logpdf(theta)
    weight = np.exp(log_weight - log_weight.max())
    assert weight.std() / weight.mean() / np.sqrt(n) < 1e-3
    return float(log_weight.max() + np.log(weight.mean()))


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_interrupt_ends_with_130_and_what_is_known(tmp_path: Path) -> None:
    slow = """
import os, signal
calls = []
def f(theta):
    calls.append(1)
    if len(calls) == 5:
        os.kill(os.getpid(), signal.SIGINT)
    return -theta[0] ** 2
"""
    model = "Model('m', f, Prior({'x': stats.norm(0, 1)}))"
    (tmp_path / "file.py").write_text(f"{HEADER}{slow}models = [{model}]", encoding="utf-8")
    # a job started in the background ignores the signal
    start = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [
        sys.executable,
        "-c",
        f"{start}; from modelodds.cli import app; app()",
        "run",
        str(tmp_path / "file.py"),
    ]
    done = subprocess.run([*command, "--budget", "60"], capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    assert (
        "interrupted; this is the result so far" in " ".join(done.stdout.split())
        and "Traceback" not in done.stderr
    )
