"""The level of each attribute that an export shows: the finest, or the one that was asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.choices import nearest
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import apart, level_named
from treetop.errors import QueryError, SpineError
from treetop.release.selection import Selection, with_names

ENDS = ("origin", "destination")
"""The attributes of a flow."""

Depths = dict[str, int]

_DATE = re.compile(r"\d{4}-(\d\d|Q[1-4]|W\d\d)(-\d\d)?")
_YEAR = re.compile(r"\d{4}")


def are_dates(level: str, codes: Sequence[str]) -> bool:
    """Whether codes are days, weeks, months, quarters or, at a level of that name, years.

    >>> are_dates("value", ["2021-07", "2021-08", "2021-09"]), are_dates("town", ["1001", "1002", "1003"])
    (True, False)
    """
    return len(codes) > 2 and all(map((_YEAR if level == "year" else _DATE).fullmatch, codes))


def depths_of(release: Selection, level: str | Sequence[str] | None) -> Depths:
    """Return the depth of every attribute; a bare level name stands for that level of every attribute that has it."""
    trees = trees_of(release)
    depths = {name: len(tree.levels) - 1 for name, tree in trees.items()}
    for asked in [level] if isinstance(level, str) else level or ():
        attribute, _ = apart(asked, trees)
        if attribute not in trees:
            depths |= _everywhere(asked, trees)
            continue
        try:
            depths[attribute] = trees[attribute].depth(level_named(asked, trees)[1])
        except SpineError:
            _refuse(asked, trees)
    return depths


def counts_at(release: Selection, depths: Depths, attributes: Sequence[str], *, more: bool = False) -> pa.Table:
    """Return one row per combination above zero: the attributes' codes at their depths, and `count`.

    With `more`, the bounds of the count and the names of the codes follow, if the release has them.
    """
    trees = trees_of(release)
    finest = all(depths[name] == len(tree.levels) - 1 for name, tree in trees.items())
    if finest and set(attributes) == set(trees):
        table = release.level()
        table = table.select([*attributes, *table.column_names[len(trees) :]])
    else:
        levels = (f"{name}.{trees[name].levels[depths[name]]}" for name in attributes)
        table = release.table(list(levels), intervals=more).arrow
        table = table.rename_columns([*attributes, *table.column_names[len(attributes) :]])
    if not more:
        return table.select([*attributes, "count"])
    for name in attributes:
        tree, depth = trees[name], depths[name]
        nodes = pc.index_in(table[name].combine_chunks(), value_set=tree.codes[depth])
        table = with_names(table, name, tree, depth, nodes, last=True)
    return table


def trees_of(release: Selection) -> dict[str, Hierarchy]:
    """Return the hierarchies, with the levels that were released, by attribute."""
    return dict(zip(release.spine.attributes, release.spine.trees, strict=True))


def _everywhere(level: str, trees: dict[str, Hierarchy]) -> Depths:
    found = {name: tree.depth(level) for name, tree in trees.items() if level in tree.levels}
    if not found:
        _refuse(level, trees)
    lacking = [end for end in ENDS if end in trees and end not in found]
    if lacking and any(end in found for end in ENDS):
        raise QueryError(
            f"{lacking[0]} has no level {level!r}: name a level of each end, "
            f"{' and '.join(f'{end}.{trees[end].levels[0]}' for end in ENDS)} for example"
        )
    return found


def _refuse(asked: str, trees: dict[str, Hierarchy]) -> None:
    names = [
        name if len(tree.levels) == 1 else f"{name}.{level}" for name, tree in trees.items() for level in tree.levels
    ]
    bare = [level for tree in trees.values() for level in tree.levels]
    raise QueryError(f"there is no level {asked!r}{nearest(asked, [*bare, *names])}; the levels are {', '.join(names)}")
