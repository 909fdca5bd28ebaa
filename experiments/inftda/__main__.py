"""The experiments as one command: `python -m experiments.inftda`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from experiments.inftda import page
from experiments.inftda.measure import REPEATS, run_all
from experiments.kit import pages
from experiments.kit.command import Call, as_command


@as_command("--out", "--jobs")
def command(call: Call) -> Iterator[Path]:
    """Run the paper's experiments, and write docs/results/inftda.md with its figures.

    Each setting is run 10 times; with --quick only the sparse tables, without the solver: about a minute.
    """
    from experiments.inftda.figures import draw

    found = run_all(call.real(), call.runs or REPEATS, call.jobs, call.quick, click.echo, call.kept)
    files = draw(found, call.docs / "images")
    yield pages.write(call.docs / "results" / "inftda.md", page.page(found, call.docs / "images"))
    yield from files


if __name__ == "__main__":
    command()
