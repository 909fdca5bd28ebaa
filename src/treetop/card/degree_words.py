"""The sentences of a card of degrees: neighbours, conditions, method and caveats."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from treetop.card import group_words as groups
from treetop.card.group_words import OUTSIDE, joint
from treetop.card.meaning import plural
from treetop.card.schema import Facts
from treetop.card.words import reckless
from treetop.noise.gate import WARNING
from treetop.plan.graphs.degrees import DegreeCounts, DegreePlan
from treetop.plan.graphs.regional import RegionalPlan

_MEASURED = {
    "histogram": "the number of people of each degree",
    "cumulative": "the number of people of each degree and all lower ones",
}


def mechanism(plan: DegreeCounts) -> str:
    """Say what is measured, and how it becomes a release."""
    last = "that degree" if _is_open(plan) else plan.degrees.largest
    what = f"{_MEASURED[plan.degrees.form]} is measured with noise, from 0 to {last}"
    degree = f"A degree is {plan.degrees.graph.meaning}."
    if isinstance(plan, RegionalPlan):
        return (
            f"{plan.core.name}: in every region of every level, and in all of them together, {what}; then all levels "
            "are repaired at once to non-negative whole numbers that add up (Differential Privacy of Hierarchical "
            f"Census Data, CP 2019, with people as its groups; sensitivities as stated here). {degree}"
        )
    return f"{_choosing(plan)}All at once: {what}, and repaired to non-negative whole numbers. {degree}"


def _is_open(plan: DegreeCounts) -> bool:
    """Whether theta is still to be chosen."""
    return isinstance(plan, DegreePlan) and plan.choice is not None and plan.choice.measured is None


def _choosing(plan: DegreeCounts) -> str:
    """Say how theta is chosen, where it is."""
    if not isinstance(plan, DegreePlan) or plan.choice is None:
        return ""
    listed = ", ".join(f"{theta:,}" for theta in plan.choice.candidates)
    found = "" if plan.choice.measured is None else f", {plan.degrees.largest:,},"
    return (
        f"First the largest degree{found} is chosen among {listed}: for each the number of people who reach it, "
        "once edges have been left out until nobody has more, is measured with noise, and the one is taken for which "
        "that number, at least 0, and the noise of one count of the release, as wide as it is two times in three, sum "
        f"to the least. That takes {100 * float(plan.choice.share):g} % of the loss. "
    )


def noise(plan: DegreeCounts) -> str:
    """Say which noise, and how its levels add up."""
    return groups.noise(plan)


def accuracy(plan: DegreeCounts) -> dict[str, str]:
    """Say what margins and bounds are, and what intervals are where there are any."""
    cumulative = plan.degrees.form == "cumulative"
    of = " of people of a degree and all lower ones" if cumulative else " of people of a degree"
    said = {
        "margin": f"One measurement{of} is within its margin of the truth with this confidence: the exact quantile of "
        "its noise.",
        "bound": "All counts of a level are, at once, within its bound of the truth with this confidence, repairs "
        "included, each by a part of the risk; most are far closer.",
    }
    source = "the difference of two measured cumulative counts" if cumulative else "its own measurement"
    if isinstance(plan, RegionalPlan):
        said = {
            "margin": "So far reaches the interval of one number of people, of one degree in one region of the level, "
            f"to either side of {source}: the exact quantile of the noise in it.",
            "bound": "No bound is proven for all released counts of a level at once.",
        }
    if plan.confidence is None:
        return said
    projected = " after edges were left out" if plan.relation == "node" or plan.degrees.graph.cut else ""
    said["interval"] = (
        "The bounds beside a count, lower and upper, hold the true number of people of that degree"
        f"{projected}, listed or not, with this confidence, as far as the privacy noise is concerned. They come from "
        f"{source}, by the exact law of the noise in it, half of the risk on each side; sums over degrees from the "
        "measurements that these take. They are about one count at a time. Errors of the data are not covered."
    )
    return said


def unit(plan: DegreeCounts) -> dict[str, Any]:
    """Return what else there is to state about the unit."""
    return {"conditions": conditions(plan)}


def neighbours(plan: DegreeCounts, facts: Facts) -> str:
    """Say which graphs must be hard to tell apart."""
    what = {
        "edge": "one edge",
        "user-out": "all out-edges of one person",
        "node": "one person with all edges, in and out",
    }[plan.relation]
    how = {"add-remove": f"adding or removing {what}", "replace": f"exchanging {what} for another"}
    return f"Two graphs are neighbours when one becomes the other by {how[plan.unit.neighbours]}."


def conditions(plan: DegreeCounts) -> list[str]:
    """Say what the sensitivities rest on, and for each whether it was enforced or declared."""
    largest, relation = plan.degrees.largest, plan.relation
    told = [f"Degrees above {largest} are counted with {largest}, and nobody is dropped (enforced)."]
    if relation == "node":
        room = "the largest degree that is chosen" if _is_open(plan) else largest
        of = "" if plan.degrees.graph.counted == "total" else " coming in, or going out"
        told = [
            f"Edges are left out, in an order that does not depend on them, until nobody has more than {room}{of} "
            "(enforced); everybody is counted."
        ]
    if plan.degrees.graph.cut:
        told.append(
            f"Of a list at most {plan.unit.contributions} edges are kept, at random, by that list alone (enforced)."
        )
    if relation == "edge":
        one = "row of the edge table" if plan.degrees.graph.directed else "pair of people"
        told.append(f"One {plan.unit.entity} is one {one} (declared).")
    if relation != "node":
        where = ", and in which region," if isinstance(plan, RegionalPlan) else ""
        told.append(f"Who is in the graph{where} is public (declared).")
    return told


def bound(plan: DegreeCounts) -> str:
    """Say how contributions were bounded."""
    return " ".join(conditions(plan))


def unknown(plan: DegreeCounts) -> str:
    """Say what happened to ids and codes that are not known."""
    region = " A region that is not in its hierarchy stops a release." if isinstance(plan, RegionalPlan) else ""
    if plan.unknown == "drop":
        return f"Edges to people who are not in the table of people were left out; how many is private.{region}"
    return f"An edge to somebody who is not in the table of people stops a release.{region}"


def post_processing(plan: DegreeCounts) -> list[str]:
    """Say what was done to measurements."""
    cumulative, last = plan.degrees.form == "cumulative", ["Coarser counts are the sums of the released leaves."]
    if isinstance(plan, RegionalPlan):
        return [*joint(cumulative, True, "people", "degree"), *last]
    if cumulative:
        to = "to the number of people" if plan.people_are_public else "to at most the highest of them"
        told = f"The measurements were replaced by the nearest whole numbers that rise from 0 {to}: their differences"
        return [f"{told} are the counts.", *last]
    if not plan.people_are_public:
        return ["Measurements below zero were replaced by zero.", *last]
    if isinstance(plan, DegreePlan) and plan.rest:
        return [
            "Measurements below zero were replaced by zero, and lowered to the number of people where they summed to "
            "more, with the least sum of squared changes; people without edges are what the others leave.",
            *last,
        ]
    return [
        "The measurements were replaced by the non-negative whole numbers that sum to the number of people with the "
        "least sum of squared changes.",
        *last,
    ]


def notes(plan: DegreeCounts) -> list[str]:
    """Say what will be measured and on what conditions, before a release."""
    told = [mechanism(plan), *conditions(plan)]
    if not plan.people_are_public:
        told.append("The number of people is not exact: it is what the measured degrees come to.")
    if plan.relation == "node":
        told.append(_of_theta(plan))
    return [*told, *([] if plan.confidence is not None else ["The release will have no noise intervals."])]


def _of_theta(plan: DegreeCounts) -> str:
    """Say what the largest degree costs where edges are left out above it, from public knowledge alone."""
    assert isinstance(plan, DegreePlan)  # by region, "node" is refused
    if plan.choice is not None:
        return _of_candidates(plan)
    theta, margin, people = plan.degrees.largest, plan.law.margin(Fraction(1, 20)), plan.unit.population
    share = "" if people is None else f", {100 * margin / people:.2g} % of {people:,} people"
    return (
        f"Edges above {theta:,} of a person are left out, and noise grows with that number: a count is within "
        f"{margin:,} of the truth after that, 19 times in 20{share}; twice the largest degree is twice the noise. "
        "Where that is little beside the number of people, a larger one loses fewer edges for it. Take it from public "
        "knowledge, such as the degrees of a public network of the same kind (--twin), and never from the graph; or "
        "give several, as in largest = [10, 30, 100], and have one of them chosen privately."
    )


def _of_candidates(plan: DegreePlan) -> str:
    """Say what each candidate for the largest degree costs."""
    assert plan.choice is not None
    pairs = zip(plan.choice.candidates, plan.candidate_laws, strict=True)
    said = ", ".join(f"{law.margin(Fraction(1, 20)):,} with {theta:,}" for theta, law in pairs)
    least, most = (plan.choice_parts[at].law.margin(Fraction(1, 20)) for at in (0, -1))
    return (
        "A count of the release is within so many people of the truth after edges are left out, 19 times in 20: "
        f"{said}; the table above is of the largest. What the choice sees is within {least:,} people at the smallest "
        f"candidate and {most:,} at the largest: with hardly more people than that it is left to chance."
    )


def caveats(plan: DegreeCounts, facts: Facts) -> list[str]:
    """Say what the release does not promise."""
    entity = plan.unit.entity
    told = [*([] if facts.private else [WARNING]), *reckless(plan)]
    declared = [condition for condition in conditions(plan) if "(declared" in condition]
    if declared:
        told.append(
            "Some conditions were declared, not enforced; where one does not hold, the protection is weaker or void: "
            + " ".join(declared)
        )
    if plan.people_are_public:
        told.append("The number of people is exact, and is not hidden.")
    else:
        told.append("The number of people is not exact: it is what the measured degrees come to, noise included.")
    if plan.relation == "node":
        told.append(
            f"Degrees are those of the graph as it was counted, after edges were left out until nobody had more than "
            f"{plan.degrees.largest}: true degrees are higher. How many edges those were is private."
        )
    if plan.degrees.graph.cut:
        told.append(
            f"Degrees are those of the lists as they were counted, after longer ones were cut to "
            f"{plan.unit.contributions}: true degrees are higher. How many edges that left out is private."
        )
    if plan.confidence is not None:
        told.append(OUTSIDE)
    return [
        *told,
        "Small counts are uncertain: a count that is within the margin of zero may be noise, and a degree that is not "
        "listed is a released zero, which may hide a small true count.",
        f"The guarantee is about one {entity}. What the data say about many {plural(entity)} is what is published, and "
        "may be used to guess about one of them as about anyone like them.",
        "The guarantee is about the published files, not about the machine that made them: its memory, its logs and "
        "how long it took are the steward's to guard.",
        "Every other release about the same data adds to the loss.",
    ]
