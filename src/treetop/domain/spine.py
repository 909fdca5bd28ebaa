"""A spine: the public order in which attributes are refined, from the total at the root down to the leaves."""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise, zip_longest
from typing import TypeAlias

import numpy as np
import pyarrow.compute as pc

from treetop._util.choices import nearest
from treetop._util.lazy import FrozenMap, set_fields
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine_level import AttributeStep, Level
from treetop.domain.unit import TOTAL
from treetop.errors import HierarchyError, QueryError, SpineError

# Finding a node of a hierarchy by what people type: its code, or its name.

LARGEST_TOTAL = 2**53
"""Sums stay far from the limits of int64, and exact in every tool that reads the release."""


_SHOWN = 8
_COMPARED = 20_000

_Node = tuple[int, int]
"""The depth of a node, and its number there."""


def leaves_of(attribute: str, tree: Hierarchy, level: str, text: str) -> tuple[int, int]:
    """Return the leaves under the node that a code or a name stands for, at a level or, where it is empty, at any.

    Where a level is named, a code goes before a name; otherwise both are meant, and what could be several nodes with
    different leaves is refused with the choices. Capitals tell names apart only where that is needed.
    """
    if level and level not in tree.levels:
        raise QueryError(
            f"{attribute!r} has no level {level!r}{nearest(level, tree.levels)}; its levels are "
            f"{', '.join(tree.levels)}"
        )
    depths = [tree.depth(level)] if level else list(range(len(tree.levels)))
    codes = [(depth, node) for depth, node in tree.find(text) if depth in depths]
    found = codes if level and codes else list(dict.fromkeys([*codes, *_called(tree, depths, text)]))
    if not found:
        where = f"at {attribute}.{level}" if level else f"in {attribute} ({' > '.join(tree.levels)})"
        known = [code for depth in depths for code in tree.codes[depth].slice(0, _COMPARED).to_pylist()]
        names = [tree.names[tree.levels[depth]] for depth in depths if tree.levels[depth] in tree.names]
        known += [name for own in names for name in own.slice(0, _COMPARED).to_pylist() if name is not None]
        raise QueryError(f"there is no code {'or name ' * bool(tree.names)}{text!r} {where}{nearest(text, known)}")
    if len({tree.below(*node) for node in found}) > 1:
        if found == codes:
            choices = " or ".join(f"{attribute}.{tree.levels[depth]}={text}" for depth, _ in found)
            raise QueryError(f"{attribute}={text} stands at several levels: say {choices}")
        asked = f"{attribute}.{level}" if level else attribute
        choices = " or ".join(_choice(attribute, tree, *node) for node in islice(found, _SHOWN))
        more = f" (and {len(found) - _SHOWN:,} more)" if len(found) > _SHOWN else ""
        raise QueryError(f"{asked}={text} may be {len(found):,} different ones: say {choices}{more}")
    return tree.below(*found[0])


def _called(tree: Hierarchy, depths: list[int], text: str) -> list[_Node]:
    """Return the nodes with a name: with its capitals or, where none has it so, with any."""
    named = [(depth, tree.names[tree.levels[depth]]) for depth in depths if tree.levels[depth] in tree.names]
    exact = [(depth, pc.equal(names, text)) for depth, names in named]
    found = [(depth, node) for depth, own in exact for node in _true(own)]
    if found or not named:
        return found
    lower = [(depth, pc.equal(pc.utf8_lower(names), text.strip().lower())) for depth, names in named]
    return [(depth, node) for depth, own in lower for node in _true(own)]


def _true(mask: object) -> list[int]:
    filled = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    nodes: list[int] = np.flatnonzero(filled).tolist()
    return nodes


def _choice(attribute: str, tree: Hierarchy, depth: int, node: int) -> str:
    """Say how one node is asked for, and how people are told which it is."""
    code, name = tree.codes[depth][node].as_py(), tree.name(depth, node)
    told = [] if name in (None, code) else [name]
    if depth:
        above = int(tree.ancestors(depth - 1, depth)[node])
        told.append(f"in {tree.name(depth - 1, above) or tree.codes[depth - 1][above].as_py()}")
    return f"{attribute}.{tree.levels[depth]}={code}" + (f" ({', '.join(told)})" if told else "")


