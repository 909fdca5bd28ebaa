"""The stability histogram: noise on the leaves that are there, and only what exceeds a threshold is published.

It looks at private data to learn which leaves are there, so its guarantee rests on the threshold. Write Z for the
noise, t for the threshold, and say that a leaf with true count c > 0 survives if c + Z ≥ t, with probability
p(c) = P(Z ≥ t − c); a leaf with count 0 never does.

**Theorem.** Let a unit have at most m records, at most c of them in one leaf, and let Z be discrete Laplace with scale
Δ₁/ε, where Δ₁ = m under add-remove and 2m under replace. The least δ at which the histogram is (ε, δ)-private is

    δ(t) = max 1 − Π (1 − p(cᵢ))  over whole numbers 1 ≤ cᵢ ≤ c with Σ cᵢ ≤ m:

the chance that any leaf survives which no one but the unit is in. So the smallest t with δ(t) ≤ δ is the tight one.

*Proof.* Let D and D′ be neighbours. Call A the leaves that only D has, B those that only D′ has, S those that both
have; P(A) the chance that a leaf of A survives under D, P(B) likewise. Outcomes in which one does have probability
zero under D′: together they add P(A) to the hockey-stick divergence of D from D′. In the others all of A and B are
absent, which has probability 1 − P(A) under D and 1 − P(B) under D′, and the outcome on S has probabilities within a
factor e^(ε·s/Δ₁), where s ≤ Δ₁ is the sum of absolute changes in S. They add at most
(1 − P(A) − e^(ε − ε·s/Δ₁)·(1 − P(B)))₊ ≤ (P(B) − P(A))₊. So the divergence is at most max(P(A), P(B)), in both
directions. The unit's records in A, or in B, are at most m, at most c in one leaf: this is at most δ(t). And it is
attained: by a unit alone in its leaves that leaves (add-remove), or that moves to one leaf which others are in
already, whatever ε (replace). Under replace two leaves may differ in presence, one in A and one in B, but an outcome
that shows A is impossible under D′ and one that shows B has probability zero under D: each direction counts one side. ∎

With m = 1 this is the smallest t with P(Z ≥ t − 1) ≤ δ, about 1 + Δ₁·ln(1/2δ)/ε.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray

from treetop.basics.exact import plain
from treetop.compare.mechanisms.bounds import sums_of_survivors
from treetop.compare.mechanisms.dense import draw
from treetop.compare.mechanisms.estimate import Estimate, Words
from treetop.compare.mechanisms.gauss import only_leaves
from treetop.compare.mechanisms.mechanism import NotServed, bound_key, check_parts, check_width, promise
from treetop.domain.spine import Spine
from treetop.errors import PlanError
from treetop.intake.counts import Counts
from treetop.noise import DiscreteLaplace, Key, Law
from treetop.noise.balls import at_most, ball, precision, smallest
from treetop.noise.sampler import sampler
from treetop.plan.workload import Part
from treetop.privacy import Loss, Unit

Threshold: TypeAlias = Literal["tight", "paper"]

_GUARD_BITS = 64
_MOST_PRESENT = 2**32  # leaves that are there have to be in memory


@dataclass(frozen=True, eq=False)
class StabilityHistogram:
    """Discrete Laplace noise on the leaves that are there; those that reach the threshold are published.

    Bun, Nissim and Stemmer 2019. It invents no leaf, and costs nothing for the leaves that are not there.
    """

    name: ClassVar[str] = "sh"
    about: ClassVar[str] = "Noise on the leaves that are there; those below a threshold are dropped."

    spine: Spine
    """The public order of refinement."""
    unit: Unit
    """What is protected."""
    loss: Loss
    """Epsilon and delta, which are used as they are."""
    threshold: Threshold = "tight"
    """The smallest that keeps delta, or the paper's 1 + Δ₁·ln(2/δ)/ε, rounded up."""
    levels: tuple[Part, ...] = field(init=False, repr=False)
    """The total and every level of the spine; only the leaves are measured. Costs are epsilon."""
    least: int = field(init=False)
    """The least noisy count that is published."""

    def __post_init__(self) -> None:
        check_parts(self.spine, self.unit, self.loss)
        epsilon, delta = _epsilon_and_delta(self.loss)
        if self.threshold not in ("tight", "paper"):
            raise PlanError(f"threshold is {self.threshold!r}: choose tight or paper")
        levels = only_leaves(self.spine, self.unit, Loss(epsilon=epsilon))
        law = levels[-1].law
        assert isinstance(law, DiscreteLaplace)
        check_width(law, min(self.spine.leaves, _MOST_PRESENT))
        sampler(law)
        object.__setattr__(self, "levels", levels)
        if self.threshold == "paper":
            least = _paper_threshold(self.unit, law, delta)
        else:
            cap = self.unit.caps.get(levels[-1].name, self.unit.contributions)
            least = tight_threshold(law, delta, self.unit.contributions, cap)
        object.__setattr__(self, "least", least)

    @property
    def spent(self) -> Fraction:
        """The epsilon that a run costs; it costs the loss's delta besides."""
        return self.levels[-1].cost

    @property
    def definition(self) -> str:
        """The privacy that a run gives, in one sentence."""
        epsilon, delta = _epsilon_and_delta(self.loss)
        return promise(
            self.unit,
            f"Approximate differential privacy with epsilon {plain(epsilon)} and delta {plain(delta)}, kept by Laplace "
            f"noise and by publishing only noisy counts of {self.least:,} or more.",
        )

    def bounds(self, risk: Fraction, records: int) -> tuple[int, ...]:
        """What no error of a level exceeds but with that risk, for the total and every level, of so many records."""
        return sums_of_survivors(self.spine, self.levels[-1].law, self.least, records, risk)

    def run(self, counts: Counts, key: Key, threads: int = 1) -> Estimate:
        """Measure the leaves that are there once."""
        law = self.levels[-1].law
        bound = bound_key(key, counts, self.name, self.spine, {**law.describe(), "least": self.least})
        return Estimate(self.spine, *measure_present(counts, law, self.least, bound, threads))


