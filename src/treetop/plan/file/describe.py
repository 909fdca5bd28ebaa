"""A plan as it was run, written as a plan file: everything stated, the hierarchies by their SHA-256."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from treetop.plan.file.reader import PlanFile
from treetop.plan.plan import CONFIDENCE, Plan
from treetop.plan.resolution import Resolution

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


class Said(Protocol):
    """What is said about the data beside a plan: by a plan file, or by the facts of a run in Python."""

    @property
    def description(self) -> str:
        """What the release is about, at length."""

    @property
    def columns(self) -> Mapping[str, str] | None:
        """The column of each attribute in the private table."""

    @property
    def count(self) -> str | None:
        """The column that says how many records a row stands for."""

    @property
    def period(self) -> str | None:
        """The time that the data are about, in words."""

    @property
    def keep(self) -> Mapping[str, Sequence[str]] | None:
        """The values that a row must have to be in the data at all, by column."""


def describe_plan(plan: PlanFile | Plan, said: Said | None = None) -> str:
    """Return the plan as TOML, for the release folder; what is said about the data is that of the plan file, if any.

    Where the hierarchies came from files, putting those beside it makes it a plan file again, and `read_plan`
    then checks their hashes. The private table's address and query are left out: they are the steward's own.
    """
    file = plan if isinstance(plan, PlanFile) else None
    ran = plan.plan if isinstance(plan, PlanFile) else plan
    said = file or said
    top: dict[str, Any] = {"title": ran.title}
    if said is not None and said.description:
        top["description"] = said.description
    lines = [
        "# The plan as it was run. hierarchy_sha256 is of the levels, codes and parents of the tree.",
        "",
    ]
    lines += _pairs(top)
    own = _own_sections(ran, file, said)
    for name, tree in zip(ran.spine.attributes, ran.spine.trees, strict=True):
        if own is not None and name == "size":
            continue
        stated = _stated_attribute(file, name) or {"levels": list(tree.levels)}
        stated = {**_column(said, name), **stated}
        lines += _section(f"attributes.{key(name)}", {**stated, "hierarchy_sha256": tree.digest})
    for name, values in own or [("spine", {"order": list(ran.spine.splits)}), ("unit", _unit(ran))]:
        lines += _section(name, values)
    lines += _section("loss", _loss(ran))
    if own is None and ran.repair != "least-squares":
        lines += _section("repair", {"method": ran.repair, "order": ran.order})
    if favoured := _favoured(ran):
        lines += _section("release", favoured)
    lines += _section("data", _data(ran, file, said))
    lines += _graph(ran, file)
    return "\n".join(lines) + "\n"


def _own_sections(plan: Plan, file: PlanFile | None, said: Said | None) -> list[tuple[str, dict[str, Any]]] | None:
    """Return the sections of a plan for group sizes in place of the spine, the unit and the repair; None for others."""
    if type(plan) is Plan:  # almost always: nothing is imported for it
        return None
    from treetop.plan.groups.planfile import describe
    from treetop.plan.groups.planned import GroupTablePlan

    return describe(plan, file, None if said is None else said.columns) if isinstance(plan, GroupTablePlan) else None


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
    if isinstance(item, Fraction | Decimal):
        return _number(Fraction(item))
    if isinstance(item, Mapping):
        inner = ", ".join(f"{key(name)} = {value(entry)}" for name, entry in item.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(item, list | tuple):
        return "[" + ", ".join(value(entry) for entry in item) + "]"
    raise TypeError(f"a plan holds no {type(item).__name__}")


def key(name: str) -> str:
    """Write a key as TOML, in quotes where it needs them."""
    return name if _BARE.fullmatch(name) else value(name)


def _stated_attribute(file: PlanFile | None, name: str) -> dict[str, Any]:
    if file is None:
        return {}
    stated = {field: entry for field, entry in file.attributes[name].items() if field != "hierarchy_sha256"}
    if "hierarchy" in stated:
        stated["hierarchy"] = Path(stated["hierarchy"]).name
    return stated


def _column(said: Said | None, name: str) -> dict[str, Any]:
    columns = {} if said is None else said.columns or {}
    return {"column": columns[name]} if name in columns else {}


def _unit(plan: Plan) -> dict[str, Any]:
    unit = plan.unit
    stated: dict[str, Any] = {
        "entity": unit.entity,
        "contributions": unit.contributions,
        "neighbours": unit.neighbours,
    }
    if unit.id is not None:
        stated["id"] = unit.id
    if unit.id_clean:
        stated["id_clean"] = list(unit.id_clean)
    if unit.per_node:
        stated["per_node"] = unit.per_node
    if unit.population is not None:
        stated["population"] = unit.population
    if unit.may_be_missing:
        stated["may_be_missing"] = True
    return stated


def _loss(plan: Plan) -> dict[str, Any]:
    loss = plan.loss
    stated: dict[str, Any] = {
        name: amount
        for name, amount in (("epsilon", loss.epsilon), ("delta", loss.delta), ("rho", loss.rho))
        if amount is not None
    }
    if loss.accounting == "exact":
        stated["accounting"] = "exact"
    if loss.large_delta:
        stated["large_delta"] = True
    measured = {level.name: level.share for level in plan.levels if level.law is not None}
    if plan.split == "uniform" or not measured:
        return {**stated, "split": "uniform"}
    whole = math.lcm(*(share.denominator for share in measured.values()))
    return {**stated, "split": {name: int(share * whole) for name, share in measured.items()}}


def _favoured(plan: Plan) -> dict[str, Any]:
    """Return what a release favours and carries, as far as it is not what every release does."""
    stated: dict[str, Any] = {"prefer": plan.preference} if plan.repair == "least-squares" else {}
    if isinstance(plan.resolve, Resolution):
        stated["resolve"] = {name: Fraction(text) for name, text in plan.resolve.describe().items()}
    if plan.confidence is None:
        stated["intervals"] = False
    elif plan.confidence != CONFIDENCE:
        stated["confidence"] = Fraction(str(plan.confidence))
    return stated


def _data(plan: Plan, file: PlanFile | None, said: Said | None) -> dict[str, Any]:
    stated: dict[str, Any] = {"unknown": plan.unknown}
    for name in ("count", "period", "keep"):
        if said is not None and getattr(said, name) is not None:
            stated[name] = getattr(said, name)
    for name in ("header", "names"):
        if file is not None and getattr(file, name) is not None:
            stated[name] = getattr(file, name)
    if file is not None and file.blank_lines != "record":
        stated["blank_lines"] = file.blank_lines
    if file is not None and file.fields is not None:
        stated["fields"] = file.fields
    return stated


def _graph(plan: Plan, file: PlanFile | None) -> list[str]:
    """Write how the graph was read; naming its tables there makes it a plan file again."""
    stated = {} if file is None or file.graph is None else file.graph.describe()
    if plan.graph is None:
        # People who are counted are an ordinary table.
        lines = ["", "# The private table was made from a graph.", *_section("graph", stated)[1:]] if stated else []
        return [line if line.startswith("#") or not line else f"# {line}" for line in lines]
    facts = {name: entry for name, entry in plan.graph.describe().items() if name != "unknown"}
    clean = {"clean": stated.pop("clean")} if stated.get("clean") else {}
    stated.pop("clean", None)
    return [*_section("graph", {"counts": "edges", **stated, **facts}), *(f"# {line}" for line in _pairs(clean))]


def _section(name: str, values: Mapping[str, Any]) -> list[str]:
    return ["", f"[{name}]", *_pairs(values)]


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{key(name)} = {value(item)}" for name, item in values.items()]


def _escape(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    return f"\\u{ord(character):04x}" if ord(character) < 32 or ord(character) == 127 else character


def _number(number: Fraction) -> str:
    """Write a fraction exactly: as a decimal where it is one, otherwise as the text "a/b"."""
    places = 0
    rest = number.denominator
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest //= prime
            power += 1
        places = max(places, power)
    if rest != 1:
        return f'"{number.numerator}/{number.denominator}"'
    if places == 0:
        return str(number.numerator)
    digits = str(number.numerator * 10**places // number.denominator)
    if len(digits) + 6 < places:
        return f"{digits}e-{places}"
    digits = digits.rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}"
