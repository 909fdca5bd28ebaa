"""The study as one command: `python -m experiments.graphs`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from experiments.graphs import measure
from experiments.graphs.networks import DATA, networks
from experiments.graphs.page import page

DOCS = Path(__file__).resolve().parents[2] / "docs"


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, help="The folder with the real networks.")
@click.option("--docs", type=click.Path(path_type=Path), default=DOCS, help="The folder to write the page to.")
@click.option("--runs", type=click.IntRange(min=2), default=20, help="Releases of each kind.")
@click.option("--quick", is_flag=True, help="A small network and few runs: to see that it works.")
def command(data: Path, docs: Path, runs: int, quick: bool) -> None:
    """Measure what each relation of a graph costs, and write docs/results/graphs.md with its plots.

    Without the real networks only the one that is made up is studied.
    """
    start = time.perf_counter()
    epsilons, runs = ((0.5, 5.0), 2) if quick else (measure.EPSILONS, runs)
    found = measure.study(networks(data, quick), epsilons, runs)
    click.echo(f"{len(found.errors)} networks: {time.perf_counter() - start:.0f} s")
    for file in write(found, docs):
        click.echo(f"wrote {file}")


def write(study: measure.Study, docs: Path) -> list[Path]:
    """Write the page and its plots; return the files."""
    from experiments.graphs import figures

    results, images = docs / "results", docs / "images"
    for folder in (results, images):
        folder.mkdir(parents=True, exist_ok=True)
    page_file = results / "graphs.md"
    page_file.write_text(page(study), encoding="utf-8")
    plots = (figures.errors, figures.degrees, figures.questions, figures.rebalancing)
    return [page_file, *(figures.save(plot(study), images / f"graphs_{plot.__name__}.png") for plot in plots)]


if __name__ == "__main__":
    command()
