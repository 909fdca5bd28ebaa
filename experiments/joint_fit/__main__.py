"""The study as one command: `python -m experiments.joint_fit`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.joint_fit.measure import EPSILONS, Records, made_up, study, taxi
from experiments.joint_fit.page import page
from experiments.kit import pages
from experiments.kit.command import Call, as_command


@as_command("--out")
def command(call: Call) -> Iterator[Path]:
    """Fit tables jointly to noisy tables of one and two attributes, and write docs/results/joint-fit.md.

    It reads 360,000 taxi trips and takes about a minute. With --quick, or without the trips, a small made-up table.
    """
    data = None if call.quick else call.real()
    records: Records = made_up() if data is None else taxi(data)
    runs = call.runs or (2 if call.quick else 5)
    yield pages.write(call.docs / "results" / "joint-fit.md", page(study(records, runs, EPSILONS)))


if __name__ == "__main__":
    command()
