"""The largest class of a plan: of group sizes, or of degrees under "node", weighed by public data.

Groups above the largest size are counted with it, so people are missing from everything derived from sizes, and no
noise says how many. Every further size is one more measurement per region: the noise of a sum over sizes, as of all
people, grows with it, and if whole groups are protected so does the noise of every measurement. Degrees have the same
trade-off with the edges that are left out.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.dtypes import Ints
from treetop.advice._report import Report
from treetop.advice.public import NOT_COMPARED, Prior, is_release, private_tables, refuse_private
from treetop.errors import DataError, PlanError
from treetop.io.source import Source, as_public
from treetop.io.table import read
from treetop.noise.sum_noise import sum_margin, weighted_margin
from treetop.plan.degree_unit import HELD, DegreeUnit, degree_sensitivity
from treetop.plan.degrees import DegreeHistogram
from treetop.plan.file import PlanFile
from treetop.plan.group_unit import GroupUnit
from treetop.plan.plan import Plan
from treetop.privacy.accountant import noise_for
from treetop.release.derived import DegreeTables
from treetop.release.release import Release


def largest_sizes(plan: Plan, confidence: float, twin: Prior | None = None) -> Report:
    """Compare largest sizes of groups, by their cost and by what top-coding loses of public groups.

    Of each: `counts` measured (a region and size each, at all levels), the standard deviation (`noise`) and `margin` of
    one number of groups in a finest region, and the margin of the people of all regions. With a twin: how many of its
    groups are larger, and how many of their people would not be counted.
    """
    own, percent = plan.largest, f"{100 * confidence:g}%"
    columns = [
        ("largest", "{largest:,}"),
        ("counts", "{counts:,}"),
        ("noise (sd)", "{noise:,.4g}"),
        (f"± one, {percent}", "{margin:,}"),
        (f"± people, {percent}", "{people_margin:,}"),
    ]
    note = "± one: of one number of groups in a finest region; ± people: of the people of all regions together."
    groups, best, about, open_ended = None, None, None, False
    if twin is None or twin.sizes is None:
        sizes = {max(own // 2, 1), own, 2 * own, 4 * own}
        note += (
            " Groups above the largest count as that size: with `twin=TABLE`, a public table, it is told how many "
            "groups and people that leaves out."
        )
    else:
        groups = twin.sizes.number.sum(axis=0)
        last = max(int(np.flatnonzero(groups)[-1]) if groups.any() else 1, 1)

        def loses_little(size: int) -> bool:
            row = _size_row(plan, size, confidence, groups)
            return bool(row["people_lost"] <= row["people_margin"])

        # The least size at which top-coding loses no more people than their noise may hide; the last loses none.
        best = 1 + bisect_left(range(1, last), True, key=loses_little)
        sizes = {own, best, max(best // 2, 1), 2 * best, last}
        columns += [("groups above", "{groups_above:,}"), ("people not counted", "{people_lost:,}")]
        about, open_ended = f"{twin.kind} {twin.source}", twin.open_ended
        note += (
            f" Groups and people are those of {about}."
            f"{' It has groups above its own last size, whose people nobody knows.' if open_ended else ''} From "
            f"{best:,} on, top-coding leaves out no more of its people than the noise of all people may hide: below, "
            "what is left out is the larger error."
        )
    rows = [_size_row(plan, size, confidence, groups) for size in sorted(sizes)]
    values = {"confidence": confidence, "twin": about, "best": best, "open_ended": open_ended}
    return Report(plan, "largest", "What the largest size costs", tuple(rows), columns, "rows", values, notes=(note,))


def _size_row(plan: Plan, largest: int, confidence: float, groups: Ints | None) -> dict[str, Any]:
    own, side = GroupUnit.of(plan.unit), (1 - Fraction(str(confidence))) / 2
    cumulative, change = own.cumulative, own.in_plan(own.form or "direct", largest).sensitivity("")
    laws = [noise_for(change, plan.loss, level.share) for level, _ in plan.workload.measured]
    weights = (1,) * largest if cumulative else tuple(range(1, largest + 1))
    lost = None if groups is None else groups[largest + 1 :]
    return {
        "largest": largest,
        "counts": (1 + sum(plan.regions.sizes)) * (largest + 1),
        "noise": laws[-1].standard_deviation,
        "margin": sum_margin(laws[-1], 2 if cumulative else 1, side),
        "people_margin": weighted_margin(laws[0], weights, side),
        "groups_above": None if lost is None else int(lost.sum()),
        "people_lost": None if lost is None else int(lost @ np.arange(1, len(lost) + 1)),
    }


# The largest degree (theta) under "node", by the degrees of a public network.

PEOPLE = ("people", "count")
"""Possible names of the column of numbers of people in a table of public degrees."""


def largest_degrees(
    plan: Plan, file: PlanFile | None, twin: Prior | str | Path, source: str | None = None, people: float | None = None
) -> Report:
    """Weigh every largest degree theta: people with more edges, who would be cut off, against the noise of a count.

    Args:
        plan: A plan for degrees under "node".
        file: Its file, which names the private tables.
        twin: The location of a table of `degree` and `people`, or of a release of degrees.
        source: Where the public degrees are from, in words.
        people: About how many there are in the private graph; as many as in the public one by default.
    """
    if not DegreeHistogram.runs(plan) or DegreeUnit.of(plan.unit).graph.relation != "node":
        raise PlanError(
            'the largest degree is a choice of plans for degrees under "node" only: elsewhere no edge is left out '
            "above it"
        )
    if isinstance(twin, Prior):
        raise PlanError("public degrees are read from a table or a release: give its location")
    private, location = [] if file is None else private_tables(file), str(twin)
    for table in private:
        refuse_private(location, table, "twin")
    released, number = is_release(location), _people(location)
    total = int(number.sum())
    if total == 0:
        raise DataError(f"{location} has no people: there are no degrees to go by")
    people = people or plan.population or total
    above = total - number.cumsum()
    choice = DegreeHistogram.of(plan).choice
    stated = (plan.largest,) if choice is None else choice.candidates
    last = len(number) - 1  # the last class of a release is open: who has more than that is not known
    tried = [theta for theta in sorted({*_grid(last), *stated}) if theta < last or not released]
    if not tried:
        raise DataError(f"{location} tells no degrees apart: name a release with a larger one, or a table")
    rows = []
    unit, share = DegreeUnit.of(plan.unit), Fraction(1) if choice is None else choice.left
    for theta in tried:
        cut = round(people * float(above[min(theta, last)]) / total)
        change = degree_sensitivity(unit.graph.relation, unit.graph.counted, unit.form, unit.neighbours, theta)
        noise = noise_for(change, plan.loss, share).margin(HELD)
        rows.append({"theta": theta, "above": cut, "noise": noise, "together": cut + noise})
    best = min(rows, key=lambda row: (row["together"], row["theta"]))["theta"]
    count = round(people)

    def remark(row: Mapping[str, Any]) -> str:
        return ", ".join(["best"] * (row["theta"] == best) + ["the plan's"] * (row["theta"] in stated))

    notes = [
        f"Of {count:,} people with degrees as in {source or location}. Noise: a count is within it two times in three. "
        "Leaving edges out also lowers the degrees of some people below: if in doubt, take the larger."
    ]
    if released:
        notes.append(f"Degrees of {last:,} and more are one there: nothing is known of a larger one.")
    return Report(
        plan,
        "theta",
        "Which largest degree",
        tuple(rows),
        (
            ("largest", "{theta:,}"),
            ("people above it", "{above:,}"),
            ("noise of a count", "{noise:,}"),
            ("together", "{together:,}"),
            ("share", lambda row: f"{row['together'] / count:.1%}"),
            ("", remark),
        ),
        "rows",
        {
            "source": source or location,
            "people": count,
            "stated": list(stated),
            "known": last if released else None,
            "best": best,
        },
        notes=tuple(notes),
        public_notes=() if private else (NOT_COMPARED,),
    )


def _grid(most: int) -> list[int]:
    """Return 1, 2, 5, 10, … up to the first that is at least the largest degree.

    >>> _grid(30)
    [1, 2, 5, 10, 20, 50]
    """
    steps = [step * 10**power for power in range(math.ceil(math.log10(max(most, 1))) + 1) for step in (1, 2, 5)]
    return [one for one, before in zip(steps, [0, *steps], strict=False) if before < most or one == 1]


def _people(location: str) -> Ints:
    """Return how many people have each degree in a release of degrees, or in a public table."""
    if is_release(location):
        release = Release.load(location)
        if "degrees" not in release.card["plan"]:
            raise DataError(f"{location} is a release of something else: name one of degrees, or a table of them")
        people: Ints = DegreeTables(release).cumulative()["people"].to_numpy()
        return np.diff(people, prepend=0)
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


def _whole(column: pa.ChunkedArray, location: str, name: str) -> Ints:
    try:
        text = column if not pa.types.is_dictionary(column.type) else column.cast(pa.string())
        found: Ints = pc.cast(text, pa.int64()).to_numpy()
    except (pa.ArrowException, ValueError) as problem:
        raise DataError(f"{location}, column {name!r}: numbers must be whole ({problem})") from problem
    if column.null_count or (len(found) and found.min() < 0):
        raise DataError(f"{location}, column {name!r}: a number is missing or below zero")
    return found
