"""Finding a node of a hierarchy by what people type: its code, or its name."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pyarrow.compute as pc

from treetop.basics.nearest import nearest
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import QueryError

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
        raise QueryError(_unknown(attribute, tree, level, text))
    if len({tree.below(*node) for node in found}) > 1:
        raise QueryError(_ambiguous(attribute, tree, level, text, found, only_codes=found == codes))
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


def _unknown(attribute: str, tree: Hierarchy, level: str, text: str) -> str:
    where = f"at {attribute}.{level}" if level else f"in {attribute} ({' > '.join(tree.levels)})"
    depths = [tree.depth(level)] if level else range(len(tree.levels))
    known = [code for depth in depths for code in tree.codes[depth].slice(0, _COMPARED).to_pylist()]
    names = [tree.names[tree.levels[depth]] for depth in depths if tree.levels[depth] in tree.names]
    known += [name for own in names for name in own.slice(0, _COMPARED).to_pylist() if name is not None]
    return f"there is no code {'or name ' * bool(tree.names)}{text!r} {where}{nearest(text, known)}"


def _ambiguous(
    attribute: str, tree: Hierarchy, level: str, text: str, found: list[_Node], *, only_codes: bool
) -> str:  # fmt: skip
    if only_codes:
        choices = " or ".join(f"{attribute}.{tree.levels[depth]}={text}" for depth, _ in found)
        return f"{attribute}={text} stands at several levels: say {choices}"
    asked = f"{attribute}.{level}" if level else attribute
    choices = " or ".join(_choice(attribute, tree, *node) for node in islice(found, _SHOWN))
    more = f" (and {len(found) - _SHOWN:,} more)" if len(found) > _SHOWN else ""
    return f"{asked}={text} may be {len(found):,} different ones: say {choices}{more}"


def _choice(attribute: str, tree: Hierarchy, depth: int, node: int) -> str:
    """Say how one node is asked for, and what tells people which it is."""
    code, name = tree.codes[depth][node].as_py(), tree.name(depth, node)
    told = [] if name in (None, code) else [name]
    if depth:
        above = int(tree.ancestors(depth - 1, depth)[node])
        told.append(f"in {tree.name(depth - 1, above) or tree.codes[depth - 1][above].as_py()}")
    return f"{attribute}.{tree.levels[depth]}={code}" + (f" ({', '.join(told)})" if told else "")
