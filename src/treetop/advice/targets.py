"""What may be asked of a level: that most measurements are within a margin, or how far off they are on average."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal, TypeAlias

from treetop._util.lazy import FrozenMap
from treetop._util.numbers import Number, delta_between_0_and_1, positive
from treetop.advice.expected import mean_absolute_of_count
from treetop.advice.prior import Prior
from treetop.advice.split_for import least_loss, level_weights, terms_of
from treetop.domain.constraints import PublicFacts
from treetop.domain.marginal import Margins
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL, Unknown
from treetop.errors import LossError, PlanError
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Law
from treetop.noise.law import at_most
from treetop.noise.sum_noise import sum_margin
from treetop.plan.plan import Plan
from treetop.plan.workload import text_table
from treetop.privacy import Definition, Loss, Unit, epsilon_from_rho
from treetop.privacy.accountant import cost, is_exact_by_default
from treetop.privacy.composition import UNLIKE, epsilon_together
from treetop.privacy.loss import Accounting


@dataclass(frozen=True)
class Within:
    """A share of the counts of a level, such as 95 %, is within a margin of the truth, as the level measures them."""

    level: str
    """The level that it is about."""
    margin: int
    """How far off a count may be."""
    confidence: float = 0.95
    """How many of them may be no farther off: P(|noise| ≤ margin) ≥ confidence."""

    def __post_init__(self) -> None:
        if type(self.margin) is not int or self.margin < 0:
            raise LossError(f"the margin of {self.level} is {self.margin!r}: give a whole number, 0 or more")
        if not 0 < self.confidence < 1:
            raise LossError(f"the confidence of {self.level} is {self.confidence}: give a number between 0 and 1")

    def met_by(self, law: Law, terms: int = 1) -> bool:
        """Whether counts of so many measurements with this noise meet the target; of one, exactly."""
        risk = 1 - Fraction(str(self.confidence))
        if terms > 1:
            return sum_margin(law, terms, risk / 2) <= self.margin
        return at_most(lambda bits: law.enclose_tail(self.margin, bits), risk / 2)

    def guess(self) -> float:
        """A standard deviation that may be right."""
        return (self.margin + 0.5) / NormalDist().inv_cdf((1 + self.confidence) / 2)

    def __str__(self) -> str:
        return f"{100 * self.confidence:g}% of {self.level} within ±{self.margin:,}"


@dataclass(frozen=True)
class Mean:
    """The counts of a level, as it measures them, are off by no more than a value on average: E|noise| ≤ value."""

    level: str
    """The level that it is about."""
    value: float
    """The mean absolute error that is allowed."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.value > 0):
            raise LossError(f"the mean error of {self.level} is {self.value}: give a positive number")

    def met_by(self, law: Law, terms: int = 1) -> bool:
        """Whether counts of so many measurements with this noise meet the target."""
        return mean_absolute_of_count(law, terms) <= self.value

    def guess(self) -> float:
        """A standard deviation that may be right."""
        return self.value * math.sqrt(math.pi / 2)

    def __str__(self) -> str:
        return f"{self.level} off by at most {self.value:g} on average"


Target: TypeAlias = Within | Mean


within, mean = Within, Mean
"""What reads well in a list of targets."""

