"""``modelodds problems``: the benchmark problems there are."""

import typer


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
        listed.add_row(name, family.about, "any" if family.seeded else "0")
    methods = Table("method", "what it is", box=SIMPLE_HEAD, pad_edge=False)
    for name, entry in METHODS.items():
        methods.add_row(name, entry.about)
    console = Console()
    console.print(listed)
    console.print(methods)
    typer.echo("Run any pair: modelodds bench --problem tails-2 --method bridge --budget 500 --seeds 10")
