"""The README's example does what it says."""

import re
from pathlib import Path

import numpy as np
from scipy import stats

README = Path(__file__).parents[1] / "README.md"


def test_the_first_example_runs_and_favours_the_line() -> None:
    code = re.search(r"```python\n(import numpy.*?)```", README.read_text(), re.DOTALL)
    assert code is not None
    names: dict[str, object] = {}
    exec(code.group(1).replace("rng=0)", "rng=0, progress=False)"), names)
    result, t, y = names["result"], names["t"], names["y"]
    # Conjugate, so exact: y ~ N(0, 4 F F^T + 0.09 I) for designs 1, t and 1, t, t^2.
    log_evidence = [
        stats.multivariate_normal.logpdf(y, cov=4 * sum(f[:, None] * f for f in fs) + 0.09 * np.eye(len(t)))
        for fs in ([t**0, t], [t**0, t, t**2])
    ]
    mean, sd = result.log_bayes_factor("linear", "quadratic")
    assert abs(mean - (log_evidence[0] - log_evidence[1])) < max(5 * sd, 0.01)
    assert result.best == "linear"
