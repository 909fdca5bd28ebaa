"""Tables that follow from released group sizes or degrees, at any level of the places: no private data, no loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.choices import nearest
from treetop._util.dtypes import Floats, Ints
from treetop._util.picture import new_figure, save_figure
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import QueryError
from treetop.plan.degrees import DEGREE
from treetop.plan.group_plan import SIZE
from treetop.plan.workload import as_confidence
from treetop.release.intervals.boxes import Range, condition_depths
from treetop.release.intervals.cells import MeasuredCells
from treetop.release.release import Release
from treetop.release.selection import Selection

Derived: TypeAlias = Literal["cumulative", "people", "mean-size", "share-of-one"]
OfDegrees: TypeAlias = Literal["cumulative", "mean-degree", "quantiles", "share-above"]
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


class _Places(NamedTuple):
    """The places of a table, with their counts along the axis."""

    name: str | None
    """The level that was asked for; None for all places together."""
    codes: pa.StringArray
    place: Ints
    level: int
    """The level of the spine; that of the axis for all places together."""
    number: Ints
    """The count of each place (row) by size or degree (column)."""
    whole: bool = True
    """Whether all that these places count is there; a part of them has no interval."""

    def columns(self, times: int = 1) -> dict[str, Any]:
        """Return the column of codes, each repeated; none for all places together."""
        rows = pa.array(np.repeat(np.arange(len(self.place)), times))
        return {} if self.name is None else {self.name: self.codes.take(rows)}


@dataclass(frozen=True, eq=False)
class _AxisTables:
    """Tables of places that follow from counts along an axis; above the largest value counts as that value."""

    release: Release | Selection
    axis: ClassVar[str]
    counted: ClassVar[str]
    tables: ClassVar[tuple[str, ...]]
    notes: ClassVar[Mapping[str, str]]
    """The limitation of a table, by its name."""

    def table(
        self, what: str, level: str | None = None, confidence: float | None = None, **about: int | None
    ) -> pa.Table:
        """Return one of the tables by its name, for each place of a level, or for all together when None."""
        if what not in self.tables:
            raise QueryError(
                f"{what!r} is not derived from {self.axis}s{nearest(what, self.tables)}; there are: "
                f"{', '.join(self.tables)}"
            )
        given = {name: value for name, value in about.items() if value is not None}
        found: pa.Table = getattr(self, what.replace("-", "_"))(level=level, confidence=confidence, **given)
        return found

    def note(self, what: str) -> str | None:
        """Return the limitation of a table; None if it has none."""
        return self.notes.get(what)

    def _confidence(self, confidence: float | None, places: _Places | None = None) -> float | None:
        """Return the confidence of bounds; None if the release has none, or if only a part of a place is asked for."""
        own = self.release.whole.confidence
        if own is None and confidence is not None:
            raise QueryError("this release has no intervals: its plan has them off; leave the confidence out")
        if own is None or (places is not None and not places.whole):
            return None
        return own if confidence is None else as_confidence(confidence)

    @property
    def _cells(self) -> MeasuredCells:
        cells = self.release.whole.cells
        assert cells is not None
        return cells

    @property
    def _at(self) -> int:
        return list(self.release.spine.attributes).index(self.axis)

    @property
    def _tree(self) -> Hierarchy:
        return self.release.spine.trees[self._at]

    @property
    def _values(self) -> Ints:
        return np.arange(self._tree.sizes[-1])

    def _ranges(self, places: _Places, start: int, stop: int, confidence: float) -> tuple[Ints, Ints]:
        """Return the bounds of what has sizes start … stop − 1, by place."""
        first, last = np.full(len(places.place), start), np.full(len(places.place), stop)
        return self._cells.ranges(places.level, first, last, places.place, confidence)

    def _at_most(self, places: _Places, confidence: float) -> tuple[Ints, Ints]:
        """Return the bounds of what has at most each size (column), by place (row)."""
        stops = range(1, len(self._values) + 1)
        lower, upper = zip(*(self._ranges(places, 0, stop, confidence) for stop in stops), strict=True)
        return np.stack(lower, axis=1), np.stack(upper, axis=1)

    def _cumulative(self, places: _Places, bounds: tuple[Ints, Ints] | None) -> pa.Table:
        number, size = places.number, len(self._values)
        columns = places.columns(size)
        columns[self.axis] = labels_of(self._tree).take(pa.array(np.tile(self._values, len(number))))
        columns[self.counted] = number.cumsum(axis=1).ravel()
        within = {} if bounds is None else {"lower": bounds[0].ravel(), "upper": bounds[1].ravel()}
        return pa.table(columns | within)

    def _places(self, level: str | None) -> _Places:
        """Return the places that count something, with their counts along the axis."""
        release, value = self.release, self.release.nodes[self._at]
        if level is None:
            number = np.bincount(value, release.count, len(self._values)).astype(np.int64)[None, :]
            node = self._one_place()
            of_level, place = (1, 0) if node is None else node
            return _Places(None, pa.array([""]), np.array([place]), of_level, number, node is not None)
        found = release.spine.level(level)
        (asked,) = found.parts
        if asked.attribute == self._at:
            raise QueryError(f"{level} is the {self.axis} itself: derived tables are by a level of the place")
        tree = release.spine.trees[asked.attribute]
        node = tree.ancestors(asked.depth)[release.nodes[asked.attribute]]
        number = np.zeros((tree.sizes[asked.depth], len(self._values)), np.int64)
        np.add.at(number, (node, value), release.count)
        there = np.flatnonzero(number.any(axis=1))
        leaves = [tree.below(asked.depth, node) for node in there.tolist()]
        start, stop = self._asked.get(asked.attribute, (0, tree.sizes[-1]))
        whole = self._asked.get(self._at, (0, len(self._values))) == (0, len(self._values))
        whole = whole and all(start <= first and last <= stop for first, last in leaves)
        return _Places(level, tree.codes[asked.depth].take(pa.array(there)), there, found.index, number[there], whole)

    @property
    def _asked(self) -> Mapping[int, Range]:
        """The selected leaves by attribute; attributes with all leaves are left out."""
        return self.release.ranges if isinstance(self.release, Selection) else {}

    def _one_place(self) -> tuple[int, int] | None:
        """Return the level and the number of the selected place; None if nothing, or only some sizes, are selected."""
        spine, asked = self.release.spine, self._asked
        if any(start >= stop for start, stop in asked.values()):
            return None
        depths = condition_depths(spine, asked)
        nodes = [spine.trees[at].ancestors(depth - 1)[asked[at][0]] for at, depth in enumerate(depths) if depth]
        return None if depths[self._at] else (1 + sum(depths), int(sum(nodes)))


@dataclass(frozen=True, eq=False)
class GroupTables(_AxisTables):
    """Tables of places that follow from released group sizes; groups above the largest size count as that size."""

    axis = SIZE
    counted = "groups"
    tables = get_args(Derived)
    notes = dict.fromkeys(("people", "mean-size"), "The true number is at least this: its upper end is open.")

    def __post_init__(self) -> None:
        if "groups" not in self.release.card["plan"]:
            raise QueryError("this release is not of group sizes: there is nothing to derive from sizes")

    def cumulative(self, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return how many groups have at most each size: a row for every place with groups, and every size.

        Their bounds hold for all sizes of a place at once, each with its part of the risk; so they rise, as the truth
        does: a lower bound is no less than those before it, and an upper one no more than those after it.
        """
        places = self._places(level)
        if (sure := self._confidence(confidence, places)) is None:
            return self._cumulative(places, None)
        part = 1 - (1 - sure) / max(len(self._values) - 1, 1)  # of the largest size it is the number of all groups
        lower, upper = self._at_most(places, part)
        rising = np.maximum.accumulate(lower, axis=1), np.minimum.accumulate(upper[:, ::-1], axis=1)[:, ::-1]
        return self._cumulative(places, rising)

    def people(self, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return how many people are at least in the groups: the sizes times their numbers.

        A group above the largest size counts with that size only, so `upper` is null.
        """
        places = self._places(level)
        columns = places.columns() | {"people": places.number @ self._values}
        if (sure := self._confidence(confidence, places)) is not None:
            columns |= _open_above(self._cells.sums_of_degrees(places.level, places.place, sure)[0])
        return pa.table(columns)

    def mean_size(self, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return the least mean size of non-empty groups; null if there are none.

        A group above the largest size counts with that size only, so `upper` is null.
        """
        places = self._places(level)
        number, sure = places.number, self._confidence(confidence, places)
        columns = places.columns() | {"mean_size": _ratio(number @ self._values, number[:, 1:].sum(axis=1))}
        if sure is not None:  # half of the risk on the people, half on the groups
            half = 1 - (1 - sure) / 2
            people = self._cells.sums_of_degrees(places.level, places.place, half)
            groups = self._ranges(places, 1, len(self._values), half)
            columns |= _open_above(_quotients(people, groups, 1.0, float(self._values[-1]))[0])
        return pa.table(columns)

    def share_of_one(self, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return the share of groups of size one among non-empty groups; null if there are none."""
        if len(self._values) == 2:
            raise QueryError("sizes of 1 and more are counted together here: which groups have one is not known")
        places = self._places(level)
        number, sure = places.number, self._confidence(confidence, places)
        columns = places.columns() | {"share_of_one": _ratio(number[:, 1], number[:, 1:].sum(axis=1))}
        if sure is not None:
            half = 1 - (1 - sure) / 2
            ones, groups = (self._ranges(places, 1, stop, half) for stop in (2, len(self._values)))
            columns |= dict(zip(("lower", "upper"), _quotients(ones, groups, 0.0, 1.0), strict=True))
        return pa.table(columns)

    def why_no_interval(self, level: str | None = None) -> str | None:
        """Return the reason that a level's tables lack bounds although the release has intervals; else None."""
        if self._places(level).whole or self._confidence(None) is None:
            return None
        return (
            "There is no interval: the conditions ask for some sizes only, or for a part of a place of the table. "
            "Derived tables have intervals for whole places with all their sizes"
        )


@dataclass(frozen=True, eq=False)
class DegreeTables(_AxisTables):
    """Tables of people by degree; degrees above the largest count as that one.

    Bounds are of the graph as it is. If edges were left out before counting, true degrees may be higher, and only the
    bounds that still hold are kept: `lower` is 0 for people of at most a degree, and `upper` null or 1 elsewhere.
    """

    axis = DEGREE
    counted = "people"
    tables = get_args(OfDegrees)
    notes: ClassVar[Mapping[str, str]] = {
        "mean-degree": "The true mean is at least this: its upper end is open.",
        "quantiles": "Where an upper end is open, the true degree may be any that is higher.",
    }

    def __post_init__(self) -> None:
        if "degrees" not in self.release.card["plan"]:
            raise QueryError("this release is not of degrees: there is nothing to derive from degrees")

    @staticmethod
    def of(selected: Release | Selection) -> DegreeTables:
        """Make the tables of a whole release; a selection by degree has no distribution of its own and is refused."""
        if isinstance(selected, Selection) and selected.conditions:
            raise QueryError("a table that is derived from degrees is of all of them: name a level of the place")
        return DegreeTables(selected.whole)

    def table(
        self, what: str, level: str | None = None, confidence: float | None = None, **about: int | None
    ) -> pa.Table:
        """Return one of the tables by its name, for each place of a level; the share of people names its degree."""
        if what in self.tables and (about.get("above") is None) == (what == "share-above"):
            raise QueryError(
                "the share of people above a degree names that degree, and no other table does: give above"
            )
        return super().table(what, level, confidence, **about)

    @property
    def leaves_out(self) -> bool:
        """Whether edges were left out before degrees were counted."""
        counted = self.release.card["counted"]
        return "projected" in counted or "limit" in counted

    def cumulative(
        self, level: str | None = None, confidence: float | None = None, *, as_stated: bool = True
    ) -> pa.Table:
        """Return how many people have at most each degree, with bounds if the release has intervals.

        Without `as_stated` the bounds are those of the graph after edges were left out.
        """
        places = self._places(level)
        if (sure := self._confidence(confidence)) is None:
            return self._cumulative(places, None)
        lower, upper = self._at_most(places, sure)
        if self.leaves_out and as_stated:
            lower[:, :-1] = 0
        return self._cumulative(places, (lower, upper))

    def mean_degree(self, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return the least mean degree of all people, those without edges too.

        Higher degrees count as the largest, so `upper` is null.
        """
        places = self._places(level)
        number = places.number
        columns = places.columns() | {"mean_degree": _ratio(number @ self._values, number.sum(axis=1))}
        if (sure := self._confidence(confidence)) is not None:
            columns |= _open_above(self._cells.means(places.level, places.place, sure)[0])
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
        places = self._places(level)
        columns = places.columns(len(shares)) | {"share": np.tile(shares, len(places.number))}
        columns["degree"] = np.array([_reached(row.cumsum(), row.sum(), shares) for row in places.number]).ravel()
        if (sure := self._confidence(confidence)) is not None:
            fewest, most, low, high = self._shared(places, sure)
            last = len(self._values) - 1
            lower = np.array([_reached(up, few, shares) for up, few in zip(high, fewest, strict=True)]).ravel()
            upper = np.array([_passed(down, many, shares) for down, many in zip(low, most, strict=True)]).ravel()
            columns["lower"], upper = np.minimum(lower, last), np.minimum(upper, last)
            columns["upper"] = pa.array(upper, mask=(upper == last) | self.leaves_out)
        return pa.table(columns)

    def share_above(self, above: int, level: str | None = None, confidence: float | None = None) -> pa.Table:
        """Return the share of people with more edges than `above`, with its bounds."""
        places, largest = self._places(level), len(self._values) - 1
        number = places.number
        if not 0 <= above < largest:
            raise QueryError(f"{above} is no degree that others are told apart from: give 0 to {largest - 1}")
        columns = places.columns() | {"above": np.full(len(number), above)}
        columns["share"] = _ratio(number[:, above + 1 :].sum(axis=1), number.sum(axis=1))
        if (sure := self._confidence(confidence)) is not None:
            fewest, most, low, high = self._shared(places, sure)
            columns["lower"] = 1 - np.minimum(high[:, above] / np.maximum(fewest, 1), 1)
            upper = 1 - np.minimum(low[:, above] / np.maximum(most, 1), 1)
            columns["upper"] = np.ones_like(upper) if self.leaves_out else upper
        return pa.table(columns)

    def _shared(self, places: _Places, confidence: float) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the bounds of all people, and of those of at most each degree: half of the risk each, unless the
        number of people is public."""
        fewest, most = self._cells.people_of(places.level, places.place, confidence)
        if (fewest < most).any():
            confidence = (1 + confidence) / 2
            fewest, most = self._cells.people_of(places.level, places.place, confidence)
        return fewest, most, *self._at_most(places, confidence)


def labels_of(tree: Hierarchy) -> pa.StringArray:
    """Return the labels of a tree's leaves: their names, or their codes if they have none."""
    own = tree.names.get(tree.levels[-1])
    return tree.codes[-1] if own is None else pc.coalesce(own, tree.codes[-1])


def _open_above(lower: Ints | Floats) -> dict[str, Any]:
    """Return the columns of bounds with an unknown upper end."""
    return {"lower": lower, "upper": pa.nulls(len(lower), pa.from_numpy_dtype(lower.dtype))}


def _ratio(above: Ints, below: Ints) -> pa.Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return pa.array(above / below, mask=below == 0)


def _quotients(above: tuple[Ints, Ints], below: tuple[Ints, Ints], least: float, most: float) -> tuple[Floats, Floats]:
    """Return the bounds of a quotient between two limits, from those of both numbers; 0/0 may be anything."""
    lower, upper = above[0] / np.maximum(below[1], 1), above[1] / np.maximum(below[0], 1)
    upper = np.where(below[0] == 0, most, upper)
    return np.clip(lower, least, most), np.clip(upper, least, most)


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