def measure_present(counts: Counts, law: Law, least: int, key: Key, threads: int) -> tuple[Words, NDArray[np.int64]]:
    """Return the paths of the leaves that are there and reach the threshold with noise, and their noisy counts.

    One unit moves the leaf counts by at most Δ₁ in all, for which the law was made, and can make leaves appear or
    vanish, which delta pays for by the threshold. Nothing about the others leaves this function, not even their number.
    """
    x = draw(law, key, len(counts), threads)
    x += np.diff(counts.before)
    survives = x >= least
    return tuple(word[survives] for word in counts.keys), x[survives]


def tight_threshold(law: DiscreteLaplace, delta: Fraction, contributions: int = 1, cap: int | None = None) -> int:
    """The smallest threshold that keeps delta, by the theorem above; certain, from the law's exact tail.

    >>> tight_threshold(DiscreteLaplace(Fraction(2)), Fraction(1, 10**8))
    37
    """
    ways = list(_worst_cells(contributions, contributions if cap is None else cap))

    def keeps_delta(threshold: int) -> bool:
        return all(at_most(partial(_survival, law, threshold, cells), delta) for cells in ways)

    return smallest(keeps_delta)


def _worst_cells(contributions: int, cap: int) -> Iterator[dict[int, int]]:
    """Give the ways to lay m records into leaves that can maximise the chance of survival: {records: leaves}.

    For a given number of leaves, Σ −ln(1 − p(cᵢ)) is a sum of convex functions: p(c) is convex up to the threshold, and
    a threshold that keeps delta below a half is above the cap, since p(t) > 1/2. So all leaves but one have as few
    records, 1, or as many, the cap, as they can. (Below the cap, one full leaf is enough to refuse a threshold.)
    """
    for leaves in range(-(-contributions // cap), contributions + 1):
        spare = contributions - leaves
        full, rest = divmod(spare, cap - 1) if cap > 1 else (0, 0)
        cells = {cap: full} if full else {}
        if rest:
            cells[1 + rest] = cells.get(1 + rest, 0) + 1
        if ones := leaves - full - (1 if rest else 0):
            cells[1] = cells.get(1, 0) + ones
        yield cells


def _survival(law: Law, threshold: int, cells: dict[int, int], bits: int) -> arb:
    """Enclose the chance that any of these leaves survives."""
    tails = {records: law.enclose_tail(threshold - records - 1, bits + _GUARD_BITS) for records in cells}
    with precision(bits + _GUARD_BITS):
        if list(cells.values()) == [1]:
            return next(iter(tails.values()))
        logs = sum(((-tails[records]).log1p() * leaves for records, leaves in cells.items()), arb(0))
        return -logs.expm1()


def _paper_threshold(unit: Unit, law: DiscreteLaplace, delta: Fraction) -> int:
    """The least integer from 1 + Δ₁·ln(2/δ)/ε on (InfTDA, Theorem 7, where Δ₁ = 2)."""
    if unit.contributions > 1:
        raise NotServed(
            f"the paper's threshold is for units of one record, and one {unit.entity} has up to {unit.contributions}: "
            'take threshold="tight", which is proved for any number'
        )

    def enclose(bits: int) -> arb:
        with precision(bits + _GUARD_BITS):
            return 1 + ball(law.scale) * ball(2 / delta).log()

    return smallest(lambda t: at_most(enclose, Fraction(t)))


def _epsilon_and_delta(loss: Loss) -> tuple[Fraction, Fraction]:
    if loss.epsilon is None or loss.delta is None:
        missing = "has no delta" if loss.rho is None else "is stated in rho"
        raise NotServed(
            f"the stability histogram needs epsilon and delta, and the loss {missing}: it hides which leaves are there "
            "up to a chance of delta, so give Loss(epsilon=…, delta=…)"
        )
    if loss.delta >= Fraction(1, 2):
        raise NotServed(f"delta is {plain(loss.delta)}: the stability histogram needs one below a half, such as 1e-8")
    return loss.epsilon, loss.delta
