"""The card's content: everything that a plan and what is known of its run say about a release."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from treetop.card.distributions import statements_of
from treetop.card.meaning import amount, composed, meaning
from treetop.card.run_info import DERIVATION, RunInfo
from treetop.card.schema import FORMAT, validate_fields
from treetop.card.sentences import paragraph, sentence
from treetop.card.statements import (
    agreeing,
    caveats,
    counted,
    coverage,
    epsilon_of,
    exact,
    facts,
    guarantee,
    is_named,
    rows,
)
from treetop.plan.degrees import DegreeHistogram
from treetop.plan.plan import Plan
from treetop.plan.workload import CONFIDENCE, LevelAccuracy, Part
from treetop.privacy.loss import COMPARED_AT

UNTITLED = "Untitled release"


def draft_card(plan: Plan, info: RunInfo) -> dict[str, Any]:
    """Return the card without what only the finished release knows: its size and its files."""
    statements = statements_of(plan)
    return of_plan(plan) | {
        "description": info.description,
        "id": info.id,
        "time": info.time,
        "private": info.private,
        "warning": None if info.private else sentence("warning"),
        "guarantee": guarantee(plan) if info.private else sentence("guarantee.none"),
        "data": {
            "period": info.period,
            "columns": None if info.columns is None else dict(info.columns),
            "count_column": info.count,
            "unknown_codes": statements.unknown(plan),
            **({} if info.keep is None else {"keep": {name: list(values) for name, values in info.keep.items()}}),
            **({} if info.drop is None else {"drop": {name: list(values) for name, values in info.drop.items()}}),
            **rows(info.keep, info.drop),
            **({"prepared": list(info.prepared)} if info.prepared else {}),
        },
        "unit": _unit(plan, info),
        "mechanism": {
            "name": statements.mechanism(plan),
            "noise": statements.noise(plan),
            "sampler": sentence("sampler"),
            "randomness": sentence("randomness.fresh" if info.private else "randomness.testing"),
            "derivation": {"version": DERIVATION, "sentence": sentence("derivation")},
        },
        "accuracy": _accuracy(plan, info),
        "composition": composed(info.composition, plan),
        "caveats": caveats(plan, info, statements.caveats(plan, info)),
        "software": dict(info.software),
    }


@lru_cache(maxsize=8)
def of_plan(plan: Plan) -> dict[str, Any]:
    """Return what is the same for every release of a plan; worked out and checked once."""
    statements = statements_of(plan)
    part = {
        "treetop": FORMAT,
        "title": plan.title or UNTITLED,
        "protects": paragraph(statements.protects(plan), *agreeing(plan)),
        **({} if plan.graph is None else {"graph": statements.graph(plan)}),
        "counted": counted(statements.counted(plan), plan.unit),
        "hierarchies": _hierarchies(plan),
        "loss": _loss(plan),
        "meaning": meaning(plan),
        "exact": exact(plan, statements.exact_total(plan)),
        "levels": _levels(plan),
        **({"margins": _margins(plan)} if plan.margin_tables else {}),
        **({"facts": facts(plan)} if plan.public_facts else {}),
        **_choice(plan),
        "accuracy": _accuracy(plan),
        "post_processing": statements.post_processing(plan),
        "plan": plan.describe(),
        "plan_sha256": plan.digest,
    }
    validate_fields(part)
    return part


def _accuracy(plan: Plan, info: RunInfo | None = None) -> dict[str, Any]:
    """Say what margins, bounds and intervals are, and how often those of a public twin held."""
    nominal = float(plan.confidence or CONFIDENCE)
    stated: dict[str, Any] = {"confidence": nominal, **statements_of(plan).accuracy(plan)}
    if "interval" not in stated:
        return stated
    tried = None if info is None else info.coverage
    measured = {} if tried is None else {"twin": [dict(level) for level in tried["twin"]], "runs": tried["runs"]}
    told = coverage(nominal, tried, named=is_named(plan))
    part = stated | {"coverage": {"nominal": nominal, **measured, "sentence": told}}
    if measured:
        validate_fields({"accuracy": part})
    return part


def _hierarchies(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "attribute": name,
            "levels": [{"name": level, "nodes": size} for level, size in zip(tree.levels, tree.sizes, strict=True)],
            "sha256": tree.digest,
        }
        for name, tree in zip(plan.spine.attributes, plan.spine.trees, strict=True)
    ]


def _unit(plan: Plan, info: RunInfo) -> dict[str, Any]:
    unit, statements = plan.unit, statements_of(plan)
    return {
        "entity": unit.entity,
        "contributions": unit.contributions,
        "enforced": unit.enforced,
        "per_node": dict(unit.caps),
        "neighbours": unit.neighbours,
        "neighbouring_tables": statements.neighbours(plan, info),
        **statements.unit(plan),
    }


def _loss(plan: Plan) -> dict[str, Any]:
    loss = plan.loss
    pure = loss.definition == "pure"
    delta = None if pure else loss.delta or COMPARED_AT
    conversion = sentence("conversion.exact" if plan.accounting == "exact" else "conversion.zcdp")
    stated = loss.epsilon if loss.epsilon is not None and plan.spent == plan.budget else None
    if pure:
        stated = plan.spent
    return {
        "definition": loss.definition,
        "rho": None if pure else amount(plan.spent),
        "epsilon": {"exact": None if stated is None else str(stated), "value": epsilon_of(plan.spent, plan)},
        "delta": None if delta is None else amount(delta),
        "delta_is_stated": loss.delta is not None,
        "conversion": None if pure else conversion,
        **({"accounting": "exact"} if plan.accounting == "exact" else {}),
    }


def _levels(plan: Plan) -> list[dict[str, Any]]:
    rows = plan.accuracy().levels
    return [_level(plan, level, row) for level, row in zip(plan.levels, rows, strict=True)]


def _margins(plan: Plan) -> list[dict[str, Any]]:
    """Return what there is to know of every table beside the spine."""
    rows = [_level(plan, part, row) for part, row in zip(plan.margin_parts, plan.accuracy().margins, strict=True)]
    return [{name: value for name, value in row.items() if name not in ("level", "bound")} for row in rows]


def _choice(plan: Plan) -> dict[str, Any]:
    """Return, per candidate for theta, its noisy measurement, its cost and its score."""
    if not DegreeHistogram.runs(plan) or (choice := (mechanism := DegreeHistogram.of(plan)).choice) is None:
        return {}
    measured = choice.measured or [None] * len(choice.candidates)
    candidates = zip(choice.candidates, mechanism.choice_parts(plan), measured, mechanism.widths(plan), strict=True)
    rows = [
        {
            "name": part.name,
            "theta": theta,
            "chosen": choice.measured is not None and theta == plan.largest,
            "reaching": people,
            "noise_of_a_count": width,
            **_measuring(plan, part),
        }
        for theta, part, people, width in candidates
    ]
    return {"choice": rows}


def _level(plan: Plan, level: Part, accuracy: LevelAccuracy) -> dict[str, Any]:
    measured = level.is_measured
    return {
        "level": level.index,
        "name": level.name,
        **({"counts": accuracy.title} if plan.margin_tables else {}),
        "nodes": level.nodes,
        "measured": measured,
        **({"exact": True} if level.is_exact and level.index > 0 else {}),
        **_measuring(plan, level),
        "margin": accuracy.margin if measured else None,
        "bound": accuracy.bound,
    }


def _measuring(plan: Plan, part: Part) -> dict[str, Any]:
    """Return how far a unit moves a part, its share and cost, and its noise."""
    change, noise = None, None
    if part.is_measured:
        change, described = plan.unit.sensitivity(part.name)._asdict(), part.law.describe()
        (name,) = (key for key in described if key != "law")
        parameter = amount(Fraction(described[name]))
        noise = {"law": described["law"], name: parameter, "sigma": part.law.standard_deviation}
    return {"sensitivity": change, "share": amount(part.share), "cost": amount(part.cost), "noise": noise}
