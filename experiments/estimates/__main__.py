"""The study as one command: `python -m experiments.estimates`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.estimates import page
from experiments.estimates.measure import Study, study, tables
from experiments.estimates.node import DRAWS, Node, constructed_node
from experiments.kit import pages
from experiments.kit.command import Call, as_command

NOISE = 17.67
"""The noise of the constructed node: that of a release of six levels at epsilon 1 and delta 1e-8, exact accounting."""


@as_command("--out")
def command(call: Call) -> Iterator[Path]:
    """Compare settings with InfTDA as published, and write docs/results/estimates.md with its figures.

    Each setting is run 8 times on the two largest tables, and 40 times on the others; with --quick only on the sparse
    made-up ones, six times: half a minute.
    """
    runs = call.runs or (6 if call.quick else None)
    every = call.timed(tables(None if call.quick else call.real(), call.quick))
    studies = [study(table, runs, call.kept(table.name)) for table in every]
    yield from write(studies, constructed_node(NOISE, DRAWS // 10 if call.quick else DRAWS), call.docs)


def write(studies: Sequence[Study], node: Node, docs: Path) -> list[Path]:
    """Write the pictures, the page and the table inside docs/estimates.md; return the files."""
    from experiments.estimates.figures import draw

    files = [pages.write(docs / "results" / "estimates.md", page.page(studies, node)), *draw(studies, docs / "images")]
    about = docs / "estimates.md"
    return [*files, pages.insert(about, page.short_table(studies))] if about.is_file() else files


if __name__ == "__main__":
    command()
