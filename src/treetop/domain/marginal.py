"""Margins: tables beside the spine, of one attribute or a few, with the rest summed over.

"How many leave Leeds?" is asked of the origins alone, and a spine that refines both ends has no node for it. A margin
is the table that answers it, measured and kept for itself.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from treetop._util.dtypes import Ints
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import TIMES, Spine, level_named
from treetop.domain.spine_level import Level
from treetop.domain.unit import TOTAL
from treetop.errors import PlanError, SpineError

Margins: TypeAlias = Literal["each", "pairs", "none"] | Sequence[str]
"""Which margins a plan has: those of every attribute alone, these and those of every two attributes, none, or a list
such as `["place.state * sex"]`."""

DEFAULT_MARGINS: Margins = "each"
MARGIN = "margin "
"""Prefix of a margin's name in shares and costs: the name alone may be that of a level."""
MOST_PAIR_CELLS = 20_000
"""The margins of every two attributes have coarser levels if they would have more cells than this."""
MOST_CELLS = 1 << 24
"""A margin of several attributes has at most so many cells, all of which are measured."""


@dataclass(frozen=True)
class Margin:
    """One table beside the spine."""

    name: str
    """`attribute.level`, or just the attribute where it has one level; several are joined by ` * `."""
    depths: tuple[int, ...]
    """By attribute of the spine, how many of its levels are refined; 0 where it is summed over."""
    nodes: int

    @property
    def part(self) -> str:
        """Name of the table in shares and costs."""
        return MARGIN + self.name

    @property
    def attributes(self) -> tuple[int, ...]:
        """The attributes that it tells apart."""
        return tuple(attribute for attribute, depth in enumerate(self.depths) if depth)


def title_of(spine: Spine, depths: Sequence[int]) -> str:
    """Describe the counts of a table with so many levels of every attribute.

    >>> from treetop.domain.hierarchy import Hierarchy
    >>> place = Hierarchy.from_prefixes(["AX", "AY"], widths=[1], levels=["state", "county"])
    >>> spine = Spine(["place.state", "sex", "place.county"], {"place": place, "sex": Hierarchy.flat(["f", "m"])})
    >>> [title_of(spine, spine.depths(index)) for index in range(4)]
    ['total', 'place state', 'place state × sex', 'place county × sex']
    """
    about = zip(spine.attributes, spine.trees, depths, strict=True)
    named = (
        name if len(tree.levels) == 1 or tree.levels[depth - 1] == name else f"{name} {tree.levels[depth - 1]}"
        for name, tree, depth in about
        if depth
    )
    return " × ".join(named) or TOTAL


def margin_at(spine: Spine, depths: Sequence[int]) -> Margin:
    """Return the margin with so many levels of every attribute."""
    about = [
        (name, tree, depth) for name, tree, depth in zip(spine.attributes, spine.trees, depths, strict=True) if depth
    ]
    names = (name if len(tree.levels) == 1 else f"{name}.{tree.levels[depth - 1]}" for name, tree, depth in about)
    return Margin(TIMES.join(names), tuple(depths), math.prod(tree.sizes[depth - 1] for _, tree, depth in about))


def margins_of(spine: Spine, given: Margins, *, levels: Literal["left out", "kept"] = "left out") -> tuple[Margin, ...]:
    """Return the margins that are measured beside a spine; by default one that is a level is measured there instead.

    >>> from treetop.domain.hierarchy import Hierarchy
    >>> ends = Hierarchy.from_prefixes(["AX", "AY", "BX"], widths=[1], levels=["state", "county"])
    >>> [margin.name for margin in margins_of(Spine.origin_first(ends, ends), "each")]
    ['origin.county', 'destination.state', 'destination.county']
    """
    if given == "none":
        return ()
    if given in ("each", "pairs"):
        # Every attribute alone, at all its levels that divide something.
        alone = [
            (attribute, depth + 1)
            for attribute, tree in enumerate(spine.trees)
            for depth, size in enumerate(tree.sizes)
            if size > (tree.sizes[depth - 1] if depth else 1)
        ]
        marginals = [margin_at(spine, depths_alone(len(spine.trees), *own)) for own in alone]
        if given == "pairs":
            coarsest = dict(reversed(alone))
            for one, other in combinations(sorted(coarsest), 2):
                ends = {one: coarsest[one], other: coarsest[other]}
                coarse = tuple(ends.get(attribute, 0) for attribute in range(len(spine.trees)))
                tables = dict.fromkeys([coarse, _finest_pair(spine, one, other)])
                marginals += [margin_at(spine, depths) for depths in tables if depths is not None]
    elif isinstance(given, str) or not isinstance(given, Iterable):
        raise SpineError(
            f'margins is {given!r}: write "each", "pairs", "none", or a list such as ["place.state * sex"]'
        )
    else:
        marginals = [_named(spine, name) for name in given]
        seen: set[tuple[int, ...]] = set()
        for margin in marginals:
            if margin.depths in seen:
                raise SpineError(f"margins: {margin.name!r} stands there twice: measure each table once")
            seen.add(margin.depths)
    measured = {spine.depths(level.index) for level in spine.levels} if levels == "left out" else set()
    return tuple(margin for margin in marginals if margin.depths not in measured)


