"""The study as one command: `python -m experiments.coverage`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.coverage import page
from experiments.coverage.measure import EPSILONS, Study, study
from experiments.kit import pages
from experiments.kit.cases import tables
from experiments.kit.command import Call, as_command


@as_command("--out")
def command(call: Call) -> Iterator[Path]:
    """Measure how often noise intervals hold the truth, and write docs/results/coverage.md with its figures.

    At each loss, made-up tables are released 20 times and real ones 10 times; with --quick only the sparse made-up
    ones, twice: a few seconds.
    """
    runs = call.runs or (2 if call.quick else None)
    every = call.timed(tables(None if call.quick else call.real(), call.quick))
    yield from write([study(table, EPSILONS, runs, call.kept(table.name)) for table in every], call.docs)


def write(studies: Sequence[Study], docs: Path) -> list[Path]:
    """Write the page and its pictures; return the files."""
    from experiments.coverage.figures import draw

    return [pages.write(docs / "results" / "coverage.md", page.page(studies)), *draw(studies, docs / "images")]


if __name__ == "__main__":
    command()
