"""What a release folder keeps of the measurements: a few bytes for every released node, and all of coarse levels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from treetop.errors import ReleaseError
from treetop.measure.evidence import NOTHING, Evidence, LevelEvidence
from treetop.noise.law import described_law
from treetop.release.measurements import LevelMeasurements, Measurements
from treetop.release.release import Release
from treetop.release.tree import ReleasedTree

Ints = NDArray[np.int64]

EVIDENCE, MEASUREMENTS = "evidence.parquet", "measurements.parquet"


def write_evidence(release: Release, folder: Path) -> dict[str, int | None]:
    """Write both files of a release that has intervals; return their rows."""
    if release.evidence is None:
        return {}
    tables = {EVIDENCE: evidence_table(release.evidence), MEASUREMENTS: release.measurements.table()}
    for name, table in tables.items():
        pq.write_table(table, folder / name, compression="zstd", store_schema=False)
    return {name: table.num_rows for name, table in tables.items()}


def evidence_table(evidence: Evidence) -> pa.Table:
    """Return one row a released node, in spine order, level by level.

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
            "measured": _nullable(np.concatenate(own)),
            "highest": _nullable(np.concatenate(below)),
        }
    )


def read_evidence(folder: Path, release: Release) -> tuple[Evidence | None, Measurements | None]:
    """Read what was kept, and all measurements where they are more than those under released nodes.

    None where the folder has no intervals.
    """
    if not (folder / EVIDENCE).is_file():
        return None, None
    told = release.card["plan"]["levels"]
    laws = tuple(None if level["noise"] is None else described_law(level["noise"]) for level in told)
    table = pq.read_table(folder / EVIDENCE)
    sizes = [len(release.tree.at(index)) for index in range(len(laws))]
    level = table.column("level").to_numpy()
    if not np.array_equal(level, np.repeat(np.arange(len(sizes)), sizes)):
        raise ReleaseError(f"{folder}: {EVIDENCE} does not have one row for every released node")
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    measured, highest = (_filled(table.column(name)) for name in ("measured", "highest"))
    kept = Measurements.from_table(pq.read_table(folder / MEASUREMENTS), release.spine, laws)
    levels = tuple(
        LevelEvidence(
            measured=measured[bounds[index] : bounds[index + 1]],
            highest=highest[bounds[index - 1] : bounds[index]],
            slots=np.empty(0, np.int64) if slots is None else slots.value,
        )
        for index, slots in enumerate(kept.levels, start=1)
    )
    if (kept.total is None) != (laws[0] is None):
        raise ReleaseError(f"{folder}: {MEASUREMENTS} has a total, or lacks one, against the plan")
    evidence = Evidence(kept.total, levels, laws)
    numbers = [_children(release.tree, level.index) for level in release.spine.levels]
    pairs = list(zip(kept.levels, numbers, strict=True))
    if all(seen is None or len(seen) == number for seen, number in pairs):
        return evidence, None
    from treetop.release.estimates.align import align

    # A level at which no retained node has several children has no rows, and nothing of it is missing.
    none = LevelMeasurements(np.empty((len(release.spine.attributes), 0), np.int32), np.empty(0, np.int64))
    kept = replace(kept, levels=tuple(none if seen is None and number == 0 else seen for seen, number in pairs))
    aligned = align(release.tree, kept)
    for stated, found in zip(levels, aligned.levels, strict=True):
        if not (np.array_equal(stated.measured, found.measured) and np.array_equal(stated.highest, found.highest)):
            raise ReleaseError(f"{folder}: {EVIDENCE} is not what {MEASUREMENTS} gives for the released nodes")
    return aligned, kept


def _children(tree: ReleasedTree, index: int) -> int:
    """Return how many children were measured of the released nodes above a level."""
    fanout = tree.fanout(index)
    return int(fanout[fanout > 1].sum())


def _nullable(values: Ints) -> pa.Array:
    return pa.array(values, mask=values == NOTHING)


def _filled(column: pa.ChunkedArray) -> Ints:
    return np.asarray(column.fill_null(NOTHING).to_numpy(), dtype=np.int64)
