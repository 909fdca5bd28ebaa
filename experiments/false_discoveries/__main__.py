"""The study as one command: `python -m experiments.false_discoveries`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from experiments.false_discoveries import report
from experiments.false_discoveries.measure import EPSILONS, Study, study
from experiments.false_discoveries.tables import DATA, real_tables

DOCS = Path(__file__).resolve().parents[2] / "docs"


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, help="The folder with the real tables.")
@click.option("--docs", type=click.Path(path_type=Path), default=DOCS, help="The folder of the page.")
@click.option("--repetitions", type=click.IntRange(min=1), default=10, help="Releases of each kind.")
def command(data: Path, docs: Path, repetitions: int) -> None:
    """Measure what each repair invents and loses, and write the tables and plots of docs/false-discoveries.md.

    What it writes is computed from the true counts. These tables are public; those of a private one would be for its
    steward only.
    """
    if not data.is_dir():
        click.echo(f"skipped: the real tables are not in {data}; name their folder with --data")
        return
    studies = []
    for table in real_tables(data):
        start = time.perf_counter()
        studies.append(study(table, EPSILONS, repetitions))
        click.echo(f"{table.title}: {time.perf_counter() - start:.0f} s")
    for file in write(studies, docs):
        click.echo(f"wrote {file}")


def write(studies: list[Study], docs: Path) -> list[Path]:
    """Write the tables, the plots and the tables inside the page; return the files."""
    from experiments.false_discoveries.figures import draw

    page, results, images = docs / "false-discoveries.md", docs / "results", docs / "images"
    results.mkdir(parents=True, exist_ok=True)
    images.mkdir(parents=True, exist_ok=True)
    numbers = results / "false-discoveries.md"
    numbers.write_text(report.long_tables(studies), encoding="utf-8")
    report.insert(page, report.short_tables(studies))
    return [numbers, page, *draw(studies, images)]


if __name__ == "__main__":
    command()
