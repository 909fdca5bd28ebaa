"""A private choice of theta, the largest degree under "node", among public candidates: it is measured and paid for.

A small theta cuts many people off; a large one needs much noise. How many have more edges than theta cannot be asked
under "node": one person is a neighbour of any number of others, and moves all of their degrees. What can be asked is
how many people reach theta once edges have been left out until nobody has more: one person moves that number by
theta + 1 at most (`treetop.plan.graphs.sensitivity`). For each candidate it is measured with noise of its own, and the
rule, which is public, takes the candidate with the least sum of two things: the people who reach it, as measured and at
least 0, who are those that the release would no longer tell apart; and the noise of one count of the release, the half
width that holds it two times in three. The smaller one of two that are as good is taken.

All that the choice sees is noisy, and each measurement pays for itself. So the release may depend on it, and both costs
add up (Bun and Steinke 2016, Lemma 2.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from treetop.basics.exact import Number, positive, whole
from treetop.errors import PlanError

THETA = "theta "
"""How the name of what is measured of a candidate begins."""
SHARE = Fraction(1, 5)
"""What the choice has of the loss, all candidates together, where nothing is said."""
MOST = 32
"""More candidates than these would leave each of them little but noise."""
HELD = Fraction(1, 3)
"""The risk of the half width by which the rule weighs noise: about one standard deviation."""


def name_of(theta: int) -> str:
    """Return the name of what is measured of a candidate.

    >>> name_of(30), theta_of("theta 30"), theta_of("degree")
    ('theta 30', 30, None)
    """
    return f"{THETA}{theta}"


def theta_of(name: str) -> int | None:
    """Return the candidate that a measurement is about; None where it is about none."""
    return int(name.removeprefix(THETA)) if name.startswith(THETA) else None


@dataclass(frozen=True)
class Choice:
    """Among which candidates theta is chosen, what that costs and, once it is done, what was measured."""

    candidates: tuple[int, ...]
    """The public candidates, from small to large."""
    share: Fraction = SHARE
    """What the choice has of the loss: every candidate as much."""
    measured: tuple[int, ...] | None = None
    """How many people reach each candidate, plus noise; None before it was measured."""

    @staticmethod
    def of(candidates: Sequence[int], share: Number | None = None) -> Choice:
        """Return a choice that is still to be made.

        >>> Choice.of([100, 10, 30])
        Choice(candidates=(10, 30, 100), share=Fraction(1, 5), measured=None)
        """
        if not all(whole(one) is not None for one in candidates):
            raise PlanError(f"largest is {list(candidates)}: candidates are whole numbers, from 1 to a million")
        listed = tuple(sorted(candidates))
        if len(set(listed)) < len(listed) or not 2 <= len(listed) <= MOST:
            raise PlanError(
                f"largest is {list(candidates)}: to have theta chosen, give 2 to {MOST} different candidates, such as "
                "[10, 20, 50, 100, 200]"
            )
        part = SHARE if share is None else positive(share, "The share of the choice (choosing)")
        if part >= 1:
            raise PlanError(f"choosing is {share}: the choice takes a part of the loss, less than 1, such as 0.2")
        return Choice(listed, part)

    @property
    def share_of_each(self) -> Fraction:
        """What every candidate has of the loss."""
        return self.share / len(self.candidates)

    @property
    def left(self) -> Fraction:
        """What the choice leaves of the loss, for the degrees themselves."""
        return 1 - self.share

    def best(self, noise: Sequence[int], measured: Sequence[int]) -> int:
        """Return the candidate that the rule takes, of the noise of a release with each and of what was measured.

        >>> Choice.of([10, 30, 100]).best([20, 60, 200], [900, 80, -50])
        30
        """
        cost = [max(0, people) + width for people, width in zip(measured, noise, strict=True)]
        return self.candidates[cost.index(min(cost))]
