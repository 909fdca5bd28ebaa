"""From accuracy to loss: targets for levels, and the smallest loss, with its split, that meets them all.

`epsilon_for` keeps the split as it is and moves the epsilon alone.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal, TypeAlias

from treetop._util.numbers import Number, delta_between_0_and_1, plain, positive
from treetop.advice._error_laws import mean_absolute_of_count
from treetop.advice._report import Report
from treetop.advice.public import Planned, open_plan, refuse_other_kinds
from treetop.domain.marginal import MARGIN, table_named
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import IncompletePlan, LossError, PlanError
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Law
from treetop.noise.law import at_most
from treetop.noise.sum_noise import sum_margin
from treetop.plan import fields
from treetop.plan.file import PlanFile
from treetop.plan.mechanism import JointMechanism
from treetop.plan.plan import Plan
from treetop.privacy import Definition, Loss, Unit, epsilon_from_rho
from treetop.privacy.accountant import cost, is_exact_by_default
from treetop.privacy.composition import UNLIKE, epsilon_together


@dataclass(frozen=True)
class Within:
    """Target: P(|noise| ≤ margin) ≥ confidence for the measured counts of a level."""

    level: str
    margin: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if type(self.margin) is not int or self.margin < 0:
            raise LossError(f"the margin of {self.level} is {self.margin!r}: give a whole number, 0 or more")
        if not 0 < self.confidence < 1:
            raise LossError(f"the confidence of {self.level} is {self.confidence}: give a number between 0 and 1")

    def met_by(self, law: Law, terms: int = 1) -> bool:
        """Whether a count made of `terms` measurements with this noise meets the target; exact for one."""
        risk = 1 - Fraction(str(self.confidence))
        if terms > 1:
            return sum_margin(law, terms, risk / 2) <= self.margin
        return at_most(lambda bits: law.enclose_tail(self.margin, bits), risk / 2)

    def guess(self) -> float:
        """Return a standard deviation to start from."""
        return (self.margin + 0.5) / NormalDist().inv_cdf((1 + self.confidence) / 2)

    def __str__(self) -> str:
        return f"{100 * self.confidence:g}% of {self.level} within ±{self.margin:,}"


@dataclass(frozen=True)
class Mean:
    """Target: E|noise| ≤ value for the measured counts of a level."""

    level: str
    value: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.value > 0):
            raise LossError(f"the mean error of {self.level} is {self.value}: give a positive number")

    def met_by(self, law: Law, terms: int = 1) -> bool:
        """Whether a count made of `terms` measurements with this noise meets the target."""
        return mean_absolute_of_count(law, terms) <= self.value

    def guess(self) -> float:
        """Return a standard deviation to start from."""
        return self.value * math.sqrt(math.pi / 2)

    def __str__(self) -> str:
        return f"{self.level} off by at most {self.value:g} on average"


Target: TypeAlias = Within | Mean
within, mean = Within, Mean

_TARGET = re.compile(
    r"\s*(?P<level>[^=]+?)(?:(?:\s+within\s+|\s*=\s*)±?(?P<margin>\d+)(?:\s+at\s+(?P<percent>[\d.]+)\s*%)?"
    r"|\s+mean\s+(?P<value>[\d.]+))\s*",
    re.ASCII,
)


def read_target(text: str) -> Target:
    """Read a target as people write it.

    >>> read_target("place.town within 20"), read_target("place.town within 50 at 99%")
    (Within(level='place.town', margin=20, confidence=0.95), Within(level='place.town', margin=50, confidence=0.99))
    >>> read_target("place.town=20 at 90%")
    Within(level='place.town', margin=20, confidence=0.9)
    >>> read_target("place.county mean 3.5")
    Mean(level='place.county', value=3.5)
    """
    found = _TARGET.fullmatch(text)
    try:
        if found is None:
            raise ValueError(text)
        if found["value"] is not None:
            return Mean(found["level"], float(found["value"]))
        percent = Fraction(found["percent"] or "95")
        return Within(found["level"], int(found["margin"]), float(percent / 100))
    except ValueError:
        raise LossError(
            f"the target {text!r} cannot be read; write 'LEVEL=20' (95% of its counts within ±20), "
            "'LEVEL within 20 at 99%' or 'LEVEL mean 5'"
        ) from None


def _table_named(plan: Plan, name: str) -> list[str]:
    """Return the measured table of a joint fit that a target names."""
    depths = table_named(plan.spine, name.removeprefix(MARGIN))
    for margin in plan.margin_tables:
        if margin.depths == depths:
            return [margin.part]
    raise PlanError(f"{name} is not measured by this plan: add it to its margins, or set a target for one of those")


def levels_named(spine: Spine, name: str) -> list[str]:
    """Return the levels of a full name such as `place.town`, or all of a short one such as `town`.

    A target for a short name applies to all of them, at no extra cost: levels above a target are as accurate anyway.
    """
    if name == TOTAL:
        return [TOTAL]
    if name not in spine.splits and name not in [level.name for level in spine.levels]:
        levels = [tree.levels for tree in spine.trees]
        short = [
            level.name
            for level in spine.levels
            if any(levels[part.attribute][part.depth] == name for part in level.parts)
        ]
        if short:
            return short
    return [spine.level(name).name]


# The smallest loss for targets.

PROMISE = (
    "Targets are met by each level's own measurements. A released count also takes a part of its parent's error, and "
    "is not below zero: a trial on a public twin shows its error."
)
REST = Fraction(1, 100)
"""Share of the loss of each level that is finer than every target, and of each margin."""
_PRECISION = 1e-8


def loss_for(
    plan: Planned,
    targets: Sequence[str | Target],
    *,
    delta: Number | None = None,
    pure: bool = False,
    rest: Number = REST,
    digits: int = 4,
) -> Report:
    """Find the smallest loss, and its split, at which every target is met; no data is read.

    A level with targets gets the largest noise that meets them. A coarser level without one gets the same noise as the
    next finer level with a target, since its error would be passed on to it. Tables that public facts decide cost
    nothing.

    Args:
        plan: The plan, or its file, which may leave the loss open.
        targets: Such as "state=20", "place.town within 50 at 99%", "place.county mean 3.5", `within(…)` or `mean(…)`.
        delta: Delta of the epsilon to find; without it the definition and delta of the plan's loss are kept.
        pure: Find a pure epsilon, without delta.
        rest: Share of the loss for each level that is finer than every target, and for each margin.
        digits: The loss is rounded up to so many digits.
    """
    own, file = open_plan(plan, open_loss=True)
    refuse_other_kinds(own)
    kind, delta = definition_of(own, file, delta, pure)
    read = [read_target(target) if isinstance(target, str) else target for target in targets]
    together = JointMechanism.runs(own)
    asked = [
        replace(target, level=name)
        for target in read
        for name in (_table_named(own, target.level) if together else levels_named(own.spine, target.level))
    ]
    trial = replace(own, loss=Loss(epsilon=1) if kind == "pure" else Loss(rho=1), split="uniform")
    measured = [part.name for part in trial.workload if part.is_measured]
    wanted = {one.level: [o for o in asked if o.level == one.level] for one in asked}
    wanted = wanted if together else _by_level(trial, asked)
    family = DiscreteLaplace if kind == "pure" else DiscreteGaussian
    split: dict[str, Fraction] = {}
    why: dict[str, str] = {}
    finer, law = "", None
    for name in reversed(measured):
        if name in wanted:
            # Noise grows with the parameter: the least of the largest parameters meets all targets.
            finer, law = name, family(min(_largest(target, family, own.terms) for target in wanted[name]))
            why[name] = "; ".join(str(target) for target in wanted[name])
        elif law is not None:
            why[name] = f"as {finer}"
        if law is not None and (name in wanted or not together):
            split[name] = share_of_loss(cost(own.unit, name, law))
    given = positive(rest, "the share of a level that is finer than every target")
    if together:
        least = min(split, key=lambda name: split[name])
        why = {name: why[name] if name in wanted else f"as {least}" for name in measured}
        split = {name: split.get(name, split[least]) for name in measured}
    else:
        split, why = add_rest(trial, split, why, given, "finer than every target")
    found = smallest_loss(own, kind, delta, split, digits, wanted)
    return loss_report(found, [str(target) for target in asked], why)


def add_rest(
    plan: Plan, needs: Mapping[str, Fraction], why: Mapping[str, str], rest: Fraction, other: str
) -> tuple[dict[str, Fraction], dict[str, str]]:
    """Give the share `rest` of the whole to every measured table without a need; `other` is why a level has none."""
    measured = [part.name for part in plan.workload if part.is_measured]
    without = [name for name in measured if name not in needs]
    if (left := 1 - rest * len(without)) <= 0:
        raise LossError(f"{len(without)} tables are margins, or {other}: their share, {rest}, leaves nothing")
    least = share_of_loss(sum(needs.values(), Fraction(0)) / left * rest)
    margins = {part.name for part in plan.margin_parts}
    reason = {name: "a margin" if name in margins else other for name in without}
    return (
        {name: needs.get(name, least) for name in measured},
        {**why, **{name: f"{100 * float(rest):.3g}% of the loss: {about}" for name, about in reason.items()}},
    )


def _by_level(plan: Plan, targets: Sequence[Target]) -> dict[str, list[Target]]:
    """Assign every target to the level whose measurements decide it."""
    if not targets:
        raise PlanError("there is no target: give at least one, such as within('place.town', margin=20)")
    wanted: dict[str, list[Target]] = {}
    for target in targets:
        index = 0 if target.level == TOTAL else plan.spine.level(target.level).index
        # If a level is not measured, its counts are those of the level above, or exact.
        at = next((level for level in reversed(plan.levels[: index + 1]) if level.is_measured), None)
        if at is not None:
            wanted.setdefault(at.name, []).append(target)
    if not wanted:
        raise PlanError("the targets are about counts that are released exactly: they are met at any loss")
    return wanted


def _largest(target: Target, family: Callable[[Fraction], Law], terms: int) -> Fraction:
    """Return the largest parameter of a law that meets a target, rounded down to about eight digits."""

    def met(parameter: float) -> bool:
        return target.met_by(family(Fraction(parameter)), terms)

    guess = target.guess()
    low = high = guess**2 if family is DiscreteGaussian else guess / math.sqrt(2)
    while not met(low):
        low, high = low / 1.2, low
        if low < 1e-4:
            raise LossError(f"{target}: no noise is small enough for it")
    while met(high):
        low, high = high, high * 1.2
    while high / low > 1 + _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if met(middle) else (low, middle)
    return _short(Fraction(low), 9, ROUND_FLOOR)


def definition_of(
    plan: Plan, file: PlanFile | None, delta: Number | None, pure: bool
) -> tuple[Definition, Fraction | None]:
    """Return the definition of the loss to find, and its delta: as asked, or as the plan has them."""
    if pure:
        if delta is not None:
            raise LossError("a pure loss has no delta: give `pure` or `delta`")
        return "pure", None
    if delta is not None:
        return "approximate", delta_between_0_and_1(delta)
    if file is not None and file.loss_is_open and plan.loss.delta is None:
        question = fields.find("loss", "delta").question
        raise IncompletePlan(
            f"{file.path} states no delta, at which an epsilon could be found. {question}\n"
            "Give one here with `delta=1e-8` or in the plan, or `pure` for an epsilon without."
        )
    return plan.loss.definition, plan.loss.delta


def loss_report(plan: Plan, targets: Sequence[str], why: Mapping[str, str]) -> Report:
    """Report a loss that was found, with what each measured table gets of it and why."""
    loss, split = plan.loss, plan.split
    assert isinstance(split, Mapping)
    parts = {part.name: part for part in plan.workload}
    rows = [
        {
            "name": name,
            "share": float(parts[name].share),
            "why": why[name],
            "noise": parts[name].law.standard_deviation,
            "mean": mean_absolute_of_count(parts[name].law, plan.terms),
            "margin": parts[name].margin(Fraction(5, 100), plan.terms),
        }
        for name in split
    ]
    amounts = {"epsilon": loss.epsilon, "delta": loss.delta, "rho": loss.rho}
    return Report(
        plan,
        "answer",
        f"The smallest loss that meets them: {say_loss(plan)}",
        tuple(rows),
        (
            ("level", "{name}"),
            ("share", "{share:.1%}"),
            ("noise (sd)", "{noise:,.4g}"),
            ("mean error", "{mean:,.4g}"),
            ("± one, 95%", "{margin:,}"),
            ("why", "{why}"),
        ),
        values={
            "loss": {name: float(amount) for name, amount in amounts.items() if amount is not None},
            "split": {name: float(weight) for name, weight in split.items()},
            "targets": list(targets),
            "promise": PROMISE,
        },
        intro=(*(f"- {target}" for target in targets), "", plan.kept_loss.sentence()),
        notes=(PROMISE,),
    )


def say_loss(plan: Plan) -> str:
    """Return the loss in a few words."""
    loss = plan.loss
    if loss.epsilon is None:
        return f"rho {plain(loss.budget)}"
    return f"epsilon {plain(loss.epsilon)}" + (", pure" if loss.delta is None else f" at delta {plain(loss.delta)}")


def _loss_options(plan: Plan, delta: Fraction | None) -> dict[str, Any]:
    """Return what a loss states beside its amount."""
    large = plan.loss.large_delta and delta is not None
    return {"delta": delta, "large_delta": large, "accounting": plan.loss.accounting}


def smallest_loss(
    plan: Plan,
    kind: Definition,
    delta: Fraction | None,
    split: Mapping[str, Fraction],
    digits: int = 4,
    wanted: Mapping[str, Sequence[Target]] | None = None,
) -> Plan:
    """Return the plan at the least rounded loss that gives every level what it needs; check every target in it."""
    total, options = sum(split.values(), Fraction(0)), _loss_options(plan, delta)
    least = total if kind != "approximate" else _least_epsilon(total, plan.unit, options)
    if least <= 0:
        raise LossError("the targets allow noise so wide that nothing would be released: ask for more accuracy")
    amount = _short(least, digits, ROUND_CEILING)
    while True:
        epsilon, rho = (None, amount) if kind == "zcdp" else (amount, None)
        loss = Loss(epsilon=epsilon, rho=rho, **options)
        found = replace(plan, loss=loss, split=split)
        if found.budget >= total:
            break
        amount = _short(amount * (1 + Fraction(1, 10**digits)), digits, ROUND_CEILING)
    for level in found.workload:
        for target in (wanted or {}).get(level.name, ()):
            if not level.is_measured or not target.met_by(level.law, plan.terms):  # a bug, not rounding
                raise LossError(f"{target} is not met at {loss}")
    return found


def share_of_loss(value: Fraction) -> Fraction:
    """Round what a table needs of the loss up, to six digits."""
    return _short(value, 6, ROUND_CEILING)


def _least_epsilon(rho: Fraction, unit: Unit, options: Mapping[str, Any]) -> Fraction:
    """Return a lower bound of the least epsilon with this rho; with exact accounting a little below it."""
    delta = delta_between_0_and_1(options["delta"])
    open_loss = Loss(epsilon=1, delta=delta)
    if options["accounting"] == "zcdp" or not (options["accounting"] or is_exact_by_default(unit, open_loss)):
        return Fraction(epsilon_from_rho(rho, delta))
    return Fraction(epsilon_together(rho * (1 - UNLIKE), Fraction(0), delta))


def _short(value: Fraction, digits: int, rounding: Literal["ROUND_CEILING", "ROUND_FLOOR"]) -> Fraction:
    """Round to a few significant digits, in one direction."""
    context = Context(prec=digits, rounding=rounding)
    return Fraction(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


# The epsilon for one table, with the split as it is.

LEAST, MOST = Fraction(1, 1000), Fraction(100)
"""Range of epsilon that is searched."""


def at_epsilon(plan: Plan, epsilon: Number) -> Plan:
    """Return the plan with another epsilon; its delta, and how it is kept, stay."""
    loss = plan.loss
    if loss.epsilon is None:
        raise LossError("the plan states its loss as rho: state epsilon and delta to choose an epsilon")
    return replace(plan, loss=Loss(epsilon=epsilon, noise=loss.noise, **_loss_options(plan, loss.delta)))


def with_epsilon(plan: Plan, epsilon: Number, delta: Fraction | None) -> Plan:
    """Return the plan with another epsilon and delta; a pure one without delta."""
    return replace(plan, loss=Loss(epsilon=epsilon, **_loss_options(plan, delta)))


def margin_of(plan: Plan, table: str, confidence: float = 0.95) -> int:
    """Return how far one count of a level or margin may be off."""
    for row in plan.accuracy(confidence).rows:
        if row.name == table:
            return row.margin
    raise LossError(f"the plan has no table {table!r}: name a level or a margin of it")


def epsilon_for(plan: Plan, table: str, error: int, confidence: float = 0.95) -> Fraction:
    """Return the smallest epsilon, to three digits, at which the counts of a table are off by at most an error."""
    if error < 1:
        raise LossError(f"the error is {error}: accept 1 or more, since an exact count protects nobody")
    if margin_of(plan, table, confidence) == 0:
        raise LossError(f"{table} is released without noise, or follows from other tables: choose another one")
    decades = round(math.log10(MOST / LEAST))
    epsilons = [LEAST * 10**decade * Fraction(digits, 100) for decade in range(decades) for digits in range(100, 1000)]
    epsilons.append(MOST)
    found = bisect_left(
        epsilons, True, key=lambda epsilon: margin_of(at_epsilon(plan, epsilon), table, confidence) <= error
    )
    if found == len(epsilons):
        raise LossError(f"no epsilon below {MOST} makes {table} that accurate: accept a larger error")
    return positive(epsilons[found], "epsilon")
