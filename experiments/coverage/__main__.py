"""The study as one command: `python -m experiments.coverage`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from experiments.coverage import page
from experiments.coverage.measure import EPSILONS, Study, study
from experiments.coverage.tables import tables
from experiments.false_discoveries.tables import DATA

DOCS = Path(__file__).resolve().parents[2] / "docs"


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, help="The folder with the real tables.")
@click.option("--docs", type=click.Path(path_type=Path), default=DOCS, help="The folder of the page.")
@click.option(
    "--runs", type=click.IntRange(min=1), help="Releases at each loss; 20 of made-up tables, 10 of real ones."
)
@click.option("--quick", is_flag=True, help="Only the sparse made-up tables, twice: a few seconds.")
def command(data: Path, docs: Path, runs: int | None, quick: bool) -> None:
    """Measure how often noise intervals hold the truth, and write docs/results/coverage.md with its figures.

    What it writes is computed from the true counts. These tables are public; those of a private one would be for its
    steward only.
    """
    if not data.is_dir() and not quick:
        click.echo(f"the real tables are skipped: {data} is not there; name their folder with --data")
    studies = []
    for table in tables(data if data.is_dir() else None, quick):
        start = time.perf_counter()
        studies.append(study(table, EPSILONS, runs or (2 if quick else None)))
        click.echo(f"{table.title}: {time.perf_counter() - start:.0f} s")
    for file in write(studies, docs):
        click.echo(f"wrote {file}")


def write(studies: list[Study], docs: Path) -> list[Path]:
    """Write the pictures, the page and the table inside docs/intervals.md; return the files."""
    from experiments.coverage.figures import draw

    images, text, about = docs / "images", docs / "results" / "coverage.md", docs / "intervals.md"
    files = draw(studies, images)
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text(page.page(studies), encoding="utf-8")
    if about.is_file():
        page.insert(studies, about)
        files.append(about)
    return [text, *files]


if __name__ == "__main__":
    command()
