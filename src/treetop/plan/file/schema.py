"""The JSON Schema of plan files, for editors and other programs: what a field may hold, not what fits together."""

from __future__ import annotations

from typing import Any

from treetop.plan import fields
from treetop.plan.fields.graph import CLEANING
from treetop.plan.fields.ordinary import ATTRIBUTE, FACT


def plan_schema() -> dict[str, Any]:
    """Return the schema; a plan file is checked against it as TOML reads it."""
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
