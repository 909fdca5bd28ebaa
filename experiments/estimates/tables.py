"""The tables of the study: the six of the InfTDA paper, made again, and three real ones, read where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.coverage.tables import Known
from experiments.false_discoveries.tables import real_tables
from experiments.inftda.tables import MADE_UP, made_up
from treetop.spine import Spine

RUNS = {"new-york": 8, "us-counties": 8}
"""How often the large tables are released with each setting."""
MANY_RUNS = 40
"""How often the others are: they take seconds."""
FEW_CHILDREN = 4
"""Up to so many children of any node, a table counts as one of small fan-out."""


def tables(data: Path | None, quick: bool = False) -> Iterator[Known]:
    """Yield the tables, one after the other; without a folder of real ones, or `quick`, only some that are made up."""
    for name in MADE_UP:
        if not quick or name.endswith("sparse"):
            case = made_up(name)
            yield Known(name, f"made up: {name.replace('-', ', ')}", case.spine, case.counts, MANY_RUNS)
    if data is not None and not quick:
        for table in sorted(real_tables(data), key=lambda table: len(table.truth)):
            yield Known(table.name, table.title, table.spine, table.truth, RUNS.get(table.name, MANY_RUNS))


def widest(spine: Spine) -> int:
    """Return the largest number of children that a node has."""
    return max(int(np.diff(level.first).max()) for level in spine.levels)
