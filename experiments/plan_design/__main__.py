"""The study as one command: `python -m experiments.plan_design`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.kit import pages
from experiments.kit.command import Call, as_command
from experiments.plan_design.measure import RUNS, study, tables
from experiments.plan_design.page import page


@as_command("--out")
def command(call: Call) -> Iterator[Path]:
    """Compare the errors that are expected of plans with those of releases, and write docs/results/plan-design.md.

    Each plan is released 3 to 60 times: about two minutes. With --quick one made-up table: a few seconds.
    """
    every = call.timed(tables(None if call.quick else call.real()))
    studies = [study(table, call.runs or RUNS.get(table.name, 10), call.kept(table.name)) for table in every]
    yield pages.write(call.docs / "results" / "plan-design.md", page(studies))


if __name__ == "__main__":
    command()
