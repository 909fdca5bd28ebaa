"""A loss and its split as a plan file has them: as text to paste, or filled into the file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from treetop.errors import PlanFileError
from treetop.plan import Plan
from treetop.planfile.describe import key, value

_HEADER = re.compile(r"\s*\[+\s*(?P<name>[^\[\]]+?)\s*\]+\s*(?:#.*)?")
_ANSWERED = re.compile(r"\s*\"?(?:epsilon|delta|rho|split)\"?\s*=")


def loss_toml(plan: Plan) -> str:
    """Return the plan's loss and split as sections of a plan file."""
    loss = plan.loss
    amounts = (("epsilon", loss.epsilon), ("delta", loss.delta), ("rho", loss.rho))
    lines = ["[loss]", *(f"{name} = {value(amount)}" for name, amount in amounts if amount is not None)]
    measured = [level for level in plan.levels if level.law is not None]
    if plan.split == "uniform" or not measured:
        return "\n".join([*lines, 'split = "uniform"'])
    weights: Mapping[str, Any] = plan.split if isinstance(plan.split, Mapping) else {}
    pairs = (f"{key(level.name)} = {value(weights.get(level.name, level.share))}" for level in measured)
    return "\n".join([*lines, "", "[loss.split]", *pairs])


def filled_in(text: str, plan: Plan, file: str) -> str:
    """Return the text of a plan file with the plan's loss and split in the place of its own, and all else as it is."""
    block = loss_toml(plan)
    kept: list[str] = []
    section, placed = "", False
    for line in text.splitlines():
        if header := _HEADER.fullmatch(line):
            section = header["name"]
            if section == "loss" and not placed:
                kept += [*block.splitlines(), ""]
                placed = True
            elif section not in ("loss", "loss.split"):
                kept.append(line)
        elif section != "loss.split" and not (section == "loss" and _ANSWERED.match(line)):
            kept.append(line)
    if not placed:
        kept += ["", *block.splitlines()]
    result = "\n".join(kept).rstrip() + "\n"
    if _parsed(result) != {**(_parsed(text) or {}), **(_parsed(block) or {})}:
        raise PlanFileError(f"{file}: its [loss] is written in a way that cannot be filled in: paste the lines by hand")
    return result


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"), parse_float=Decimal)
    except tomllib.TOMLDecodeError:
        return None
