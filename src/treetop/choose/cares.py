"""What a steward cares about, as people write it: `origin totals`, `state pairs`, `leaves=3`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from treetop.basics.nearest import nearest
from treetop.choose.expected import Depths
from treetop.domain.margin import table_named
from treetop.domain.spine import Spine
from treetop.errors import PlanError, SpineError

PAIRS = 3.0
"""What all pairs together weigh beside all totals when nothing is said."""
FINER = 2.0
"""What the pairs of one level weigh beside coarser ones then: their counts are smaller, and errors matter more."""
_HOW = "write 'totals', 'pairs', 'leaves', 'origin totals', 'state pairs' or a table, 'place.state * sex'"


@dataclass(frozen=True)
class Care:
    """A table, and how much its errors matter."""

    table: Depths
    """Which one."""
    weight: float
    """A design makes the sum of weight times logarithm of the error smallest."""


def read_cares(spine: Spine, asked: Sequence[str] = ()) -> list[Care]:
    """Return the tables that are cared for, each once, with its weight: what is named twice weighs both.

    >>> from treetop.domain.hierarchy import Hierarchy
    >>> ends = Hierarchy.from_prefixes(["AX", "AY", "BX"], widths=[1], levels=["state", "county"])
    >>> spine = Spine.origin_first(ends, ends)
    >>> [(care.table, care.weight) for care in read_cares(spine, ["state pairs", "leaves=3", "origin totals"])]
    [((1, 1), 1.0), ((2, 2), 3.0), ((1, 0), 1.0), ((2, 0), 1.0)]
    >>> [care.table for care in read_cares(spine)]
    [(1, 0), (2, 0), (0, 1), (0, 2), (1, 1), (2, 2)]
    """
    if not asked:
        return _everything(spine)
    weights: dict[Depths, float] = {}
    for text in asked:
        what, weight = _weighted(text)
        for table in dict.fromkeys(_tables(spine, what, text)):
            weights[table] = weights.get(table, 0.0) + weight
    return [Care(table, weight) for table, weight in weights.items()]


def _everything(spine: Spine) -> list[Care]:
    """Return every attribute alone at all its levels, and all together at equal ones: the finer, the heavier.

    The best share of a table is about its weight in all of them, so that totals get a fourth of the loss.
    """
    pairs = _equal(spine)
    totals = [one for of in spine.attributes for one in _alone(spine, of) if one not in pairs]
    weights = dict.fromkeys(totals, 1 / max(len(totals), 1))
    whole = sum(FINER**at for at in range(len(pairs)))
    weights |= {table: PAIRS * FINER**at / whole for at, table in enumerate(pairs)}
    return [Care(table, weight) for table, weight in weights.items()]


def _weighted(text: str) -> tuple[str, float]:
    what, equals, number = text.rpartition("=")
    if not equals:
        return text.strip(), 1.0
    try:
        weight = float(number)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight > 0):
        raise PlanError(f"--care {text!r}: the weight is {number.strip()!r}: write a positive number, as in leaves=3")
    return what.strip(), weight


def _tables(spine: Spine, what: str, text: str) -> list[Depths]:
    *name, kind = what.split(" ")
    about = " ".join(name).strip()
    if kind == "totals":
        return _totals(spine, about, text) if about else [one for of in spine.attributes for one in _alone(spine, of)]
    if kind == "pairs":
        return [_pair(spine, about, text)] if about else _equal(spine)
    if what == "leaves":
        return _equal(spine)[-1:]
    try:
        return [table_named(spine, what)]
    except SpineError as problem:
        raise PlanError(f"--care {str(problem).removeprefix('margins: ')}; {_HOW}") from problem


def _alone(spine: Spine, attribute: str, level: str | None = None) -> list[Depths]:
    """Return the tables of one attribute, at all its levels or at one."""
    own = list(spine.attributes).index(attribute)
    return [
        tuple(depth if one == own else 0 for one in range(len(spine.trees)))
        for depth, name in enumerate(spine.trees[own].levels, start=1)
        if level in (None, name)
    ]


def _totals(spine: Spine, about: str, text: str) -> list[Depths]:
    """Return the tables of an attribute, of `attribute.level`, or of every attribute with a level of that name."""
    attribute, _, level = about.partition(".")
    if attribute in spine.attributes:
        found = _alone(spine, attribute, level or None)
    else:
        found = [one for of in spine.attributes for one in _alone(spine, of, about)]
    if not found:
        known = [*spine.attributes, *dict.fromkeys(name for tree in spine.trees for name in tree.levels)]
        raise PlanError(
            f"--care {text!r}: there is no attribute or level {about!r}{nearest(about, known)}; there are "
            f"{', '.join(known)}"
        )
    return found


def _pair(spine: Spine, about: str, text: str) -> Depths:
    """Return the table of all attributes that have a level of that name, at that level."""
    found = tuple(tree.levels.index(about) + 1 if about in tree.levels else 0 for tree in spine.trees)
    if sum(depth > 0 for depth in found) < 2:
        shared = [
            name for name in spine.trees[0].levels if any(name in tree.levels for tree in spine.trees[1:])
        ]  # fmt: skip
        raise PlanError(
            f"--care {text!r}: {about!r} is not a level of two attributes{nearest(about, shared)}; name the table, as "
            "in 'place.state * sex'"
        )
    return found


def _equal(spine: Spine) -> list[Depths]:
    """Return the tables of all attributes, each as fine as the others or as it gets; the last are the leaves."""
    deepest = max(len(tree.levels) for tree in spine.trees)
    return [tuple(min(depth, len(tree.levels)) for tree in spine.trees) for depth in range(1, deepest + 1)]
