"""Results as ArviZ has them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from modelodds.result import Result

if TYPE_CHECKING:
    import xarray as xr

CHAINS = 4  # the draws are independent; ArviZ compares chains
ENTRY = re.compile(r"(.+)\[([^\[\]]+)\]")


def to_arviz(result: Result, name: str | None = None) -> Any:
    """A result as ArviZ's ``InferenceData`` (a ``DataTree`` with ArviZ 1).

    Parameters
    ----------
    result : Result
        The comparison.
    name : str, optional
        The model whose draws are to be the group ``posterior``; the most probable one otherwise.

    Returns
    -------
    InferenceData or DataTree
        ``posterior`` and ``sample_stats`` of that model, ``posterior_NAME`` of every model, and
        ``evaluations``, all evaluations in order. Names such as ``beta[0]``, ``beta[1]`` are put together as
        one vector. Attributes of a posterior: model, log_evidence, log_evidence_sd, probability,
        probability_sd.
    """
    import arviz

    chosen = result.names[result._index(name)] if name is not None else result.best
    groups = {"posterior": posterior(result, chosen)}
    if (stats := sample_stats(result, chosen)) is not None:
        groups["sample_stats"] = stats
    kept = [each for each in result.names if len(result.draws.get(each, ()))]
    groups |= {f"posterior_{_identifier(each)}": posterior(result, each) for each in kept}
    groups["evaluations"] = evaluations(result)
    if hasattr(arviz, "InferenceData"):
        return arviz.InferenceData(**groups)
    import xarray as xr

    return xr.DataTree.from_dict(groups)


def posterior(result: Result, name: str) -> xr.Dataset:
    """Posterior draws of one model by variable, dimensions chain and draw first."""
    import xarray as xr

    draws = result.draws[name][_order(result, name)]
    columns = dict(zip(result.parameters[name], draws.reshape(CHAINS, -1, draws.shape[1]).T, strict=True))
    variables = {}
    for variable, parts in _together(list(columns)).items():
        values = [columns[column].T for column in parts.values()]
        if list(parts) == [""]:
            variables[variable] = xr.DataArray(values[0], dims=("chain", "draw"))
        else:
            dims = ("chain", "draw", f"{variable}_dim")
            labels = {f"{variable}_dim": list(parts)}
            variables[variable] = xr.DataArray(np.stack(values, axis=-1), dims=dims, coords=labels)
    counted = {"chain": np.arange(CHAINS), "draw": np.arange(len(draws) // CHAINS)}
    return xr.Dataset(variables, coords=counted, attrs=attributes(result, name))


def sample_stats(result: Result, name: str) -> xr.Dataset | None:
    """The log-likelihood, as the surrogate has it, of every draw; None where it was not kept."""
    import xarray as xr

    values = result.diagnostics.get(name, {}).get("draw_log_likelihood")
    if values is None:
        return None
    values = values[_order(result, name)].reshape(CHAINS, -1)
    return xr.Dataset({"log_likelihood": (("chain", "draw"), values)}, attrs=attributes(result, name))


def evaluations(result: Result) -> xr.Dataset:
    """All evaluations, in order."""
    import xarray as xr

    table = result.evaluations.astype({"model": object, "status": object, "reason": object})
    columns = {str(key): ("evaluation", column.to_numpy()) for key, column in table.items() if key != "id"}
    return xr.Dataset(columns, coords={"evaluation": table["id"].to_numpy()})


def attributes(result: Result, name: str) -> dict[str, Any]:
    """What is known of a model, beside its draws."""
    return {
        "model": name,
        "log_evidence": result.log_evidence[name],
        "log_evidence_sd": result.log_evidence_sd[name],
        "probability": result.probabilities[name],
        "probability_sd": result.probability_sd[name],
        "inference_library": "modelodds",
        "inference_library_version": result.version,
    }


def _order(result: Result, name: str) -> Any:
    """A shuffle of the draws, which come sorted by node, cut to a multiple of the chains."""
    result.posterior(name, 1)  # says what is wrong where there are none
    n = len(result.draws[name])
    return np.random.default_rng(0).permutation(n)[: n - n % CHAINS]


def _together(names: list[str]) -> dict[str, dict[str, str]]:
    """Variables of a list of names: of each, its columns by their labels; a lone number has the label ''."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        entry = ENTRY.fullmatch(name)
        variable, label = entry.groups() if entry else (name, "")
        found.setdefault(variable, {})[label] = name
    return found


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name)
