"""What only one kind of plan promises: of group sizes the number of groups, of degrees how they were repaired."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from treetop.card.rebuild import rebuild_plan
from treetop.checking.counting import keeps_regions
from treetop.measure.degrees import repaired
from treetop.plan.graphs.degrees import PureDegreePlan
from treetop.release.release import Release


class Promise(NamedTuple):
    """What a kind of plan promises, in words, and what finds where it does not hold."""

    words: str
    check: Callable[[Mapping[str, Any], Release], Iterator[str]]


def promise(card: Mapping[str, Any]) -> Promise | None:
    """Return what only this kind of plan promises; None where there is nothing of its own."""
    return next((made(card["plan"][kind]) for kind, made in _KINDS.items() if kind in card["plan"]), None)


def _of_groups(groups: Mapping[str, Any]) -> Promise:
    every = ", in every region and" if keeps_regions({"groups": groups}) else ","
    words = f"as many groups as there are publicly, {groups['number']:,}{every} at every level, of sizes 0 to "
    return Promise(f"{words}{groups['largest']:,}", _groups)


def _groups(card: Mapping[str, Any], release: Release) -> Iterator[str]:
    """Compare the number of groups, to which every level adds up, and the sizes with what is public about them."""
    groups = card["plan"]["groups"]
    yield from _axis(release, "size", groups["largest"])
    if release.total != groups["number"]:
        yield f"the release has {release.total:,} groups, but there are {groups['number']:,}, which is public"
    yield from _regions(card, release, "groups")


def _regions(card: Mapping[str, Any], release: Release, what: str) -> Iterator[str]:
    """Compare the number of every region with the one that is public; coarser regions are sums of both."""
    if not keeps_regions(card["plan"]):
        return
    if release.public is None:
        yield f"the public number of {what} of every region is missing"
        return
    found = np.bincount(release.nodes[1], release.count, len(release.public)).astype(np.int64)
    for region in np.flatnonzero(found != release.public)[:1].tolist():
        code = release.spine.trees[1].codes[-1][region].as_py()
        yield f"{code} has {found[region]:,} {what}, but there are {release.public[region]:,}, which is public"


def _of_degrees(degrees: Mapping[str, Any]) -> Promise:
    how = "as many as there are publicly in every region" if keeps_regions({"degrees": degrees}) else "by region"
    how = how if "mechanism" in degrees else "repaired from the measurements, where those were kept"
    chosen = ", chosen by the public rule from what was measured of its candidates" if "choice" in degrees else ""
    return Promise(f"people of degrees 0 to {degrees['largest']:,}{chosen}, {how}", _degrees)


def _degrees(card: Mapping[str, Any], release: Release) -> Iterator[str]:
    """Compare the degrees with those of the plan and, of a whole graph, repair the measurements again."""
    yield from _axis(release, "degree", card["plan"]["degrees"]["largest"])
    yield from _regions(card, release, "people")
    plan = rebuild_plan(card, release.spine, release.facts)
    if isinstance(plan, PureDegreePlan):
        yield from _theta(plan)
    if release.cells is None or not isinstance(plan, PureDegreePlan):
        return
    release.intervals_at(0.5)  # refuses measurements that are not those of all degrees
    (measured,) = release.measurements.levels
    assert measured is not None
    expected = repaired(plan, measured.value, release.cells.people)
    found = np.zeros_like(expected)
    found[release.nodes[0]] = release.count
    if wrong := np.flatnonzero(found != expected).tolist():
        degree = wrong[0]
        yield f"{found[degree]:,} people have degree {degree}, but the measurements give {expected[degree]:,}"


def _theta(plan: PureDegreePlan) -> Iterator[str]:
    """Choose theta again, where it was chosen, from what was measured of the candidates."""
    choice, theta = plan.choice, plan.degrees.largest
    if choice is None:
        return
    if choice.measured is None or len(choice.measured) != len(choice.candidates):
        yield "theta was chosen, but not by a measurement of every candidate"
    elif (expected := choice.best(plan.widths, choice.measured)) != theta:
        yield f"theta is {theta:,}, but by the measurements of its candidates it would be {expected:,}"


def _axis(release: Release, name: str, largest: int) -> Iterator[str]:
    codes = release.spine.attributes[name].codes[-1].to_pylist()
    if [int(code) for code in codes] != list(range(largest + 1)):
        yield f"the {name}s are {codes[0]} to {codes[-1]}, but the plan has 0 to {largest}"


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Promise]] = {"groups": _of_groups, "degrees": _of_degrees}
