"""Summaries of plans and releases as plain values: cost, expected accuracy, results."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from treetop.advice import counts_groups, known_outlook, largest_sizes, margins_not_kept
from treetop.card import in_words
from treetop.card.distributions import statements_of
from treetop.card.meaning import meaning
from treetop.card.statements import before_a_release, exact, facts, loss_summary, reckless, worse_than_none
from treetop.plan.file import PlanFile, read_plan
from treetop.plan.workload import LevelAccuracy
from treetop.publishing.publish import Published


def plan_summary(plan: PlanFile | str | Path, confidence: float = 0.95, total: float | None = None) -> dict[str, Any]:
    """Return accuracy, noise and cost of a plan file by level, with explanations: the content of `treetop plan`.

    If `total` (the approximate number of records) is given, also return the expected quality of a release.
    """
    file = plan if isinstance(plan, PlanFile) else read_plan(plan)
    told = file.plan
    described = told.describe()
    accuracy = told.accuracy(confidence)
    not_kept, statements = margins_not_kept(told, confidence), statements_of(told)
    warnings = [*reckless(told), *worse_than_none(told, total)]
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
        "not_kept": [asdict(one) for one in not_kept],
        "warnings": [*in_words(warnings), *map(str, not_kept)],
        "meaning": in_words(meaning(told)),
        "exact": in_words(exact(told, statements.exact_total(told))),
        "facts": in_words({"tables": facts(told), "sentences": before_a_release(told)}),
        "keep": file.keep and {column: list(values) for column, values in file.keep.items()},
        "drop": file.drop and {column: list(values) for column, values in file.drop.items()},
        "prepared": list(file.prepared),
        "graph": None if file.graph is None else file.graph.sentences(),
        "notes": in_words(statements.notes(told)),
        "largest": largest_sizes(told, confidence).to_dict() if counts_groups(told) else None,
        "outlook": None if (found := known_outlook(file, total)) is None else found.to_dict(),
    }


def release_summary(file: PlanFile, done: Published, tried: bool = False) -> dict[str, Any]:
    """Return the folder of a release and its guarantee, as plain values."""
    release, reservation = done.release, done.reservation
    card, out = in_words(release.card), done.folder
    outlook = None if file.plan.mechanism.name != "top-down" else known_outlook(file, release.total or None)
    charged = None if reservation is None else {"entry": reservation.number, "sha256": reservation.sha256}
    left = None if release.left is None else {"total": release.unresolved_total, "nodes": len(release.left)}
    return {
        "out": str(out),
        "id": card["id"],
        "title": card["title"],
        "private": card["private"],
        "guarantee": card["guarantee"],
        "protects": card["protects"],
        "counted": card["counted"],
        "leaves": release.leaves,
        "total": release.total,
        "unresolved": left,
        "outlook": None if outlook is None else outlook.to_dict(),
        "ledger": charged
        and {
            **charged,
            "dataset": reservation.dataset,  # type: ignore[union-attr]
            "new": reservation.new,  # type: ignore[union-attr]
            "head": done.head,
        },
        "next": f"treetop check {shlex.quote(str(out))}",
        "coverage": card["accuracy"]["coverage"] | {"notes": list(done.notes)} if tried else None,
        "graph": [] if file.graph is None else file.graph.sentences(),
    }


def _rows(rows: Sequence[LevelAccuracy], parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the expected accuracy of tables with their costs and noise."""
    pairs = zip(rows, parts, strict=True)
    return [{**asdict(row), "cost": part["cost"], "law": part["noise"]} for row, part in pairs]
