"""The sentences of a card of group sizes: neighbours, conditions, method and caveats."""

from __future__ import annotations

from typing import Any

from treetop.card.meaning import plural
from treetop.card.schema import Facts
from treetop.card.words import reckless
from treetop.noise.gate import WARNING
from treetop.plan.groups.planned import GroupTablePlan
from treetop.plan.plan import Plan

_MEASURED = {
    "direct": "the number of groups of each size",
    "cumulative": "the number of groups of each size and all smaller ones",
}
OUTSIDE = (
    "A count may lie outside its interval: counts were moved so that everything adds up, while an interval "
    "stands around what was measured. Where they disagree, believe the interval."
)
_ROW = {
    "people": "a person in a group",
    "groups": "a group with its size",
    "histogram": "a region and a size with its number of groups",
}


def mechanism(plan: GroupTablePlan) -> str:
    """Say what is measured, and how it becomes a release."""
    theirs = "" if plan.method == "exact" else "; this repair is not in the paper"
    return (
        f"{plan.core.name}: in every region of every level, and in all of them together, {_MEASURED[plan.sizes.form]} "
        f"is measured with noise, from 0 to {plan.sizes.largest}; then all levels are repaired at once to non-negative "
        "whole numbers that add up (Differential Privacy of Hierarchical Census Data, CP 2019; sensitivities as stated "
        f"here{theirs})."
    )


def noise(plan: Plan) -> str:
    """Say which noise, and how its levels add up, where one unit moves each of them as far."""
    change = plan.unit.sensitivity("")
    if plan.loss.definition == "pure":
        return (
            f"Discrete Laplace noise; one {plan.unit.entity} moves the counts of a level by {change.l1} in all (L1), a "
            "level costs that divided by the scale, and levels add up."
        )
    return (
        f"Discrete Gaussian noise; one {plan.unit.entity} moves the counts of a level by {change.l2_squared} in "
        "squares (L2²), a level costs that divided by twice the variance, as rho of zero-concentrated differential "
        "privacy, and levels add up."
    )


def accuracy(plan: GroupTablePlan) -> dict[str, str]:
    """Say what margins and bounds are, and what intervals are where there are any."""
    cumulative = plan.sizes.form == "cumulative"
    source = "the difference of two measured cumulative counts" if cumulative else "its own measurement"
    said = {
        "margin": "So far reaches the interval of one number of groups, of one size in one region of the level, to "
        f"either side of {source}: the exact quantile of the noise in it.",
        "bound": "No bound is proven for all released counts of a level at once.",
    }
    if not plan.has_intervals:
        return said
    ends = ", of which the last is public and has no noise" if cumulative and plan.keeps_regions else ""
    rest = "" if cumulative or not plan.keeps_regions else ", or from what the others leave of a public number"
    said["interval"] = (
        "The bounds beside a count, lower and upper, hold the true number of groups of that size and region, listed or "
        f"not, with this confidence, as far as the privacy noise is concerned. They come from {source}{ends}{rest}, by "
        "the exact law of the noise in it, half of the risk on each side, and are no less than 0 and no more than the "
        "groups that there are. Sums over sizes come from the measurements that these take. They are about one count "
        "at a time; those of a cumulative table hold for all sizes of a region at once, each with its part of the "
        "risk. Errors of the data are not covered."
    )
    return said


def unit(plan: GroupTablePlan) -> dict[str, Any]:
    """Return what else there is to state about the unit."""
    group = plan.sizes.group
    return {"event": group.event, "quantity": group.quantity, "conditions": conditions(plan)}


def neighbours(plan: GroupTablePlan, facts: Facts) -> str:
    """Say which tables must be hard to tell apart."""
    group = plan.sizes.group
    how = {
        "join-leave": f"one {group.entity} joining a group, or leaving one",
        "move": f"one {group.entity} moving from a group to any other, or one taking the place of another elsewhere",
        "group": "changing all that is in one group, so that its size may become any other",
    }[group.event]
    return f"Two tables of the same groups are neighbours when one becomes the other by {how}."


def conditions(plan: GroupTablePlan) -> list[str]:
    """Say what the sensitivities rest on, and for each whether it was enforced or declared."""
    group = plan.sizes.group
    told = []
    if plan.list_sha256 is not None:
        told.append(
            f"Which {plan.number:,} groups there are, and the region of each, is taken from a public list (SHA-256 "
            f"{plan.list_sha256}). Groups of it in which nobody is are counted with size 0 (enforced)."
        )
    else:
        told.append(
            f"Which {plan.number:,} groups there are, and the region of each, is public, and the table has all of "
            "them, those of size 0 as well (declared; that they are so many is enforced)."
        )
    if plan.keeps_regions:
        how = "on the list" if plan.list_sha256 is not None else "in the table, which is declared to be public"
        told.append(f"Every region has as many groups in the release as {how} (enforced).")
    told.append(
        f"Groups of more than {plan.sizes.largest} are counted with size {plan.sizes.largest}, and none is dropped "
        "(enforced)."
    )
    if group.event != "group":
        told.append(_one_group(plan))
        how = "enforced" if plan.rows == "people" else "declared"
        told.append(f"One {group.entity} adds at most {group.quantity} to the size of a group ({how}).")
    return told


