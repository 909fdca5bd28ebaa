"""The tables of the study: the six of the InfTDA paper, made again, and three real ones, read where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from experiments.false_discoveries.tables import real_tables
from experiments.inftda.tables import MADE_UP, made_up
from treetop.counts import Counts
from treetop.spine import Spine


@dataclass(frozen=True, eq=False)
class Known:
    """A table of trips whose true counts are known."""

    name: str
    """A short name, for keys."""
    title: str
    """A name for people."""
    spine: Spine
    """The public order of refinement: destinations first."""
    truth: Counts = field(repr=False)
    """The true counts."""
    runs: int
    """How often it is released at each loss."""


def tables(data: Path | None, quick: bool = False) -> Iterator[Known]:
    """Yield the tables, one after the other; without a folder of real ones, or `quick`, only some that are made up."""
    for name in MADE_UP:
        if not quick or name.endswith("sparse"):
            case = made_up(name)
            yield Known(name, f"made up: {name.replace('-', ', ')}", case.spine, case.counts, 20)
    if data is not None and not quick:
        for table in real_tables(data):
            yield Known(table.name, table.title, table.spine, table.truth, 10)
