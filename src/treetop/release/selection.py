"""A selection: the part of a release that matches some codes, and its queries."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop._util.dtypes import Ints
from treetop.card import render
from treetop.card.rebuild import OF_CELLS
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import TIMES, Spine, apart
from treetop.domain.spine_level import AttributeStep
from treetop.domain.unit import TOTAL
from treetop.errors import QueryError, ReleaseError
from treetop.plan.degrees import DEGREE
from treetop.plan.group_plan import SIZE
from treetop.release.count_table import CountTable
from treetop.release.intervals.boxes import Boxes, PairBox, Range, narrowed
from treetop.release.intervals.nodes import Interval
from treetop.release.margins import MarginTable, find
from treetop.release.shards import inside, level_rows
from treetop.release.tree import ReleasedTree, meeting

if TYPE_CHECKING:
    from treetop.release.release import Release


MOST_ROWS = 100_000
"""Tables of sums with more rows than this have no intervals."""


class Queries:
    """The questions that a release and a selection of it answer alike."""

    whole: Release
    """The release itself, of which a selection is a part."""
    conditions: tuple[str, ...] = ()
    """Such as `origin=Veneto`; none for a whole release."""
    ranges: Mapping[int, Range] = MappingProxyType({})
    """By attribute, the first selected leaf and the one after the last."""

    @property
    def tree(self) -> ReleasedTree:
        """The selected nodes of every level."""
        raise NotImplementedError

    @property
    def total(self) -> int:
        """The sum of all counts, with remainders of nodes that are selected entirely, or as a margin has counted it."""
        if self._own_count is not None:
            return self._own_count
        total_within = self.whole.shards.total_within
        if (turned := self._turned) is None:
            return total_within(self.ranges)
        both = narrowed(self.ranges, [(attribute, *ends) for attribute, ends in turned.items()])
        return total_within(self.ranges) + total_within(turned) - total_within(both)

    @property
    def leaves(self) -> int:
        """How many leaves are above zero."""
        return len(self.tree.count) if self.ranges else self.whole.shards.leaves

    @property
    def unresolved_total(self) -> int:
        """How much of the total is not resolved down to the leaves."""
        return 0 if self.whole.left is None else self.total - int(self.tree.count.sum())

    @property
    def partly_unresolved(self) -> int:
        """The remainders at nodes that are selected only in part: these counts may belong here.

        0 if a margin has counted the selection, since its count is complete.
        """
        left = self.whole.left
        if left is None or not self.ranges or self._own_count is not None:
            return 0
        meets, within = meeting(self.whole.spine, left, self.ranges)
        return int(left.count[meets & ~within].sum())

    @property
    def _turned(self) -> dict[int, Range] | None:
        """The ranges with their ends exchanged, of a part of unordered pairs: what matches either way is meant."""
        if not self.ranges or (pairs := self.whole.pairs) is None:
            return None
        other = dict(zip(pairs, reversed(pairs), strict=True))
        return {other[attribute]: ends for attribute, ends in self.ranges.items()}

    def where(self, **codes: str) -> Selection:
        """Select by a combination of codes, each of any level; a selection answers the same questions.

        `where(origin="Veneto").table(["destination.province"])`. Of unordered pairs, those are selected whose ends
        match in either order: with one code, all that touch it. If a code stands at several levels, name the level:
        `where(**{"destination.province": "Milano"})`.
        """
        conditions = (*self.conditions, *(f"{name}={code}" for name, code in codes.items()))
        found = [self.whole.spine.find(name, self._padded(name, code)) for name, code in codes.items()]
        return Selection(self.whole, conditions, narrowed(self.ranges, found))

    def _padded(self, name: str, code: str) -> str:
        """Return a size or a degree with the zeros in front that its codes have, as 03 for 3; other codes unchanged."""
        attribute = apart(name, self.whole.spine.attributes)[0]
        if attribute not in (SIZE, DEGREE) or OF_CELLS.keys().isdisjoint(self.whole.card["plan"]):
            return code
        return str(code).zfill(len(self.whole.spine.attributes[attribute].codes[-1][0].as_py()))

    def query(self, **codes: str) -> int:
        """Return the count of a combination of codes, each of any level; attributes left out are summed over.

        `query(origin="Veneto", destination="Milano")`; an ambiguous code is named as in `where`.
        """
        return self.where(**codes).total

    @cached_property
    def _own_count(self) -> int | None:
        """The count of the selection in a margin, remainders included; None if the leaves have all."""
        if self.whole.left is None or any(start >= stop for start, stop in self.ranges.values()):
            return None
        boxes = Boxes.one(self.whole.spine, self.ranges)
        table = self._counted_apart(boxes)
        return None if table is None else int(table.count[table.cells(boxes)[0]])

    def _counted_apart(self, boxes: Boxes) -> MarginTable | None:
        """Return the margin that has counted cells with all their remainders; None if the leaves have all."""
        table = None if self.whole.left is None else find(self.whole.margins, self.whole.spine, boxes.depth)
        return None if table is None or not table.exact else table

    def interval(self, confidence: float | None = None, /, **codes: str) -> Interval:
        """Return the noise interval of `query(**codes)`, at the confidence of the plan or at another.

        The count may be that of one node or of any combination of codes, released or not.
        """
        ranges = self.where(**codes).ranges
        if any(start >= stop for start, stop in ranges.values()):
            return Interval(0, 0)  # the conditions exclude each other
        boxes = Boxes.one(self.whole.spine, ranges)
        lower, upper = self.intervals_of(boxes if self.whole.pairs is None else PairBox.of(boxes, ranges), confidence)
        return Interval(int(lower[0]), int(upper[0]))

    def table(
        self,
        by: str | Sequence[str] | None = None,
        where: Mapping[str, str] | None = None,
        *,
        intervals: bool = True,
        confidence: float | None = None,
        names: bool = False,
    ) -> CountTable:
        """Return counts, one row for each combination of codes above zero, with the bounds of each.

        `release.table(by=["origin.region"], where={"destination": "Milano"})`. Columns are named as asked. Rows are in
        the order in which the codes were listed. Remainders at one of the levels are in no row, unless a margin has
        counted such rows: then these are its own counts. Tables of more than 100,000 rows have no bounds.

        Args:
            by: Levels, `attribute.level`; attributes left out are summed over. A short name, `"region"`, stands for
                that level of every attribute which has one. None for all attributes down to the leaves, an empty list
                for the total.
            where: Codes or names, each of any level, as in `where`.
            intervals: Whether `lower` and `upper` stand beside the counts, if the release has intervals.
            confidence: Of the bounds; that of the plan by default.
            names: Whether the names of codes stand beside them, if the release has any.
        """
        part = self.where(**where) if where else self
        if by is None:
            if not part.conditions and confidence is None and not names:
                found, spine = part.level(), part.whole.spine
                return CountTable(found if intervals else found.select([*spine.attributes, "count"]))
            spine = part.whole.spine
            by = [f"{name}.{tree.levels[-1]}" for name, tree in zip(spine.attributes, spine.trees, strict=True)]
            found = part._by(by, intervals, confidence, names)
            return CountTable(found.rename_columns([name.partition(".")[0] for name in found.column_names]))
        levels = [by] if isinstance(by, str) else list(by)
        if levels:
            return CountTable(part._by(levels, intervals, confidence, names))
        total = {"count": [part.total]}
        if intervals and part.whole.confidence is not None:
            total |= {end: [bound] for end, bound in part.interval(confidence)._asdict().items()}
        return CountTable(pa.table({name: pa.array(column, pa.int64()) for name, column in total.items()}))

    def _by(self, levels: Sequence[str], intervals: bool, confidence: float | None, names: bool) -> pa.Table:
        spine, confident = self.whole.spine, self.whole.confidence
        named = self._named(levels)
        asked = [part for _, part in named]
        self._refuse_one_end(asked)
        trees = [spine.trees[part.attribute] for part in asked]
        leaf, counts = self._sums(asked)
        columns = [tree.ancestors(part.depth)[leaf[part.attribute]] for tree, part in zip(trees, asked, strict=True)]
        # The first row of every distinct combination, in the order in which the codes were listed.
        inverse, first = np.zeros(len(counts), np.int64), np.empty(0, np.int64)
        for tree, part, column in zip(trees, asked, columns, strict=True):
            listed = tree.listing(part.depth)[column]
            key = inverse * (int(listed.max(initial=0)) + 1) + listed
            _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        count = np.zeros(len(first), np.int64)
        np.add.at(count, inverse, counts)
        codes = [
            tree.codes[part.depth].take(pa.array(column[first]))
            for tree, part, column in zip(trees, asked, columns, strict=True)
        ]
        table = pa.table([*codes, pa.array(count)], names=[*(name for name, _ in named), "count"])
        if names:
            for (name, part), tree, column in zip(named, trees, columns, strict=True):
                table = with_names(table, name, tree, part.depth, column[first])
        if not intervals or confident is None or len(first) > MOST_ROWS:
            return table
        boxes = Boxes.of_rows(spine, self.ranges, asked, np.asarray(leaf[:, first], np.int64))
        lower, upper = self.intervals_of(boxes, confidence)
        return table.append_column("lower", pa.array(lower)).append_column("upper", pa.array(upper))

    def _refuse_one_end(self, asked: Sequence[AttributeStep]) -> None:
        """Refuse rows of unordered pairs by one of their ends, or of a part of them."""
        if self.whole.pairs is None:
            return
        if len({part.attribute for part in asked}) < len(self.whole.pairs) or len({part.depth for part in asked}) > 1:
            raise QueryError(
                "of unordered pairs, which end comes first means nothing: name the same level of both ends; what "
                "touches a place is counted by its code alone"
            )
        if self.conditions:
            raise QueryError(
                "of unordered pairs, those of a place stand in rows by either end: ask for the rows of all pairs, or "
                "for the count of two places"
            )

    def _sums(self, asked: Sequence[AttributeStep]) -> tuple[NDArray[np.integer], Ints]:
        """Return a leaf of every cell above zero at some levels, and its count; a cell may have several summands."""
        spine = self.whole.spine
        boxes = Boxes.of_rows(spine, self.ranges, asked, np.zeros((len(spine.trees), 0), np.int64))
        if (table := self._counted_apart(boxes)) is None:
            depths: dict[int, int] = {}
            for part in asked:
                depths[part.attribute] = max(depths.get(part.attribute, 0), part.depth)
            return self.whole.shards.sums_within(self.ranges, depths)
        leaf = table.leaves(spine)
        own = {attribute: ends for attribute, ends in self.ranges.items() if attribute in table.margin.attributes}
        chosen = (table.count > 0) & inside(leaf, own)
        return leaf[:, chosen], table.count[chosen]

    def columns_of(self, *levels: str) -> list[str]:
        """Return the columns of codes that `by` has for these levels."""
        return [name for name, _ in self._named(levels)]

    def _named(self, levels: Sequence[str]) -> list[tuple[str, AttributeStep]]:
        """Return the columns that names of levels ask for: one each, or one for each attribute of a merged step."""
        spine = self.whole.spine
        if not levels:
            raise QueryError("name at least one level, such as " + spine.splits[0])
        found: list[tuple[str, AttributeStep]] = []
        for level in dict.fromkeys(one for asked in levels for one in spine.levels_named(asked)):
            parts = spine.refinements(level)
            names = [level] if len(parts) == 1 else [name.strip() for name in level.split(TIMES.strip())]
            if len(parts) > 1:
                by_attribute = {part.attribute: part for part in parts}
                parts = tuple(by_attribute[spine.refinements(name)[0].attribute] for name in names)
            found += zip(names, parts, strict=True)
        return found

    def intervals_of(self, boxes: Boxes, confidence: float | None = None) -> tuple[Ints, Ints]:
        """Return the lower and upper bounds of the true counts of boxes, released or not."""
        confidence = self.whole.confidence or 0.95 if confidence is None else confidence
        _ = self.whole.shards.measured  # refuses a release without measurements
        if (table := find(self.whole.margins, self.whole.spine, boxes.depth)) is not None:
            cells = table.cells(boxes)
            lower, upper = table.intervals(confidence)
            return lower[cells], upper[cells]
        return self.whole.shards.intervals_of(boxes, confidence)

    def level(self, level: str | None = None) -> pa.Table:
        """Return the nodes above zero at a level of the spine (the leaves when None), in spine order.

        There is one column for each attribute that is refined by then, named after it, and `count`; with intervals
        `lower` and `upper` as well, except for a part of a release, whose nodes may not be those that they are of.
        Remainders above the level are in no row.
        """
        index = level_index(self.whole.spine, level)
        if self.conditions:
            return level_rows(self.whole.spine, index, self.tree.at(index), None)
        return self.whole.shards.table(index, self.whole.confidence)

    def batches(self, level: str | None = None) -> Iterator[pa.Table]:
        """Yield the rows of `level`, some at a time: of a large release, one shard after the other."""
        if self.conditions:
            yield self.level(level)
        else:
            yield from self.whole.shards.tables(level_index(self.whole.spine, level), self.whole.confidence)

    def records(self) -> pa.Table:
        """Return synthetic records, one row per unit of count, with dictionary-coded columns.

        Remainders belong to no leaf, and have no records.
        """
        nodes, count, spine = self.tree.nodes, self.tree.count, self.whole.spine
        rows = np.repeat(np.arange(len(count)), count)
        columns = [
            pa.DictionaryArray.from_arrays(pa.array(own[rows]), tree.codes[-1])
            for tree, own in zip(spine.trees, nodes, strict=True)
        ]
        return pa.table(columns, names=list(spine.attributes))

    def _repr_html_(self) -> str:
        return shown(self)

    def __repr__(self) -> str:
        card, spine = self.whole.card, " > ".join(level.name for level in self.whole.spine.levels)
        warning = "" if card["private"] else "NOT PRIVATE; "
        where = f"where {', '.join(self.conditions)}: " if self.conditions else ""
        return f"Release({warning}{where}{self.total:,} in {self.leaves:,} leaves; {spine})"


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Queries):
    """The part of a release that matches some codes; all of it if there are none."""

    whole: Release
    conditions: tuple[str, ...] = ()
    ranges: Mapping[int, Range] = field(default_factory=dict)

    @property
    def spine(self) -> Spine:
        """The public order of refinement."""
        return self.whole.spine

    @property
    def card(self) -> dict[str, Any]:
        """The card of the release."""
        return self.whole.card

    @property
    def confidence(self) -> float | None:
        """Confidence of the intervals of its sums; None if the release has none."""
        return self.whole.confidence

    @cached_property
    def tree(self) -> ReleasedTree:
        """The selected leaves, and the remainders at nodes that belong to the selection entirely."""
        if not self.ranges:
            return self.whole.tree
        if (turned := self._turned) is None:
            return self.whole.shards.within(self.ranges)
        tree = self.whole.tree
        chosen = inside(tree.nodes, self.ranges) | inside(tree.nodes, turned)
        return ReleasedTree(tree.spine, tree.nodes[:, chosen], tree.count[chosen])

    @property
    def nodes(self) -> NDArray[np.int32]:
        """For each attribute (row) and leaf (column), the attribute's node; leaves are in spine order."""
        return self.tree.nodes

    @property
    def count(self) -> Ints:
        """The released count of each leaf, above zero."""
        return self.tree.count

    def save(self, *_: object, **__: object) -> NoReturn:
        """Refuse: a folder holds a whole release."""
        raise ReleaseError(
            f"this is only what matches {', '.join(self.conditions)}: save the release, or export the selection"
        )

    def estimates(self, *_: object) -> NoReturn:
        """Refuse: all measurements together give estimates."""
        raise ReleaseError("estimates are made of a whole release: ask before `where`")

    reestimated = estimates


