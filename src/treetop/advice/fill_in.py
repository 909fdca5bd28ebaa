"""An answer as a plan file has it, its loss, split, spine and margins: as text to paste, or filled into the file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from treetop._util.numbers import positive
from treetop.errors import PlanFileError
from treetop.plan.fields.declarations import ORDERS
from treetop.plan.file.describe import key, value
from treetop.plan.plan import Plan

_HEADER = re.compile(r"\s*\[+\s*(?P<name>[^\[\]]+?)\s*\]+\s*(?:#.*)?")
_KEY = re.compile(r"\s*\"?(?P<name>\w+)\"?\s*=(?P<value>.*)")


@dataclass(frozen=True)
class _Filling:
    """What a section says in place of what it said."""

    section: str
    names: Sequence[str]
    """The fields whose lines go."""
    lines: Sequence[str]
    """What stands under its header instead."""
    table: Sequence[str] = ()
    """What follows it, a table of its own."""

    @property
    def tables(self) -> set[str]:
        """The tables of its own that go."""
        return {f"{self.section}.{name}" for name in self.names}


def loss_toml(plan: Plan) -> str:
    """Return the plan's loss and split as sections of a plan file."""
    return _as_text([_loss(plan)])


def design_toml(plan: Plan, text: str) -> str:
    """Return what a plan with another design says otherwise than the text of its file: spine, margins and split."""
    return _as_text(_design(plan, _parsed(text)))


def filled_in(text: str, plan: Plan, file: str) -> str:
    """Return the text of a plan file with the plan's loss and split in the place of its own, and all else as it is."""
    return _filled(text, [_loss(plan)], file)


def designed_in(text: str, plan: Plan, file: str) -> str:
    """Return the text of a plan file with the plan's spine, margins and split, and all else as it is."""
    return _filled(text, _design(plan, _parsed(text)), file)


def _loss(plan: Plan) -> _Filling:
    loss = plan.loss
    amounts = (("epsilon", loss.epsilon), ("delta", loss.delta), ("rho", loss.rho))
    stated = [f"{name} = {value(amount)}" for name, amount in amounts if amount is not None]
    if plan.split == "uniform" or not any(level.is_measured for level in plan.levels):
        return _Filling("loss", ("epsilon", "delta", "rho", "split"), [*stated, 'split = "uniform"'])
    return _Filling("loss", ("epsilon", "delta", "rho", "split"), stated, _split(plan))


def _design(plan: Plan, before: Mapping[str, Any] | None) -> list[_Filling]:
    """Return what a design decides; the order of a file that has the same one stays as it is written."""
    split = _Filling("loss", ("split",), (), _split(plan))
    if len(plan.spine.attributes) == 1:
        return [split]
    margins = plan.margins if isinstance(plan.margins, str) else list(plan.margins)
    order, names = [f"order = {value(list(plan.spine.splits))}"], ["order", "margins"]
    if before is not None and _same_order(plan, before):
        order, names = [], ["margins"]
    return [_Filling("spine", names, [*order, f"margins = {value(margins)}"]), split]


def _same_order(plan: Plan, before: Mapping[str, Any]) -> bool:
    order = before.get("spine", {}).get("order")
    if isinstance(order, str) and order in ORDERS:
        trees = {name: plan.spine.attributes[name] for name in ("origin", "destination")}
        return tuple(ORDERS[order](**trees).splits) == tuple(plan.spine.splits)
    return isinstance(order, list) and order == list(plan.spine.splits)


def _split(plan: Plan) -> list[str]:
    weights: Mapping[str, Any] = plan.split if isinstance(plan.split, Mapping) else {}
    named = [part for part in plan.levels if part.is_measured]
    named += [part for part in plan.margin_parts if not weights or part.name in weights]
    exact = {part.name: positive(weights.get(part.name, part.share), part.name) for part in named}
    return ["[loss.split]", *(f"{key(name)} = {value(weight)}" for name, weight in exact.items())]


def _as_text(fillings: Iterable[_Filling]) -> str:
    parts = []
    for one in fillings:
        parts += [f"[{one.section}]", *one.lines, ""] if one.lines else []
        parts += [*one.table, ""] if one.table else []
    return "\n".join(parts[:-1])


def _filled(text: str, fillings: Sequence[_Filling], file: str) -> str:
    by_section = {one.section: one for one in fillings}
    gone = {name for one in fillings for name in one.tables}
    kept: list[str] = []
    section, waiting, open_brackets = "", {one.section: list(one.table) for one in fillings}, 0
    for line in text.splitlines():
        if open_brackets > 0:  # the rest of a list that goes
            open_brackets += _opened(line)
            continue
        own = by_section.get(section)
        if header := _HEADER.fullmatch(line):
            if own is not None and waiting[section]:
                kept, waiting[section] = [*_without_blank(kept), "", *waiting[section], ""], []
            section = header["name"]
            if section not in gone:
                kept.append(line)
            if section in by_section:
                kept += by_section[section].lines
        elif own is not None and (field := _KEY.match(line)) and field["name"] in own.names:
            open_brackets = _opened(field["value"])
        elif section not in gone:
            kept.append(line)
    if waiting.get(section):
        kept = [*_without_blank(kept), "", *waiting[section]]
    return _checked(text, "\n".join(kept).rstrip() + "\n", fillings, file)


def _checked(text: str, result: str, fillings: Sequence[_Filling], file: str) -> str:
    """Add sections that are not there, and see that nothing else has changed."""
    before = _parsed(text) or {}
    missing = [one for one in fillings if one.section not in before]
    result += "".join(f"\n{_as_text([one])}\n" for one in missing)
    expected = dict(before)
    answer = _parsed(_as_text(fillings)) or {}
    for one in fillings:
        others = {name: entry for name, entry in dict(before.get(one.section, {})).items() if name not in one.names}
        expected[one.section] = {**others, **answer.get(one.section, {})}
    if _parsed(result) != expected:
        named = " or ".join(f"[{one.section}]" for one in fillings)
        raise PlanFileError(
            f"{file}: its {named} is written in a way that cannot be filled in: paste the lines by hand"
        )
    return result


def _opened(text: str) -> int:
    """Return how many brackets of a value stay open at the end of a line; a mistake shows when all is read again."""
    bare = re.sub(r"\"(?:\\.|[^\"\\])*\"|'[^']*'|#.*", "", text)
    return sum(map(bare.count, "[{")) - sum(map(bare.count, "]}"))


def _without_blank(lines: list[str]) -> list[str]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"), parse_float=Decimal)
    except tomllib.TOMLDecodeError:
        return None
