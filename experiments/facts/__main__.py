"""The study as one command: `python -m experiments.facts`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.facts import figures, page
from experiments.facts.measure import EPSILONS, FEW, RUNS, study, tables
from experiments.kit import pages
from experiments.kit.command import Call, as_command


@as_command("--out")
def command(call: Call) -> Iterator[Path]:
    """Release tables with and without public facts, and write docs/results/facts.md with its figure.

    Each is released five or ten times at each of three losses: about five minutes. With --quick one made-up table: a
    few seconds.
    """
    every = call.timed(tables(None if call.quick else call.real()))
    studies = [study(known, call.runs or FEW.get(known.name, RUNS), call.kept(known.name), EPSILONS) for known in every]
    yield pages.write(call.docs / "results" / "facts.md", page.page(studies))
    yield from figures.draw(studies, call.docs / "images")


if __name__ == "__main__":
    command()
