"""The card's JSON Schema, and a validator for the part of JSON Schema (draft 2020-12) that it uses."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeGuard
from uuid import uuid4

from treetop._util.distribution import DISTRIBUTION, VERSION
from treetop.errors import ReleaseError
from treetop.noise import LAWS
from treetop.privacy.relation import RELATIONS
from treetop.repair import REPAIRS

if TYPE_CHECKING:
    from treetop.plan.file import PlanFile


# What a card states that its plan does not know: which run it was, on which data, and what was spent before.

FORMAT = 3
"""The version of the card's layout, which its schema describes, and of its words.

Whoever changes either makes a new one. Cards of other formats are refused: the version that wrote them reads them.
"""

DERIVATION = 2
"""The version of the way from a run's key to the noise of each count; the first went by position, not by place."""

SINCE = (0, 4)
"""The first version that wrote this format."""
_LIBRARIES = ("numpy", "numba", "pyarrow", "python-flint", "cryptography")


def _today() -> str:
    """Return the day only: how long a release took, which the data decide, must not be read off its cards."""
    return datetime.now(UTC).date().isoformat()


@cache
def _software() -> Mapping[str, str]:
    return {
        DISTRIBUTION: VERSION,
        "python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
    }


def misfit(made_by: str) -> str | None:
    """Say why a card of this format cannot be held to the words of this version; None where it can.

    A version that differs in its last number writes the same words; one of another number may not.
    """
    made = _number(made_by)
    if made < SINCE:
        return f"version {made_by}, which wrote no card of format {FORMAT}: this is no card of it"
    if made > max(SINCE, _number(VERSION)):
        return f"version {made_by}, which is later than this one, {VERSION}: check it with that version"
    return None


def _number(text: str) -> tuple[int, ...]:
    """Return the first two numbers of a version that fits the schema."""
    return tuple(int(re.match("[0-9]*", part)[0] or 0) for part in text.split(".")[:2])  # type: ignore[index]


@dataclass(frozen=True)
class Facts:
    """The facts of one run. Nothing here is private: no path, no key, no count of records."""

    private: bool = True
    """False when the noise came from a testing key."""
    description: str = ""
    """What the release is about, at length."""
    period: str | None = None
    """The time that the data are about, in words."""
    columns: Mapping[str, str] | None = None
    """The column of each attribute in the private table."""
    count: str | None = None
    """The column that says how many records a row stands for."""
    keep: Mapping[str, Sequence[str]] | None = None
    """The values that a row must have to be in the data at all, by column."""
    drop: Mapping[str, Sequence[str]] | None = None
    """The values that leave a row out of the data, by column."""
    prepared: Sequence[str] = ()
    """What was done to columns of text before they were read as codes, in short words."""
    composition: Mapping[str, Any] | None = None
    """What the ledger says; None when no ledger was used."""
    coverage: Mapping[str, Any] | None = None
    """How often intervals held the counts of a public twin; None when none was tried."""
    id: str = field(default_factory=lambda: str(uuid4()))
    """A random name for this release."""
    time: str = field(default_factory=_today)
    """The day on which it was made, UTC."""
    software: Mapping[str, str] = field(default_factory=_software)
    """What it was made with."""

    @staticmethod
    def of_file(file: PlanFile, *, private: bool = True, composition: Mapping[str, Any] | None = None) -> Facts:
        """Take what a plan file says about the data."""
        return Facts(
            private=private,
            description=file.description,
            period=file.period,
            columns=dict(file.columns),
            count=file.count,
            keep=file.keep,
            drop=file.drop,
            prepared=file.prepared,
            composition=composition,
        )

    def again(self) -> Facts:
        """Return the facts for another release of the same measurements, made now; nothing is spent on it."""
        now = Facts()
        return replace(self, id=now.id, time=now.time, software=now.software)

    @staticmethod
    def of_card(card: Mapping[str, Any]) -> Facts:
        """Take the facts back out of a card that fits its schema."""
        data, composition = card["data"], dict(card["composition"])
        composition.pop("sentence")
        tried = card["accuracy"].get("coverage", {})
        return Facts(
            private=card["private"],
            description=card["description"],
            period=data["period"],
            columns=data["columns"],
            count=data["count_column"],
            keep=data.get("keep"),
            drop=data.get("drop"),
            prepared=tuple(data.get("prepared", ())),
            composition=composition if composition["ledger"] else None,
            coverage={"twin": tried["twin"], "runs": tried["runs"]} if "twin" in tried else None,
            id=card["id"],
            time=card["time"],
            software=card["software"],
        )


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
    """Return the schema, which also takes the laws, repairs and relations that were registered from outside."""
    return _with_registered(tuple(LAWS), tuple(REPAIRS), tuple(RELATIONS))


@cache
def _with_registered(laws: tuple[str, ...], repairs: tuple[str, ...], relations: tuple[str, ...]) -> dict[str, Any]:
    rules: dict[str, Any] = json.loads(files("treetop.card").joinpath("schema.json").read_text(encoding="utf-8"))
    plan = rules["$defs"]["plan"]["properties"]
    planned = rules["$defs"]["planned"]["items"]["properties"]["noise"]["properties"]
    for noise, number in ((rules["$defs"]["noise"]["properties"], "exact"), (planned, "fraction")):
        noise["law"]["enum"] = list(laws)
        noise |= {LAWS[law].parameter: {"$ref": f"#/$defs/{number}"} for law in laws}
    plan["loss"]["properties"]["noise"]["enum"] = list(laws)
    plan["repair"]["enum"] = list(repairs)
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
