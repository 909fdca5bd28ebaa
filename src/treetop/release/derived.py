"""Tables that follow from released group sizes, at any level of the places: no private data, so no further loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop._util.choices import nearest
from treetop._util.dtypes import Floats, Ints
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import QueryError
from treetop.plan.groups import SIZE
from treetop.plan.workload import as_confidence
from treetop.release.intervals.boxes import Range
from treetop.release.intervals.cells import MeasuredCells
from treetop.release.release import Release
from treetop.release.selection import Selection

Derived: TypeAlias = Literal["cumulative", "people", "mean-size", "share-of-one"]


class _Places(NamedTuple):
    """The places of a table."""

    codes: pa.StringArray
    place: Ints
    level: int
    """The level of the spine; that of the sizes for all places together."""
    number: Ints
    """The number of groups of each place (row) by size (column)."""
    whole: bool = True
    """Whether all groups of these places are there; a part of them has no interval."""


@dataclass(frozen=True, eq=False)
class GroupTables:
    """Tables of places that follow from released group sizes; groups above the largest size count as that size."""

    release: Release | Selection

    def __post_init__(self) -> None:
        if "groups" not in self.release.card["plan"]:
            raise QueryError("this release is not of group sizes: there is nothing to derive from sizes")

    def table(self, what: Derived, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return one of the tables by its name, for each place of a level, or for all together when None."""
        tables = {
            "cumulative": self.cumulative,
            "people": self.people,
            "mean-size": self.mean_size,
            "share-of-one": self.share_of_one,
        }
        if what not in tables:
            names = get_args(Derived)
            raise QueryError(f"{what!r} is not a derived table{nearest(what, names)}; there are: {', '.join(names)}")
        return tables[what](level, confidence)

    def cumulative(self, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return how many groups have at most each size: a row for every place with groups, and every size.

        Their bounds hold for all sizes of a place at once, each with its part of the risk; so they rise, as the truth
        does: a lower bound is no less than those before it, and an upper one no more than those after it.
        """
        places = self._sizes(level)
        number, sizes = places.number, places.number.shape[1]
        columns = {}
        if level is not None:
            columns[level] = places.codes.take(pa.array(np.repeat(np.arange(len(number)), sizes)))
        columns[SIZE] = labels_of(self._tree).take(pa.array(np.tile(np.arange(sizes), len(number))))
        columns["groups"] = number.cumsum(axis=1).ravel()
        if (sure := self._confidence(confidence, places)) is not None:
            part = 1 - (1 - sure) / max(sizes - 1, 1)  # of the largest size it is the number of all groups
            bounds = [self._ranges(places, 0, stop, part) for stop in range(1, sizes + 1)]
            lower, upper = (np.stack(one, axis=1) for one in zip(*bounds, strict=True))
            columns["lower"] = np.maximum.accumulate(lower, axis=1).ravel()
            columns["upper"] = np.minimum.accumulate(upper[:, ::-1], axis=1)[:, ::-1].ravel()
        return pa.table(columns)

    def people(self, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return how many people are at least in the groups: the sizes times their numbers.

        A group above the largest size counts with that size only, so `upper` is null.
        """
        places = self._sizes(level)
        sure = self._confidence(confidence, places)
        bounds = None if sure is None else _open_above(self._people(places, sure)[0])
        return _named(level, places.codes, "people", pa.array(places.number @ self._size), bounds)

    def mean_size(self, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return the least mean size of non-empty groups; null if there are none.

        A group above the largest size counts with that size only, so `upper` is null.
        """
        places = self._sizes(level)
        number, sure, bounds = places.number, self._confidence(confidence, places), None
        if sure is not None:  # half of the risk on the people, half on the groups
            half = 1 - (1 - sure) / 2
            people, groups = self._people(places, half), self._ranges(places, 1, len(self._size), half)
            bounds = _open_above(_quotients(people, groups, 1.0, float(self._size[-1]))[0])
        means = _ratio(number @ self._size, number[:, 1:].sum(axis=1))
        return _named(level, places.codes, "mean_size", means, bounds)

    def share_of_one(self, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return the share of groups of size one among non-empty groups; null if there are none."""
        if len(self._size) == 2:
            raise QueryError("sizes of 1 and more are counted together here: which groups have one is not known")
        places = self._sizes(level)
        number, sure, bounds = places.number, self._confidence(confidence, places), None
        if sure is not None:
            half = 1 - (1 - sure) / 2
            ones, groups = (self._ranges(places, 1, stop, half) for stop in (2, len(self._size)))
            bounds = _quotients(ones, groups, 0.0, 1.0)
        shares = _ratio(number[:, 1], number[:, 1:].sum(axis=1))
        return _named(level, places.codes, "share_of_one", shares, bounds)

    def note(self, what: Derived) -> str | None:
        """Return the limitation of a table; None if it has none."""
        if what not in ("people", "mean-size"):
            return None
        return "The true number is at least this: its upper end is open."

    def why_no_interval(self, level: str | None = None) -> str | None:
        """Return the reason that a level's tables lack bounds although the release has intervals; else None."""
        if self._sizes(level).whole or self._confidence(None, None) is None:
            return None
        return (
            "There is no interval: the conditions ask for some sizes only, or for a part of a place of the table. "
            "Derived tables have intervals for whole places with all their sizes"
        )

    def _confidence(self, confidence: float | None, places: _Places | None) -> float | None:
        """Return the confidence of bounds; None if the release has none, or if only a part of a place is asked for."""
        whole = self.release.whole
        if places is not None and not places.whole:
            return None
        return whole.confidence if confidence is None or whole.confidence is None else as_confidence(confidence)

    def _cells(self) -> MeasuredCells:
        whole = self.release.whole
        assert whole.cells is not None
        return whole.cells

    def _ranges(self, places: _Places, start: int, stop: int, confidence: float) -> tuple[Ints, Ints]:
        """Return the bounds of the groups of sizes start … stop − 1, by place."""
        first, last = np.full(len(places.place), start), np.full(len(places.place), stop)
        return self._cells().ranges(places.level, first, last, places.place, confidence)

    def _people(self, places: _Places, confidence: float) -> tuple[Ints, Ints]:
        return self._cells().sums_of_degrees(places.level, places.place, confidence)

    @property
    def _at(self) -> int:
        return list(self.release.spine.attributes).index(SIZE)

    @property
    def _tree(self) -> Hierarchy:
        return self.release.spine.trees[self._at]

    @cached_property
    def _size(self) -> Ints:
        return np.arange(self._tree.sizes[-1])

    def _sizes(self, level: str | None) -> _Places:
        """Return the places that have groups, with their number of groups by size."""
        release, size = self.release, self.release.nodes[self._at]
        if level is None:
            number = np.bincount(size, release.count, len(self._size)).astype(np.int64)[None, :]
            node = self._one_place()
            of_level, place = (1, 0) if node is None else node
            return _Places(pa.array([""]), np.array([place]), of_level, number, node is not None)
        found = release.spine.level(level)
        (asked,) = found.parts
        if asked.attribute == self._at:
            raise QueryError(f"{level} is the size itself: derived tables are by a level of the place")
        tree = release.spine.trees[asked.attribute]
        node = tree.ancestors(asked.depth)[release.nodes[asked.attribute]]
        number = np.zeros((tree.sizes[asked.depth], len(self._size)), np.int64)
        np.add.at(number, (node, size), release.count)
        there = np.flatnonzero(number.any(axis=1))
        leaves = [tree.below(asked.depth, node) for node in there.tolist()]
        start, stop = self._asked.get(asked.attribute, (0, tree.sizes[-1]))
        whole = not self._some_sizes and all(start <= first and last <= stop for first, last in leaves)
        return _Places(tree.codes[asked.depth].take(pa.array(there)), there, found.index, number[there], whole)

    @property
    def _asked(self) -> Mapping[int, Range]:
        """The selected leaves by attribute; attributes with all leaves are left out."""
        return self.release.ranges if isinstance(self.release, Selection) else {}

    @property
    def _some_sizes(self) -> bool:
        every = (0, len(self._size))
        return self._asked.get(self._at, every) != every

    def _one_place(self) -> tuple[int, int] | None:
        """Return the level and the number of the selected place; None if it is not one place, or not all of one."""
        spine = self.release.spine
        asked = {at: leaves for at, leaves in self._asked.items() if at != self._at}
        if self._some_sizes or not asked:
            return None if self._some_sizes else (1, 0)
        ((at, leaves),) = asked.items()
        tree = spine.trees[at]
        if leaves == (0, tree.sizes[-1]):
            return 1, 0
        for level in spine.levels:
            (part,) = level.parts
            if part.attribute != at or leaves[0] >= leaves[1]:
                continue
            node = int(tree.ancestors(part.depth)[leaves[0]])
            if tree.below(part.depth, node) == leaves:
                return level.index, node
        return None


def labels_of(tree: Hierarchy) -> pa.StringArray:
    """Return the labels of a tree's leaves: their names, or their codes if they have none."""
    own = tree.names.get(tree.levels[-1])
    return tree.codes[-1] if own is None else pc.coalesce(own, tree.codes[-1])


def _open_above(lower: NDArray[Any]) -> tuple[NDArray[Any], pa.Array]:
    """Return bounds with an unknown upper end."""
    return lower, pa.nulls(len(lower), pa.from_numpy_dtype(lower.dtype))


def _named(
    level: str | None, codes: pa.StringArray, name: str, values: pa.Array, bounds: tuple[Any, Any] | None
) -> pa.Table:
    within = {} if bounds is None else {"lower": pa.array(bounds[0]), "upper": pa.array(bounds[1])}
    return pa.table({**({} if level is None else {level: codes}), name: values, **within})


def _ratio(above: Ints, below: Ints) -> pa.Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return pa.array(above / below, mask=below == 0)


def _quotients(above: tuple[Ints, Ints], below: tuple[Ints, Ints], least: float, most: float) -> tuple[Floats, Floats]:
    """Return the bounds of a quotient between two limits, from those of both numbers; 0/0 may be anything."""
    lower, upper = above[0] / np.maximum(below[1], 1), above[1] / np.maximum(below[0], 1)
    upper = np.where(below[0] == 0, most, upper)
    return np.clip(lower, least, most), np.clip(upper, least, most)
