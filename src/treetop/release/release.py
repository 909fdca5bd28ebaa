"""A release: the public result of running a plan once. Tables at every level, queries, records, save and load."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import QueryError, ReleaseError
from treetop.measure.evidence import Evidence, Remainders
from treetop.release.tree import LevelNodes, ReleasedTree, spans

if TYPE_CHECKING:
    import pyarrow as pa

    from treetop.release.intervals import Interval, LevelIntervals
    from treetop.release.measurements import Measurements

MOST_ROWS = 100_000
"""Tables of sums with more rows than this have no intervals."""


@dataclass(frozen=True, eq=False)
class Release:
    """Released counts: the leaves above zero, from which every coarser count is a sum."""

    spine: Spine
    """The public order of refinement."""
    nodes: NDArray[np.int32] = field(repr=False)
    """For each attribute (row) and leaf (column), the attribute's node; leaves are in spine order."""
    count: NDArray[np.int64] = field(repr=False)
    """The released count of each leaf, above zero. A leaf that is not here is a released zero."""
    card: dict[str, Any] = field(repr=False)
    """The statement of guarantee and method."""
    plan_toml: str | None = field(default=None, repr=False)
    """The plan file as it was run; written from the card when None."""
    evidence: Evidence | None = field(default=None, repr=False)
    """What was measured, for intervals; None where the plan has them off."""
    left: Remainders | None = field(default=None, repr=False)
    """What was left unresolved at coarser nodes; None where the plan names every count to the leaves."""
    kept: Measurements | None = field(default=None, repr=False)
    """All that was measured, where that is more than what was measured under released nodes."""
    selection: tuple[str, ...] = ()
    """What `where` narrowed it to; a whole release has none."""
    whole: Release | None = field(default=None, repr=False)
    """The release that `where` narrowed; None for a whole one."""
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict, repr=False)
    """The leaves that it was narrowed to, by attribute: the first, and the one after the last."""

    @property
    def total(self) -> int:
        """The sum of all counts, unresolved ones included."""
        return int(self.count.sum()) + self.unresolved_total

    @property
    def unresolved_total(self) -> int:
        """How much of the total is not resolved down to the leaves."""
        return 0 if self.left is None else int(self.left.count.sum())

    @property
    def confidence(self) -> float | None:
        """The confidence of its intervals; None where they are off."""
        off = self.card.get("plan", {}).get("confidence", True) is None
        return None if self.evidence is None or off else float(self.card["accuracy"]["confidence"])

    @cached_property
    def tree(self) -> ReleasedTree:
        """The released nodes of every level."""
        return ReleasedTree(self.spine, self.nodes, self.count, self.left)

    @cached_property
    def measurements(self) -> Measurements:
        """What was measured, node by node, as far as it was kept."""
        from treetop.release.measurements import Measurements

        if self.evidence is None:
            raise ReleaseError("this release keeps no measurements: its plan has intervals off, or `where` narrowed it")
        return Measurements.of(self.tree, self.evidence) if self.kept is None else self.kept

    @cached_property
    def intervals(self) -> tuple[LevelIntervals, ...]:
        """The noise intervals of the released nodes, from the total down, at the confidence of the plan."""
        return self.intervals_at(self.confidence or 0.95)

    def intervals_at(self, confidence: float) -> tuple[LevelIntervals, ...]:
        """Return the noise intervals of the released nodes at any confidence, from the total down."""
        from treetop.release.intervals import node_intervals

        if self.evidence is None:
            raise ReleaseError("this release has no intervals: its plan has them off, or `where` narrowed it")
        if not 0 < confidence < 1:
            raise QueryError(f"confidence is {confidence}: give a probability between 0 and 1")
        parents = [self.tree.parents(level.index) for level in self.spine.levels]
        return node_intervals(self.total, parents, self.evidence, Fraction(str(confidence)))

    @property
    def has_intervals(self) -> bool:
        """Whether sums have intervals: also after `where`, if the whole release has them."""
        return (self.whole or self).confidence is not None

    def interval(self, confidence: float | None = None, /, **codes: str) -> Interval:
        """Return the noise interval of `query(**codes)`, at the confidence of the plan or at another.

        The count may be that of one node or of any combination of codes, released or not.
        """
        from treetop.release.intervals import Boxes, Interval, box_intervals

        chosen = self.where(**codes) if codes else self
        whole = chosen.whole or chosen
        if any(start >= stop for start, stop in chosen.ranges.values()):
            return Interval(0, 0)  # the conditions exclude each other
        boxes = Boxes.one(self.spine, chosen.ranges)
        lower, upper = box_intervals(whole._descended, boxes, whole._checked(confidence))
        return Interval(int(lower[0]), int(upper[0]))

    @cached_property
    def _descended(self) -> Release:
        """What the intervals of sums come from: the tree as it was measured, whatever is released of it."""
        if self.kept is None:
            return self
        from treetop.release.estimates.align import descended

        return descended(self, self.kept)

    def _checked(self, confidence: float | None) -> float:
        if self.evidence is None:
            raise ReleaseError("this release has no intervals: its plan has them off, or it is not from the top down")
        if confidence is None:
            confidence = self.confidence or 0.95
        if not 0 < confidence < 1:
            raise QueryError(f"confidence is {confidence}: give a probability between 0 and 1")
        return confidence

    @property
    def partly_unresolved(self) -> int:
        """How much is unresolved at nodes that are only in part what `where` narrowed it to: it may belong here."""
        left = (self.whole or self).left
        if left is None or not self.ranges:
            return 0
        starts, stops = spans(self.spine, left)
        meets, within = np.ones(len(left), dtype=bool), np.ones(len(left), dtype=bool)
        for attribute, (start, stop) in self.ranges.items():
            meets &= (starts[attribute] < stop) & (stops[attribute] > start) & (start < stop)
            within &= (starts[attribute] >= start) & (stops[attribute] <= stop)
        return int(left.count[meets & ~within].sum())

    def table(self, level: str | None = None) -> pa.Table:
        """Return the nodes above zero at a level of the spine (the leaves when None), in spine order.

        There is one column for each attribute that is refined by then, named after it, and `count`; with intervals
        `lower` and `upper` as well. What is unresolved above the level is in no row.
        """
        return self._table(self._index(level))

    def estimates(self, level: str | None = None) -> pa.Table:
        """Return the least-squares estimates of all measured nodes of a level (leaves when None), in spine order.

        There is one column for each attribute that is refined by then, `estimate`, which may be negative, `sd`, its
        standard deviation, and `count`, the released one, 0 where it is not released. It needs all measurements
        (`keep_measurements`), and costs no privacy.
        """
        from treetop.release.estimates.table import estimates_table

        return estimates_table(self, self._index(level))

    def reestimated(self) -> Release:
        """Return a release of the same measurements with counts of lower error; nothing is spent.

        It needs all measurements (`keep_measurements`). Its card says which release they come from.
        """
        from treetop.release.estimates.again import estimated_again

        return estimated_again(self)

    def unresolved(self) -> pa.Table:
        """Return what was left at coarser nodes: its level, the node's codes (null where not refined) and the count."""
        from treetop.release.folder.unresolved import unresolved_table

        return unresolved_table(self)

    def nodes_above_zero(self, index: int) -> int:
        """Return how many nodes are above zero at a level of the spine, by its position; the total is 0."""
        return len(self.tree.at(index))

    def by(self, *levels: str, intervals: bool = True, confidence: float | None = None) -> pa.Table:
        """Return sums over any choice of `attribute.level`, one row a combination above zero.

        `release.by("origin.region")` leaves the destination out; the columns are named as asked. What is unresolved at
        one of the levels is in no row. Where the release has intervals, each row has `lower` and `upper`, at the
        confidence of the plan or at another; not in tables of more than 100,000 rows.
        """
        import pyarrow as pa

        if not levels:
            raise QueryError("name at least one level, such as " + self.spine.splits[0])
        asked = [self.spine.level(level) for level in levels]
        depths: dict[int, int] = {}
        for level in asked:
            depths[level.attribute] = max(depths.get(level.attribute, 0), level.depth)
        leaf, counts = self.tree.resolved(depths)
        columns = [self.spine.trees[level.attribute].ancestors(level.depth)[leaf[level.attribute]] for level in asked]
        first, inverse = _groups(columns)
        count = np.zeros(len(first), np.int64)
        np.add.at(count, inverse, counts)
        arrays = [
            self.spine.trees[level.attribute].codes[level.depth].take(pa.array(column[first]))
            for level, column in zip(asked, columns, strict=True)
        ]
        table = pa.table([*arrays, pa.array(count)], names=[*levels, "count"])
        if not (intervals and self.has_intervals) or len(first) > MOST_ROWS:
            return table
        from treetop.release.intervals import Boxes, box_intervals

        whole = self.whole or self
        boxes = Boxes.of_rows(self.spine, self.ranges, asked, np.asarray(leaf[:, first], np.int64))
        lower, upper = box_intervals(whole._descended, boxes, whole._checked(confidence))
        return table.append_column("lower", pa.array(lower)).append_column("upper", pa.array(upper))

    def where(self, **codes: str) -> Release:
        """Return what matches a combination of codes, each of any level, for `table`, `by`, `total` and `records`.

        `where(origin="Veneto").by("destination.province")`; where a code stands at several levels, name the one
        that is meant: `where(**{"destination.province": "Milano"})`.
        """
        from treetop.release.intervals.boxes import narrowed

        chosen = np.ones(len(self.count), dtype=bool)
        left = self.left
        conditions = [self.spine.find(name, code) for name, code in codes.items()]
        for attribute, start, stop in conditions:
            chosen &= (self.nodes[attribute] >= start) & (self.nodes[attribute] < stop)
            if left is not None:
                starts, stops = spans(self.spine, left)
                left = left[(starts[attribute] >= start) & (stops[attribute] <= stop)]
        selection = (*self.selection, *(f"{name}={code}" for name, code in codes.items()))
        nodes, count = self.nodes[:, chosen], self.count[chosen]
        return replace(
            self,
            nodes=nodes,
            count=count,
            evidence=None,
            left=left,
            selection=selection,
            whole=self.whole or self,
            ranges=narrowed(self.ranges, conditions),
        )

    def query(self, **codes: str) -> int:
        """Return the count of a combination of codes, each of any level; attributes left out are summed over.

        `query(origin="Veneto", destination="Milano")`; an ambiguous code is named as in `where`.
        """
        return self.where(**codes).total

    def records(self) -> pa.Table:
        """Return synthetic records, one row a unit of count, with dictionary-coded columns.

        What is unresolved belongs to no leaf, and has no record.
        """
        import pyarrow as pa

        rows = np.repeat(np.arange(len(self.count)), self.count)
        columns = [
            pa.DictionaryArray.from_arrays(pa.array(nodes[rows]), tree.codes[-1])
            for tree, nodes in zip(self.spine.trees, self.nodes, strict=True)
        ]
        return pa.table(columns, names=list(self.spine.attributes))

    def save(self, folder: str | Path, force: bool = False, nodes: bool = False) -> None:
        """Write the release folder, whole or not at all.

        An existing folder is refused unless `force`, which replaces it once the new one is complete. With `nodes`,
        every level is written out beside the leaves.
        """
        from treetop.release.folder import save

        if self.selection:
            raise ReleaseError(
                f"this is only what matches {', '.join(self.selection)}: save the release, or export the selection"
            )
        save(self, Path(folder), force=force, nodes=nodes)

    @staticmethod
    def load(folder: str | Path) -> Release:
        """Read a release folder, refusing one that was damaged since it was written; `treetop check` verifies all."""
        from treetop.release.folder import load

        return load(Path(folder))

    def _index(self, level: str | None) -> int:
        if level is None:
            return len(self.spine.levels)
        return 0 if level == TOTAL else self.spine.level(level).index

    def _table(self, index: int) -> pa.Table:
        import pyarrow as pa

        level = self.tree.at(index)
        columns = self._codes(level) | {"count": pa.array(level.count)}
        if self.confidence is not None:
            found = self.intervals[index]
            columns |= {"lower": pa.array(found.lower), "upper": pa.array(found.upper)}
        return pa.table(columns)

    def _codes(self, level: LevelNodes) -> dict[str, pa.Array]:
        import pyarrow as pa

        names = list(self.spine.attributes)
        return {
            names[attribute]: self.spine.trees[attribute].codes[depth].take(pa.array(column))
            for attribute, depth, column in level.refined
        }

    def __repr__(self) -> str:
        warning = "" if self.card["private"] else "NOT PRIVATE; "
        where = f"where {', '.join(self.selection)}: " if self.selection else ""
        return f"Release({warning}{where}{self.total:,} in {len(self.count):,} leaves; {self._spine_text()})"

    def _spine_text(self) -> str:
        return " > ".join(level.name for level in self.spine.levels)

    def _repr_html_(self) -> str:
        rows = [("level", "released nodes", "public nodes")]
        for level in self.spine.levels:
            rows.append((level.name, f"{self.nodes_above_zero(level.index):,}", f"{level.nodes:,}"))
        title = html.escape(self.card["title"] or "Release")
        guarantee = html.escape(self.card["warning"] or self.card["guarantee"])
        return (
            f"<p><b>{title}</b>: {self.total:,} in {len(self.count):,} leaves<br>{guarantee}</p>"
            f"<table>{''.join(_html_row(row) for row in rows)}</table>"
        )


def _html_row(cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


def _groups(columns: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row of every distinct combination, in order, and each row's combination."""
    inverse = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        width = int(column.max(initial=0)) + 1
        _, first, inverse = np.unique(inverse * width + column, return_index=True, return_inverse=True)
    return first, inverse
