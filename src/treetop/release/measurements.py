"""Measurements, node by node. All of them are noisy, hence public.

Kept on request in full, and always at levels whose public nodes are few: sums over many nodes take their intervals from
them, and better estimates can be made of them at any time, at no cost in privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.arrays import first_disorder
from treetop.counts.counts import pack
from treetop.domain.spine import Spine
from treetop.errors import ReleaseError
from treetop.measure.measure import Evidence
from treetop.noise import Law
from treetop.release.tree import ReleasedTree, nodes_at, spans_at, whole_numbers

Ints = NDArray[np.int64]

FEW_NODES = 1 << 20
"""Every measurement is kept at levels with at most this many public nodes: a megabyte or so each."""


@dataclass(frozen=True, eq=False)
class LevelMeasurements:
    """The measurements of one level, in spine order: of all public children of retained nodes that have several."""

    nodes: NDArray[np.int32] = field(repr=False)
    """For each attribute (row) and measured node (column), the attribute's node; 0 while it is not refined."""
    value: Ints = field(repr=False)

    def __len__(self) -> int:
        return len(self.value)


@dataclass(frozen=True, eq=False)
class Measurements:
    """The measurements of a release, by level."""

    spine: Spine
    total: int | None
    """The measurement of the total; None if the total is public."""
    laws: tuple[Law | None, ...]
    """Noise of the total and of every level; None if nothing is measured."""
    levels: tuple[LevelMeasurements | None, ...] = field(repr=False)
    """By level below the root; None if it was not kept."""

    @property
    def complete(self) -> bool:
        """Whether every measurement was kept."""
        return all(level is not None for level in self.levels)

    @staticmethod
    def of(tree: ReleasedTree, evidence: Evidence, down_to: int | None = None) -> Measurements:
        """Match the measurements that a descent to this tree has kept with their nodes.

        If the tree ends at a level above the leaves, those of the children of its last nodes are there too.
        """
        levels: list[LevelMeasurements | None] = []
        for level, seen in zip(tree.spine.levels, evidence.levels, strict=down_to is None):
            nodes = tree.at(level.index - 1).nodes
            fanout = level.fanout(nodes)
            fanout[fanout == 1] = 0
            if int(fanout.sum()) != len(seen.slots):
                levels.append(None)
                continue
            levels.append(LevelMeasurements(level.children(nodes.astype(np.int32), fanout), seen.slots))
        levels += [None] * (len(tree.spine.levels) - len(levels))
        return Measurements(tree.spine, evidence.total, evidence.laws, tuple(levels))

    def table(self) -> pa.Table:
        """Return one row per measurement: the level, the node's codes (null while not refined), value and variance."""
        names = list(self.spine.attributes)
        codes = pa.dictionary(pa.int32(), pa.string())
        numbers = [("value", pa.int64()), ("variance", pa.float64())]
        schema = pa.schema([("level", pa.int32()), *((name, codes) for name in names), *numbers])
        parts = []
        if self.total is not None:
            parts.append(self._rows(schema, 0, np.zeros((len(names), 1), np.int32), np.array([self.total])))
        for level, seen in zip(self.spine.levels, self.levels, strict=True):
            if seen is not None:
                parts.append(self._rows(schema, level.index, seen.nodes, seen.value))
        return pa.concat_tables(parts) if parts else schema.empty_table()

    def _rows(self, schema: pa.Schema, index: int, nodes: NDArray[np.int32], value: Ints) -> pa.Table:
        law = self.laws[index]
        variance = 0.0 if law is None else law.standard_deviation**2
        columns = []
        for tree, node, depth in zip(self.spine.trees, nodes, self.spine.depths(index), strict=True):
            codes = pa.array([], pa.string()) if depth == 0 else tree.codes[depth - 1]
            mask = np.full(len(value), depth == 0)
            columns.append(pa.DictionaryArray.from_arrays(pa.array(node, mask=mask), codes))
        arrays = [pa.array(np.full(len(value), index, np.int32)), *columns, pa.array(value)]
        return pa.Table.from_arrays([*arrays, pa.array(np.full(len(value), variance))], schema=schema)

    @staticmethod
    def from_table(table: pa.Table, spine: Spine, laws: Sequence[Law | None]) -> Measurements:
        """Read the measurements from such a table."""
        index = whole_numbers(table, "level")
        bounds = np.searchsorted(index, np.arange(len(spine.levels) + 2))
        if not (index[1:] >= index[:-1]).all() or bounds[0] != 0 or bounds[-1] != len(index) or bounds[1] > 1:
            raise ReleaseError("the measurements are not those of this spine, level by level")
        value = whole_numbers(table, "value")
        levels: list[LevelMeasurements | None] = []
        for level, start, stop in zip(spine.levels, bounds[1:], bounds[2:], strict=False):
            if start == stop and (laws[level.index] is not None or level.divides):  # not kept, exact ones neither
                levels.append(None)
                continue
            nodes = nodes_at(spine, level.index, table.slice(start, stop - start))
            if (nodes < 0).any():
                raise ReleaseError("a measurement has a code that is not in its hierarchy")
            if first_disorder(pack(spine, spans_at(spine, level.index, nodes)[0])) is not None:
                raise ReleaseError(f"a measurement of {level.name} stands twice, or out of order")
            levels.append(LevelMeasurements(nodes, value[start:stop]))
        total = int(value[0]) if bounds[1] else None
        return Measurements(spine, total, tuple(laws), tuple(levels))
