"""Tables that follow from released group sizes, at any level of the places: no private data, so no further loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop._util.choices import nearest
from treetop._util.dtypes import Floats, Ints
from treetop._util.picture import new_figure, save_figure
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


# Tables that follow from released degrees, of the whole graph or of each place: no private data, no further loss.

OfDegrees: TypeAlias = Literal["cumulative", "mean-degree", "quantiles", "share-above"]
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


@dataclass(frozen=True, eq=False)
class DegreeTables:
    """Tables of people by degree; degrees above the largest count as that one.

    Bounds are of the graph as it is. If edges were left out before counting, true degrees may be higher, and only the
    bounds that still hold are kept: `lower` is 0 for people of at most a degree, and `upper` null or 1 elsewhere.
    """

    release: Release

    def __post_init__(self) -> None:
        if "degrees" not in self.release.card["plan"]:
            raise QueryError("this release is not of degrees: there is nothing to derive from degrees")

    @staticmethod
    def of(selected: Release | Selection) -> DegreeTables:
        """Make the tables of a whole release; a selection by degree has no distribution of its own and is refused."""
        if isinstance(selected, Selection):
            if selected.conditions:
                raise QueryError("a table that is derived from degrees is of all of them: name a level of the place")
            selected = selected.whole
        return DegreeTables(selected)

    def table(
        self, what: OfDegrees, level: str | None = None, confidence: float | None = None, above: int | None = None
    ) -> pa.Table:
        """Return one of the tables by its name, for each place of a level, or for all together when None."""
        if what not in (names := get_args(OfDegrees)):
            raise QueryError(f"{what!r} is not derived from degrees{nearest(what, names)}; choose {', '.join(names)}")
        if (above is None) == (what == "share-above"):
            raise QueryError(
                "the share of people above a degree names that degree, and no other table does: give above"
            )
        if what == "share-above":
            assert above is not None
            return self.share_above(above, level, confidence)
        if what == "quantiles":
            return self.quantiles(level, confidence=confidence)
        return (self.cumulative if what == "cumulative" else self.mean_degree)(level, confidence=confidence)

    @property
    def leaves_out(self) -> bool:
        """Whether edges were left out before degrees were counted."""
        counted = self.release.card["counted"]
        return "projected" in counted or "limit" in counted

    def note(self, what: OfDegrees) -> str | None:
        """Return the limitation of a table; None if it has none."""
        if what == "mean-degree":
            return "The true mean is at least this: its upper end is open."
        if what == "quantiles":
            return "Where an upper end is open, the true degree may be any that is higher."
        return None

    def cumulative(
        self, level: str | None = None, confidence: float | None = None, *, as_stated: bool = True
    ) -> pa.Table:
        """Return how many people have at most each degree, with bounds if the release has intervals.

        Without `as_stated` the bounds are those of the graph after edges were left out.
        """
        codes, place, number = self._degrees(level)
        places, degrees = number.shape
        columns = self._named(level, codes, degrees)
        columns["degree"] = labels_of(self.release.spine.trees[0]).take(pa.array(np.tile(np.arange(degrees), places)))
        columns["people"] = number.cumsum(axis=1).ravel()
        if (sure := self._sure(confidence)) is not None:
            lower, upper = self._at_most(level, place, sure)
            if self.leaves_out and as_stated:
                lower[:, :-1] = 0
            columns["lower"], columns["upper"] = lower.ravel(), upper.ravel()
        return pa.table(columns)

    def mean_degree(self, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return the least mean degree of all people, those without edges too.

        Higher degrees count as the largest, so `upper` is null.
        """
        codes, place, number = self._degrees(level)
        columns = self._named(level, codes)
        columns["mean_degree"] = number @ np.arange(number.shape[1]) / number.sum(axis=1)
        if (sure := self._sure(confidence)) is not None:
            assert self.release.cells is not None
            columns["lower"], _ = self.release.cells.means(self._index(level), place, sure)
            columns["upper"] = pa.nulls(len(place), pa.float64())
        return pa.table(columns)

    def quantiles(
        self, level: str | None = None, shares: Sequence[float] = SHARES, confidence: float | None = None
    ) -> pa.Table:
        """Return, by shares of the people, the least degree that this share of them does not exceed, with its bounds.

        Those take no more risk than one cumulative count has: the quantile q is below the lower bound only if the upper
        bound of the people of degree q or less is too low, and above the upper bound only if the lower bound of those
        of degree q − 1 or less is too high. An upper bound that is the largest degree is null: that class is open.
        """
        if not all(0 < share < 1 for share in shares):
            raise QueryError("a quantile is by a share of the people between 0 and 1")
        codes, place, number = self._degrees(level)
        columns = self._named(level, codes, len(shares))
        columns["share"] = np.tile(shares, len(number))
        columns["degree"] = np.array([_reached(row.cumsum(), row.sum(), shares) for row in number]).ravel()
        if (sure := self._sure(confidence)) is not None:
            fewest, most, low, high = self._shared(level, place, sure)
            last = number.shape[1] - 1
            rows = zip(fewest, most, low, high, strict=True)
            ends = [(_reached(up, few, shares), _passed(down, many, shares)) for few, many, down, up in rows]
            columns["lower"] = np.minimum(np.array([lower for lower, _ in ends]).ravel(), last)
            upper = np.minimum(np.array([upper for _, upper in ends]).ravel(), last)
            columns["upper"] = pa.array(upper, mask=(upper == last) | self.leaves_out)
        return pa.table(columns)

    def share_above(self, above: int, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return the share of people with more edges than `above`, with its bounds."""
        codes, place, number = self._degrees(level)
        if not 0 <= above < number.shape[1] - 1:
            raise QueryError(f"{above} is no degree that others are told apart from: give 0 to {number.shape[1] - 2}")
        columns = self._named(level, codes)
        columns["above"] = np.full(len(number), above)
        columns["share"] = number[:, above + 1 :].sum(axis=1) / number.sum(axis=1)
        if (sure := self._sure(confidence)) is not None:
            fewest, most, low, high = self._shared(level, place, sure)
            columns["lower"] = 1 - np.minimum(high[:, above] / np.maximum(fewest, 1), 1)
            upper = 1 - np.minimum(low[:, above] / np.maximum(most, 1), 1)
            columns["upper"] = np.ones_like(upper) if self.leaves_out else upper
        return pa.table(columns)

    def _sure(self, confidence: float | None) -> float | None:
        """Return the confidence of bounds; None if there are none."""
        if self.release.cells is None or self.release.confidence is None:
            if confidence is not None:
                raise QueryError("this release has no intervals: its plan has them off; leave the confidence out")
            return None
        return self.release.confidence if confidence is None else confidence

    def _at_most(self, level: str | None, place: Ints, confidence: float) -> tuple[Ints, Ints]:
        """Return the bounds of how many people have at most each degree (column), by place (row)."""
        cells = self.release.cells
        assert cells is not None
        stop = np.tile(np.arange(1, cells.degrees + 1), len(place))
        start = np.zeros_like(stop)
        found = cells.ranges(self._index(level), start, stop, np.repeat(place, cells.degrees), confidence)
        low, high = (ends.reshape(len(place), cells.degrees) for ends in found)
        return low, high

    def _shared(self, level: str | None, place: Ints, confidence: float) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the bounds of all people, and of those of at most each degree: half of the risk each, unless the
        number of people is public."""
        cells = self.release.cells
        assert cells is not None
        fewest, most = cells.people_of(self._index(level), place, confidence)
        if (fewest < most).any():
            confidence = (1 + confidence) / 2
            fewest, most = cells.people_of(self._index(level), place, confidence)
        return fewest, most, *self._at_most(level, place, confidence)

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


def _needed(people: int, share: float) -> int:
    """Return the least whole number that is at least a share of the people."""
    return math.ceil(Fraction(str(share)) * int(people))


def _reached(below: Ints, people: int, shares: Sequence[float]) -> list[int]:
    """Return by share the first degree up to which enough people are counted; the counts need not rise."""
    return [int(np.append(below >= _needed(people, share), True).argmax()) for share in shares]


def _passed(below: Ints, people: int, shares: Sequence[float]) -> list[int]:
    """Return by share the degree after the last up to which too few people are counted."""
    return [int(np.flatnonzero(below < _needed(people, share)).max(initial=-1)) + 1 for share in shares]


# A picture of released degrees: the share of people with more edges than each degree, with its noise interval.

MOST_PANELS = 12
"""Most places that a page draws in separate panels."""


def draw_degrees(tables: DegreeTables, file: Path, level: str | None = None, confidence: float | None = None) -> None:
    """Draw the people who have more edges than each degree, of the whole graph or of every place of a level.

    A cumulative distribution hides the tail: here both axes are logarithmic, and a share of zero is not
    drawn. The plot shows released counts only.
    """
    rows = tables.cumulative(level, confidence, as_stated=False).to_pylist()
    places: dict[str, list[dict[str, int]]] = {}
    for row in rows:
        places.setdefault("all people" if level is None else row[level], []).append(row)
    if len(places) > MOST_PANELS:
        raise QueryError(
            f"{level} has {len(places):,} places: a plot takes {MOST_PANELS} at most, so name another level"
        )
    columns = min(3, len(places))
    figure = new_figure(1 + 3.6 * columns, 0.6 + 3.2 * -(-len(places) // columns), dpi=110)
    panels = figure.subplots(-(-len(places) // columns), columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes, (name, own) in zip(panels, places.items(), strict=False):
        count = {end: np.array([row[end] for row in own[:-1]]) for end in own[0] if end not in (level, "degree")}
        people, x = max(own[-1]["people"], 1), np.arange(1, len(own))
        if "lower" in count:
            low, high = (np.clip(1 - count[end] / people, 0.1 / people, 1) for end in ("upper", "lower"))
            axes.fill_between(x, low, high, step="post", alpha=0.25, linewidth=0, label="noise interval")
        share = 1 - count["people"] / people
        axes.step(x, np.where(share > 0, share, np.nan), where="post", label="released")
        axes.set(xscale="log", yscale="log", title=name, ylim=(0.5 / people, 1.3))
        axes.title.set_fontsize(9)
    for axes in panels[len(places) :]:
        axes.set_visible(False)
    panels[0].legend(fontsize=8, loc="lower left")
    left = ", after some were left out" if tables.leaves_out else ""
    figure.supxlabel(f"edges, at least{left}", fontsize=9)
    figure.supylabel("share of people", fontsize=9)
    save_figure(figure, file)
