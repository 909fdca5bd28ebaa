"""The measurements in a release folder: a few bytes for every released node, and all of coarse levels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.errors import ReleaseError
from treetop.measure.measure import NOTHING, Evidence, LevelEvidence
from treetop.noise import Law
from treetop.noise.law import described_law
from treetop.release.estimates.align import align
from treetop.release.measurements import LevelMeasurements, Measurements
from treetop.release.shards import Shards
from treetop.release.stored import read_table, whole_numbers
from treetop.release.tree import ReleasedTree
from treetop.repair import REPAIRS

if TYPE_CHECKING:
    from treetop.release.release import Release

Ints = NDArray[np.int64]

EVIDENCE, MEASUREMENTS = "evidence.parquet", "measurements.parquet"


def evidence_tables(shards: Shards) -> Iterator[tuple[str, pa.Table]]:
    """Yield the measurements of the levels in memory, as two files; the second alone for cells."""
    if shards.evidence is not None:
        yield EVIDENCE, evidence_table(shards.evidence)
    if shards.is_measured:
        yield MEASUREMENTS, shards.measurements.table()


def evidence_table(evidence: Evidence) -> pa.Table:
    """Return one row per released node, in spine order, level by level.

    `measured` is its own measurement, null if it has none; `highest` the highest measurement of a child that was not
    released, null if there is no such child.
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


def with_evidence(release: Release, folder: Path) -> Release:
    """Read the kept measurements: those under released nodes, or all if there are more."""
    laws = laws_of(release.card)
    if ("degrees" in release.card["plan"] or "groups" in release.card["plan"]) and (folder / MEASUREMENTS).is_file():
        cells = Measurements.from_table(read_table(folder / MEASUREMENTS), release.spine, laws)
        return replace(release, all_measured=cells)
    if not (folder / EVIDENCE).is_file():
        return release
    tree, levels = release.tree, release.spine.levels
    if not made_from_all(release.card):
        return replace(release, evidence=read_evidence(folder, tree, len(levels), laws))
    measured, highest, found = _read(folder, tree, len(levels), laws)
    # A level at which no retained node has several children has no rows, and nothing of it is missing.
    none = LevelMeasurements(np.empty((len(tree.nodes), 0), np.int32), np.empty(0, np.int64))
    pairs = zip(found.levels, levels, strict=True)
    kept = (none if seen is None and not _measured_children(tree, level.index) else seen for seen, level in pairs)
    found = replace(found, levels=tuple(kept))
    aligned = align(tree, found)
    for own, beside, level in zip(measured[1:], highest, aligned.levels, strict=False):
        if not (np.array_equal(own, level.measured) and np.array_equal(beside, level.highest)):
            raise ReleaseError(f"{folder}: {EVIDENCE} is not what {MEASUREMENTS} gives for the released nodes")
    return replace(release, evidence=aligned, all_measured=found)


def read_evidence(folder: Path, tree: ReleasedTree, level: int, laws: tuple[Law | None, ...]) -> Evidence:
    """Read the measurements of the nodes down to a level and, above the leaves, of the children of the last."""
    measured, highest, found = _read(folder, tree, level, laws)
    levels = []
    own = [*measured[1:], np.empty(0, np.int64)]
    for refined, seen, mine, beside in zip(tree.spine.levels, found.levels, own, highest, strict=False):
        if seen is not None and len(seen) != _measured_children(tree, refined.index):
            raise ReleaseError(f"{folder}: {MEASUREMENTS} is not about the released nodes")
        levels.append(LevelEvidence(mine, beside, np.empty(0, np.int64) if seen is None else seen.value))
    if any(seen is not None and len(seen) for seen in found.levels[len(levels) :]):
        raise ReleaseError(f"{folder}: {MEASUREMENTS} has levels below those in {EVIDENCE}")
    return Evidence(found.total, tuple(levels), laws)


def _read(
    folder: Path, tree: ReleasedTree, level: int, laws: tuple[Law | None, ...]
) -> tuple[list[Ints], list[Ints], Measurements]:
    """Return the nodes' own measurements and their highest dropped children, by level, and all measurements."""
    table = read_table(folder / EVIDENCE)
    measured, highest = split_evidence(table, range(level + 1), tree, f"{folder}: {EVIDENCE}")
    found = Measurements.from_table(read_table(folder / MEASUREMENTS), tree.spine, laws)
    if (found.total is None) != (laws[0] is None):
        raise ReleaseError(f"{folder}: {MEASUREMENTS} has a total, or lacks one, against the plan")
    return measured, highest, found


def split_evidence(table: pa.Table, levels: range, tree: ReleasedTree, name: str) -> tuple[list[Ints], list[Ints]]:
    """Return both columns of an evidence table by level; refuse one without a row for every released node."""
    sizes = [tree.size(index) for index in levels]
    if not np.array_equal(whole_numbers(table, "level"), np.repeat(levels, sizes)):
        raise ReleaseError(f"{name} does not have one row for every released node")
    measured, highest = (np.split(filled(table[end]), np.cumsum(sizes)[:-1]) for end in ("measured", "highest"))
    return measured, highest


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
    """Return measurements as a column, null if missing."""
    return pa.array(values, mask=values == NOTHING)


def filled(column: pa.ChunkedArray) -> Ints:
    """Return a column of measurements as numbers."""
    return np.asarray(column.fill_null(NOTHING).to_numpy(), dtype=np.int64)
