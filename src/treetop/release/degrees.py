"""Tables that follow from released degrees, of the whole graph or of each place: no private data, no further loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.basics.nearest import nearest
from treetop.errors import QueryError
from treetop.release.contents import Contents
from treetop.release.selection import Selection

Ints = NDArray[np.int64]
OfDegrees: TypeAlias = Literal["cumulative", "mean-degree", "quantiles"]
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
"""The quantiles that are told."""


@dataclass(frozen=True, eq=False)
class DegreeTables:
    """What released degrees say of people; degrees above the largest count as that one."""

    release: Contents
    """A release of degrees."""

    def __post_init__(self) -> None:
        if "degrees" not in self.release.card["plan"]:
            raise QueryError("this release is not of degrees: there is nothing to derive from degrees")

    @staticmethod
    def of(selected: Contents | Selection) -> DegreeTables:
        """Take a whole release: what is selected by degree has no distribution of its own."""
        if isinstance(selected, Selection):
            if selected.conditions:
                raise QueryError("a table that is derived from degrees is of all of them: name a level of the place")
            selected = selected.whole
        return DegreeTables(selected)

    def table(self, what: OfDegrees, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return one of the tables by its name, for each place of a level, or for all together when None."""
        cumulative = partial(self.cumulative, confidence=confidence)
        tables: dict[str, Callable[[str | None], pa.Table]] = {
            "cumulative": cumulative,
            "mean-degree": self.mean_degree,
            "quantiles": self.quantiles,
        }
        if what not in tables:
            names = get_args(OfDegrees)
            raise QueryError(f"{what!r} is not derived from degrees{nearest(what, names)}; choose {', '.join(names)}")
        return tables[what](level)

    def cumulative(self, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return how many people have at most each degree, with the bounds of it where the release has intervals."""
        codes, place, number = self._degrees(level)
        places, degrees = number.shape
        columns = self._named(level, codes, degrees)
        columns["degree"] = self.release.spine.trees[0].codes[-1].take(pa.array(np.tile(np.arange(degrees), places)))
        columns["people"] = number.cumsum(axis=1).ravel()
        confidence, cells = confidence or self.release.confidence, self.release.cells
        if cells is not None and confidence is not None:
            stop = np.tile(np.arange(1, degrees + 1), places)
            at = self._index(level)
            columns["lower"], columns["upper"] = cells.ranges(
                at, np.zeros_like(stop), stop, np.repeat(place, degrees), confidence
            )
        return pa.table(columns)

    def mean_degree(self, level: str | None = None) -> pa.Table:
        """Return the mean degree of all people, those without edges too."""
        codes, _, number = self._degrees(level)
        mean = number @ np.arange(number.shape[1]) / number.sum(axis=1)
        return pa.table({**self._named(level, codes), "mean_degree": mean})

    def quantiles(self, level: str | None = None) -> pa.Table:
        """Return, by shares of the people, the least degree that so many have or stay below."""
        codes, _, number = self._degrees(level)
        below = number.cumsum(axis=1) / number.sum(axis=1)[:, None]
        columns = self._named(level, codes, len(SHARES))
        columns["share"] = np.tile(SHARES, len(number))
        columns["degree"] = np.array([np.searchsorted(row, SHARES) for row in below]).ravel()
        return pa.table(columns)

    def _named(self, level: str | None, codes: pa.StringArray, times: int = 1) -> dict[str, object]:
        return {} if level is None else {level: codes.take(pa.array(np.repeat(np.arange(len(codes)), times)))}

    def _index(self, level: str | None) -> int:
        """Return the level of the spine: of all places together that of the degrees."""
        if level is None:
            return 1
        asked = self.release.spine.level(level)
        if asked.parts[0].attribute == 0:
            raise QueryError(f"{level} is the degree itself: derived tables are by a level of the place")
        return asked.index

    def _degrees(self, level: str | None) -> tuple[pa.StringArray, Ints, Ints]:
        """Return the codes of the places that have people, which they are, and how many have each degree."""
        found = self.release.tree.at(self._index(level)).nodes.astype(np.int64)
        counts = self.release.tree.at(self._index(level)).count
        spine = self.release.spine
        place = np.zeros(found.shape[1], np.int64) if level is None else found[1]
        tree, depth = (None, 0) if level is None else (spine.trees[1], spine.level(level).parts[0].depth)
        number = np.zeros((1 if tree is None else tree.sizes[depth], spine.trees[0].sizes[-1]), np.int64)
        np.add.at(number, (place, found[0]), counts)
        there = np.flatnonzero(number.any(axis=1))
        codes = pa.array([""]) if tree is None else tree.codes[depth].take(pa.array(there))
        return codes, there, number[there]
