"""The privacy loss that a release may cost: epsilon and delta, or rho, or pure epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from treetop._util.choices import nearest
from treetop._util.lazy import FrozenMap, set_fields
from treetop._util.numbers import SMALLEST, Number, delta_between_0_and_1, plain, positive, rounded_up
from treetop.domain.unit import TOTAL
from treetop.errors import IncompletePlan, LossError

# How the loss is divided over the levels: exact shares that sum to one.


@dataclass(frozen=True, init=False)
class Split:
    """Each level's share of the loss.

    >>> Split({"place.state": 0.25, "place.county": 0.75}).over(["place.state", "place.county"])
    (Fraction(1, 4), Fraction(3, 4))
    """

    shares: Mapping[str, Fraction]
    """By level name, the exact share of the loss; together they are exactly 1."""

    def __init__(self, shares: Mapping[str, Number]) -> None:
        exact = _read(shares, "share")
        total = sum(exact.values())
        if total != 1:
            remedy = ", ".join(f"{level} = {share / total}" for level, share in exact.items())
            raise LossError(
                f"The shares of the loss sum to {total}, not 1; "
                f"write them as weights (Split.weighted), or as these exact shares: {remedy}."
            )
        set_fields(self, shares=FrozenMap(exact))

    @classmethod
    def uniform(cls, levels: Sequence[str]) -> Split:
        """The same share for every level."""
        return cls.weighted(dict.fromkeys(levels, 1))

    @classmethod
    def weighted(cls, weights: Mapping[str, Number]) -> Split:
        """Shares in proportion to weights.

        >>> dict(Split.weighted({"place": 2, "age": 1}).shares)
        {'place': Fraction(2, 3), 'age': Fraction(1, 3)}
        """
        exact = _read(weights, "weight")
        total = sum(exact.values())
        return cls({level: weight / total for level, weight in exact.items()})

    def over(self, levels: Sequence[str]) -> tuple[Fraction, ...]:
        """The shares of these levels, in this order; the split must name them all and no others."""
        _check_names(self.shares, levels)
        return tuple(self.shares[level] for level in levels)


SplitLike: TypeAlias = Literal["uniform"] | Mapping[str, Number] | Split
"""How a plan states the shares of its levels: all the same, weights by name, or exact shares."""


def shares(split: SplitLike, levels: Sequence[str]) -> tuple[Fraction, ...]:
    """Each level's share of the loss, as a plan states it: "uniform", weights by level name, or a `Split`.

    >>> shares({"place.state": 1, "place.county": 3}, ["place.state", "place.county"])
    (Fraction(1, 4), Fraction(3, 4))
    """
    if isinstance(split, Split):
        return split.over(levels)
    if isinstance(split, Mapping):
        # Names before weights: a misspelt level is the likelier mistake.
        _check_names(split, levels)
        return Split.weighted(split).over(levels)
    if split == "uniform":
        return Split.uniform(levels).over(levels)
    raise LossError(f'The split is {split!r}; write "uniform", or a weight for each of: {", ".join(levels)}.')


def _read(values: Mapping[str, Number], what: str) -> dict[str, Fraction]:
    if not values:
        raise LossError("The split of the loss names no level; give at least one.")
    return {level: positive(value, f"The {what} of level {level}") for level, value in values.items()}


def _check_names(named: Mapping[str, object], levels: Sequence[str]) -> None:
    if len(set(levels)) < len(levels):
        raise LossError(f"A level is repeated among {', '.join(levels)}; measure each level once.")
    for name in named:
        if name in levels:
            continue
        if name == TOTAL:
            raise LossError("The split gives the total a share, but here it is not measured; leave it out.")
        raise LossError(
            f"The split names the level {name!r}, which is not measured{nearest(str(name), levels)}; "
            f"the measured levels are {', '.join(levels)}."
        )
    if missing := [level for level in levels if level not in named]:
        raise LossError(f"The split leaves out {', '.join(missing)}; give every measured level a share.")


# From rho (zero-concentrated differential privacy) to epsilon and delta, and back, on the safe side.

# Orders as close to 1 as 1e-104 must leave a − 1 with digits to spare.
_LONG = Context(prec=150, Emax=MAX_EMAX, Emin=MIN_EMIN)
_LOG_ORDER_LESS_1 = 240.0

# Converting a rho back rounds epsilon up to a float; this slack keeps it at or below the epsilon asked for.
_SLACK = Decimal("1e-13")


def epsilon_from_rho(rho: Number, delta: Number) -> float:
    """The smallest epsilon that CKS Proposition 12 gives for rho at this delta, rounded up.

    >>> round(epsilon_from_rho(Fraction(293764, 114921), 1e-10), 4)
    17.1436
    """
    return _tight_epsilon(positive(rho, "rho"), delta_between_0_and_1(delta))


@lru_cache(maxsize=1024)
def _tight_epsilon(exact_rho: Fraction, delta: Fraction) -> float:
    with localcontext(_LONG):
        log = _log_inverse(delta)
        slope, target = float(exact_rho), float(log)
        # d/da (a·rho + g(a)) = rho − (ln(1/δ) − ln a)/(a − 1)², which rises through zero once.
        s = _best(lambda s: slope * s * s + math.log1p(s) < target)
        return rounded_up(max(Decimal(0), (1 + s) * _decimal(exact_rho) + _offset(s, log)))


def rho_from_epsilon(epsilon: Number, delta: Number) -> Fraction:
    """The largest rho with a tight epsilon of at most epsilon at this delta, rounded down to 12 digits.

    >>> rho_from_epsilon(1, 1e-8)
    Fraction(172053180393, 10000000000000)
    """
    rho = _tight_rho(positive(epsilon, "epsilon"), delta_between_0_and_1(delta))
    if rho < SMALLEST:
        raise LossError(f"epsilon is {epsilon}, too small to be turned into rho; give a larger epsilon.")
    return rho


@lru_cache(maxsize=1024)
def _tight_rho(exact_epsilon: Fraction, delta: Fraction) -> Fraction:
    with localcontext(_LONG):
        log = _log_inverse(delta)
        goal, target = float(exact_epsilon), float(log)

        def epsilon_is_above(s: float) -> bool:
            # The epsilon of the rho whose best order is 1 + s: it falls as s grows, while it is positive.
            return (target - math.log1p(s)) * (2 * s + 1) / (s * s) - math.log1p(1 / s) > goal

        s = _best(epsilon_is_above)
        return _down((_decimal(exact_epsilon) - _offset(s, log)) / (1 + s))


def rho_from_epsilon_loose(epsilon: Number, delta: Number) -> Fraction:
    """The rho with this loose epsilon, rounded down to 12 digits: only to reproduce papers."""
    exact_epsilon = positive(epsilon, "epsilon")
    with localcontext(_LONG):
        value, log = _decimal(exact_epsilon), _log_inverse(delta)
        return _down((value / ((value + log).sqrt() + log.sqrt())) ** 2)


def _best(too_small: Callable[[float], bool]) -> Decimal:
    """Find the best a − 1 by bisection on its logarithm, within about 1e-12 of it."""
    low, high = -_LOG_ORDER_LESS_1, _LOG_ORDER_LESS_1
    for _ in range(50):
        middle = (low + high) / 2
        if too_small(math.exp(middle)):
            low = middle
        else:
            high = middle
    return Decimal(math.exp(high))


def _offset(s: Decimal, log_inverse_delta: Decimal) -> Decimal:
    """Compute g(a) at a = 1 + s."""
    return (log_inverse_delta - (1 + s).ln()) / s + (s / (1 + s)).ln()


def _log_inverse(delta: Number) -> Decimal:
    return -_decimal(delta_between_0_and_1(delta)).ln()


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _down(value: Decimal) -> Fraction:
    return Fraction(Context(prec=12, rounding=ROUND_FLOOR).plus(value * (1 - _SLACK)))


Definition: TypeAlias = Literal["pure", "zcdp", "approximate"]
Accounting: TypeAlias = Literal["zcdp", "exact"]
Currency: TypeAlias = Literal["pure", "zcdp"]

RECKLESS_EPSILON = 20
"""Above it, a loss is warned of: odds may then move by more than 400 million times."""
RECKLESS_DELTA = Fraction(1, 10**4)
"""Above it, so is a delta."""
MOST = 10**9
"""The largest epsilon or rho: noise of a larger one is zero for all that anybody could tell."""
COMPARED_AT = Fraction(1, 10**8)
"""The delta at which an epsilon is reported where none is stated."""


def _at_most(value: Number, what: str) -> Fraction:
    """Read an amount, and refuse one that leaves no noise."""
    amount = positive(value, what)
    if amount > MOST:
        raise LossError(
            f"{what} is {plain(amount)}, and at most {plain(MOST)} is accepted: beyond it there is no noise, counts "
            "are exact, and nobody is protected. Give a smaller one, such as 1."
        )
    return amount


@dataclass(frozen=True, init=False)
class Loss:
    """A privacy loss, in one of three forms; floats are read as the decimals that they print as.

    >>> Loss(epsilon=1.0, delta=1e-8).definition, Loss(rho=0.5).definition, Loss(epsilon=1).definition
    ('approximate', 'zcdp', 'pure')
    """

    epsilon: Fraction | None
    """With delta: approximate differential privacy, by Gaussian noise. Alone: pure, by Laplace noise."""
    delta: Fraction | None
    """The chance left to exceed epsilon; beside rho it only chooses the epsilon that is reported."""
    rho: Fraction | None
    """Zero-concentrated differential privacy, by Gaussian noise."""
    accounting: Accounting | None
    """How epsilon and delta are kept: through rho ("zcdp"), or by the law of the privacy loss itself ("exact"). None is
    exact where a unit has one record, with discrete Gaussian noise, through rho elsewhere: see `Plan.accounting`."""
    noise: str | None
    """The registered law of noise that keeps it; None for Laplace where it is pure, and Gaussian where it is not."""
    large_delta: bool
    """That a delta of one in the number of units, or more, is meant: without it, such a delta is asked about."""
    budget: Fraction = field(repr=False, compare=False)
    """The amount that the levels divide: epsilon when pure, otherwise rho.

    With exact accounting a plan may spend more, which depends on its levels: see `Plan.budget`."""

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        accounting: Accounting | None = None,
        noise: str | None = None,
        large_delta: bool = False,
    ) -> None:
        if epsilon is None and rho is None:
            missing = "has only a delta" if delta is not None else "is empty"
            raise LossError(f"The loss {missing}; give epsilon and delta, or rho, or epsilon alone.")
        if epsilon is not None and rho is not None:
            raise LossError("The loss has both epsilon and rho, which each set it; give one of them.")
        set_fields(
            self,
            epsilon=None if epsilon is None else _at_most(epsilon, "epsilon"),
            delta=None if delta is None else delta_between_0_and_1(delta),
            rho=None if rho is None else _at_most(rho, "rho"),
            accounting=accounting,
            noise=noise,
            large_delta=large_delta,
        )
        if large_delta not in (True, False) or (large_delta and delta is None):
            raise LossError(
                f"large_delta is {large_delta!r}: True says that a large delta is meant, so give it beside a delta."
            )
        if accounting is not None and accounting not in get_args(Accounting):
            raise LossError(
                f"The accounting is {accounting!r}{nearest(str(accounting), get_args(Accounting))}; write "
                '"zcdp" or "exact".'
            )
        if accounting == "exact" and noise is not None:
            raise LossError("Exact accounting is for Gaussian noise: leave the accounting out, or the noise.")
        if accounting == "exact" and self.definition != "approximate":
            stated = "epsilon alone" if self.definition == "pure" else "rho"
            raise LossError(
                f"The loss is stated as {stated}, which is kept exactly as it is: exact accounting is for epsilon with "
                "delta. Give both, or leave the accounting out."
            )
        budget = self.rho or self.epsilon
        if self.epsilon is not None and self.delta is not None:
            budget = rho_from_epsilon(self.epsilon, self.delta)
        set_fields(self, budget=budget)

    @property
    def definition(self) -> Definition:
        """The definition of privacy that the loss is stated in."""
        if self.rho is not None:
            return "zcdp"
        return "pure" if self.delta is None else "approximate"

    @property
    def currency(self) -> Currency:
        """The definition in which its cost is stated and adds up: epsilon where it is pure, and otherwise rho."""
        return "pure" if self.definition == "pure" else "zcdp"

    def epsilon_at(self, delta: Number) -> float:
        """The epsilon that this loss guarantees with this delta; a pure loss has the same at every delta."""
        stated = delta_between_0_and_1(delta)
        if self.definition == "pure":
            return rounded_up(self.budget)
        if self.epsilon is not None and stated == self.delta and self.accounting != "zcdp":
            return rounded_up(self.epsilon)
        if self.definition == "approximate" and self.accounting != "zcdp":
            raise LossError(
                "With exact accounting, the epsilon at another delta follows from the plan's rho: take it from "
                'Loss(rho=plan.spent), or keep the loss through rho, with accounting="zcdp".'
            )
        return epsilon_from_rho(self.budget, delta)

    def kept_by(self, accounting: Accounting) -> Loss:
        """The same loss, kept in this way."""
        amounts = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return Loss(**amounts, accounting=accounting, noise=self.noise, large_delta=self.large_delta)

    @property
    def reckless(self) -> dict[str, Fraction]:
        """The parts of the loss that protect hardly anybody: "epsilon", "delta", both or none."""
        epsilon = self.epsilon
        if epsilon is None:
            epsilon = Fraction(epsilon_from_rho(self.budget, self.delta or COMPARED_AT))
        parts = {"epsilon": epsilon} if epsilon > RECKLESS_EPSILON else {}
        return parts | ({"delta": self.delta} if self.delta is not None and self.delta > RECKLESS_DELTA else {})

    def warnings(self) -> list[str]:
        """Warn of a loss that protects hardly anybody.

        >>> Loss(epsilon=1, delta=1e-8).warnings(), len(Loss(epsilon=1000, delta=0.1).warnings())
        ([], 2)
        """
        return [say_reckless(part, value) for part, value in self.reckless.items()]

    def refuse_large_delta(self, number: int | None, what: str) -> None:
        """Ask about a delta of one in the number of units or more, unless it is said to be meant."""
        if self.delta is None or number is None or self.large_delta or self.delta * number < 1:
            return
        raise IncompletePlan(
            f"loss.delta is {plain(self.delta)}, at least one in {number:,}, {what}: a release that told all about "
            "one of them, chosen at random, would keep it. Is this meant? Give a delta well below one in so many, such "
            f"as 1e-{len(str(number)) + 2}; or say that it is meant, with large_delta = true under [loss] "
            "(Loss(large_delta=True))"
        )

    def sentence(self) -> str:
        """State the guarantee in plain English.

        >>> print(Loss(epsilon=1.0).sentence())
        Pure differential privacy with epsilon 1; Laplace noise.
        """
        amount = plain(self.budget)
        if self.definition == "pure":
            return f"Pure differential privacy with epsilon {amount}; Laplace noise."
        if self.epsilon is not None and self.delta is not None:
            exact = "by exact accounting of all levels together"
            through = f"by rho {amount} (zero-concentrated)"
            kept = {
                "zcdp": f"kept {through}",
                "exact": f"{exact}, for this release alone",
                None: f"kept {exact} where a unit has one record, and {through} elsewhere",
            }[self.accounting]
            return (
                f"Approximate differential privacy with epsilon {plain(self.epsilon)} and "
                f"delta {plain(self.delta)}, {kept}; Gaussian noise."
            )
        reported = ""
        if self.delta is not None:
            reported = f", so epsilon {plain(self.epsilon_at(self.delta))} at delta {plain(self.delta)}"
        return f"Zero-concentrated differential privacy with rho {amount}{reported}; Gaussian noise."


def say_reckless(part: str, value: Fraction) -> str:
    """Say that an epsilon or a delta protects hardly anybody."""
    if part == "epsilon":
        return (
            f"Epsilon {plain(value)} is reckless: above {RECKLESS_EPSILON}, a release may move anyone's odds "
            "about one unit by more than 400 million times, which protects hardly anybody."
        )
    return (
        f"Delta {plain(value)} is reckless: above {plain(RECKLESS_DELTA)}, a release that told all about "
        "one unit in ten thousand, chosen at random, would keep it."
    )
