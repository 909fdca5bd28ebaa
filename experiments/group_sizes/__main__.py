"""The experiments as one command: `python -m experiments.group_sizes`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from experiments.group_sizes import page
from experiments.group_sizes.coverage import RUNS, WIDEST, run_coverage, tiny
from experiments.group_sizes.measure import CLASSES, LARGEST, run_solver, run_tables, run_times, tables
from experiments.kit import pages
from experiments.kit.command import Call, as_command


@as_command("--out")
def command(call: Call) -> Iterator[Path]:
    """Run the paper's experiments, and write docs/results/group-sizes.md with its figures.

    Each setting is run 30 times, on tables of the paper's sizes less often: with --out the runs are kept, so that a
    study that was stopped goes on where it was. With --quick small tables, at most three times: under a minute.
    """
    from experiments.group_sizes.figures import draw

    quick, say = call.quick, click.echo
    every = list(tables(call.real(), quick))
    runs, refused = run_tables(every, min(call.runs or 3, 3) if quick else call.runs, say, call.kept)
    sizes = LARGEST[:2] if quick else LARGEST
    times = run_times(sizes, 1 if quick else 5, say)
    solved = run_solver(sizes, 1 if quick else 3, say, call.kept)
    few = [table for table in every if table.sizes.largest < (100 if quick else WIDEST)]
    covered = run_coverage([*few, tiny()], CLASSES, 1 if quick else RUNS, say, call.kept)
    found = page.Found(every, runs, times, refused, solved, covered)
    yield pages.write(call.docs / "results" / "group-sizes.md", page.page(found))
    yield from draw(runs, times, solved, call.docs / "images")


if __name__ == "__main__":
    command()