def _finest_pair(spine: Spine, one: int, other: int) -> tuple[int, ...] | None:
    """Return the finest table of two attributes with few cells; of two levels, the one with more nodes gives way."""
    depths = {attribute: len(spine.trees[attribute].levels) for attribute in (one, other)}

    def nodes(attribute: int) -> int:
        return spine.trees[attribute].sizes[depths[attribute] - 1]

    while nodes(one) * nodes(other) > MOST_PAIR_CELLS:
        depths[max(one, other, key=nodes)] -= 1
        if not all(depths.values()):
            return None
    return tuple(depths.get(attribute, 0) for attribute in range(len(spine.trees)))


def depths_alone(attributes: int, attribute: int, depth: int) -> tuple[int, ...]:
    """Return the depths of a table of one attribute alone, of so many."""
    return tuple(depth if one == attribute else 0 for one in range(attributes))


def cells_of(
    trees: Sequence[Hierarchy], depths: Sequence[int], refined: Sequence[int], nodes: NDArray[np.integer]
) -> Ints:
    """Return which cell of a table each node is in: nodes are given by attribute, each refined so many levels."""
    cell = np.zeros(len(nodes[0]), np.int64)
    for tree, depth, fine, own in zip(trees, depths, refined, nodes, strict=True):
        if depth:
            cell = cell * tree.sizes[depth - 1] + tree.ancestors(depth - 1, fine - 1)[own]
    return cell


def table_named(spine: Spine, name: str) -> tuple[int, ...]:
    """Return how many levels of every attribute the table of a name has, such as "place.state * sex"."""
    return _named(spine, name).depths


def depths_named(spine: Spine, name: object) -> tuple[int, ...]:
    """Return how many levels of every attribute a table of any size has, by its name."""
    if not isinstance(name, str) or not name.strip():
        raise SpineError(f'margins has {name!r}: name a level, such as "place.state", or several, "place.state * sex"')
    trees = dict(zip(spine.attributes, spine.trees, strict=True))
    depths = dict.fromkeys(trees, 0)
    for part in name.split(TIMES.strip()):
        try:
            attribute, level = level_named(part.strip(), trees)
        except SpineError as problem:
            raise SpineError(f"margins: {name!r}: {problem}") from problem
        if depths[attribute]:
            raise SpineError(f"margins: {name!r} has an attribute twice: name its finer level alone")
        depths[attribute] = trees[attribute].depth(level) + 1
    return tuple(depths.values())


def _named(spine: Spine, name: object) -> Margin:
    margin = margin_at(spine, depths_named(spine, name))
    if len(margin.attributes) > 1 and margin.nodes > MOST_CELLS:
        raise SpineError(
            f"margins: {name!r} has {margin.nodes:,} cells, and all would be measured: name coarser levels, with at "
            f"most {MOST_CELLS:,}"
        )
    return margin


def exact_margins(spine: Spine, margins: Sequence[Margin]) -> tuple[bool, ...]:
    """Return which margins are kept: the released counts add up to them exactly. The others are measured only."""
    stages = [stage for level in spine.levels for stage in stages_of(spine, level)]
    return exact_tables(stages, [len(tree.levels) for tree in spine.trees], [margin.depths for margin in margins])


