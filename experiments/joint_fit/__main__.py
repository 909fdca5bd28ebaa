"""The study as one command: `python -m experiments.joint_fit`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from benchmarks.peers.environments import MBI
from experiments.joint_fit.measure import EPSILONS, All, seconds_of_large, study
from experiments.joint_fit.page import page
from experiments.joint_fit.tables import made_up, patients, real
from experiments.kit import pages
from experiments.kit.command import Call, as_command


@as_command("--out")
def command(call: Call) -> Iterator[Path]:
    """Release tables with a joint fit, and write docs/results/joint-fit.md.

    It reads real tables of two to eight attributes, and takes about an hour with `mbi`, which is installed in an
    environment of its own if that is possible. With --quick, a small made-up table.
    """
    data = None if call.quick else call.real()
    tables = [made_up()] if call.quick else [patients(call.data)] if data is None else real(data)
    runs = call.runs or (2 if call.quick else 10)
    python = None
    if not call.quick:
        problem = MBI.make()
        python = MBI.python if problem is None else None
        if problem is not None:
            click.echo(f"mbi is skipped: {problem}")
    studies = tuple(study(records, runs, EPSILONS, python) for records in call.timed(tables))
    found = All(studies) if call.quick else All(studies, seconds_of_large())
    yield pages.write(call.docs / "results" / "joint-fit.md", page(found))


if __name__ == "__main__":
    command()
