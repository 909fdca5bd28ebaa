"""Conditions as they are typed, `ATTRIBUTE=CODE`: one grammar, for questions to a release and to a private table.

A name is an attribute, `attribute.level`, or a level that only one attribute has; blanks around it do not count. Names
and codes may hold blanks and equals signs: of the names that fit, the longest is meant, and all the rest is the code.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from itertools import pairwise

from treetop.domain.spine import Spine
from treetop.errors import QueryError


def parse_conditions(conditions: Iterable[str], spine: Spine) -> dict[str, str]:
    """Return the code asked for by `attribute` or `attribute.level`; each is asked for once.

    >>> from treetop.domain.hierarchy import Hierarchy
    >>> places = Hierarchy.from_prefixes(["n1", "n2"], widths=[1], levels=["region", "town"])
    >>> spine = Spine(["place.region", "place.town"], {"place": places})
    >>> parse_conditions(["region=n", " place.town =n1"], spine)
    {'place.region': 'n', 'place.town': 'n1'}
    """
    names = _names(spine)
    asked: dict[str, str] = {}
    for condition in conditions:
        name, code = _split(condition, names, spine)
        if len(names.get(name, ())) > 1:
            raise QueryError(f"{name} is a level of several attributes: say {' or '.join(names[name])}")
        whole = names[name][0] if name in names else name
        if whole in asked:
            raise QueryError(f"{whole} is asked for twice, as {asked[whole]!r} and in {condition!r}: ask once for each")
        asked[whole] = code
    return asked


def typed_conditions(text: str) -> list[str]:
    """Return the conditions of one line, with quotes around codes that have blanks.

    >>> typed_conditions('region=Zilina hobby="live music"')
    ['region=Zilina', 'hobby=live music']
    """
    try:
        conditions = shlex.split(text)
    except ValueError as problem:
        raise QueryError(f"{text!r}: the quotes do not match ({problem})") from problem
    for before, alone in pairwise(conditions):
        if "=" in before and "=" not in alone:
            name, _, code = before.partition("=")
            raise QueryError(f'{alone!r} is no condition. A code with blanks is in quotes: {name}="{code} {alone}"')
    return conditions


def _names(spine: Spine) -> dict[str, list[str]]:
    """Return the names that may be asked for, each with its meaning: a level's own name for it with its attribute."""
    names = {attribute: [attribute] for attribute in spine.attributes}
    trees = zip(spine.attributes, spine.trees, strict=True)
    levels = [(attribute, level) for attribute, tree in trees for level in tree.levels]
    names |= {f"{attribute}.{level}": [f"{attribute}.{level}"] for attribute, level in levels}
    for attribute, level in levels:
        if level not in spine.attributes:
            names.setdefault(level, []).append(f"{attribute}.{level}")
    return names


def _split(condition: str, names: Iterable[str], spine: Spine) -> tuple[str, str]:
    given, equals, code = condition.partition("=")
    if not equals:
        first = next(iter(spine.attributes))
        example = f"{condition}=CODE" if condition.strip() in names else f"{first}={condition}"
        raise QueryError(f"{condition!r} is not a condition: write ATTRIBUTE=CODE, such as {example}")
    text = condition.lstrip()
    for name in sorted(names, key=len, reverse=True):
        rest = text[len(name) :].lstrip() if text.startswith(name) else ""
        if rest.startswith("="):
            return name, rest[1:]
    return given.strip(), code