def exact_tables(
    stages: Sequence[Stage], deepest: Sequence[int], tables: Sequence[tuple[int, ...]]
) -> tuple[bool, ...]:
    """Return which tables are kept by a descent with these stages; `deepest` is the number of levels by attribute.

    A table is kept if two conditions hold with all tables kept before it. At every stage the tables that it decides
    form a chain, so that the finest one implies the others. And the table can be fitted so that it agrees with each of
    them at their meet, the finest table that both imply (`fit_to`). Tables of one attribute come first, then the others
    as they are listed.
    """
    alone = [depths_alone(len(deepest), attribute, depth) for attribute, depth in enumerate(deepest)]
    kept: list[tuple[int, ...]] = []
    for table in sorted(tables, key=lambda depths: np.count_nonzero(depths) > 1):
        in_chains = True  # of any two, one tells apart all that the other does
        for stage in stages:
            ordered = sorted(set(_decided(stage, [*kept, table])), key=sum)
            in_chains &= all(is_within(coarse, fine) for coarse, fine in pairwise(ordered))
        if in_chains and fit_to(table, [*alone, *kept]) is not None:
            kept.append(table)
    return tuple(table in kept for table in tables)


@dataclass(frozen=True)
class Fit:
    """How to make a table agree with kept tables: its last attribute is refined under rows and columns."""

    rows: tuple[int, ...]
    """The table with its last attribute less refined: every cell is the sum of its children in the table."""
    columns: tuple[int, ...]
    """The finest table that kept tables imply of the last attribute: the fitted table adds up to it."""


def fit_to(table: tuple[int, ...], kept: Sequence[tuple[int, ...]]) -> Fit | None:
    """Return how to fit a table so that it agrees with each kept table at their meet; None if no such fit exists.

    The kept tables agree with each other at their meets, and some of them tell every attribute of the table alone. Rows
    and columns are then feasible together, and a meet is agreed with if rows or columns imply it.
    """
    last = max(attribute for attribute, depth in enumerate(table) if depth)
    meets = [tuple(map(min, own, table)) for own in kept]
    columns = max((meet for meet in meets if meet[last] == table[last]), key=sum)
    for depth in range(table[last]):
        if all(meet[last] <= depth or is_within(meet, columns) for meet in meets):
            rows = (*table[:last], depth, *table[last + 1 :])
            if any(is_within(rows, own) for own in kept) or fit_to(rows, kept) is not None:
                return Fit(rows, columns)
    return None


def is_within(coarse: Sequence[int], fine: Sequence[int]) -> bool:
    """Whether a table follows from a finer one by summing up."""
    return all(map(operator.le, coarse, fine))


def refuse_crossing(spine: Spine, margins: Sequence[Margin]) -> None:
    """Refuse margins that are not kept, if a step refines several attributes at once."""
    merged = next((level for level in spine.levels if level.is_merged), None)
    if merged is None or all(len(margin.attributes) == 1 for margin in margins):
        return
    for margin, exact in zip(margins, exact_margins(spine, margins), strict=True):
        if not exact:
            raise PlanError(
                f"the margin {margin.name!r} crosses another and cannot be kept beside it, and the merged step "
                f"{merged.name!r} keeps all margins: leave out the margin, or refine one attribute after the other"
            )


@dataclass(frozen=True)
class Stage:
    """The step of a level in one attribute; a merged step takes one attribute after the other."""

    attribute: int
    depths: tuple[int, ...]
    """By attribute, how many levels are refined afterwards."""


def stages_of(spine: Spine, level: Level) -> list[Stage]:
    """Return the stages of a level."""
    depths = list(spine.depths(level.index - 1))
    stages = []
    for part in level.parts:
        depths[part.attribute] += 1
        stages.append(Stage(part.attribute, tuple(depths)))
    return stages


def decided_at(stage: Stage, margins: Sequence[Margin]) -> tuple[int, ...] | None:
    """Return the finest table that a stage agrees with, of margins that can all be agreed with; None without any."""
    return max(_decided(stage, [margin.depths for margin in margins]), key=sum, default=None)


def _decided(stage: Stage, tables: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the parts of tables that a stage decides: those that tell its attribute apart as far as it goes."""
    there = (table for table in tables if table[stage.attribute] >= stage.depths[stage.attribute])
    return [tuple(map(min, table, stage.depths)) for table in there]