def with_names(
    table: pa.Table, column: str, tree: Hierarchy, depth: int, nodes: Ints | pa.Array, *, last: bool = False
) -> pa.Table:
    """Return a table with the names of a column's codes beside it, or last; a code without a name is its own."""
    if (own := tree.names.get(tree.levels[depth])) is None:
        return table
    called = pc.coalesce(own, tree.codes[depth]).take(pa.array(nodes))
    at = len(table.column_names) if last else table.column_names.index(column) + 1
    return table.add_column(at, name_column(column, table.column_names), called)


def name_column(column: str, others: Sequence[str]) -> str:
    """Return the name of the column with the names of codes, which no other column has.

    >>> name_column("origin", ["origin", "count"]), name_column("a", ["a", "a_name"])
    ('origin_name', 'a_name_')
    """
    name = f"{column}_name"
    while name in others:
        name += "_"
    return name


def level_index(spine: Spine, level: str | None) -> int:
    """Return the position of a level by its name: the leaves when None, 0 for the total."""
    if level is None:
        return len(spine.levels)
    return 0 if level == TOTAL else spine.level(level).index


# How a notebook shows a release, or a part of one: its largest counts with their intervals, and its guarantee.


def shown(part: Queries) -> str:
    """Return a page for a notebook: the total, its protection, and the counts of the first level with several nodes."""
    card, confidence = part.whole.card, part.whole.confidence
    title = html.escape(": ".join(filter(None, [card["title"] or "Release", ", ".join(part.conditions)])))
    total, guarantee = f"{part.total:,}", html.escape(render(card["warning"] or card["guarantee"]))
    if confidence is not None:
        bounds = part.interval()
        mark = "" if bounds.lower <= part.total <= bounds.upper else ", which it lies outside of"
        total += f" ({confidence:.0%} noise interval {bounds.lower:,} – {bounds.upper:,}{mark})"
    counted = "".join(f"<br>{html.escape(render(one))}" for one in card.get("counted", {}).get("sentences", ()))
    head = f"<p><b>{title}</b>: {total} in {part.leaves:,} leaves{counted}<br>{guarantee}</p>"
    # The largest counts of the first level that divides the selection, or of the last one.
    found = None
    for level in part.whole.spine.levels:
        found = part.table(level.name, names=True)
        if len(found) > 1:
            break
    if not found:
        return head
    largest = CountTable(found.sort_by([("count", "descending")]))
    return head + largest._repr_html_()
