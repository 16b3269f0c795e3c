"""Posterior draws as GetDist, CosmoMC and Cobaya write chains: text files and their parameters' names."""

import os
import re
from pathlib import Path

import numpy as np

from modelodds.result import Result


def to_getdist(result: Result, folder: str | os.PathLike[str]) -> list[Path]:
    """Write ``MODEL.txt`` and ``MODEL.paramnames`` of every model that has draws.

    A row is a weight, minus the log-likelihood (0 where it was not kept), and the parameters that vary.
    ``getdist.loadMCSamples("folder/MODEL")`` reads them.

    Returns
    -------
    list of Path
        The chains, without ``.txt``, as GetDist wants them.
    """
    roots = []
    for name in result.names:
        draws = result.draws.get(name, np.empty((0, 0)))
        varying = [j for j in range(draws.shape[1]) if len(draws) and np.ptp(draws[:, j]) > 0]
        if not varying:
            continue
        root = Path(folder) / _identifier(name)
        log_likelihood = result.diagnostics.get(name, {}).get("draw_log_likelihood", np.zeros(len(draws)))
        np.savetxt(f"{root}.txt", np.column_stack([np.ones(len(draws)), -log_likelihood, draws[:, varying]]))
        labels = [result.parameters[name][j] for j in varying]
        lines = [f"{_identifier(label)} {_latex(label)}" for label in labels]
        Path(f"{root}.paramnames").write_text("\n".join(lines) + "\n", encoding="utf-8")
        roots.append(root)
    return roots


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_")


def _latex(label: str) -> str:
    """A name as GetDist sets it: between dollar signs, words upright."""
    return r"\mathrm{" + re.sub(r"([_%#&$])", r"\\\1", label).replace(" ", "~") + "}"
