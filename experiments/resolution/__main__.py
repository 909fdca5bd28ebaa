"""The study as one command: `python -m experiments.resolution`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.kit import pages
from experiments.kit.command import Call, as_command
from experiments.resolution import page
from experiments.resolution.measure import EPSILONS, RUNS, Study, study, tables


@as_command("--out")
def command(call: Call) -> Iterator[Path]:
    """Measure what resolved releases name, invent and leave open, and write docs/results/resolution.md.

    Each kind is released 5 times; with --quick only the made-up tables: a few seconds.
    """
    every = call.timed(tables(None if call.quick else call.real()))
    yield from write([study(table, EPSILONS, call.runs or RUNS, call.kept(table.name)) for table in every], call.docs)


def write(studies: Sequence[Study], docs: Path) -> list[Path]:
    """Write the pictures and the page; return the files."""
    from experiments.resolution.figures import draw

    return [pages.write(docs / "results" / "resolution.md", page.page(studies)), *draw(studies, docs / "images")]


if __name__ == "__main__":
    command()
