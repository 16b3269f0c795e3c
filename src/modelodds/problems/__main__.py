"""``python -m modelodds.problems NAME ... --seeds FIRST:AFTER_LAST``: ground truths that are missing."""

import argparse
from functools import partial

from modelodds.problems import find
from modelodds.problems.truth import compute, importance, stored


def main() -> None:
    """Compute and store what is missing; see ``truth.py``."""
    parser = argparse.ArgumentParser(prog="python -m modelodds.problems", description=main.__doc__)
    parser.add_argument("problems", nargs="+", help="as `modelodds problems` lists them")
    parser.add_argument("--seeds", default="0", help="one, or FIRST:AFTER_LAST")
    arguments = parser.parse_args()
    first, _, after = arguments.seeds.partition(":")
    for name in arguments.problems:
        family, size = find(name)
        if family.candidates is None:
            print(f"{name} is known exactly")
            continue
        for seed in range(int(first), int(after or int(first) + 1)):
            by = partial(family.solve, size, seed) if family.solve else importance
            compute(name, seed, family.candidates(size, seed), by)
            print(name, seed, *stored(name, seed, family.candidates(size, seed)))


if __name__ == "__main__":
    main()
