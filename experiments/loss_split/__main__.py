"""The experiments as one command: `python -m experiments.loss_split`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from experiments.kit import pages
from experiments.kit.command import Call, as_command
from experiments.loss_split import page
from experiments.loss_split.study import FULL, QUICK, study
from experiments.loss_split.trees import BLOCKS, trees


@as_command("--out", least_runs=2)
def command(call: Call) -> Iterator[Path]:
    """Run the paper's experiments, print their tables, and write docs/results/loss-split.md with its figures.

    Each division of each loss is released 400 times; with --quick 20 times, printed only: nothing is written.
    """
    every = call.timed(trees(call.real("the real blocks", BLOCKS)))
    size = QUICK if call.quick else FULL
    studies = [study(tree, replace(size, runs=call.runs or size.runs), call.kept(tree.name)) for tree in every]
    click.echo(page.judged(studies))
    if call.quick:
        return
    from experiments.loss_split.figures import CAPTIONS, draw

    yield pages.write(call.docs / "results" / "loss-split.md", page.page(studies, CAPTIONS))
    yield from draw(studies, call.docs / "images")


if __name__ == "__main__":
    command()
