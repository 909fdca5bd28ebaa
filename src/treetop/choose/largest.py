"""The largest size of a plan for group sizes: what each size more costs, and what top-coding loses of public groups.

Groups above the largest are counted with it. So people are missing from all that is derived from sizes, and no noise
tells how many. Every size more is one more measurement a region: the noise of a sum over sizes, as of all people, grows
with it, and where whole groups are protected the noise of every measurement does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop.choose.group_twin import GroupTwin
from treetop.noise.law import Law
from treetop.noise.sum_noise import sum_margin, weighted_margin
from treetop.plan.accuracy import text_table
from treetop.plan.groups.planned import PureGroupTablePlan
from treetop.privacy.mechanism import noise_for


@dataclass(frozen=True)
class LargestRow:
    """What one largest size would cost, and lose."""

    largest: int
    """The largest size."""
    counts: int
    """How many counts are measured: a region and size each, at all levels."""
    noise: float
    """The standard deviation of one measurement in a finest region."""
    margin: int
    """How far the interval of one number of groups of a finest region reaches."""
    people_margin: int
    """How far that of the people of all regions reaches."""
    groups_above: int | None = None
    """How many public groups are larger; None where no public table is known."""
    people_lost: int | None = None
    """How many of their people would not be counted."""


@dataclass(frozen=True)
class LargestAdvice:
    """Largest sizes beside each other; print it for people."""

    rows: tuple[LargestRow, ...]
    """From the smallest."""
    confidence: float
    """How sure margins are."""
    twin: str | None = None
    """What the public table is."""
    best: int | None = None
    """The least largest size at which top-coding loses no more people of the public table than noise may hide."""
    open_ended: bool = False
    """Whether the public table itself has larger groups than its last size, whose people are not known."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for programs."""
        return asdict(self)

    def __str__(self) -> str:
        percent = f"{100 * self.confidence:g}%"
        head = ["largest", "counts", "noise (sd)", f"± one, {percent}", f"± people, {percent}"]
        head += [] if self.twin is None else ["groups above", "people not counted"]
        rows = [head, *(list(_cells(row)) for row in self.rows)]
        return f"{text_table(rows)}\n{self._told()}"

    def _told(self) -> str:
        means = "± one: of one number of groups in a finest region; ± people: of the people of all regions together."
        if self.twin is None:
            return (
                f"{means} Groups above the largest count as that size: with --twin TABLE, a public table, it is told "
                "how many groups and people that leaves out."
            )
        more = " It has groups above its own last size, whose people nobody knows." if self.open_ended else ""
        return (
            f"{means} Groups and people are those of {self.twin}.{more} From {self.best:,} on, top-coding leaves out "
            "no more of its people than the noise of all people may hide: below, what is left out is the larger error."
        )


def largest_advice(plan: PureGroupTablePlan, confidence: float, twin: GroupTwin | None = None) -> LargestAdvice:
    """Put other largest sizes beside the plan's; no private data is read."""
    own = plan.sizes.largest
    if twin is None:
        rows = (_row(plan, largest, confidence, None) for largest in sorted({max(own // 2, 1), own, 2 * own, 4 * own}))
        return LargestAdvice(tuple(rows), confidence)
    groups: NDArray[np.int64] = twin.sizes.number.sum(axis=0)
    last = int(np.flatnonzero(groups)[-1]) if groups.any() else 1
    best = _best(plan, confidence, groups, max(last, 1))
    shown = {own, best, max(best // 2, 1), 2 * best, max(last, 1)}
    rows = (_row(plan, largest, confidence, groups) for largest in sorted(shown))
    about = f"{twin.prior.kind} {twin.prior.source}"
    return LargestAdvice(tuple(rows), confidence, about, best, twin.open_ended)


def _best(plan: PureGroupTablePlan, confidence: float, groups: NDArray[np.int64], last: int) -> int:
    """Find it by halving: with every size more fewer people are lost, and the noise of all people grows."""
    low, high = 1, last
    while low < high:
        middle = (low + high) // 2
        row = _row(plan, middle, confidence, groups)
        assert row.people_lost is not None
        low, high = (low, middle) if row.people_lost <= row.people_margin else (middle + 1, high)
    return low


def _row(plan: PureGroupTablePlan, largest: int, confidence: float, groups: NDArray[np.int64] | None) -> LargestRow:
    form, side = plan.sizes.form, (1 - Fraction(str(confidence))) / 2
    laws = list(_laws(plan, largest))
    weights = (1,) * largest if form == "cumulative" else tuple(range(1, largest + 1))
    lost = None if groups is None else groups[largest + 1 :]
    return LargestRow(
        largest,
        plan.core.tree.nodes * (largest + 1),
        laws[-1].standard_deviation,
        sum_margin(laws[-1], 2 if form == "cumulative" else 1, side),
        weighted_margin(laws[0], weights, side),
        None if lost is None else int(lost.sum()),
        None if lost is None else int(lost @ np.arange(1, len(lost) + 1)),
    )


def _laws(plan: PureGroupTablePlan, largest: int) -> Iterator[Law]:
    """Yield the noise of every measured level, were that the largest size."""
    change = plan.sizes.group.sensitivity(plan.sizes.form, largest)
    for level, _ in plan.workload.measured:
        yield noise_for(change, plan.loss, level.share)


def _cells(row: LargestRow) -> Iterator[str]:
    yield from (f"{row.largest:,}", f"{row.counts:,}", f"{row.noise:,.4g}", f"{row.margin:,}", f"{row.people_margin:,}")
    if row.groups_above is not None and row.people_lost is not None:
        yield from (f"{row.groups_above:,}", f"{row.people_lost:,}")
