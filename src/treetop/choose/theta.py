"""Which theta, by public knowledge: what each costs in noise, against whom it would cut off in a public network.

Under "node" a degree above theta is not told apart, and noise grows with theta. What people have in another network, of
which the degrees are public, says how many that would be. The private graph has no part in it. The rule is that by
which a plan chooses privately (`treetop.plan.graphs.theta`), with the people above theta in place of those who reach
it. Leaving edges out also lowers the degrees of people below theta, whose friends are above it: a table of degrees does
not show how many, so that a theta a little larger than the best is the safer one.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop.choose.guard import refuse_private
from treetop.choose.public import is_release, private_tables
from treetop.errors import DataError, PlanError
from treetop.plan.accuracy import text_table
from treetop.plan.file import PlanFile
from treetop.plan.graphs.degrees import PureDegreePlan
from treetop.plan.graphs.sensitivity import degree_sensitivity
from treetop.plan.graphs.theta import HELD
from treetop.privacy.mechanism import noise_for
from treetop.release.degrees import DegreeTables
from treetop.release.release import Release
from treetop.sources.source import Source, as_public
from treetop.sources.table import read

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
    if not isinstance(plan, PureDegreePlan) or plan.relation != "node":
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


def _noise(plan: PureDegreePlan, theta: int) -> int:
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
