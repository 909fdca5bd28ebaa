"""A release: the public result of running a plan once. Tables at every level, queries, records, save and load."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from treetop.errors import QueryError, ReleaseError
from treetop.privacy.unit import TOTAL
from treetop.spine import Spine

if TYPE_CHECKING:
    import pyarrow as pa


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
    selection: tuple[str, ...] = ()
    """What `where` narrowed it to; a whole release has none."""

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return int(self.count.sum())

    def table(self, level: str | None = None) -> pa.Table:
        """Return the nodes above zero at a level of the spine (the leaves when None), in spine order.

        There is one column for each attribute that is refined by then, named after it, and `count`.
        """
        if level is None:
            return self._table(self._nodes_at(len(self.spine.levels)))
        index = 0 if level == TOTAL else self.spine.level(level).index
        return self._table(self._nodes_at(index))

    def nodes_above_zero(self, index: int) -> int:
        """Return how many nodes are above zero at a level of the spine, by its position; the total is 0."""
        return len(self._nodes_at(index)[1])

    def by(self, *levels: str) -> pa.Table:
        """Return sums over any choice of `attribute.level`, one row a combination above zero.

        `release.by("origin.region")` leaves the destination out; the columns are named as asked.
        """
        import pyarrow as pa

        if not levels:
            raise QueryError("name at least one level, such as " + self.spine.splits[0])
        asked = [self.spine.level(level) for level in levels]
        columns = [self._nodes(level.attribute, level.depth) for level in asked]
        first, inverse = _groups(columns)
        count = np.zeros(len(first), np.int64)
        np.add.at(count, inverse, self.count)
        arrays = [
            self.spine.trees[level.attribute].codes[level.depth].take(pa.array(column[first]))
            for level, column in zip(asked, columns, strict=True)
        ]
        return pa.table([*arrays, pa.array(count)], names=[*levels, "count"])

    def where(self, **codes: str) -> Release:
        """Return what matches a combination of codes, each of any level, for `table`, `by`, `total` and `records`.

        `where(origin="Veneto").by("destination.province")`; where a code stands at several levels, name the one
        that is meant: `where(**{"destination.province": "Milano"})`.
        """
        chosen = np.ones(len(self.count), dtype=bool)
        for name, code in codes.items():
            attribute, start, stop = self.spine.find(name, code)
            chosen &= (self.nodes[attribute] >= start) & (self.nodes[attribute] < stop)
        selection = (*self.selection, *(f"{name}={code}" for name, code in codes.items()))
        return replace(self, nodes=self.nodes[:, chosen], count=self.count[chosen], selection=selection)

    def query(self, **codes: str) -> int:
        """Return the count of a combination of codes, each of any level; attributes left out are summed over.

        `query(origin="Veneto", destination="Milano")`; an ambiguous code is named as in `where`.
        """
        return self.where(**codes).total

    def records(self) -> pa.Table:
        """Return synthetic records, one row a unit of count, with dictionary-coded columns."""
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
        from treetop.folder import save

        if self.selection:
            raise ReleaseError(
                f"this is only what matches {', '.join(self.selection)}: save the release, or export the selection"
            )
        save(self, Path(folder), force=force, nodes=nodes)

    @staticmethod
    def load(folder: str | Path) -> Release:
        """Read a release folder."""
        from treetop.folder import load

        return load(Path(folder))

    def _nodes(self, attribute: int, depth: int) -> NDArray[np.int64]:
        """Return each leaf's node of one attribute at a coarser depth."""
        nodes: NDArray[np.int64] = self.spine.trees[attribute].ancestors(depth)[self.nodes[attribute]]
        return nodes

    def _nodes_at(self, index: int) -> tuple[list[tuple[int, int, NDArray[np.int64]]], NDArray[np.int64]]:
        """Return (attribute, depth, nodes) for every attribute refined at a spine level, and the counts.

        Leaves are in spine order, so the leaves under a node are consecutive.
        """
        refined = [
            (attribute, depth - 1, self._nodes(attribute, depth - 1))
            for attribute, depth in enumerate(self.spine.depths(index))
            if depth > 0
        ]
        starts = np.zeros(len(self.count), dtype=bool)
        starts[:1] = True
        for _, _, nodes in refined:
            starts[1:] |= nodes[1:] != nodes[:-1]
        first = np.flatnonzero(starts)
        count = np.add.reduceat(self.count, first) if len(first) else self.count[:0]
        return [(attribute, depth, nodes[first]) for attribute, depth, nodes in refined], count

    def _table(self, nodes: tuple[list[tuple[int, int, NDArray[np.int64]]], NDArray[np.int64]]) -> pa.Table:
        import pyarrow as pa

        refined, count = nodes
        names = list(self.spine.attributes)
        columns = {
            names[attribute]: self.spine.trees[attribute].codes[depth].take(pa.array(column))
            for attribute, depth, column in refined
        }
        return pa.table({**columns, "count": pa.array(count)})

    def __repr__(self) -> str:
        warning = "" if self.card["private"] else "NOT PRIVATE; "
        where = f"where {', '.join(self.selection)}: " if self.selection else ""
        return f"Release({warning}{where}{self.total:,} in {len(self.count):,} leaves; {self._spine_text()})"

    def _spine_text(self) -> str:
        return " > ".join(level.name for level in self.spine.levels)

    def _repr_html_(self) -> str:
        rows = [("level", "released nodes", "public nodes")]
        for level in self.spine.levels:
            _, count = self._nodes_at(level.index)
            rows.append((level.name, f"{len(count):,}", f"{level.nodes:,}"))
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
