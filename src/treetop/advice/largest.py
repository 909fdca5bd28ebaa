"""The largest size of a plan for group sizes: what each size more costs, and what top-coding loses of public groups.

Groups above the largest are counted with it. So people are missing from all that is derived from sizes, and no noise
tells how many. Every size more is one more measurement a region: the noise of a sum over sizes, as of all people, grows
with it, and where whole groups are protected the noise of every measurement does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.advice.prior import refuse_private
from treetop.advice.public import GroupTwin, is_release, private_tables
from treetop.errors import DataError, PlanError
from treetop.io.source import Source, as_public
from treetop.io.table import read
from treetop.noise.law import Law
from treetop.noise.sum_noise import sum_margin, weighted_margin
from treetop.plan.file import PlanFile
from treetop.plan.graphs.degrees import DegreePlan
from treetop.plan.graphs.unit import HELD, degree_sensitivity
from treetop.plan.groups.planned import GroupTablePlan
from treetop.plan.workload import text_table
from treetop.privacy.accountant import noise_for
from treetop.release.degrees import DegreeTables
from treetop.release.release import Release


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


def largest_advice(plan: GroupTablePlan, confidence: float, twin: GroupTwin | None = None) -> LargestAdvice:
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


def _best(plan: GroupTablePlan, confidence: float, groups: NDArray[np.int64], last: int) -> int:
    """Find it by halving: with every size more fewer people are lost, and the noise of all people grows."""
    low, high = 1, last
    while low < high:
        middle = (low + high) // 2
        row = _row(plan, middle, confidence, groups)
        assert row.people_lost is not None
        low, high = (low, middle) if row.people_lost <= row.people_margin else (middle + 1, high)
    return low


def _row(plan: GroupTablePlan, largest: int, confidence: float, groups: NDArray[np.int64] | None) -> LargestRow:
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


def _laws(plan: GroupTablePlan, largest: int) -> Iterator[Law]:
    """Yield the noise of every measured level, were that the largest size."""
    change = plan.sizes.group.sensitivity(plan.sizes.form, largest)
    for level, _ in plan.workload.measured:
        yield noise_for(change, plan.loss, level.share)


def _cells(row: LargestRow) -> Iterator[str]:
    yield from (f"{row.largest:,}", f"{row.counts:,}", f"{row.noise:,.4g}", f"{row.margin:,}", f"{row.people_margin:,}")
    if row.groups_above is not None and row.people_lost is not None:
        yield from (f"{row.groups_above:,}", f"{row.people_lost:,}")


# Which theta, by public knowledge: what each costs in noise, against whom it would cut off in a public network.

PEOPLE = ("people", "count")
"""What a table of public degrees may call its numbers of people."""


@dataclass(frozen=True)
class Bound:
    """What one theta would come to."""

    theta: int
    """The largest degree."""
    above: int
    """People with more edges, of as many as there are: they would not be told apart."""
    noise: int
    """How far one count is off, two times in three."""

    @property
    def together(self) -> int:
        """What the rule weighs."""
        return self.above + self.noise


@dataclass(frozen=True)
class ThetaAdvice:
    """What every theta would come to, by the degrees of a public network."""

    source: str
    """Where the public degrees are from."""
    people: int
    """How many people all numbers are about."""
    stated: tuple[int, ...]
    """The largest degree that the plan has, or its candidates."""
    rows: tuple[Bound, ...]
    """By theta."""
    known: int | None = None
    """The largest degree that the public degrees tell apart, where higher ones are counted with it."""

    @property
    def best(self) -> Bound:
        """The theta with the least sum; the smaller one of two."""
        return min(self.rows, key=lambda row: (row.together, row.theta))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        rows = [{**asdict(row), "together": row.together} for row in self.rows]
        return {
            "source": self.source,
            "people": self.people,
            "stated": list(self.stated),
            "known": self.known,
            "best": self.best.theta,
            "rows": rows,
        }

    def __str__(self) -> str:
        head = ("largest", "people above it", "noise of a count", "together", "share", "")
        rows = [
            (
                f"{row.theta:,}",
                f"{row.above:,}",
                f"{row.noise:,}",
                f"{row.together:,}",
                f"{row.together / self.people:.1%}",
                ", ".join(
                    (["best"] if row == self.best else []) + (["the plan's"] if row.theta in self.stated else [])
                ),
            )
            for row in self.rows
        ]
        told = [
            text_table([head, *rows], left=(5,)),
            f"Of {self.people:,} people with degrees as in {self.source}. Noise: a count is within it two times in "
            "three. Leaving edges out also lowers the degrees of some people below: if in doubt, take the larger.",
        ]
        if self.known is not None:
            told.append(f"Degrees of {self.known:,} and more are one there: nothing is known of a larger one.")
        return "\n".join(told)


def advise_theta(file: PlanFile, location: str, source: str | None = None, people: float | None = None) -> ThetaAdvice:
    """Weigh every theta by the degrees of a public network: a table of `degree` and `people`, or a release of degrees.

    `people` is about how many there are in the private graph; as many as in the public one when left out.
    """
    plan = file.plan
    if not isinstance(plan, DegreePlan) or plan.relation != "node":
        raise PlanError(
            'which largest degree to take is asked of a plan for degrees under "node" only: elsewhere no edge is left '
            "out above it"
        )
    for private in private_tables(file):
        refuse_private(location, private, "twin")
    released = is_release(location)
    number = _of_release(location) if released else _of_table(location)
    total = int(number.sum())
    if total == 0:
        raise DataError(f"{location} has no people: there are no degrees to go by")
    people = people or plan.population or total
    above = number.sum() - number.cumsum()
    stated = (plan.degrees.largest,) if plan.choice is None else plan.choice.candidates
    last = len(number) - 1  # of a release, it stands for more as well: who has more than that is not known
    tried = [theta for theta in sorted({*_grid(last), *stated}) if theta < last or not released]
    if not tried:
        raise DataError(f"{location} tells no degrees apart: name a release with a larger one, or a table")
    rows = [
        Bound(theta, round(people * float(above[min(theta, last)]) / total), _noise(plan, theta)) for theta in tried
    ]
    return ThetaAdvice(source or location, round(people), stated, tuple(rows), last if released else None)


def _noise(plan: DegreePlan, theta: int) -> int:
    """Return how far a count of a release with this theta is off, two times in three."""
    own, graph = plan.degrees, plan.degrees.graph
    change = degree_sensitivity(graph.relation, graph.counted, own.form, own.neighbours, theta)
    share = Fraction(1) if plan.choice is None else plan.choice.left
    return noise_for(change, plan.loss, share).margin(HELD)


def _grid(most: int) -> list[int]:
    """Return 1, 2, 5, 10, … up to the first that is no less than the largest degree there is.

    >>> _grid(30)
    [1, 2, 5, 10, 20, 50]
    """
    steps = [step * 10**power for power in range(math.ceil(math.log10(max(most, 1))) + 1) for step in (1, 2, 5)]
    return [one for one, before in zip(steps, [0, *steps], strict=False) if before < most or one == 1]


def _of_release(location: str) -> NDArray[np.int64]:
    """Return how many people have each degree in a release of degrees."""
    release = Release.load(location)
    if "degrees" not in release.card["plan"]:
        raise DataError(f"{location} is a release of something else: name one of degrees, or a table of them")
    people: NDArray[np.int64] = DegreeTables(release).cumulative()["people"].to_numpy()
    return np.diff(people, prepend=0)


def _of_table(location: str) -> NDArray[np.int64]:
    """Return how many people have each degree in a public table."""
    table = read(as_public(Source(location)))
    named = next((name for name in PEOPLE if name in table.column_names), None)
    if "degree" not in table.column_names or named is None:
        raise DataError(
            f"{location} has the columns {', '.join(table.column_names)}: public degrees are a table with the columns "
            "degree and people, or a release of degrees"
        )
    degree, people = (_whole(table[name], location, name) for name in ("degree", named))
    if len(degree) and degree.max() > 10**7:
        raise DataError(f"{location}: degree {degree.max():,} is more than anybody has")
    return np.bincount(degree, people, minlength=2).astype(np.int64)


def _whole(column: pa.ChunkedArray, location: str, name: str) -> NDArray[np.int64]:
    try:
        text = column if not pa.types.is_dictionary(column.type) else column.cast(pa.string())
        found: NDArray[np.int64] = pc.cast(text, pa.int64()).to_numpy()
    except (pa.ArrowException, ValueError) as problem:
        raise DataError(f"{location}, column {name!r}: numbers must be whole ({problem})") from problem
    if column.null_count or (len(found) and found.min() < 0):
        raise DataError(f"{location}, column {name!r}: a number is missing or below zero")
    return found
