"""What a release folder keeps of the measurements: a few bytes for every released node, and all of coarse levels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.errors import ReleaseError
from treetop.measure.measure import NOTHING, Evidence, LevelEvidence
from treetop.noise import Law
from treetop.noise.law import described_law
from treetop.release.contents import Contents
from treetop.release.estimates.align import align
from treetop.release.measurements import LevelMeasurements, Measurements
from treetop.release.stored import read_table, whole_numbers
from treetop.release.tree import ReleasedTree
from treetop.repair import REPAIRS

Ints = NDArray[np.int64]

EVIDENCE, MEASUREMENTS = "evidence.parquet", "measurements.parquet"


def evidence_tables(release: Contents) -> Iterator[tuple[str, pa.Table]]:
    """Yield both files of a release that keeps measurements; of group sizes and degrees, the measurements are all."""
    if release.cells is not None:
        yield MEASUREMENTS, release.cells.measurements.table()
    elif release.evidence is not None:
        yield EVIDENCE, evidence_table(release.evidence)
        yield MEASUREMENTS, release.measured.measurements.table()


def evidence_table(evidence: Evidence) -> pa.Table:
    """Return one row per released node, in spine order, level by level.

    `measured` is its own measurement, null where it has none; `highest` the highest measurement of a child that was
    not released, null where there is no such child.
    """
    levels = evidence.levels
    own = [np.array([NOTHING if evidence.total is None else evidence.total][: len(levels[0].highest)], np.int64)]
    own += [level.measured for level in levels]
    below = [*(level.highest for level in levels), np.full(len(levels[-1].measured), NOTHING)]
    return pa.table(
        {
            "level": pa.array(np.repeat(np.arange(len(own), dtype=np.int32), [len(level) for level in own])),
            "measured": nullable(np.concatenate(own)),
            "highest": nullable(np.concatenate(below)),
        }
    )


def with_evidence(release: Contents, folder: Path) -> Contents:
    """Read what was kept, and all measurements where they are more than those under released nodes."""
    laws = laws_of(release.card)
    if ("degrees" in release.card["plan"] or "groups" in release.card["plan"]) and (folder / MEASUREMENTS).is_file():
        cells = Measurements.from_table(read_table(folder / MEASUREMENTS), release.spine, laws)
        return replace(release, all_measured=cells)
    if not (folder / EVIDENCE).is_file():
        return release
    spine, tree = release.spine, release.tree
    table = read_table(folder / EVIDENCE)
    sizes = [tree.size(index) for index in range(len(laws))]
    if not np.array_equal(whole_numbers(table, "level"), np.repeat(np.arange(len(sizes)), sizes)):
        raise ReleaseError(f"{folder}: {EVIDENCE} does not have one row for every released node")
    bounds = np.cumsum(sizes)[:-1]
    measured, highest = (np.split(filled(table.column(name)), bounds) for name in ("measured", "highest"))
    found = Measurements.from_table(read_table(folder / MEASUREMENTS), spine, laws)
    if (found.total is None) != (laws[0] is None):
        raise ReleaseError(f"{folder}: {MEASUREMENTS} has a total, or lacks one, against the plan")
    children = [_measured_children(tree, level.index) for level in spine.levels]
    if not made_from_all(release.card):
        if any(seen is not None and len(seen) != number for seen, number in zip(found.levels, children, strict=True)):
            raise ReleaseError(f"{folder}: {MEASUREMENTS} is not about the released nodes")
        slots = [np.empty(0, np.int64) if seen is None else seen.value for seen in found.levels]
        levels = map(LevelEvidence, measured[1:], highest, slots)
        return replace(release, evidence=Evidence(found.total, tuple(levels), laws))
    # A level at which no retained node has several children has no rows, and nothing of it is missing.
    none = LevelMeasurements(np.empty((len(spine.attributes), 0), np.int32), np.empty(0, np.int64))
    pairs = zip(found.levels, children, strict=True)
    found = replace(found, levels=tuple(none if seen is None and number == 0 else seen for seen, number in pairs))
    aligned = align(tree, found)
    for own, beside, level in zip(measured[1:], highest, aligned.levels, strict=False):
        if not (np.array_equal(own, level.measured) and np.array_equal(beside, level.highest)):
            raise ReleaseError(f"{folder}: {EVIDENCE} is not what {MEASUREMENTS} gives for the released nodes")
    return replace(release, evidence=aligned, all_measured=found)


def made_from_all(card: dict[str, Any]) -> bool:
    """Whether the counts were estimated from all measurements, so that the released nodes need not be the measured."""
    repair = card["plan"].get("repair")
    return repair in REPAIRS and REPAIRS[repair].again


def laws_of(card: dict[str, Any]) -> tuple[Law | None, ...]:
    """Return the noise of the total and of every level, as the plan of a card states it."""
    told = card["plan"]["levels"]
    return tuple(None if level["noise"] is None else described_law(level["noise"]) for level in told)


def _measured_children(tree: ReleasedTree, index: int) -> int:
    """Return how many children were measured of the released nodes above a level."""
    fanout = tree.fanout(index)
    return int(fanout[fanout > 1].sum())


def nullable(values: Ints) -> pa.Array:
    """Return measurements as a column, null where there is none."""
    return pa.array(values, mask=values == NOTHING)


def filled(column: pa.ChunkedArray) -> Ints:
    """Return a column of measurements as numbers."""
    return np.asarray(column.fill_null(NOTHING).to_numpy(), dtype=np.int64)
