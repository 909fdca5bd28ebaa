"""An answer as a plan file has it, its loss, split, spine and margins: as text to paste, or filled into the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treetop._util.numbers import positive
from treetop.plan.fields.declarations import ORDERS
from treetop.plan.file.describe import key, value
from treetop.plan.file.edit import changed, moved, parsed
from treetop.plan.mechanism import JointMechanism
from treetop.plan.plan import Plan

Fields = Mapping[tuple[str, str], Any]
"""Values by section and field; None removes a field, a mapping is a table of its own."""


def loss_toml(plan: Plan) -> str:
    """Return the plan's loss and split as sections of a plan file."""
    return _as_text(_loss(plan))


def design_toml(plan: Plan, text: str) -> str:
    """Return what a plan with another design says otherwise than the text of its file: spine, margins and split."""
    return _as_text(_design(plan, text))


def filled_in(text: str, plan: Plan, file: str) -> str:
    """Return the text of a plan file with the plan's loss and split in the place of its own, and all else as it is."""
    return _filled(text, _loss(plan), file)


def designed_in(text: str, plan: Plan, file: str) -> str:
    """Return the text of a plan file with the plan's spine, margins and split, and all else as it is."""
    return _filled(text, _design(plan, text), file)


def _loss(plan: Plan) -> Fields:
    is_even = plan.split == "uniform" or not any(level.is_measured for level in plan.levels)
    amounts = {("loss", name): getattr(plan.loss, name) for name in ("epsilon", "delta", "rho")}
    return {**amounts, ("loss", "split"): "uniform" if is_even else _split(plan)}


def _design(plan: Plan, text: str) -> Fields:
    """Return what a design decides; the order of a file that has the same one stays as it is written."""
    split = {("loss", "split"): _split(plan)}
    if len(plan.spine.attributes) == 1:
        return split
    margins = plan.margins if isinstance(plan.margins, str) else list(plan.margins)
    if JointMechanism.runs(plan):
        return {("spine", "margins"): margins, **split}
    order, splits = parsed(text).get("spine", {}).get("order"), list(plan.spine.splits)
    if isinstance(order, str) and order in ORDERS:
        ends = {name: plan.spine.attributes[name] for name in ("origin", "destination")}
        order = list(ORDERS[order](**ends).splits)
    return {**({} if order == splits else {("spine", "order"): splits}), ("spine", "margins"): margins, **split}


def _split(plan: Plan) -> dict[str, Any]:
    weights: Mapping[str, Any] = plan.split if isinstance(plan.split, Mapping) else {}
    named = [part for part in plan.levels if part.is_measured]
    named += [part for part in plan.margin_parts if not weights or part.name in weights]
    return {part.name: positive(weights.get(part.name, part.share), part.name) for part in named}


def _as_text(fields: Fields) -> str:
    """Return fields by section, each table after its section."""
    sections: dict[str, list[str]] = {}
    for (section, name), item in fields.items():
        if isinstance(item, dict):
            sections[f"{section}.{name}"] = [f"{key(entry)} = {value(weight)}" for entry, weight in item.items()]
        elif item is not None:
            sections.setdefault(section, []).append(f"{name} = {value(item)}")
    return "\n\n".join("\n".join([f"[{section}]", *lines]) for section, lines in sections.items())


def _filled(text: str, fields: Fields, file: str) -> str:
    tables = {at: item for at, item in fields.items() if isinstance(item, dict)}
    text = changed(text, {((at[0],), at[1]): None if at in tables else item for at, item in fields.items()}, file)
    for at, item in tables.items():
        text = f"{text.rstrip()}\n\n{_as_text({at: item})}\n\n"
        sections = list(parsed(text, file))
        if following := sections[sections.index(at[0]) + 1 :]:
            text = moved(text, at, (following[0],), file)
    return f"{text.rstrip()}\n"
