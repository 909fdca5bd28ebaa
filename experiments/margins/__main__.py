"""The study as one command: `python -m experiments.margins`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.kit import pages
from experiments.kit.command import Call, as_command
from experiments.margins import figures, page
from experiments.margins.measure import EPSILONS, Study, study, tables
from experiments.margins.targets import EPSILON


@as_command("--out", least_runs=0)
def command(call: Call) -> Iterator[Path]:
    """Compare releases with and without margins, and write docs/results/margins.md with its figures and numbers.

    It takes hours, of which lower-error on the two largest tables takes most. Keep runs with --out: they are taken up
    again, but for those whose plan has changed; with --runs 0 the page is of these alone. With --quick one made-up
    table: a few seconds.
    """
    runs = 3 if call.quick and call.runs is None else call.runs
    every = call.timed(tables(None if call.quick else call.real(), call.quick))
    epsilons = (EPSILON,) if call.quick else EPSILONS
    yield from write([study(table, runs, call.kept(table.name), epsilons) for table in every], call.docs)


def write(studies: Sequence[Study], docs: Path) -> list[Path]:
    """Write the page, the pictures and every number; return the files."""
    results = docs / "results"
    files = [pages.write(results / "margins.md", page.page(studies)), page.write_all(studies, results / page.ALL)]
    return [*files, *figures.draw(studies, docs / "images")]


if __name__ == "__main__":
    command()
