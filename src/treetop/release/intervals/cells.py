"""The intervals of counts along an axis that are measured cell by cell, all at once: of degrees, of every region.

Group sizes are counted alike, groups as people and sizes as degrees. The plan measures, for each place, the number of
people of each degree (a histogram), or of each degree and those below (cumulative counts). People whose degree lies in
a range are then a sum of n independent measurements, or the difference of two of them, of which one, or both, may be
known without noise: nobody has less than degree 0, and the number of people may be public, of the whole graph or of
every place. Noise is symmetric, so that either is off by a sum of n draws, whose exact quantiles (`sum_noise`) bound it
on both sides, with half of the risk on each. If the number of people of a histogram is public, a range is also that
number less the other degrees: the fewer draws serve, which the range decides and not the noise.

Every public cell has its interval, listed or not, from its own measurements alone: none is more certain because of
another, and repairs play no part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treetop.domain.spine import Spine
from treetop.errors import ReleaseError
from treetop.noise import Law
from treetop.noise.sum_noise import sum_margin, sum_margins, weighted_margin
from treetop.release.intervals.boxes import Boxes
from treetop.release.intervals.nodes import LevelIntervals, risk_of
from treetop.release.measurements import LevelMeasurements, Measurements
from treetop.release.tree import ReleasedTree

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Cells(NamedTuple):
    """The measurements of one level: of consecutive degrees (row) and of all its places (column)."""

    first: int
    """First degree that is measured."""
    value: Ints


class _Ends(NamedTuple):
    """Known counts of a level: by a number of degrees, from 0 to all of them (row), and by place (column)."""

    below: Ints
    """Measured number of people of lower degrees, by degree (row) and place (column)."""
    noisy: NDArray[np.bool_]
    """Of cumulative counts: whether they have noise."""
    first: int
    people: Ints | None
    """People of each place, if known."""
    law: Law


def measurements_of(spine: Spine, laws: Sequence[Law | None], cells: Mapping[int, Cells]) -> Measurements:
    """Say of which nodes the cells are that were measured at some levels of a spine, the degrees first."""
    levels = []
    for level in spine.levels:
        first, value = cells.get(level.index, Cells(0, np.empty((0, 0), np.int64)))
        levels.append(LevelMeasurements(_nodes(spine, first, value.shape), value.ravel()))
    return Measurements(spine, None, tuple(laws), tuple(levels))


def _nodes(spine: Spine, first: int, shape: tuple[int, ...]) -> NDArray[np.int32]:
    """Return the nodes of cells: of each degree all places, and of the place 0 while it is not refined."""
    degrees, places = shape
    rows = [np.repeat(np.arange(first, first + degrees), places), np.tile(np.arange(places), degrees)]
    return np.array(rows[: len(spine.attributes)], np.int32)


@dataclass(frozen=True, eq=False)
class MeasuredCells:
    """The measurements of counts along an axis, and the released counts."""

    tree: ReleasedTree
    measurements: Measurements
    cumulative: bool
    """Whether cumulative counts were measured, rather than a histogram."""
    people: int | None
    """Number of people, if it is exact."""
    kept: bool = False
    """Whether the number of people of every place is public and kept."""
    _levels: dict[int, _Ends] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def degrees(self) -> int:
        """Number of distinct degrees."""
        return self.tree.spine.trees[0].sizes[-1]

    def intervals(self, confidence: float) -> tuple[LevelIntervals, ...]:
        """Return the noise intervals of the released nodes, from the total down."""
        found = []
        for index in range(len(self.tree.spine.levels) + 1):
            nodes = self.tree.at(index).nodes.astype(np.int64)
            start, stop = self._range(nodes[0], refined=index > 0)
            own = self._measured(index)
            lower, upper = self.bounds(own, start, stop, self._places(own, index, nodes), confidence)
            found.append(LevelIntervals(lower, upper, np.zeros(len(lower), np.int64)))
        return tuple(found)

    def of_boxes(self, boxes: Boxes, confidence: float) -> tuple[Ints, Ints]:
        """Return the bounds of boxes, each of one degree or all, and of one place at any level or all."""
        start, stop = self._range(boxes.leaf[0], refined=boxes.depth[0] > 0)
        own = self._measured(1 + sum(boxes.depth[1:]))
        return self.bounds(own, start, stop, self._places(own, len(self.tree.spine.levels), boxes.leaf), confidence)

    def ranges(self, index: int, start: Ints, stop: Ints, place: Ints, confidence: float) -> tuple[Ints, Ints]:
        """Return the bounds of people of places of any level below the total, of degrees start … stop − 1."""
        own = self._measured(index)
        nodes = np.array([start, place][: len(self.tree.spine.attributes)])
        return self.bounds(own, start, stop, self._places(own, index, nodes), confidence)

    def people_of(self, index: int, place: Ints, confidence: float) -> tuple[Ints, Ints]:
        """Return the bounds of all people of places of a level: one number if it is public."""
        return self.ranges(index, *self._range(place, refined=False), place, confidence)

    def means(self, index: int, place: Ints, confidence: float) -> tuple[Floats, Floats]:
        """Return the bounds of the mean degree of places of a level; degrees above the largest count as that.

        With L the largest degree, N people and C(d) of degree d or less, it is L less ΣC(d)/N, d < L: a sum of as many
        measurements, or of those of a histogram, each as often as its degree. If N is not public it takes half of the
        risk.
        """
        own = self._measured(index)
        ends, last = self._ends(own), self.degrees - 1
        fewest, most = self.people_of(index, place, confidence)
        risk = risk_of(confidence)
        if (fewest < most).any():
            risk /= 2
            fewest, most = self.people_of(index, place, 1 - float(risk))
        at = self._places(own, index, np.array([place, place][: len(self.tree.spine.attributes)]))
        if self.cumulative:
            below = ends.below[1:-1, at].sum(axis=0)
            margin = sum_margin(ends.law, last, risk / 2)
            low = last - (below + margin) / np.maximum(fewest, 1)
            high = last - np.maximum(below - margin, 0) / np.maximum(most, 1)
        else:
            edges = np.arange(1, last + 1) @ np.diff(ends.below, axis=0)[1:, at]
            margin = weighted_margin(ends.law, tuple(range(1, last + 1)), risk / 2)
            low = (edges - margin) / np.maximum(most, 1)
            high = (edges + margin) / np.maximum(fewest, 1)
        return np.clip(low, 0, last), np.where(fewest == 0, last, np.clip(high, 0, last))

    def bounds(self, index: int, start: Ints, stop: Ints, place: Ints, confidence: float) -> tuple[Ints, Ints]:
        """Return the bounds of the numbers of people of places of a measured level, of degrees start … stop − 1."""
        ends = self._ends(index)
        value, draws = ends.below[stop, place] - ends.below[start, place], stop - start
        if self.cumulative:
            draws = ends.noisy[stop].astype(np.int64) + ends.noisy[start]
        elif ends.people is not None:
            # All the others are in the sum of all; of people without edges there may be no measurement.
            others = self.degrees - draws
            instead = start == 0 if ends.first > 0 else others < draws
            value = np.where(instead, ends.people[place] - (ends.below[-1, place] - value), value)
            draws = np.where(instead, others, draws)
        margin = sum_margins(ends.law, draws, risk_of(confidence) / 2)
        most = self.people if ends.people is None else ends.people[place]
        return np.clip(value - margin, 0, most), np.clip(value + margin, 0, most)

    def sums_of_degrees(self, index: int, place: Ints, confidence: float) -> tuple[Ints, Ints]:
        """Return the bounds of the sum of all degrees of places of a level, which is a weighted sum of measurements.

        Of cumulative counts c it is Σ (n − c) over all degrees but the last, with n people: as many draws, and one more
        with their number as its weight if n is not known.
        """
        own = self._measured(index)
        ends, largest = self._ends(own), self.degrees - 1
        at = self._places(own, index, np.array([np.zeros_like(place), place][: len(self.tree.spine.attributes)]))
        if self.cumulative:
            value = largest * ends.below[-1, at] - ends.below[1:-1, at].sum(axis=0)
            weights = [1] * largest + ([] if ends.people is not None else [largest])
        else:
            value = np.arange(self.degrees) @ np.diff(ends.below[:, at], axis=0)
            weights = list(range(1, largest + 1))
        margin = weighted_margin(ends.law, tuple(weights), risk_of(confidence) / 2)
        people = self.people if ends.people is None else ends.people[at]
        most = None if people is None else largest * people
        return np.clip(value - margin, 0, most), np.clip(value + margin, 0, most)

    def _range(self, degree: Ints, refined: bool) -> tuple[Ints, Ints]:
        every = np.zeros(len(degree), np.int64)
        return (degree, degree + 1) if refined else (every, every + self.degrees)

    def _measured(self, index: int) -> int:
        """Return the measured level for a level's nodes: the one above if the places were not divided."""
        index = max(index, 1)
        while self.measurements.laws[index] is None:
            index -= 1
        return index

    def _places(self, own: int, index: int, nodes: Ints) -> Ints:
        """Return the places of a measured level that nodes of a level at it or below belong to."""
        spine = self.tree.spine
        depth = spine.depths(own)[1:]
        if not any(depth):
            return np.zeros(nodes.shape[1], np.int64)
        places: Ints = spine.trees[1].ancestors(depth[0] - 1, finer=spine.depths(index)[1] - 1)[nodes[1]]
        return places

    def _people(self, index: int, places: int) -> Ints | None:
        """Return how many people each place of a level has; None if unknown."""
        if self.kept:
            nodes = self.tree.at(index)
            place = np.zeros(len(nodes.count), np.int64) if places == 1 else nodes.nodes[1]
            return np.bincount(place, nodes.count, places).astype(np.int64)
        whole = not any(self.tree.spine.depths(index)[1:])
        return np.array([self.people]) if whole and self.people is not None else None

    def _ends(self, index: int) -> _Ends:
        if index not in self._levels:
            self._levels[index] = self._read(index)
        return self._levels[index]

    def _read(self, index: int) -> _Ends:
        """Put the measurements of a level in order; refuse them unless they are all of its cells."""
        spine, seen, law = self.tree.spine, self.measurements.levels[index - 1], self.measurements.laws[index]
        depth = sum(spine.depths(index)[1:])
        places = spine.trees[1].sizes[depth - 1] if depth else 1
        people = self._people(index, places)
        first = 0 if seen is None or len(seen) == 0 else int(seen.nodes[0, 0])
        degrees = 0 if seen is None else len(seen) // places
        expected = [(0, self.degrees)]
        if people is not None:  # then one cell need not be measured
            expected.append((0 if self.cumulative else 1, self.degrees - 1))
        fits = law is not None and (first, degrees) in expected
        if not fits or seen is None or not np.array_equal(seen.nodes, _nodes(spine, first, (degrees, places))):
            raise ReleaseError(f"the measurements of level {spine.levels[index - 1].name} are not those of its cells")
        assert law is not None
        below, noisy = np.zeros((self.degrees + 1, places), np.int64), np.ones(self.degrees + 1, dtype=bool)
        value = seen.value.reshape(degrees, places)
        below[1 + first : 1 + first + degrees] = value if self.cumulative else value.cumsum(axis=0)
        noisy[0] = False
        if self.cumulative and people is not None:
            below[-1], noisy[-1] = people, False
        return _Ends(below, noisy, first, people, law)
