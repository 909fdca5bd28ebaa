"""The study as one command: `python -m experiments.resolution`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from experiments.false_discoveries.tables import DATA
from experiments.resolution import page
from experiments.resolution.measure import EPSILONS, RUNS, Study, study
from experiments.resolution.tables import tables

DOCS = Path(__file__).resolve().parents[2] / "docs"


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, help="The folder with the real tables.")
@click.option("--docs", type=click.Path(path_type=Path), default=DOCS, help="The folder of the page.")
@click.option("--runs", type=click.IntRange(min=1), default=RUNS, show_default=True, help="Releases of each kind.")
@click.option("--quick", is_flag=True, help="Only the made-up tables: a few seconds.")
def command(data: Path, docs: Path, runs: int, quick: bool) -> None:
    """Measure what resolved releases name, invent and leave open, and write docs/results/resolution.md.

    What it writes is computed from the true counts. These tables are public; those of a private one would be for its
    steward only.
    """
    if not data.is_dir() and not quick:
        click.echo(f"the real tables are skipped: {data} is not there; name their folder with --data")
    studies = []
    for table in tables(data if data.is_dir() else None, quick):
        start = time.perf_counter()
        studies.append(study(table, EPSILONS, runs))
        click.echo(f"{table.title}: {time.perf_counter() - start:.0f} s")
    for file in write(studies, docs):
        click.echo(f"wrote {file}")


def write(studies: list[Study], docs: Path) -> list[Path]:
    """Write the pictures and the page; return the files."""
    from experiments.resolution.figures import draw

    images, text = docs / "images", docs / "results" / "resolution.md"
    images.mkdir(parents=True, exist_ok=True)
    text.parent.mkdir(parents=True, exist_ok=True)
    files = draw(studies, images)
    text.write_text(page.page(studies), encoding="utf-8")
    return [text, *files]


if __name__ == "__main__":
    command()
