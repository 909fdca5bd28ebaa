"""Release a table with equal weights of all cells in the two-sided repair, and print the runs as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from itertools import chain

from experiments.kit.cases import DATA
from experiments.large_counts.measure import run_once, tables
from treetop.repair import two_sided


def main(name: str, number: str, *epsilons: str) -> None:
    """Print the runs of the table of this name at every loss."""
    two_sided.GIVE = 1.0
    every = chain(tables(None, quick=True), tables(DATA if DATA.is_dir() else None))
    table = next(one for one in every if one.name == name)
    runs = [run_once(table, float(epsilon), "equal weights", run) for epsilon in epsilons for run in range(int(number))]
    sys.stdout.write(json.dumps([asdict(run) for run in runs]))


if __name__ == "__main__":
    main(*sys.argv[1:])
