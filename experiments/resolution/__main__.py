"""The study as one command: `python -m experiments.resolution`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.kit import pages
from experiments.kit.command import Call, as_command
from experiments.resolution import page
from experiments.resolution.measure import EPSILONS, RUNS, Study, study, tables
from experiments.resolution.named import SPARSE_RUNS, Among, Held, among, held, villages


@as_command("--out")
def command(call: Call) -> Iterator[Path]:
    """Measure what resolved releases name, invent and leave open, and write docs/results/resolution.md.

    Each kind is released 5 times; with --quick only the made-up tables: less than a minute.
    """
    studies: list[Study] = []
    named: list[Among] = []
    runs = call.runs or RUNS
    for table in call.timed(tables(None if call.quick else call.real())):
        studies.append(study(table, EPSILONS, runs, call.kept(table.name)))
        named += among(table, EPSILONS, runs, call.kept(table.name))
    yield from write(studies, call.docs, named, list(held(villages(), runs=20 if call.quick else SPARSE_RUNS)))


def write(studies: Sequence[Study], docs: Path, named: Sequence[Among] = (), sparse: Sequence[Held] = ()) -> list[Path]:
    """Write the pictures and the page; return the files."""
    from experiments.resolution.figures import draw

    text = page.page(studies, named, sparse)
    return [pages.write(docs / "results" / "resolution.md", text), *draw(studies, docs / "images")]


if __name__ == "__main__":
    command()
