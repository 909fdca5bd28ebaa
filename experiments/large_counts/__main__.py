"""The study as one command: `python -m experiments.large_counts`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.kit import pages
from experiments.kit.command import Call, as_command
from experiments.large_counts.measure import EPSILONS, study, tables
from experiments.large_counts.page import page


@as_command()
def command(call: Call) -> Iterator[Path]:
    """Release sparse tables with margins and without, and write docs/results/large-counts.md.

    It takes about three minutes. With --quick one small made-up table.
    """
    every = call.timed(tables(None if call.quick else call.real(), call.quick))
    epsilons = (EPSILONS[-1],) if call.quick else EPSILONS
    runs = call.runs or (2 if call.quick else 10)
    found = [study(table, runs, epsilons) for table in every]
    yield pages.write(call.docs / "results" / "large-counts.md", page(found))


if __name__ == "__main__":
    command()