RESERVED = (TOTAL, "level", "count", "lower", "upper", "value", "variance", "estimate", "sd")
"""Names that no attribute can have: the root, and the columns that stand beside those of the attributes in tables."""
TIMES = " * "
"""Separator of the attributes of a table, and of those that a merged step refines at once."""
BELOW = " > "
"""Separator of the levels of one attribute that a step goes down at once."""
WIDEST = 2**31 - 1
"""A merged step divides a node into at most so many."""
MOST_LEAVES = 2**24
"""A step that goes down several levels at once divides a node into at most so many: noise is put on each of them."""


def sound_name(name: str, others: Iterable[str] = ()) -> str:
    """Return a name for an attribute or a level that a plan can have: without joining signs, and unlike all others.

    >>> sound_name("Cód. CCAA"), sound_name("a*b"), sound_name("count"), sound_name("Place", ["place"])
    ('Cód. CCAA', 'a_b', 'count_code', 'Place_2')
    """
    plain = "".join("_" if letter in "*>" or not letter.isprintable() else letter for letter in name).strip()
    plain = f"{plain}_code" if plain.casefold() in RESERVED or not plain else plain
    taken, found, number = {other.casefold() for other in others}, plain, 1
    while found.casefold() in taken:
        number += 1
        found = f"{plain}_{number}"
    return found


def is_sound_level(name: str) -> bool:
    """Whether a level can have a name in a plan: no signs that join levels, and no blanks at the ends.

    >>> is_sound_level("county"), is_sound_level("Cód. CCAA"), is_sound_level("a > b")
    (True, True, False)
    """
    return bool(name) and name == name.strip() and name.isprintable() and not set(name) & set("*>")


def problem_with_name(name: object, others: Iterable[object] = ()) -> str | None:
    """Say why an attribute cannot have a name, beside the names of others; None where it can.

    To many readers of tables, capitals make no difference.

    >>> problem_with_name("Cód. C."), problem_with_name("count") is None, problem_with_name("Place", ["place"]) is None
    (None, False, False)
    """
    if not isinstance(name, str) or not name.strip():
        return f"an attribute cannot be called {name!r}: give it a name"
    if not name.isprintable():
        return f"an attribute cannot be called {name!r}: give it a name that can be printed"
    if name.casefold() in RESERVED:
        return (
            f"an attribute cannot be called {name!r}, which stands beside the attributes in tables: give it a name "
            f"that is none of {', '.join(RESERVED)}"
        )
    for other in others:
        if isinstance(other, str) and other != name and other.casefold() == name.casefold():
            return (
                f"{other!r} and {name!r} differ only in capitals, which many readers of tables do not tell apart: "
                "rename one of them"
            )
    return None