_WRITTEN = re.compile(
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
    found = _WRITTEN.fullmatch(text)
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


# From accuracy to loss: the smallest loss, and its split, at which every target is met; no data is read.

PROMISE = (
    "Targets are met by each level's own measurements. A released count also takes a part of its parent's error, and "
    "is not below zero: a trial on a public twin shows its error."
)
"""What a target promises, and what it does not."""

REST = Fraction(1, 100)
"""The share of the loss of each level that is finer than every target."""

_PRECISION = 1e-8


@dataclass(frozen=True)
class LevelNeed:
    """What one level is given, and why."""

    name: str
    """The name of the level."""
    share: float
    """Its share of the loss."""
    why: str
    """The targets that it must meet, or the rule that it follows."""
    noise: float
    """The standard deviation of one measurement."""
    mean: float
    """The mean absolute error of one count, by the measurements of its level alone."""
    margin: int
    """One count is within this of the truth with 95 % confidence, by the measurements of its level alone."""


@dataclass(frozen=True)
class Answer:
    """The smallest loss that meets the targets, with the split that does; print it for people."""

    loss: Loss
    """The loss, rounded up."""
    split: Mapping[str, Fraction]
    """A weight for every measured level, for `Plan(split=…)`: short decimals."""
    levels: tuple[LevelNeed, ...]
    """Every measured level."""
    plan: Plan = field(repr=False)
    """The plan with this loss and split, in which every target was checked."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for programs."""
        amounts = {"epsilon": self.loss.epsilon, "delta": self.loss.delta, "rho": self.loss.rho}
        return {
            "loss": {name: float(value) for name, value in amounts.items() if value is not None},
            "split": {name: float(weight) for name, weight in self.split.items()},
            "levels": [asdict(need) for need in self.levels],
            "promise": PROMISE,
        }

    def __str__(self) -> str:
        head = ("level", "share", "noise (sd)", "mean error", "± one, 95%", "why")
        rows = [
            (
                need.name,
                f"{need.share:.1%}",
                f"{need.noise:,.4g}",
                f"{need.mean:,.4g}",
                f"{need.margin:,}",
                need.why,
            )
            for need in self.levels
        ]
        return "\n".join([self.plan.kept_loss.sentence(), "", text_table([head, *rows], left=(0, 5)), "", PROMISE])


def loss_for(
    spine: Spine,
    unit: Unit,
    targets: Sequence[Target],
    *,
    delta: Number | None = None,
    definition: Definition | None = None,
    rest: Number = REST,
    unknown: Unknown = "error",
    digits: int = 4,
    large_delta: bool = False,
    accounting: Accounting | None = None,
    margins: Margins = "none",
    facts: PublicFacts | None = None,
    terms: int = 1,
) -> Answer:
    """Find the smallest loss, and its split, at which every target is met.

    With a delta the loss is an epsilon at that delta, without one a pure epsilon, unless `definition` asks for "zcdp".
    It is rounded up to `digits` digits. A level with targets has the largest noise that meets them. A coarser level
    without one has the same noise as the next finer level that has a target, since its error would be passed on to it.
    Each level that is finer than every target, and each margin, is given the share `rest` of the loss. `large_delta`
    says that a delta of one in the number of units, or more, is meant, and `accounting` how epsilon and delta are kept.
    What public `facts` decide costs nothing. `terms` is the number of measurements that one count is made of
    (`Plan.terms`).
    """
    kind = definition or ("pure" if delta is None else "approximate")
    if kind == "approximate" and delta is None:
        raise LossError("an epsilon that is not pure needs a delta: give one, such as 1e-8")
    if kind == "pure" and delta is not None:
        raise LossError("a pure loss has no delta: leave it out")
    trial = Loss(epsilon=1) if kind == "pure" else Loss(rho=1)
    plan = Plan(spine, unit, trial, unknown=unknown, margins=margins, facts=facts or {})
    measured = [part.name for part in plan.workload if part.is_measured]
    wanted = _by_level(plan, targets)
    laws, why = _needed_noise(measured, wanted, DiscreteLaplace if kind == "pure" else DiscreteGaussian, terms)
    split = {name: _short(cost(unit, name, law), 6, ROUND_CEILING) for name, law in laws.items()}
    finer = [name for name in measured if name not in split]
    given = positive(rest, "the share of a level that is finer than every target")
    if (left := 1 - given * len(finer)) <= 0:
        raise LossError(f"{len(finer)} levels are finer than every target: their share, {given}, leaves nothing")
    total = sum(split.values(), Fraction(0)) / left
    split |= {name: _short(total * given, 6, ROUND_CEILING) for name in finer}
    beside = {part.name for part in plan.margin_parts}
    why |= {
        name: f"{100 * float(given):.3g}% of the loss: {'a margin' if name in beside else 'finer than every target'}"
        for name in finer
    }
    ordered = {name: split[name] for name in measured}
    stated = {"delta": delta, "large_delta": large_delta and delta is not None, "accounting": accounting}
    plan = _smallest(plan, kind, stated, ordered, digits, wanted, terms)
    rows = tuple(_need(name, why[name], plan, terms) for name in measured)
    return Answer(plan.loss, FrozenMap(ordered), rows, plan)


def loss_for_error(
    plan: Plan,
    prior: Prior,
    error: float,
    weights: Mapping[str, Number] | None = None,
    *,
    delta: Number | None = None,
    definition: Definition | None = None,
    digits: int = 4,
) -> Answer:
    """Find the smallest loss, and its split, at which the total squared error expected of a prior is at most `error`.

    That is program (7) of Ko, Ziani and Fioretto, where `loss_for` has a target for each level by itself: it asks for
    the accuracy of all levels together, weighted by level, and divides the loss so that it is cheapest. Errors are
    those of max(0, measurement), as the prior's counts decide. A level where the prior expects nothing to be measured,
    or that weighs nothing, and each margin, is given the share of a level that is finer than every target.
    """
    kind = definition or ("pure" if delta is None else "approximate")
    trial = replace(plan, loss=Loss(epsilon=1) if kind == "pure" else Loss(rho=1), split="uniform")
    prior.fits(plan.spine)
    names = [part.name for part in trial.workload if part.is_measured]
    levels = [part.name for part in trial.levels if part.is_measured]
    terms = terms_of(plan.unit, trial.loss, prior, level_weights(plan.spine, weights), levels)
    known = [term for term in terms if term is not None]
    budgets = iter(least_loss(known, error).budgets)
    split = {
        name: _short(Fraction(next(budgets)), 6, ROUND_CEILING)
        for name, term in zip(levels, terms, strict=True)
        if term is not None
    }
    rest = [name for name in names if name not in split]
    if (left := 1 - REST * len(rest)) <= 0:
        raise LossError(f"{len(rest)} tables have no part in the squared error: their share, {REST}, leaves nothing")
    total = sum(split.values(), Fraction(0)) / left
    ordered = {name: split.get(name, _short(total * REST, 6, ROUND_CEILING)) for name in names}
    stated = {
        "delta": delta,
        "large_delta": plan.loss.large_delta and delta is not None,
        "accounting": plan.loss.accounting,
    }
    found = _smallest(trial, kind, stated, ordered, digits, {}, plan.terms)
    why = dict.fromkeys(names, "the cheapest division for the squared error of all levels")
    why |= {
        name: f"{100 * float(REST):.3g}% of the loss: {'no error is expected' if name in levels else 'a margin'}"
        for name in rest
    }
    rows = tuple(_need(name, why[name], found, plan.terms) for name in names)
    return Answer(found.loss, FrozenMap(ordered), rows, found)


def _by_level(plan: Plan, targets: Sequence[Target]) -> dict[str, list[Target]]:
    """Bring every target to the level whose measurements decide it."""
    if not targets:
        raise PlanError("there is no target: give at least one, such as within('place.town', margin=20)")
    wanted: dict[str, list[Target]] = {}
    for target in targets:
        index = 0 if target.level == TOTAL else plan.spine.level(target.level).index
        # Where nothing is measured the counts are those of the level above, or exact.
        at = next((level for level in reversed(plan.levels[: index + 1]) if level.is_measured), None)
        if at is not None:
            wanted.setdefault(at.name, []).append(target)
    if not wanted:
        raise PlanError("the targets are about counts that are released exactly: they are met at any loss")
    return wanted


def _needed_noise(
    measured: Sequence[str],
    wanted: Mapping[str, Sequence[Target]],
    family: type[DiscreteGaussian] | type[DiscreteLaplace],
    terms: int,
) -> tuple[dict[str, DiscreteGaussian | DiscreteLaplace], dict[str, str]]:
    """Return the noise of every level down to the finest target, and why it is that."""
    laws: dict[str, DiscreteGaussian | DiscreteLaplace] = {}
    why: dict[str, str] = {}
    finer: str | None = None
    for name in reversed(measured):
        if name in wanted:
            finer = name
            # The largest of a family of laws that grow with their parameter: all targets, so the least of them.
            laws[name] = family(min(_largest(target, family, terms) for target in wanted[name]))
            why[name] = "; ".join(str(target) for target in wanted[name])
        elif finer is not None:
            laws[name] = laws[finer]
            why[name] = f"as {finer}"
    return laws, why


def _largest(target: Target, family: Callable[[Fraction], Law], terms: int) -> Fraction:
    """The largest parameter of a law that meets a target, to about eight digits and not above it."""

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


def _smallest(
    trial: Plan,
    kind: Definition,
    stated: Mapping[str, Any],
    split: Mapping[str, Fraction],
    digits: int,
    wanted: Mapping[str, Sequence[Target]],
    terms: int,
) -> Plan:
    """Round the loss up until the plan gives every level what it needs, and check every target in it."""
    total = sum(split.values(), Fraction(0))
    least = total if kind != "approximate" else _least_epsilon(total, trial.unit, stated)
    if least <= 0:
        raise LossError("the targets allow noise so wide that nothing would be released: ask for more accuracy")
    amount = _short(least, digits, ROUND_CEILING)
    while True:
        epsilon, rho = (None, amount) if kind == "zcdp" else (amount, None)
        loss = Loss(epsilon=epsilon, rho=rho, **stated)
        plan = replace(trial, loss=loss, split=split)
        if plan.budget >= total:
            break
        amount = _short(amount * (1 + Fraction(1, 10**digits)), digits, ROUND_CEILING)
    for level in plan.levels:
        for target in wanted.get(level.name, ()):
            if not level.is_measured or not target.met_by(level.law, terms):  # a bug, not rounding
                raise LossError(f"{target} is not met at {loss}")
    return plan


def _least_epsilon(rho: Fraction, unit: Unit, stated: Mapping[str, Any]) -> Fraction:
    """Return from where on to look for the least epsilon with this rho: with exact accounting a little below it."""
    delta = delta_between_0_and_1(stated["delta"])
    open_loss = Loss(epsilon=1, delta=delta)
    if stated["accounting"] == "zcdp" or not (stated["accounting"] or is_exact_by_default(unit, open_loss)):
        return Fraction(epsilon_from_rho(rho, delta))
    return Fraction(epsilon_together(rho * (1 - UNLIKE), Fraction(0), delta))


def _short(value: Fraction, digits: int, rounding: Literal["ROUND_CEILING", "ROUND_FLOOR"]) -> Fraction:
    """Round to a few significant digits, in one direction."""
    context = Context(prec=digits, rounding=rounding)
    return Fraction(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _need(name: str, why: str, plan: Plan, terms: int) -> LevelNeed:
    planned = next(part for part in plan.workload if part.name == name)
    law = planned.law
    errors = mean_absolute_of_count(law, terms), planned.margin(Fraction(5, 100), terms)
    return LevelNeed(name, float(planned.share), why, law.standard_deviation, *errors)
