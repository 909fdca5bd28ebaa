"""The card's JSON Schema, and a validator for the part of JSON Schema (draft 2020-12) that it uses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable
from functools import cache
from importlib.resources import files
from typing import Any, TypeGuard

from treetop._util.distribution import DISTRIBUTION, VERSION
from treetop.card.sentences import PARAGRAPH, TEXTS
from treetop.errors import ReleaseError
from treetop.noise import LAWS
from treetop.privacy.relation import RELATIONS
from treetop.repair import REPAIRS

FORMAT = 4
"""The version of the card's layout, which its schema describes, and of the sentences that it may contain.

A change of either is a new format; a better text of a sentence is none. Cards of other formats are refused.
"""

FINISHED = ("released", "files")
"""What a card has only when its release is written."""


def validate(card: object, *, draft: bool = False, checked: Collection[str] = ()) -> None:
    """Refuse a card that does not fit the schema, naming the first place where it does not."""
    _refuse(findings(card, draft=draft, checked=checked))


def validate_fields(part: dict[str, Any]) -> None:
    """Refuse fields of a card that do not fit the schema; other fields may be missing."""
    rules = schema()
    found: list[str] = []
    _check_object(part, {"properties": rules["properties"]}, "card", rules["$defs"], found)
    _refuse(found)


def _refuse(found: Iterable[str]) -> None:
    for finding in found:
        raise ReleaseError(f"card.json does not fit its schema: {finding}")


def findings(card: object, *, draft: bool = False, checked: Collection[str] = ()) -> list[str]:
    """Return each place where a card does not fit the schema.

    A draft may lack what only a written release has; fields that are `checked` need only be there.
    """
    if (other := _other_format(card)) is not None:
        return [other]
    rules = schema()
    required = [name for name in rules["required"] if not (draft and name in FINISHED)]
    properties = {name: {} if name in checked else rule for name, rule in rules["properties"].items()}
    found: list[str] = []
    _check(card, {**rules, "required": required, "properties": properties}, "card", rules["$defs"], found)
    return found


def schema() -> dict[str, Any]:
    """Return the schema, with the identifiers of the catalogue and all registered laws, repairs and relations."""
    return _with_registered(tuple(LAWS), tuple(REPAIRS), tuple(RELATIONS))


@cache
def _with_registered(laws: tuple[str, ...], repairs: tuple[str, ...], relations: tuple[str, ...]) -> dict[str, Any]:
    rules: dict[str, Any] = json.loads(files("treetop.card").joinpath("schema.json").read_text(encoding="utf-8"))
    for kind in ("sentence", "sentence_or_none"):
        rules["$defs"][kind]["properties"]["id"]["enum"] = [PARAGRAPH, *TEXTS]
    plan = rules["$defs"]["plan"]["properties"]
    planned = rules["$defs"]["planned"]["items"]["properties"]["noise"]["properties"]
    for noise, number in ((rules["$defs"]["noise"]["properties"], "exact"), (planned, "fraction")):
        noise["law"]["enum"] = list(laws)
        noise |= {LAWS[law].parameter: {"$ref": f"#/$defs/{number}"} for law in laws}
    plan["loss"]["properties"]["noise"]["enum"] = list(laws)
    plan["repair"]["enum"] = [*repairs, "joint-fit"]
    for graph in (plan["graph"], rules["properties"]["graph"]):
        graph["properties"]["relation"]["enum"] = list(relations)
    return rules


def _other_format(card: object) -> str | None:
    """Say that a card states another format than this version reads; None if it does not."""
    stated = card.get("treetop") if isinstance(card, dict) else None
    if type(stated) is not int or stated == FORMAT:
        return None
    software = card.get("software") if isinstance(card, dict) else None
    versions = software if isinstance(software, dict) else {}
    made_by = versions.get(DISTRIBUTION) or versions.get("treetop")
    which = f"treetop {_short(made_by)}" if isinstance(made_by, str) else "the version of Treetop that wrote it"
    return (
        f"card.treetop is {stated}: another version wrote this card in another format, and this one, {VERSION}, reads "
        f"format {FORMAT} only. Read and check the folder with {which}"
    )


_Place = str | tuple["_Place", str | int]
"""A place in a card: its name, or the place around it and the name or number there. Only findings need it as a text."""


def _at(where: _Place) -> str:
    if isinstance(where, str):
        return where
    around, name = where
    return f"{_at(around)}[{name}]" if isinstance(name, int) else f"{_at(around)}.{name}"


def _check(value: object, rules: dict[str, Any], where: _Place, defined: dict[str, Any], found: list[str]) -> None:
    """Add to what was found where a value does not fit its rules."""
    while "$ref" in rules:
        named = defined[rules["$ref"].removeprefix("#/$defs/")]
        if len(rules) > 1:
            _check(value, named, where, defined, found)
            break
        rules = named
    kinds = rules.get("type")
    if kinds is not None and not _is_of(value, kinds):
        must = kinds if isinstance(kinds, str) else " or ".join(kinds)
        found.append(f"{_at(where)} must be {must}, not {_short(value)}")
        return
    if "const" in rules and not _same(value, rules["const"]):
        found.append(f"{_at(where)} must be {rules['const']!r}, not {_short(value)}")
    if "enum" in rules and not any(_same(value, choice) for choice in rules["enum"]):
        found.append(f"{_at(where)} must be one of {rules['enum']}, not {_short(value)}")
    if "pattern" in rules and isinstance(value, str) and not re.search(rules["pattern"], value):
        found.append(f"{_at(where)} is {_short(value)}, which does not match {rules['pattern']}")
    if "minimum" in rules and _is_number(value) and value < rules["minimum"]:
        found.append(f"{_at(where)} is {_short(value)}, below {rules['minimum']}")
    if isinstance(value, dict):
        _check_object(value, rules, where, defined, found)
    elif isinstance(value, list) and "items" in rules:
        for index, item in enumerate(value):
            _check(item, rules["items"], (where, index), defined, found)


def _check_object(
    value: dict[str, Any], rules: dict[str, Any], where: _Place, defined: dict[str, Any], found: list[str]
) -> None:
    for name in rules.get("required", ()):
        if name not in value:
            found.append(f"{_at(where)} lacks {name!r}")
    known = rules.get("properties", {})
    others = rules.get("additionalProperties", True)
    for name, item in value.items():
        if name in known:
            _check(item, known[name], (where, name), defined, found)
        elif others is False:
            found.append(f"{_at(where)} has {_short(name)}, which no card has")
        elif isinstance(others, dict):
            _check(item, others, (where, name), defined, found)


def _same(one: object, other: object) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _is_of(value: object, kinds: str | list[str]) -> bool:
    return _TYPES[kinds](value) if isinstance(kinds, str) else any(_TYPES[kind](value) for kind in kinds)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# A number without a fraction is an integer in JSON Schema, however it is written.
_TYPES: dict[str, Callable[[object], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or float(value).is_integer()),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
