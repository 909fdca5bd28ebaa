"""The study as one command: `python -m experiments.estimates`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from experiments.estimates import page
from experiments.estimates.measure import Study, study
from experiments.estimates.node import DRAWS, Node, constructed_node
from experiments.estimates.tables import tables
from experiments.false_discoveries.tables import DATA

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOISE = 17.67
"""The noise of the constructed node: that of a release of six levels at epsilon 1 and delta 1e-8, exact accounting."""


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, help="The folder with the real tables.")
@click.option("--docs", type=click.Path(path_type=Path), default=DOCS, help="The folder of the page.")
@click.option("--runs", type=click.IntRange(min=1), help="Runs of each setting; 8 of the two largest tables, or 40.")
@click.option("--quick", is_flag=True, help="Only the sparse made-up tables, six times: half a minute.")
def command(data: Path, docs: Path, runs: int | None, quick: bool) -> None:
    """Compare settings with InfTDA as published, and write docs/results/estimates.md with its figures.

    What it writes is computed from the true counts. These tables are public; those of a private one would be for its
    steward only.
    """
    if not data.is_dir() and not quick:
        click.echo(f"the real tables are skipped: {data} is not there; name their folder with --data")
    studies = []
    for table in tables(data if data.is_dir() else None, quick):
        start = time.perf_counter()
        studies.append(study(table, runs or (6 if quick else None)))
        click.echo(f"{table.title}: {time.perf_counter() - start:.0f} s")
    node = constructed_node(NOISE, DRAWS // 10 if quick else DRAWS)
    for file in write(studies, node, docs):
        click.echo(f"wrote {file}")


def write(studies: list[Study], node: Node, docs: Path) -> list[Path]:
    """Write the pictures, the page and the table inside docs/estimates.md; return the files."""
    from experiments.estimates.figures import draw

    images, text, about = docs / "images", docs / "results" / "estimates.md", docs / "estimates.md"
    files = draw(studies, images)
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text(page.page(studies, node), encoding="utf-8")
    if about.is_file():
        page.insert(studies, about)
        files.append(about)
    return [text, *files]


if __name__ == "__main__":
    command()
