"""What a plan will cost and how accurate it will be, as plain values; no private data is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from treetop.card import known
from treetop.card.content import words_of
from treetop.card.meaning import exact, loss_summary, meaning
from treetop.card.words import reckless, worse_than_none
from treetop.choose.largest import largest_advice
from treetop.choose.outlook import known_outlook
from treetop.plan.accuracy import LevelAccuracy
from treetop.plan.file import PlanFile, read_plan
from treetop.plan.groups.planned import PureGroupTablePlan


def plan_summary(plan: PlanFile | str | Path, confidence: float = 0.95, total: float | None = None) -> dict[str, Any]:
    """Return accuracy, noise and cost of a plan file by level, and what they mean: what `treetop plan` shows.

    With `total`, about how many records there are, it also says what a release would be worth.
    """
    file = plan if isinstance(plan, PlanFile) else read_plan(plan)
    told = file.plan
    described = told.describe()
    accuracy = told.accuracy(confidence)
    return {
        "title": told.title,
        "plan": str(file.path),
        "plan_sha256": told.digest,
        "leaves": told.spine.leaves,
        "confidence": confidence,
        "levels": _rows(accuracy.levels, described["levels"]),
        "margins": _rows(accuracy.margins, described.get("margins", [])),
        "unit": {**described["unit"], "enforced": told.unit.enforced, "sentence": told.unit.sentence()},
        "loss": loss_summary(told),
        "warnings": [*reckless(told), *worse_than_none(told, total)],
        "meaning": meaning(told),
        "exact": exact(told),
        "facts": {"tables": known.facts(told), "sentences": known.before_a_release(told)},
        "keep": file.keep and {column: list(values) for column, values in file.keep.items()},
        "drop": file.drop and {column: list(values) for column, values in file.drop.items()},
        "prepared": list(file.prepared),
        "graph": None if file.graph is None else file.graph.sentences(),
        "notes": words_of(told).notes(told),
        "largest": largest_advice(told, confidence).to_dict() if isinstance(told, PureGroupTablePlan) else None,
        "outlook": None if (found := known_outlook(told, total)) is None else found.to_dict(),
    }


def _rows(rows: Sequence[LevelAccuracy], parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put what to expect of tables beside what they cost, and their noise."""
    pairs = zip(rows, parts, strict=True)
    return [{**asdict(row), "cost": part["cost"], "law": part["noise"]} for row, part in pairs]
