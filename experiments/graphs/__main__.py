"""The study as one command: `python -m experiments.graphs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.graphs import measure
from experiments.graphs.networks import networks
from experiments.graphs.page import page
from experiments.graphs.theta import THETAS
from experiments.kit import pages
from experiments.kit.command import Call, as_command


@as_command("--out", least_runs=2)
def command(call: Call) -> Iterator[Path]:
    """Measure what relations and theta cost, judge a paper, and write docs/results/graphs.md with its plots.

    Each kind is released 20 times. Without the real networks only the one that is made up is studied; with --quick it
    is a small one, and all are released twice.
    """
    from experiments.graphs.figures import draw

    epsilons, runs = ((0.5, 5.0), 2) if call.quick else (measure.EPSILONS, call.runs or 20)
    every = call.timed(networks(call.data, call.quick))
    thetas = (5, 10, 20, 40) if call.quick else THETAS
    found = measure.study(every, epsilons, runs, call.kept("releases"), thetas)
    yield pages.write(call.docs / "results" / "graphs.md", page(found))
    yield from draw(found, call.docs / "images")


if __name__ == "__main__":
    command()
