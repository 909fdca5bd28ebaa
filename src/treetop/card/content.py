"""The card's content: everything that a plan and the facts of its run say about a release."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from treetop.card import known, words
from treetop.card.composition import amount, sentence
from treetop.card.counted import counted
from treetop.card.degrees import words as degree_words
from treetop.card.facts import DERIVATION, FORMAT, Facts
from treetop.card.first_edition import as_first_edition
from treetop.card.groups import words as group_words
from treetop.card.meaning import CONVERSION, EXACT, epsilon_of, exact, meaning
from treetop.card.schema import validate_fields
from treetop.noise.gate import WARNING
from treetop.plan.accuracy import CONFIDENCE, LevelAccuracy
from treetop.plan.graphs.degrees import DegreeCounts, PureDegreePlan
from treetop.plan.groups.planned import PureGroupTablePlan
from treetop.plan.plan import PurePlan
from treetop.plan.resolution import Resolution
from treetop.plan.workload import Part
from treetop.privacy.loss import COMPARED_AT

UNTITLED = "Untitled release"


class Words(Protocol):
    """What a kind of plan says on its cards."""

    def mechanism(self, plan: Any) -> str:
        """Say what is measured, and how it becomes a release."""

    def noise(self, plan: Any) -> str:
        """Say which noise, and how its levels add up."""

    def accuracy(self, plan: Any) -> dict[str, str]:
        """Say what margins and bounds are, and what intervals are where there are any."""

    def neighbours(self, plan: Any, facts: Facts) -> str:
        """Say which tables must be hard to tell apart."""

    def bound(self, plan: Any) -> str:
        """Say how contributions were bounded."""

    def notes(self, plan: Any) -> list[str]:
        """Say what else there is to know before a release."""

    def unit(self, plan: Any) -> dict[str, Any]:
        """Return what else there is to state about the unit."""

    def unknown(self, plan: Any) -> str:
        """Say what happened to codes that are not in a hierarchy."""

    def post_processing(self, plan: Any) -> list[str]:
        """Say what was done to measurements."""

    def caveats(self, plan: Any, facts: Facts) -> list[str]:
        """Say what the release does not promise."""


def words_of(plan: PurePlan) -> Words:
    """Return what this kind of plan says."""
    kinds: dict[type[PurePlan], Words] = {PureGroupTablePlan: group_words, DegreeCounts: degree_words}
    return next((said for kind, said in kinds.items() if isinstance(plan, kind)), words)


def draft_card(plan: PurePlan, facts: Facts) -> dict[str, Any]:
    """Return the card without what only the finished release knows: its size and its files."""
    said = words_of(plan)
    card = of_plan(plan) | {
        "description": facts.description,
        "id": facts.id,
        "time": facts.time,
        "private": facts.private,
        "warning": None if facts.private else WARNING,
        "guarantee": plan.kept_loss.sentence() if facts.private else "None.",
        "data": {
            "period": facts.period,
            "columns": None if facts.columns is None else dict(facts.columns),
            "count_column": facts.count,
            "unknown_codes": said.unknown(plan),
            **_kept(facts),
            **({"prepared": list(facts.prepared)} if facts.prepared else {}),
        },
        "unit": _unit(plan, facts),
        "mechanism": {
            "name": said.mechanism(plan),
            "noise": said.noise(plan),
            "sampler": words.SAMPLER,
            "randomness": words.FRESH if facts.private else words.FIXED,
            "derivation": {"version": DERIVATION, "sentence": words.DERIVATION},
        },
        "accuracy": _accuracy(plan, facts),
        "composition": composed(facts.composition, plan),
        "caveats": said.caveats(plan, facts),
        "software": dict(facts.software),
    }
    if isinstance(plan.resolve, Resolution) and plan.resolve.edition == 1:
        card = as_first_edition(card, plan)
    return card


def composed(composition: Mapping[str, Any] | None, plan: PurePlan) -> dict[str, Any]:
    """Say what was spent before, and what this release adds; None where no ledger was used."""
    return {**(composition or {"ledger": False}), "sentence": sentence(composition, plan)}


def _kept(facts: Facts) -> dict[str, Any]:
    """Say which rows are the data; a table that is taken whole needs no word."""
    told: dict[str, Any] = {}
    if facts.keep is not None:
        told["keep"] = {name: list(values) for name, values in facts.keep.items()}
        told["kept"] = words.kept(facts.keep)
    if facts.drop is not None:
        told["drop"] = {name: list(values) for name, values in facts.drop.items()}
        told["dropped"] = words.dropped(facts.drop)
    return told


@lru_cache(maxsize=8)
def of_plan(plan: PurePlan) -> dict[str, Any]:
    """Return what is the same for every release of a plan; worked out and checked once."""
    part = {
        "treetop": FORMAT,
        "title": plan.title or UNTITLED,
        "protects": plan.unit.sentence() + known.agreeing(plan),
        **({} if plan.graph is None else {"graph": plan.graph.card()}),
        "counted": counted(plan),
        "hierarchies": _hierarchies(plan),
        "loss": _loss(plan),
        "meaning": meaning(plan),
        "exact": exact(plan),
        "levels": _levels(plan),
        **({"margins": _margins(plan)} if plan.margin_tables else {}),
        **({"facts": known.facts(plan)} if plan.public_facts else {}),
        **({"choice": _choice(plan)} if isinstance(plan, PureDegreePlan) and plan.choice is not None else {}),
        "accuracy": _accuracy(plan),
        "post_processing": words_of(plan).post_processing(plan),
        "plan": plan.describe(),
        "plan_sha256": plan.digest,
    }
    validate_fields(part)
    return part


def _accuracy(plan: PurePlan, facts: Facts | None = None) -> dict[str, Any]:
    """Say what margins, bounds and intervals are, and how often those of a public twin held."""
    said: dict[str, Any] = {"confidence": float(plan.confidence or CONFIDENCE), **words_of(plan).accuracy(plan)}
    if "interval" not in said:
        return said
    tried = None if facts is None else facts.coverage
    measured = {} if tried is None else {"twin": [dict(level) for level in tried["twin"]], "runs": tried["runs"]}
    nominal = said["confidence"]
    sentence = words.coverage(nominal, tried, named=isinstance(plan.resolve, Resolution))
    part = said | {"coverage": {"nominal": nominal, **measured, "sentence": sentence}}
    if measured:
        validate_fields({"accuracy": part})
    return part


def _hierarchies(plan: PurePlan) -> list[dict[str, Any]]:
    return [
        {
            "attribute": name,
            "levels": [{"name": level, "nodes": size} for level, size in zip(tree.levels, tree.sizes, strict=True)],
            "sha256": tree.digest,
        }
        for name, tree in zip(plan.spine.attributes, plan.spine.trees, strict=True)
    ]


def _unit(plan: PurePlan, facts: Facts) -> dict[str, Any]:
    unit, said = plan.unit, words_of(plan)
    return {
        "entity": unit.entity,
        "contributions": unit.contributions,
        "enforced": unit.enforced,
        "bound": said.bound(plan),
        "per_node": dict(unit.caps),
        "neighbours": unit.neighbours,
        "neighbouring_tables": said.neighbours(plan, facts),
        **said.unit(plan),
    }


def _loss(plan: PurePlan) -> dict[str, Any]:
    loss = plan.loss
    pure = loss.definition == "pure"
    delta = None if pure else loss.delta or COMPARED_AT
    stated = loss.epsilon if loss.epsilon is not None and plan.spent == plan.budget else None
    if pure:
        stated = plan.spent
    return {
        "definition": loss.definition,
        "rho": None if pure else amount(plan.spent),
        "epsilon": {"exact": None if stated is None else str(stated), "value": epsilon_of(plan.spent, plan)},
        "delta": None if delta is None else amount(delta),
        "delta_is_stated": loss.delta is not None,
        "conversion": None if pure else EXACT if plan.accounting == "exact" else CONVERSION,
        **({"accounting": "exact"} if plan.accounting == "exact" else {}),
    }


def _levels(plan: PurePlan) -> list[dict[str, Any]]:
    rows = plan.accuracy().levels
    return [_level(plan, level, row) for level, row in zip(plan.levels, rows, strict=True)]


def _margins(plan: PurePlan) -> list[dict[str, Any]]:
    """Return what there is to know of every table beside the spine."""
    rows = [_level(plan, part, row) for part, row in zip(plan.margin_parts, plan.accuracy().margins, strict=True)]
    return [{name: value for name, value in row.items() if name not in ("level", "bound")} for row in rows]


def _choice(plan: PureDegreePlan) -> list[dict[str, Any]]:
    """Return what theta was chosen by: of every candidate what was measured, what that cost, and what spoke for it."""
    assert plan.choice is not None
    measured = plan.choice.measured or [None] * len(plan.choice.candidates)
    rows = zip(plan.choice.candidates, plan.choice_parts, measured, plan.widths, strict=True)
    return [
        {
            "name": part.name,
            "theta": theta,
            "chosen": plan.choice.measured is not None and theta == plan.degrees.largest,
            "reaching": people,
            "noise_of_a_count": width,
            "sensitivity": plan.unit.sensitivity(part.name)._asdict(),
            "share": amount(part.share),
            "cost": amount(part.cost),
            "noise": _noise(part),
        }
        for theta, part, people, width in rows
    ]


def _level(plan: PurePlan, level: Part, accuracy: LevelAccuracy) -> dict[str, Any]:
    measured = level.is_measured
    change = plan.unit.sensitivity(level.name)
    return {
        "level": level.index,
        "name": level.name,
        **({"counts": accuracy.title} if plan.margin_tables else {}),
        "nodes": level.nodes,
        "measured": measured,
        **({"exact": True} if level.is_exact and level.index > 0 else {}),
        "sensitivity": {"l1": change.l1, "l2_squared": change.l2_squared} if measured else None,
        "share": amount(level.share),
        "cost": amount(level.cost),
        "noise": _noise(level),
        "margin": accuracy.margin if measured else None,
        "bound": accuracy.bound,
    }


def _noise(level: Part) -> dict[str, Any] | None:
    if not level.is_measured:
        return None
    described = level.law.describe()
    (name,) = (key for key in described if key != "law")
    parameter = Fraction(described[name])
    return {"law": described["law"], name: amount(parameter), "sigma": level.law.standard_deviation}
