"""Write a plan as it was run as a plan file, with the SHA-256 of each hierarchy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

from treetop.plan import fields
from treetop.plan.fields.declarations import ATTRIBUTE, CLEANING, FACT
from treetop.plan.file._stated import PlanFile
from treetop.plan.plan import Plan

_OF_GROUPS = ("unit", "groups", "loss", "data")
"""The sections of group size plans, in written order."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def describe_plan(plan: PlanFile | Plan, said: Any = None) -> str:
    """Return the plan as TOML for the release folder: a plan file with hashes, without the private table's address."""
    file = plan if isinstance(plan, PlanFile) else None
    ran = fields.PlanContext(plan.plan if isinstance(plan, PlanFile) else plan, file or said, file)
    spine, columns = ran.plan.spine, (ran.said.columns or {}) if ran.said is not None else {}
    family = ran.plan.reader.name
    order = _OF_GROUPS if family == fields.GROUPS else fields.sections(family)
    lines = ["# The plan as it was run. hierarchy_sha256 is of the levels, codes and parents of the tree.", ""]
    top = fields.written("", ran, family)
    named = {name: top.pop(name) for name in list(top) if isinstance(top[name], Mapping)}
    lines += _pairs(top)
    for name, tree in zip(spine.attributes, spine.trees, strict=True):
        if name != ran.plan.reader.axis:
            whole = spine.attributes[name]
            made = {"levels": list(tree.levels), **({} if whole.coding is None else whole.coding.stated(whole.levels))}
            stated = _stated_attribute(file, name) or made
            column = {"column": columns[name]} if name in columns else {}
            lines += _section(f"attributes.{key(name)}", {**column, **stated, "hierarchy_sha256": tree.digest})
    for section in order:
        if section != "graph" and (values := fields.written(section, ran, family)):
            lines += _section(section, values)
    for section, values in named.items():
        lines += _section(section, values)
    return "\n".join([*lines, *_graph(ran)]) + "\n"


def value(item: object) -> str:
    """Write a value as TOML.

    >>> value(["a", 1, True]), value(Fraction(1, 4)), value(Fraction(1, 3)), value({"a.b": 2})
    ('["a", 1, true]', '0.25', '"1/3"', '{ "a.b" = 2 }')
    """
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int):
        return str(item)
    if isinstance(item, str):
        return '"' + "".join(_escape(character) for character in item) + '"'
    if isinstance(item, date):
        return item.isoformat()
    if isinstance(item, Fraction | Decimal):
        return _number(Fraction(item))
    if isinstance(item, Mapping):
        inner = ", ".join(f"{key(name)} = {value(entry)}" for name, entry in item.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(item, list | tuple):
        return "[" + ", ".join(value(entry) for entry in item) + "]"
    raise TypeError(f"a plan holds no {type(item).__name__}")


def key(name: str) -> str:
    """Write a key as TOML, in quotes if needed."""
    return name if _BARE.fullmatch(name) else value(name)


def _stated_attribute(file: PlanFile | None, name: str) -> dict[str, Any]:
    if file is None:
        return {}
    stated = {field: entry for field, entry in file.attributes[name].items() if field != "hierarchy_sha256"}
    if "hierarchy" in stated:
        stated["hierarchy"] = Path(stated["hierarchy"]).name
    return stated


def _graph(ran: fields.PlanContext) -> list[str]:
    """Write how the graph was read; with the table names added it is a plan file again."""
    stated = {} if ran.file is None or ran.file.graph is None else ran.file.graph.describe()
    if ran.plan.graph is None:
        # People who are counted are an ordinary table.
        lines = ["", "# The private table was made from a graph.", *_section("graph", stated)[1:]] if stated else []
        return [line if line.startswith("#") or not line else f"# {line}" for line in lines]
    facts = {name: entry for name, entry in ran.plan.graph.describe().items() if name != "unknown"}
    clean = {"clean": stated.pop("clean")} if stated.get("clean") else {}
    stated.pop("clean", None)
    counts = {"counts": "edges"}
    if ran.plan.reader.name == fields.DEGREES:
        counts, degrees = {"counts": "degrees"}, ran.plan.describe()["degrees"]
        largest = {"largest": degrees.pop("largest")}
        if (choice := degrees.pop("choice", None)) is not None:
            largest = {"largest": choice["candidates"], "choosing": choice["share"]}
        degrees.pop("mechanism", None)
        facts |= largest | degrees
    return [*_section("graph", counts | stated | facts), *(f"# {line}" for line in _pairs(clean))]


def _section(name: str, values: Mapping[str, Any]) -> list[str]:
    return ["", f"[{name}]", *_pairs(values)]


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{key(name)} = {value(item)}" for name, item in values.items()]


def _escape(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    return f"\\u{ord(character):04x}" if ord(character) < 32 or ord(character) == 127 else character


def _number(number: Fraction) -> str:
    """Write a fraction exactly: as a decimal if it is finite, otherwise as the text "a/b"."""
    try:
        with localcontext(Context(prec=5000, traps=[Inexact])):
            decimal = Decimal(number.numerator) / Decimal(number.denominator)
    except Inexact:
        return f'"{number.numerator}/{number.denominator}"'
    if number.denominator == 1:
        return str(number.numerator)
    _, numerals, exponent = decimal.as_tuple()
    digits, places = "".join(map(str, numerals)), -int(exponent)
    if len(digits) + 6 < places:
        return f"{digits}e-{places}"
    digits = digits.rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}"


# The JSON Schema of plan files, for editors and other programs. It checks fields one by one, not their combinations.


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema for the parsed TOML of a plan file."""
    properties = _properties("")
    properties |= {section: _object(section) for section in fields.sections()}
    for named in (ATTRIBUTE, CLEANING):
        *above, last, _ = named.split(".")
        place = properties
        for part in above:
            place = place[part]["properties"]
        place[last] |= {"type": "object", "additionalProperties": _object(named)}
    stated = {"anyOf": [{"type": "string", "pattern": r"\S"}, _object(FACT)]}
    properties["facts"] |= {"type": "object", "additionalProperties": stated}
    only = {name: _object(name, fields.GROUPS) for name in fields.sections(fields.GROUPS)}
    others = {name: False for name in fields.sections() if name not in only}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Treetop plan",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "if": {"required": ["groups"]},
        "then": {"properties": {**only, **others}},
    }


def _object(section: str, family: str | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": _properties(section, family), "additionalProperties": False}


def _properties(section: str, family: str | None = None) -> dict[str, Any]:
    found = {}
    for one in fields.of(section, family):
        stated = {**one.kind.schema, "description": one.help}
        if isinstance(one.default, str | bool | int | float) and one.default != "":
            stated["default"] = one.default
        found[one.name] = stated
    return found
