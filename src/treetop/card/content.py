"""The card's content: everything that a plan and the facts of its run say about a release."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from treetop._util.numbers import plain
from treetop.card import degree_words, group_words, words
from treetop.card import meaning as known
from treetop.card.meaning import CONVERSION, EXACT, epsilon_of, exact, meaning, plural
from treetop.card.schema import DERIVATION, FORMAT, Facts, validate_fields
from treetop.card.words import counted
from treetop.domain.unit import only_if
from treetop.ledger import Balance, Entry, Ledger, Reservation
from treetop.noise.gate import WARNING
from treetop.plan.graphs.degrees import DegreeCounts, DegreePlan
from treetop.plan.groups.planned import GroupTablePlan
from treetop.plan.plan import Plan
from treetop.plan.resolution import Resolution
from treetop.plan.workload import CONFIDENCE, LevelAccuracy, Part
from treetop.privacy.composition import Cells, gaussian_rho
from treetop.privacy.loss import COMPARED_AT

# What was spent on the same data before, and what this release adds, as the ledger has it.

UNKNOWN_HASH = "0" * 64
"""Stands for the hash of a reservation that is not made yet."""


def expected_composition(ledger: Ledger, dataset: str, plan: Plan) -> dict[str, Any]:
    """Return what a release would state if it were reserved now; nothing is reserved."""
    earlier = ledger.entries(dataset)
    charged = ledger.budget.charge(plan.spent, plan.loss.currency)
    return _composition(ledger, dataset, charged, plan.cells, earlier, 1, UNKNOWN_HASH)


def reserved_composition(ledger: Ledger, reservation: Reservation) -> dict[str, Any]:
    """Return what a release states once its loss is reserved."""
    known = ledger.entries(reservation.dataset)
    earlier = tuple(entry for entry in known if entry.number < reservation.number)
    (own,) = (entry for entry in known if entry.number == reservation.number)
    return _composition(ledger, own.dataset, own.charged, own.cells, earlier, reservation.number, reservation.sha256)


def sentence(composition: Mapping[str, Any] | None, plan: Plan) -> str:
    """Say what adds up, and on what conditions the sum holds."""
    entity, when = plan.unit.entity, only_if(plan.conditions)
    said = _sum(composition, entity)
    if not when:
        return said
    if composition is None:
        return f"{said} The sum then holds {when}, and on the conditions of those releases."
    return f"{said} This sum, like every loss in it, holds {when}."


def _sum(composition: Mapping[str, Any] | None, entity: str) -> str:
    if composition is None:
        return (
            "No ledger recorded this release: its loss has to be added by hand to that of every other release about "
            f"the same {plural(entity)}."
        )
    earlier = len(composition["earlier"])
    before = "no earlier release" if earlier == 0 else f"{earlier} earlier release{'s' * (earlier > 1)}"
    return (
        f"The ledger knows {before} of the data set “{composition['dataset']}”, in which one {entity} is protected, "
        "always within the limits that this card states: losses for one and the same unit add up, and for different "
        f"units they do not. With this one, {_spent(composition)} is spent."
    )


def _spent(composition: Mapping[str, Any]) -> str:
    """Say how much of the budget is spent: with known noise as epsilon, since that adds up better than its rho."""
    spent, budget = (plain(Fraction(composition[name]["exact"])) for name in ("spent_after", "budget"))
    if "together" not in composition:
        return f"{composition['currency']} {spent} of a budget of {budget}"
    together = composition["together"]
    delta = plain(Fraction(together["delta"]["exact"]))
    return (
        f"epsilon {plain(Fraction(together['epsilon']))} of a budget of {plain(Fraction(together['budget']['exact']))} "
        f"at delta {delta} (by the noise of all counts that one unit can move; as rho, {spent})"
    )


def amount(value: Fraction) -> dict[str, Any]:
    """Write a number exactly, with the float nearest to it."""
    return {"exact": str(value), "value": float(value)}


def _composition(
    ledger: Ledger,
    dataset: str,
    charged: Fraction,
    cells: Cells | None,
    earlier: tuple[Entry, ...],
    number: int,
    sha256: str,
) -> dict[str, Any]:
    balance = Balance(dataset, ledger.budget, earlier)
    before = balance.spent
    return {
        "ledger": True,
        "dataset": dataset,
        "currency": "epsilon" if ledger.budget.currency == "pure" else "rho",
        "budget": amount(ledger.budget.amount),
        "spent_before": amount(before),
        "charged": amount(charged),
        "spent_after": amount(before + charged),
        "reservation": {"number": number, "sha256": sha256},
        "earlier": [_earlier(entry) for entry in earlier],
        **_together(balance, charged, cells),
    }


def _together(balance: Balance, charged: Fraction, cells: Cells | None) -> dict[str, Any]:
    """State what all releases come to by their noise, where the budget is epsilon and delta and some noise is known."""
    loss = balance.limit.loss
    spent = balance.with_one_more(charged, cells)
    if loss.epsilon is None or loss.delta is None or not spent.noise_is_known:
        return {}
    return {
        "together": {
            "budget": amount(loss.epsilon),
            "delta": amount(loss.delta),
            "epsilon": balance.limit.epsilon_of(spent),
            "gaussian": amount(spent.gaussian),
            "other": amount(spent.other),
        }
    }


def _earlier(entry: Entry) -> dict[str, Any]:
    known = None if entry.cells is None else gaussian_rho(entry.cells)
    return {
        "number": entry.number,
        "title": entry.title,
        "charged": amount(entry.charged),
        **({} if known is None else {"gaussian": amount(known)}),
        "state": entry.state,
        "plan_sha256": entry.plan_sha256,
        "card_sha256": entry.card_sha256,
    }


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


def words_of(plan: Plan) -> Words:
    """Return what this kind of plan says."""
    kinds: dict[type[Plan], Words] = {GroupTablePlan: group_words, DegreeCounts: degree_words}
    return next((said for kind, said in kinds.items() if isinstance(plan, kind)), words)


def draft_card(plan: Plan, facts: Facts) -> dict[str, Any]:
    """Return the card without what only the finished release knows: its size and its files."""
    said = words_of(plan)
    return of_plan(plan) | {
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


def composed(composition: Mapping[str, Any] | None, plan: Plan) -> dict[str, Any]:
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
def of_plan(plan: Plan) -> dict[str, Any]:
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
        **({"choice": _choice(plan)} if isinstance(plan, DegreePlan) and plan.choice is not None else {}),
        "accuracy": _accuracy(plan),
        "post_processing": words_of(plan).post_processing(plan),
        "plan": plan.describe(),
        "plan_sha256": plan.digest,
    }
    validate_fields(part)
    return part


def _accuracy(plan: Plan, facts: Facts | None = None) -> dict[str, Any]:
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


def _hierarchies(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "attribute": name,
            "levels": [{"name": level, "nodes": size} for level, size in zip(tree.levels, tree.sizes, strict=True)],
            "sha256": tree.digest,
        }
        for name, tree in zip(plan.spine.attributes, plan.spine.trees, strict=True)
    ]


def _unit(plan: Plan, facts: Facts) -> dict[str, Any]:
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


def _loss(plan: Plan) -> dict[str, Any]:
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


def _levels(plan: Plan) -> list[dict[str, Any]]:
    rows = plan.accuracy().levels
    return [_level(plan, level, row) for level, row in zip(plan.levels, rows, strict=True)]


def _margins(plan: Plan) -> list[dict[str, Any]]:
    """Return what there is to know of every table beside the spine."""
    rows = [_level(plan, part, row) for part, row in zip(plan.margin_parts, plan.accuracy().margins, strict=True)]
    return [{name: value for name, value in row.items() if name not in ("level", "bound")} for row in rows]


def _choice(plan: DegreePlan) -> list[dict[str, Any]]:
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


def _level(plan: Plan, level: Part, accuracy: LevelAccuracy) -> dict[str, Any]:
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
