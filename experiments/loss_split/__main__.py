"""The experiments as one command: `python -m experiments.loss_split`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from experiments.loss_split import page
from experiments.loss_split.study import FULL, QUICK, study
from experiments.loss_split.trees import BLOCKS, DATA, trees

DOCS = Path(__file__).resolve().parents[2] / "docs"


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, help="The folder with the real tables.")
@click.option("--docs", type=click.Path(path_type=Path), default=DOCS, help="The folder of the page.")
@click.option("--quick", is_flag=True, help="A tenth of the releases, printed only: nothing is written.")
def command(data: Path, docs: Path, quick: bool) -> None:
    """Run the paper's experiments, print their tables, and write docs/results/loss-split.md with its figures."""
    if not (data / BLOCKS).is_dir():
        click.echo(f"the real blocks are skipped: {data / BLOCKS} is not there; name its folder with --data")
    studies = []
    for tree in trees(data):
        started = time.perf_counter()
        studies.append(study(tree, QUICK if quick else FULL))
        click.echo(f"{tree.title}: {time.perf_counter() - started:.0f} s")
    click.echo(page.render(studies))
    if quick:
        return
    from experiments.loss_split.figures import draw

    figures = draw(studies, docs / "images")
    text = docs / "results" / "loss-split.md"
    page.write(studies, text, figures)
    for file in (text, *figures):
        click.echo(f"wrote {file}")


if __name__ == "__main__":
    command()
