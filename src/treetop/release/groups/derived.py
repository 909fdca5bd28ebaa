"""Tables that follow from released group sizes, at any level of the places: no private data, so no further loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.basics.nearest import nearest
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import QueryError
from treetop.plan.groups.planned import SIZE
from treetop.release.contents import Contents
from treetop.release.selection import Selection

Derived: TypeAlias = Literal["cumulative", "people", "mean-size", "share-of-one"]


@dataclass(frozen=True, eq=False)
class GroupTables:
    """What released group sizes say about places; groups above the largest size count as that size."""

    release: Contents | Selection
    """A release of group sizes, or what was selected from one."""

    def __post_init__(self) -> None:
        if "groups" not in self.release.card["plan"]:
            raise QueryError("this release is not of group sizes: there is nothing to derive from sizes")

    def table(self, what: Derived, level: str | None = None) -> pa.Table:
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
        return tables[what](level)

    def cumulative(self, level: str | None = None) -> pa.Table:
        """Return how many groups have at most each size: a row for every place with groups, and every size."""
        codes, number = self._sizes(level)
        at_most = number.cumsum(axis=1)
        places, sizes = number.shape
        columns = {} if level is None else {level: codes.take(pa.array(np.repeat(np.arange(places), sizes)))}
        size = self._tree.codes[-1].take(pa.array(np.tile(np.arange(sizes), places)))
        return pa.table({**columns, SIZE: size, "groups": at_most.ravel()})

    def people(self, level: str | None = None) -> pa.Table:
        """Return how many people are in the groups: the sizes times their numbers."""
        codes, number = self._sizes(level)
        return _named(level, codes, "people", pa.array(number @ self._size))

    def mean_size(self, level: str | None = None) -> pa.Table:
        """Return the mean size of the groups in which anybody is; null where there is none."""
        codes, number = self._sizes(level)
        return _named(level, codes, "mean_size", _ratio(number @ self._size, number[:, 1:].sum(axis=1)))

    def share_of_one(self, level: str | None = None) -> pa.Table:
        """Return the share of groups of size one among those in which anybody is; null where there is none."""
        codes, number = self._sizes(level)
        return _named(level, codes, "share_of_one", _ratio(number[:, 1], number[:, 1:].sum(axis=1)))

    @property
    def _at(self) -> int:
        return list(self.release.spine.attributes).index(SIZE)

    @property
    def _tree(self) -> Hierarchy:
        return self.release.spine.trees[self._at]

    @cached_property
    def _size(self) -> NDArray[np.int64]:
        return np.arange(self._tree.sizes[-1])

    def _sizes(self, level: str | None) -> tuple[pa.StringArray, NDArray[np.int64]]:
        """Return the codes of the places that have groups, and their number of groups by size."""
        release, size = self.release, self.release.nodes[self._at]
        if level is None:
            return pa.array([""]), np.bincount(size, release.count, len(self._size)).astype(np.int64)[None, :]
        (asked,) = release.spine.level(level).parts
        if asked.attribute == self._at:
            raise QueryError(f"{level} is the size itself: derived tables are by a level of the place")
        tree = release.spine.trees[asked.attribute]
        node = tree.ancestors(asked.depth)[release.nodes[asked.attribute]]
        number = np.zeros((tree.sizes[asked.depth], len(self._size)), np.int64)
        np.add.at(number, (node, size), release.count)
        there = np.flatnonzero(number.any(axis=1))
        return tree.codes[asked.depth].take(pa.array(there)), number[there]


def _named(level: str | None, codes: pa.StringArray, name: str, values: pa.Array) -> pa.Table:
    return pa.table({**({} if level is None else {level: codes}), name: values})


def _ratio(above: NDArray[np.int64], below: NDArray[np.int64]) -> pa.Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return pa.array(above / below, mask=below == 0)
