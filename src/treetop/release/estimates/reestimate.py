"""Reestimation: counts of lower error from all measurements of a descent.

The descent decides which nodes are measured; then `whole_numbers.lower_error` makes other counts of the same
measurements. It reads noisy values only, so that it costs no privacy, and can be done at any time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from treetop.card import RunInfo, describe_release
from treetop.card.rebuild import rebuild_plan
from treetop.errors import ReleaseError
from treetop.plan.workload import CONFIDENCE
from treetop.release.estimates._whole_numbers import lower_error, lower_error_under
from treetop.release.measurements import Measurements, align
from treetop.release.tree import ReleasedTree
from treetop.repair import REPAIRS

if TYPE_CHECKING:
    from treetop.release.release import Release

AnyRelease = TypeVar("AnyRelease", bound="Release")


def all_measurements(release: Release) -> Measurements:
    """Return all measurements of a release; refuse one that has not kept them."""
    if "groups" in release.card["plan"]:
        raise ReleaseError(
            "the group sizes of a release are found from all its measurements at all levels at once already: no second "
            "estimate by least squares is offered. Their intervals come from the measurements: ask for a table by size"
        )
    if release.evidence is None:
        rebuild_plan(release.card, release.spine, release.facts).refuse_unless_top_down()  # others have nothing to keep
    if release.evidence is None or not release.measured.measurements.complete:
        raise ReleaseError(
            "estimates need all that was measured, and this release has not kept it: the next release can, with "
            "`keep_measurements=True`, but it spends its loss again"
        )
    return release.measured.measurements


def with_lower_error(release: AnyRelease) -> AnyRelease:
    """Return a release with counts of lower error; it keeps all measurements, of which none may be missing."""
    measurements = release.measured.measurements
    if release.margins:
        nodes, count = lower_error_under(release.margins, measurements, release.tree)
    else:
        nodes, count = lower_error(measurements, release.measured.root)
    tree = ReleasedTree(release.spine, nodes, count)
    margins = tuple(table.under(tree) for table in release.margins)
    evidence = align(tree, measurements)
    return replace(release, nodes=nodes, count=count, evidence=evidence, all_measured=measurements, margins=margins)


def why_not_again(release: Release) -> str | None:
    """Return the reason that a release with kept measurements cannot be reestimated; None if it can."""
    plan = rebuild_plan(release.card, release.spine, release.facts)
    if REPAIRS[plan.repair].again:
        return "the counts of this release are those of lower error already: there is nothing to do"
    if plan.public_facts:
        return (
            "this release keeps public facts, and a second estimate of every count would leave them behind. Ask for "
            "the estimates of a `level`, which respect the facts"
        )
    if plan.resolve != "full":
        return (
            "this release leaves counts unresolved, at nodes whose children it does not name: they have no place in a "
            'second estimate. Ask it for `estimates`, or release with resolve = "full"'
        )
    return None


def estimated_again(release: AnyRelease) -> AnyRelease:
    """Return a new release of the same measurements, with counts of lower error and a card that says so."""
    all_measurements(release)
    if (reason := why_not_again(release)) is not None:
        raise ReleaseError(reason)
    plan = rebuild_plan(release.card, release.spine, release.facts)
    # It keeps what intervals come from, and so has them.
    confidence = plan.confidence or CONFIDENCE
    plan = replace(plan, prefer="lower-error", repair="least-squares", order="ascending", confidence=confidence)
    told = RunInfo.of_card(release.card)
    source = f"Estimated again from the measurements of release {told.id}: nothing was spent."
    # What a twin gave was of other counts.
    facts = replace(told.again(), description=f"{told.description} {source}".lstrip(), coverage=None)
    return replace(with_lower_error(release), card=describe_release(plan, facts), plan_toml=None, reservation=None)
