"""The experiments as one command: `python -m experiments.group_sizes`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from experiments.group_sizes import page
from experiments.group_sizes.measure import LARGEST, REPEATS, run_tables, run_times, tables
from experiments.kit import pages
from experiments.kit.command import Call, as_command


@as_command("--out")
def command(call: Call) -> Iterator[Path]:
    """Run the paper's experiments, and write docs/results/group-sizes.md with its figures.

    Each setting is run 30 times; with --quick small tables, at most three times: under a minute.
    """
    from experiments.group_sizes.figures import draw

    repeat = call.runs or REPEATS
    every = list(tables(call.real(), call.quick))
    runs, refused = run_tables(every, min(repeat, 3) if call.quick else repeat, click.echo, call.kept)
    times = run_times(LARGEST[:2] if call.quick else LARGEST, 1 if call.quick else 5, click.echo)
    yield pages.write(call.docs / "results" / "group-sizes.md", page.page(runs, times, refused, list(map(str, every))))
    yield from draw(runs, times, call.docs / "images")


if __name__ == "__main__":
    command()
