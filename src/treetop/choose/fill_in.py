"""A loss and its split as a plan file has them: as text to paste, or filled into the file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from treetop.basics.exact import positive
from treetop.errors import PlanFileError
from treetop.plan.file.describe import key, value
from treetop.plan.plan import PurePlan

_HEADER = re.compile(r"\s*\[+\s*(?P<name>[^\[\]]+?)\s*\]+\s*(?:#.*)?")
_NAMES = ("epsilon", "delta", "rho", "split")
_ANSWERED = re.compile(rf"\s*\"?(?:{'|'.join(_NAMES)})\"?\s*=")


def loss_toml(plan: PurePlan) -> str:
    """Return the plan's loss and split as sections of a plan file."""
    amounts, split = _lines(plan)
    return "\n".join(["[loss]", *amounts, *split])


def filled_in(text: str, plan: PurePlan, file: str) -> str:
    """Return the text of a plan file with the plan's loss and split in the place of its own, and all else as it is."""
    amounts, split = _lines(plan)
    kept: list[str] = []
    section, waiting = "", list(split)
    for line in text.splitlines():
        if header := _HEADER.fullmatch(line):
            if section == "loss":
                kept, waiting = [*_without_blank(kept), *waiting, ""], []
            section = header["name"]
            if section != "loss.split":
                kept.append(line)
            if section == "loss":
                kept += amounts
        elif section != "loss.split" and not (section == "loss" and _ANSWERED.match(line)):
            kept.append(line)
    if section == "loss":
        kept += waiting
    before, result = _parsed(text) or {}, "\n".join(kept).rstrip() + "\n"
    if "loss" not in before:
        result += f"\n{loss_toml(plan)}\n"
    others = {name: entry for name, entry in dict(before.get("loss", {})).items() if name not in _NAMES}
    answer = (_parsed(loss_toml(plan)) or {})["loss"]
    if _parsed(result) != {**before, "loss": {**others, **answer}}:
        raise PlanFileError(f"{file}: its [loss] is written in a way that cannot be filled in: paste the lines by hand")
    return result


def _lines(plan: PurePlan) -> tuple[list[str], list[str]]:
    """Return the lines of the loss, and those of its split."""
    loss = plan.loss
    amounts = (("epsilon", loss.epsilon), ("delta", loss.delta), ("rho", loss.rho))
    stated = [f"{name} = {value(amount)}" for name, amount in amounts if amount is not None]
    measured = [part for part in plan.workload if part.is_measured]
    if plan.split == "uniform" or not measured:
        return [*stated, 'split = "uniform"'], []
    # A split that names no margin is one of the levels alone, and stays so.
    weights = plan.split if isinstance(plan.split, Mapping) else {part.name: part.share for part in measured}
    exact = {name: positive(weight, name) for name, weight in weights.items()}
    pairs = (f"{key(name)} = {value(weight)}" for name, weight in exact.items())
    return stated, ["", "[loss.split]", *pairs]


def _without_blank(lines: list[str]) -> list[str]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"), parse_float=Decimal)
    except tomllib.TOMLDecodeError:
        return None