def _one_group(plan: GroupTablePlan) -> str:
    entity = plan.unit.entity
    if plan.rows == "people" and plan.unit.id is not None:
        return f"One {entity} is in at most one group: the column {plan.unit.id!r} tells them apart (enforced)."
    return f"One {entity} is in at most one group (declared)."


def bound(plan: GroupTablePlan) -> str:
    """Say how contributions were bounded."""
    return " ".join(conditions(plan))


def unknown(plan: GroupTablePlan) -> str:
    """Say what happened to codes that are not in a hierarchy."""
    return "A region that is not in its hierarchy, or a group that is not on the list, stops a release."


def post_processing(plan: GroupTablePlan) -> list[str]:
    """Say what was done to measurements."""
    last = "Coarser counts are the sums of the released leaves."
    if plan.method == "joint":
        return [*joint(plan.sizes.form == "cumulative", plan.keeps_regions, "groups", "size"), last]
    told = []
    if plan.sizes.form == "cumulative":
        told.append(
            "In each region the cumulative measurements were replaced by the nearest whole numbers that rise from 0 to "
            + ("its number of groups" if plan.public == "regions" else "at most the number of all groups")
            + ", and these by their differences."
        )
    told.append(
        "All levels were then repaired at once: to the non-negative whole numbers with the number of all groups, and "
        "with regions that add up size by size, that have the least sum of squared changes, weighted by one over the "
        "variance of the noise; ties were broken at random. That there are none nearer was proven by a certificate."
    )
    return [*told, last]


def joint(cumulative: bool, kept: bool, what: str, axis: str) -> list[str]:
    """Say how all regions and sizes were made possible at once."""
    end = f"to its number of {what}, which is public" if kept else f"and of all regions together to all {what}"
    rows = f"no {axis} has a negative number, and each region sums {end}" if kept else f"none is negative, {end}"
    if cumulative:
        rows = f"those of every region rise from 0, {end}"
    return [
        f"The measurements of all levels were replaced by the nearest real numbers of which regions add up {axis} by "
        f"{axis}, and {rows}, weighted by one over the variance of the noise. The search ended when none was further "
        "off than a small part of the noise.",
        f"From the top down these became whole numbers: the parts of each region got those with the least sum of "
        f"squared changes that are not negative, add up to the region {axis} by {axis}, and in each part to its "
        f"number of {what}{'' if kept else ', which was found in the same way'}. Ties were broken at random, and that "
        "none are nearer is proven by prices.",
    ]


def notes(plan: GroupTablePlan) -> list[str]:
    """Say what will be measured and on what conditions, before a release."""
    measured = _MEASURED[plan.sizes.form]
    return [
        f"{plan.core.name}: a row of the table is {_ROW[plan.rows]}; {measured} is measured in every region.",
        *conditions(plan),
        _largest(plan),
        *([] if plan.has_intervals else ["The release will have no noise intervals."]),
    ]


def _largest(plan: GroupTablePlan) -> str:
    """Say what a larger largest size would cost, which is public, beside what it would tell."""
    group, largest = plan.sizes.group, plan.sizes.largest
    here, more = (group.sensitivity(plan.sizes.form, size).l1 for size in (largest, 2 * largest))
    told = f"Sizes from {largest} on are one: whoever needs them apart pays with"
    if more > here:
        return f"{told} noise, in proportion to the largest size; the direct form does not."
    return f"{told} more counts in every region, each as uncertain as these, and not with more noise on any of them."


def caveats(plan: GroupTablePlan, facts: Facts) -> list[str]:
    """Say what the release does not promise."""
    entity = plan.unit.entity
    told = [*([] if facts.private else [WARNING]), *reckless(plan)]
    declared = [condition for condition in conditions(plan) if "(declared" in condition]
    if declared:
        told.append(
            "Some conditions were declared, not enforced; where one does not hold, the protection is weaker or void: "
            + " ".join(declared)
        )
    told.append(
        "The number of groups is exact, and which groups there are, and where, is not hidden."
        if plan.sizes.group.event == "group"
        else f"The number of groups is exact. What is hidden is one {entity}: what is true of several at once, such as "
        "the size of a large group, is hidden less, as the table of what the loss means shows."
    )
    if plan.has_intervals:
        told.append(OUTSIDE)
    return [
        *told,
        "Small counts are uncertain: a count that is within the margin of zero may be noise, and a size that is not "
        "listed for a region is a released zero, which may hide a small true count.",
        f"The guarantee is about one {entity}. What the data say about many {plural(entity)} is what is published, and "
        "may be used to guess about one of them as about anyone like them.",
        "The guarantee is about the published files, not about the machine that made them: its memory, its logs and "
        "how long it took are the steward's to guard.",
        "Every other release about the same data adds to the loss.",
    ]
