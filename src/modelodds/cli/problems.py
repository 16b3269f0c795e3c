"""``modelodds problems``: the benchmark problems there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from modelodds.problems.base import Family


def problems() -> None:
    """List the benchmark problems and the methods that ``modelodds bench`` knows."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from modelodds.baselines import METHODS
    from modelodds.problems import FAMILIES

    listed = Table("problem", "models compared", "seeds", box=SIMPLE_HEAD, pad_edge=False)
    for family in FAMILIES.values():
        name = family.name
        if family.sizes:
            name += f"-{min(family.sizes)} … {name}-{max(family.sizes)} ({family.sizes_are})"
        listed.add_row(name, family.about, _seeds(family))
    methods = Table("method", "what it is", box=SIMPLE_HEAD, pad_edge=False)
    for name, entry in METHODS.items():
        methods.add_row(name, entry.about)
    console = Console()
    console.print(listed)
    console.print(methods)
    typer.echo("Run any pair: modelodds bench --problem tails-2 --method bridge --budget 500 --seeds 10")


def _seeds(family: Family) -> str:
    """Seeds of the data there are: any, or those whose truth is stored."""
    from modelodds.problems.truth import known_seeds

    if not family.seeded:
        return "0"
    if family.candidates is None:
        return "any"
    names = [f"{family.name}-{size}" for size in family.sizes] or [family.name]
    return ", ".join(dict.fromkeys(_ranges(known_seeds(name)) for name in names))


def _ranges(numbers: list[int]) -> str:
    """Numbers in ascending order as text: 0–3, 5."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