@dataclass(frozen=True, eq=False)
class Spine:
    """The order in which attributes are refined.

    An attribute may skip levels of its hierarchy or stop above its leaves; those levels are then not released. Several
    attributes may be refined at once, in a merged step: their levels are then joined by an asterisk. A step may go down
    several levels of an attribute at once, joined by >: those above the last are not measured, and are sums of it.

    >>> place = Hierarchy.from_prefixes(["AX", "AY", "BX"], widths=[1], levels=["state", "county"])
    >>> attributes = {"place": place, "sex": Hierarchy.flat(["f", "m"])}
    >>> [(level.name, level.nodes) for level in Spine(["place.state", "sex", "place.county"], attributes).levels]
    [('place.state', 2), ('sex', 4), ('place.county', 6)]
    >>> [(level.name, level.nodes) for level in Spine(["place.state", "place.county * sex"], attributes).levels]
    [('place.state', 2), ('place.county * sex', 6)]
    >>> Spine.bottom_up(attributes)
    Spine(place.county * sex; 6 leaves)
    """

    splits: Sequence[str]
    """`attribute.level`, coarse levels of an attribute before finer ones; of a merged step several, by an asterisk."""
    attributes: Mapping[str, Hierarchy]
    """The hierarchies, by attribute; their leaves are the codes of the private table."""
    trees: tuple[Hierarchy, ...] = field(init=False, repr=False)
    """The hierarchies with only the levels that the spine refines, one an attribute."""
    levels: tuple[Level, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.attributes:
            raise SpineError("a spine needs at least one attribute with a hierarchy")
        for name in self.attributes:
            others = itertools.takewhile(lambda other: other != name, self.attributes)  # noqa: B023 - used at once
            if (problem := problem_with_name(name, others)) is not None:
                raise SpineError(problem)
        _refuse_alike(self.attributes)
        steps = tuple(_parse_step(split, self.attributes) for split in self.splits)
        splits = [split for step in steps for chain in step for split in chain]
        trees = [tree.select(_refined(name, splits, tree)) for name, tree in self.attributes.items()]
        chains = [[BELOW.join(".".join(split) for split in chain) for chain in step] for step in steps]
        set_fields(
            self,
            splits=tuple(map(TIMES.join, chains)),
            attributes=FrozenMap(self.attributes),
            trees=tuple(trees),
            levels=_levels(steps, list(self.attributes), trees),
        )

    @staticmethod
    def destination_first(origin: Hierarchy, destination: Hierarchy) -> Spine:
        """Alternate the two ends, destination before origin; the shallower one is exhausted first."""
        return _alternate(("destination", destination), ("origin", origin))

    @staticmethod
    def origin_first(origin: Hierarchy, destination: Hierarchy) -> Spine:
        """Alternate the two ends, origin before destination; the shallower one is exhausted first."""
        return _alternate(("origin", origin), ("destination", destination))

    @staticmethod
    def merged(origin: Hierarchy, destination: Hierarchy) -> Spine:
        """Refine both ends at once, level by level; the deeper one goes on alone."""
        ends = {"destination": destination, "origin": origin}
        return Spine([TIMES.join(pair) for pair in _pairs(ends)], ends)

    @staticmethod
    def bottom_up(attributes: Mapping[str, Hierarchy]) -> Spine:
        """Go down to the leaves in one step: they alone are measured below the total, and all else is sums of them.

        The guarantee is that of any level: one unit moves the counts of leaves by at most `Unit.sensitivity` of that
        level, and the leaves pay the whole loss, but for what the total pays where neighbours can differ in it.
        """
        chains = (BELOW.join(f"{name}.{level}" for level in tree.levels) for name, tree in attributes.items())
        return Spine([TIMES.join(chains)], attributes)

    @staticmethod
    def in_turn(attributes: Mapping[str, Hierarchy]) -> Spine:
        """Refine a level of every attribute, then the next of each; those with few nodes come first."""
        steps = [
            (depth, size, f"{name}.{tree.levels[depth]}")
            for name, tree in attributes.items()
            for depth, size in enumerate(tree.sizes)
        ]
        return Spine([split for *_, split in sorted(steps, key=lambda step: step[:2])], attributes)

    @property
    def coded(self) -> tuple[str, ...]:
        """How columns become codes where they are not the codes themselves, in short words for the card."""
        coded = ((name, tree.coding) for name, tree in self.attributes.items() if tree.coding is not None)
        return tuple(words for name, coding in coded for words in coding.words(name))

    @property
    def leaves(self) -> int:
        """How many leaves the public domain has."""
        return self.levels[-1].nodes

    @property
    def finest(self) -> tuple[int, ...]:
        """How many levels of each attribute are refined at the leaves."""
        return self.depths(len(self.levels))

    def with_levels(self, levels: Sequence[Level]) -> Spine:
        """Return the same order with levels restricted to possible children."""
        same = copy.copy(self)
        set_fields(same, levels=tuple(levels))
        return same

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of the order and of every hierarchy, as far as it is refined."""
        parts = [
            *self.splits,
            *(f"{name}={tree.digest}" for name, tree in zip(self.attributes, self.trees, strict=True)),
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def level(self, name: str) -> Level:
        """Return a level by its name; `attribute.level` always works, of a merged step in any order."""
        if (found := self._level(name)) is None:
            trees = dict(zip(self.attributes, self.trees, strict=True))
            if name in trees and len(trees[name].levels) > 1:
                level_named(name, trees)  # says that it has several
            names = [level.name for level in self.levels]
            raise SpineError(f"there is no level {name!r}{nearest(name, names)}; the levels are {', '.join(names)}")
        return found

    def _level(self, name: str) -> Level | None:
        name = self._whole(name)
        asked = _unordered(name)
        for level, split in zip(self.levels, self.splits, strict=True):
            if name in (level.name, split) or (level.is_merged and asked in map(_unordered, (level.name, split))):
                return level
        return None

    def refinements(self, name: str) -> tuple[AttributeStep, ...]:
        """Return the refinements in a name: that of a level, or `attribute.level` of one that a merged step refines."""
        if (found := self._level(name)) is not None:
            return found.parts
        name = self._whole(name)
        merged = [level for level in self.levels if level.is_merged]
        for part in (part for level in merged for part in level.parts):
            attribute, levels = list(self.attributes)[part.attribute], self.trees[part.attribute].levels
            if name == f"{attribute}.{levels[part.depth]}" or (name == attribute and len(levels) == 1):
                return (part,)
        if (passed := self._passed.get(name)) is not None:
            return (passed,)
        return self.level(name).parts

    def _whole(self, name: str) -> str:
        """Return `month.month` for `month`, where an attribute of several levels has one that is called as it is."""
        tree = dict(zip(self.attributes, self.trees, strict=True)).get(name)
        return f"{name}.{name}" if tree is not None and len(tree.levels) > 1 and name in tree.levels else name

    @property
    def goes_past(self) -> list[str]:
        """The levels of attributes that are not measured, since steps go past them: they are sums."""
        return list(self._passed)

    @cached_property
    def _passed(self) -> dict[str, AttributeStep]:
        """By name, the levels of attributes that steps go past: sums of measurements below them."""
        found = {}
        own = {(part.attribute, part.depth) for level in self.levels for part in level.parts}
        for attribute, (name, tree) in enumerate(zip(self.attributes, self.trees, strict=True)):
            for depth, level in enumerate(tree.levels):
                if (attribute, depth) not in own:
                    found[f"{name}.{level}"] = AttributeStep(attribute, depth, tree.first[depth])
        return found

    def levels_named(self, name: str) -> list[str]:
        """Return the levels that a name stands for: one, or that of every attribute which has a level called so.

        >>> place = Hierarchy.from_prefixes(["AX", "AY"], widths=[1], levels=["state", "county"])
        >>> Spine.origin_first(place, place).levels_named("state")
        ['origin.state', 'destination.state']
        """
        pairs = zip(self.attributes, self.trees, strict=True)
        own = [f"{attribute}.{name}" for attribute, tree in pairs if name in tree.levels]
        if not own or self._level(name) is not None or name in self.attributes:
            return [name]
        return sorted(own, key=lambda one: not one.startswith("origin."))

    def find(self, name: str, code: str) -> tuple[int, int, int]:
        """Return (attribute, start, stop): the leaves that a code or a name stands for, by attribute or level."""
        names = list(self.attributes)
        attribute_name, level = apart(name, dict(zip(names, self.trees, strict=True)))
        if attribute_name not in names:
            raise QueryError(
                f"there is no attribute {attribute_name!r}{nearest(attribute_name, names)}; "
                f"the attributes are {', '.join(names)}"
            )
        attribute = names.index(attribute_name)
        return (attribute, *leaves_of(attribute_name, self.trees[attribute], level, str(code)))

    def depths(self, index: int) -> tuple[int, ...]:
        """Return how many levels of each attribute are refined at spine level `index` (the root is 0)."""
        return self._depths[index]

    def index_at(self, depths: tuple[int, ...]) -> int | None:
        """Return the level at which just so many levels of each attribute are refined; None where there is none."""
        return next((index for index in range(1, len(self.levels) + 1) if self.depths(index) == depths), None)

    def sizes(self, index: int) -> tuple[int, ...]:
        """Return how many nodes of each attribute are told apart at spine level `index`."""
        return tuple(
            tree.sizes[depth - 1] if depth else 1 for tree, depth in zip(self.trees, self.depths(index), strict=True)
        )

    @cached_property
    def _depths(self) -> tuple[tuple[int, ...], ...]:
        refined = [0] * len(self.attributes)
        found = [tuple(refined)]
        for level in self.levels:
            for part in level.parts:
                refined[part.attribute] = part.depth + 1
            found.append(tuple(refined))
        return tuple(found)

    def __repr__(self) -> str:
        return f"Spine({' > '.join(level.name for level in self.levels)}; {self.leaves:,} leaves)"


def _alternate(one: tuple[str, Hierarchy], other: tuple[str, Hierarchy]) -> Spine:
    ends = dict([one, other])
    return Spine([split for pair in _pairs(ends) for split in pair], ends)


def _pairs(ends: Mapping[str, Hierarchy]) -> list[list[str]]:
    """Return the levels of two ends at every depth; the shallower one is exhausted first."""
    pairs = zip_longest(*([f"{name}.{level}" for level in tree.levels] for name, tree in ends.items()))
    return [[split for split in pair if split] for pair in pairs]


def _unordered(name: str) -> list[str]:
    return sorted(part.strip() for part in name.split(TIMES.strip()))


Chain: TypeAlias = tuple[tuple[str, str], ...]
"""An attribute and its levels that a step goes down at once, mostly one."""


def _parse_step(step: str, attributes: Mapping[str, Hierarchy]) -> tuple[Chain, ...]:
    """Return the attributes and levels of a step; names with an asterisk in them were always free."""
    if _is_name(step, attributes):
        return ((_parse(step, attributes),),)
    found = []
    for text in (part.strip() for part in step.split(TIMES.strip())):
        levels = [text] if _is_name(text, attributes) else [part.strip() for part in text.split(BELOW.strip())]
        chain = tuple(_parse(level, attributes) for level in levels)
        if len({name for name, _ in chain}) > 1:
            raise SpineError(f"{text!r} goes down several attributes: join levels of one by >, and attributes by *")
        found.append(chain)
    names = [chain[0][0] for chain in found]
    for name in names:
        if names.count(name) > 1:
            raise SpineError(f"{step!r} refines {name!r} twice at once: name its finer level alone")
    return tuple(found)


def _is_name(text: str, attributes: Mapping[str, Hierarchy]) -> bool:
    """Whether a text is the name of one level, despite separators in it."""
    attribute, level = apart(text, attributes)
    signs = TIMES.strip() in text or BELOW.strip() in text
    return not signs or (attribute in attributes and (not level or level in attributes[attribute].levels))


def _parse(split: str, attributes: Mapping[str, Hierarchy]) -> tuple[str, str]:
    try:
        return level_named(split, attributes)
    except SpineError as problem:
        raise SpineError(f"{split!r}: {problem}") from problem


def apart(text: str, attributes: Mapping[str, Hierarchy]) -> tuple[str, str]:
    """Return the attribute and the level of a name, the level empty if there is none; both may have dots.

    >>> tree = {"a.b": Hierarchy.flat(["x"], "Cód. CCAA")}
    >>> apart("a.b.Cód. CCAA", tree), apart("a.b", tree)
    (('a.b', 'Cód. CCAA'), ('a.b', ''))
    """
    if text in attributes:
        return text, ""
    begins = [name for name in attributes if text.startswith(f"{name}.")]
    known = [name for name in begins if text[len(name) + 1 :] in attributes[name].levels]
    attribute = max(known or begins, key=len, default=text.partition(".")[0])
    return attribute, text[len(attribute) + 1 :]


def _refuse_alike(attributes: Mapping[str, Hierarchy]) -> None:
    """Refuse two levels that dots in their names give the same full name."""
    seen = dict.fromkeys(attributes, "an attribute")
    for name, tree in attributes.items():
        for level in tree.levels:
            full = f"{name}.{level}"
            if full in seen:
                raise SpineError(
                    f"{full!r} may be level {level!r} of {name!r} or {seen[full]}: rename one of them, without the dot"
                )
            seen[full] = f"a level of {name!r}"


def level_named(text: str, attributes: Mapping[str, Hierarchy]) -> tuple[str, str]:
    """Return the attribute and the level that `attribute.level` names; an only level may be left out, and one that is
    called as the attribute."""
    attribute, level = apart(text, attributes)
    if attribute not in attributes:
        raise SpineError(
            f"there is no attribute {attribute!r}{nearest(attribute, attributes)}; the attributes are "
            f"{', '.join(attributes) or 'none'}"
        )
    levels = attributes[attribute].levels
    if not level and attribute in levels:
        level = attribute
    if not level and len(levels) > 1:
        choices = ", ".join(f"{attribute}.{name}" for name in levels)
        raise SpineError(f"{attribute} has several levels: name one of {choices}")
    try:
        return attribute, levels[attributes[attribute].depth(level or levels[0])]
    except HierarchyError as problem:
        raise SpineError(str(problem)) from problem


def _refined(attribute: str, splits: Sequence[tuple[str, str]], hierarchy: Hierarchy) -> list[str]:
    """Return the levels of one attribute that the spine refines, refusing a finer one before a coarser."""
    used = [level for name, level in splits if name == attribute]
    if not used:
        raise SpineError(f"attribute {attribute!r} is never refined: add one of its levels, or leave it out")
    for earlier, later in pairwise(used):
        if hierarchy.depth(later) == hierarchy.depth(earlier):
            raise SpineError(f"{attribute}.{later} stands twice in the spine")
        if hierarchy.depth(later) < hierarchy.depth(earlier):
            raise SpineError(
                f"{attribute}.{later} comes after {attribute}.{earlier}, which is finer: put coarse levels first"
            )
    return used


def _levels(steps: Sequence[Sequence[Chain]], names: Sequence[str], trees: Sequence[Hierarchy]) -> tuple[Level, ...]:
    width = [1] * len(names)
    levels = []
    for index, step in enumerate(steps, start=1):
        parts = []
        for chain in step:
            attribute = names.index(chain[0][0])
            top, depth = (trees[attribute].depth(chain[end][1]) for end in (0, -1))
            width[attribute] = trees[attribute].sizes[depth]
            first = trees[attribute].first[top]
            for below in range(top + 1, depth + 1):  # children of children follow on
                first = trees[attribute].first[below][first]
            parts.append(AttributeStep(attribute, depth, first))
        last = [chain[-1] for chain in step]
        called = (name if len(trees[names.index(name)].levels) == 1 else f"{name}.{level}" for name, level in last)
        levels.append(Level(index, TIMES.join(called), tuple(parts), math.prod(width)))
        if any(len(chain) > 1 for chain in step) and levels[-1].widest > MOST_LEAVES:
            raise SpineError(
                f"{levels[-1].name!r} is reached in one step, in which noise is put on each of up to "
                f"{levels[-1].widest:,} counts, more than {MOST_LEAVES:,}: measure a level between, or stop above"
            )
        if levels[-1].is_merged and levels[-1].widest > WIDEST:
            raise SpineError(
                f"{levels[-1].name!r} divides a node into up to {levels[-1].widest:,} at once, more than {WIDEST:,}: "
                "refine its attributes one after the other"
            )
    return tuple(levels)
