"""The catalogue: the English text of every sentence that a card, or a plan before its release, may contain.

A text names its parameters in braces; `sentences._WAYS` and `CHOICES` say how they can be written. Words of what can be
registered, such as laws and repairs, stay with it, and their sentence looks them up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from treetop.domain.unit import Unit
from treetop.io.row_batch import say_kept
from treetop.noise import LAWS
from treetop.noise.gate import WARNING
from treetop.plan.degree_unit import DegreeFacts, DegreeUnit
from treetop.plan.group_unit import GroupUnit
from treetop.plan.resolution import RULES
from treetop.privacy import Loss
from treetop.privacy.loss import say_reckless
from treetop.privacy.relation import GraphRules, one_edge
from treetop.repair import ORDERS, REPAIRS

Text: TypeAlias = str | Callable[..., str]
_ROUGHLY = "as far as the privacy noise is concerned"

CHOICES: Mapping[str, Mapping[str, str]] = {
    "extents": {
        "edge": "one edge",
        "user-out": "all out-edges of a person",
        "node": "with all edges, in and out",
        "join-leave": "in a group or in none",
        "move": "in one group",
        "group": "all that is in it",
    },
    "unit": {
        "edge": "one edge",
        "user-out": "all out-edges of one person",
        "node": "one person with all edges, in and out",
    },
    "groups": {
        "direct": "the number of groups of each size",
        "cumulative": "the number of groups of each size and all smaller ones",
    },
    "people": {
        "histogram": "the number of people of each degree",
        "cumulative": "the number of people of each degree and all lower ones",
    },
    "of people": {
        "histogram": "people of a degree",
        "cumulative": "people of a degree and all lower ones",
    },
    "source": {
        "direct": "its own measurement",
        "histogram": "its own measurement",
        "cumulative": "the difference of two measured cumulative counts",
    },
    "row of groups": {
        "people": "a person in a group",
        "groups": "a group with its size",
        "histogram": "a region and a size with its number of groups",
    },
    "state": {
        "exact": "the counts, which are public, are released as they are and not measured",
        "at_least": "counts are not below what is public",
        "at_most": "counts are not above what is public",
        "possible": "only cells that are possible, by what is public, are measured and can have counts",
        "impossible": "cells that are impossible, by what is public, are not measured and have no counts",
        "invariant": "the counts are those of the private table, told as they are: they are not protected",
    },
}
"""Words for values of a parameter, by the name after the colon in a text."""


def _guarantee(**amounts: str) -> str:
    accounting: Any = amounts.pop("accounting", None)
    stated: dict[str, Any] = {name: Fraction(exact) for name, exact in amounts.items()}
    return Loss(**stated, accounting=accounting).sentence()


def _degrees(relation: str, directed: bool, degree: Any) -> DegreeFacts:
    return DegreeFacts(relation, directed, degree=degree)


def _protected_degrees(relation: str, directed: bool, degree: Any, neighbours: Any, entity: str) -> str:
    facts = _degrees(relation, directed, degree)
    return DegreeUnit(facts, neighbours, "histogram", 1, entity, contributions=1 if facts.cut else None).sentence()


def _own_leaves(leaves: Mapping[str, str]) -> str:
    told = ", ".join(f"{attribute} under {code!r}" for attribute, code in leaves.items())
    return f"Codes that are not in their hierarchy were counted under a leaf of their own: {told}."


def _dropped_rows(values: Mapping[str, Sequence[str]]) -> str:
    either = ", or with ".join(say_kept({name: listed}) for name, listed in values.items())
    return f"Rows with {either} are no part of the data set. This was decided before the table was read."


def _fact(table: str, states: Sequence[str], unchecked: bool) -> str:
    told = "; ".join(CHOICES["state"][state] for state in states)
    return f"{table}: {told}{'; the private table is not compared with it' if unchecked else ''}."


def _tried(runs: int, covered: int, nodes: int) -> str:
    share = f"{100 * covered / nodes:.1f} % of {nodes:,}" if nodes else "none"
    return (
        f"Tried {runs} times on a public table of the same kind, {share} counts that were measured ({covered:,}) were "
        "within theirs."
    )


def _rule(rule: str, value: str, caution: bool = False) -> str:
    stated = RULES[rule]
    return stated.say(stated.caution if caution else stated.words, Fraction(value))


def _earlier(dataset: str, earlier: int, entity: str) -> str:
    before = "no earlier release" if earlier == 0 else f"{earlier} earlier release{'s' * (earlier > 1)}"
    return (
        f"The ledger knows {before} of the data set “{dataset}”, in which one {entity} is protected, always within the "
        "limits that this card states: losses for one and the same unit add up, and for different units they do not."
    )


def _most(noun: str, limit: int, entity: str) -> str:
    those = f"1 {noun} of each {entity} is counted" if limit == 1 else f"{limit:,} {noun}s of each {entity} are counted"
    return f"at most {those}"


def _limit(what: str, limit: int, entity: str) -> str:
    most = _most("record" if what == "records" else "edge", limit, entity)
    return f"A{most[1:]}; {'true degrees' if what == 'people' else 'the true total'} may be higher."


def _distinct(limit: int, entity: str) -> str:
    most = _most("record", limit, entity)
    return (
        f"Records of one {entity} in the same leaf count as one, and {most}; the true number of records may be higher."
    )


def _joint_fit(cumulative: bool, kept: bool, what: str, axis: str) -> str:
    end = f"to its number of {what}, which is public" if kept else f"and of all regions together to all {what}"
    rows = f"no {axis} has a negative number, and each region sums {end}" if kept else f"none is negative, {end}"
    if cumulative:
        rows = f"those of every region rise from 0, {end}"
    return (
        f"The measurements of all levels were replaced by the nearest real numbers of which regions add up {axis} by "
        f"{axis}, and {rows}, weighted by one over the variance of the noise. The search ended when none was further "
        "off than a small part of the noise."
    )


def _group_interval(form: str, regions: bool) -> str:
    source, cumulative = CHOICES["source"][form], form == "cumulative"
    ends = ", of which the last is public and has no noise" if cumulative and regions else ""
    rest = "" if cumulative or not regions else ", or from what the others leave of a public number"
    return (
        "The bounds beside a count, lower and upper, hold the true number of groups of that size and region, listed or "
        f"not, with this confidence, {_ROUGHLY}. They come from {source}{ends}{rest}, by the exact law of the noise in "
        "it, half of the risk on each side, and are no less than 0 and no more than the groups that there are. Sums "
        "over sizes come from the measurements that these take. They are about one count at a time; those of a "
        "cumulative table hold for all sizes of a region at once, each with its part of the risk. Errors of the data "
        "are not covered."
    )


def _theta(largest: int, margin: int, people: int | None) -> str:
    share = "" if people is None else f", {100 * margin / people:.2g} % of {people:,} people"
    return (
        f"Edges above {largest:,} of a person are left out, and noise grows with that number: a count is within "
        f"{margin:,} of the truth after that, 19 times in 20{share}; twice the largest degree is twice the noise. "
        "Where that is little beside the number of people, a larger one loses fewer edges for it. Take it from public "
        "knowledge, such as the degrees of a public network of the same kind (a twin), and never from the graph; or "
        "give several, as in largest = [10, 30, 100], and have one of them chosen privately."
    )


def _candidates(margins: Mapping[int, int], least: int, most: int) -> str:
    told = ", ".join(f"{margin:,} with {theta:,}" for theta, margin in margins.items())
    return (
        "A count of the release is within so many people of the truth after edges are left out, 19 times in 20: "
        f"{told}; the table above is of the largest. What the choice sees is within {least:,} people at the smallest "
        f"candidate and {most:,} at the largest: with hardly more people than that it is left to chance."
    )


_OF_RHO = (
    "a·rho + (ln(1/delta) − ln a)/(a − 1) + ln(1 − 1/a), rounded up (Canonne, Kamath and Steinke 2020, Proposition 12)."
)
_NEIGHBOURS = "Two tables are neighbours when one becomes the other by"

# What is protected, and how well.

_PROTECTION: Mapping[str, Text] = {
    "warning": WARNING,
    "guarantee": lambda loss: _guarantee(**loss),
    "guarantee.none": "None.",
    "protects.records": lambda unit: Unit(**unit).sentence(),
    "protects.groups": lambda entity, event, quantity: GroupUnit(entity, event, quantity).sentence(),
    "protects.degrees": _protected_degrees,
    "neighbours.same_counts": lambda tables: (
        f"Only tables with the same counts by {' and by '.join(tables)} are neighbours."
    ),
    "neighbours.agree": "Only tables that agree with what is public of {tables:list} are neighbours.",
    "neighbours.change": f"{_NEIGHBOURS} changing the values ({{columns:list}}) of one {{count:row}}, that of one "
    "{entity}.",
    "neighbours.exchange": f"{_NEIGHBOURS} exchanging the {{count:rows}} of one {{entity}}, at most {{most}}, for at "
    "most {most} others.",
    "neighbours.add_one": f"{_NEIGHBOURS} adding or removing the one {{count:row}} of one {{entity}}.",
    "neighbours.add_all": f"{_NEIGHBOURS} adding or removing all the {{count:rows}}, at most {{most}}, of one "
    "{entity}.",
    "neighbours.join-leave": "Two tables of the same groups are neighbours when one becomes the other by one {entity} "
    "joining a group, or leaving one.",
    "neighbours.move": "Two tables of the same groups are neighbours when one becomes the other by one {entity} moving "
    "from a group to any other, or one taking the place of another elsewhere.",
    "neighbours.group": "Two tables of the same groups are neighbours when one becomes the other by changing all that "
    "is in one group, so that its size may become any other.",
    "neighbours.graph.add-remove": "Two graphs are neighbours when one becomes the other by adding or removing "
    "{relation:unit}.",
    "neighbours.graph.replace": "Two graphs are neighbours when one becomes the other by exchanging {relation:unit} "
    "for another.",
    "bound.enforced": "Enforced: of each {entity}, told apart by the column {id!r}, at most {most:records} entered the "
    "release, chosen at random.",
    "bound.enforced_distinct": "Enforced: of each {entity}, told apart by the column {id!r}, at most {most:records} "
    "entered the release, chosen at random among distinct ones: those of one leaf counted as one.",
    "bound.spelling": "Ids that differ in {spelling} only are the same.",
    "bound.declared": "Declared, not enforced: the publisher states that no {entity} has more than {most:records}.",
    "condition.groups_listed.enforced": "Which {number:,} groups there are, and the region of each, is taken from a "
    "public list (SHA-256 {sha256}). Groups of it in which nobody is are counted with size 0 (enforced).",
    "condition.groups_known.declared": "Which {number:,} groups there are, and the region of each, is public, and the "
    "table has all of them, those of size 0 as well (declared; that they are so many is enforced).",
    "condition.regions_listed.enforced": "Every region has as many groups in the release as on the list (enforced).",
    "condition.regions_known.enforced": "Every region has as many groups in the release as in the table, which is "
    "declared to be public (enforced).",
    "condition.largest_size.enforced": "Groups larger than {largest} are counted with size {largest}; none "
    "is dropped (enforced).",
    "condition.one_group.enforced": "One {entity} is in at most one group: the column {id!r} tells them apart "
    "(enforced).",
    "condition.one_group.declared": "One {entity} is in at most one group (declared).",
    "condition.quantity.enforced": "One {entity} adds at most {quantity} to the size of a group (enforced).",
    "condition.quantity.declared": "One {entity} adds at most {quantity} to the size of a group (declared).",
    "condition.largest_degree.enforced": "Degrees above {largest} are counted with {largest}, and nobody is dropped "
    "(enforced).",
    "condition.projected.enforced": "Edges are left out, in an order that does not depend on them, until nobody has "
    "more than {largest} (enforced); everybody is counted.",
    "condition.projected_ends.enforced": "Edges are left out, in an order that does not depend on them, until nobody "
    "has more than {largest} coming in, or going out (enforced); everybody is counted.",
    "condition.projecting.enforced": "Edges are left out, in an order that does not depend on them, until nobody has "
    "more than the largest degree that is chosen (enforced); everybody is counted.",
    "condition.projecting_ends.enforced": "Edges are left out, in an order that does not depend on them, until nobody "
    "has more than the largest degree that is chosen coming in, or going out (enforced); everybody is counted.",
    "condition.cut.enforced": "Of a list at most {most} edges are kept, at random, by that list alone (enforced).",
    "condition.one_row.declared": "One {entity} is one row of the edge table (declared).",
    "condition.one_pair.declared": "One {entity} is one pair of people (declared).",
    "condition.people.declared": "Who is in the graph is public (declared).",
    "condition.people_by_region.declared": "Who is in the graph, and in which region, is public (declared).",
    "who.record": "one record",
    "who.record_of_several": "one record of {entity:a} with several",
    "who.edge_of_list": "one edge of {entity:a} (added, removed or with another end)",
    "who.unit": "one {entity} ({extent:extent})",
    "who.unit_alone": "one {entity} ({extent:extent}), this release alone (exact accounting)",
    "who.unit_beside": "one {entity} ({extent:extent}), beside other releases",
    "who.both": "one {entity} in both directions (two edges)",
    "who.together": "{units} {entity:plural} together",
    "who.person": "a person with {units} such {entity:plural}",
    "who.person_week": "a person with {units} such {entity:plural} (a week there and back)",
    "conversion.zcdp": "The tight conversion of zero-concentrated differential privacy: the least epsilon over a > 1 "
    f"of {_OF_RHO}",
    "conversion.exact": "By exact accounting: the law of the privacy loss of all levels together, from the discrete "
    "Gaussian noise of each count that one unit can move, with all rounding upwards. This holds for the release alone. "
    "Beside other releases, and for several units, it counts as its rho; the epsilon of that is the least over a > 1 "
    f"of {_OF_RHO}",
    "exact.records": "the total number of records: neighbours all have the same one, so it is released without noise, "
    "and whether a {entity} is in the data at all is not hidden",
    "exact.groups": "the number of groups: which groups there are, and in which region, is public, so their number is "
    "released without noise, and those of all regions add up to it",
    "exact.people": "the number of people: who is in the graph is public, so it is released without noise, and the "
    "degrees add up to it",
    "exact.people_kept": "the number of people: neighbours all have as many, so it is released without noise, and the "
    "degrees add up to it",
    "exact.invariant": "the true counts by {table}, and what they add up to: they are not protected",
    "exact.public": "the counts by {table}, which were public before",
    "exact.hierarchies": "the hierarchies: their levels, codes and parents are public, and published as they are",
    "exact.plan": "the plan itself: the unit, the loss and the noise of every level",
    "composition.none": "No ledger recorded this release. Add its loss by hand to that of every other "
    "release about the same {entity:plural}.",
    "composition.ledger": _earlier,
    "composition.spent": "With this one, {currency} {spent:number} of a budget of {budget:number} is spent.",
    "composition.spent_together": "With this one, epsilon {epsilon:number} of a budget of {budget:number} at delta "
    "{delta:number} (by the noise of all counts that one unit can move; as rho, {rho:number}) is spent.",
    "composition.if": lambda conditions: f"This sum, like every loss in it, holds only if {' and '.join(conditions)}.",
    "composition.by_hand_if": lambda conditions: (
        f"The sum then holds only if {' and '.join(conditions)}, and on the conditions of those releases."
    ),
}

# What is counted, of which rows.

_DATA: Mapping[str, Text] = {
    "counted.limit": _limit,
    "counted.distinct": _distinct,
    "counted.projected": "Edges were left out until nobody had more than {largest:,}; true degrees may be higher.",
    "counted.open": "A {attribute} of {largest:,} stands for that or more.",
    "counted.dropped": "Records with an unknown code are not counted.",
    "rows.kept": lambda values: (
        f"The data set is the rows with {say_kept(values)}; the other rows of the table are no part of it. This was "
        "decided before the table was read."
    ),
    "rows.dropped": _dropped_rows,
    "unknown.own_leaf": _own_leaves,
    "unknown.dropped": "Records with a code that is not in its hierarchy were left out; how many is private.",
    "unknown.refused": "A code that is not in its hierarchy stops a release.",
    "unknown.groups_refused": "A region that is not in its hierarchy, or a group that is not on the list, stops a "
    "release.",
    "unknown.people_dropped": "Edges to people who are not in the table of people were left out; how many is private.",
    "unknown.people_refused": "An edge to somebody who is not in the table of people stops a release.",
    "unknown.regions_refused": "A region that is not in its hierarchy stops a release.",
    "fact": _fact,
    "fact.meaning": "The true counts by {table} are published without noise. Someone who knows all others "
    "there learns whether one more {entity} is there. Everything else about {entity:a} is protected, if its "
    "{table} is taken as known.",
    "graph.edges": lambda graph, number: GraphRules.of(graph).sentences()[number],
    "graph.degrees": lambda relation, directed, degree, number: _degrees(relation, directed, degree).sentences()[
        number
    ],
    "graph.one_edge": one_edge,
}


# How it was measured, and what was done to measurements.

_METHOD: Mapping[str, Text] = {
    "mechanism.top_down": "Top-down: from the total to the leaves, each public child of each node above zero "
    "is measured with noise, whether or not it occurs in the data. The measurements are then repaired to "
    "non-negative whole numbers that add up to their parent.",
    "mechanism.margins": "Beside it, tables of attributes alone (margins) are measured with noise, and made to add up "
    "to each other and to the total before all else; the counts of every level then agree with their parents and with "
    "the margins.",
    "mechanism.sums": "Not measured, and sums of what is measured below them: {levels:list}.",
    "mechanism.groups": "{name}: in every region of every level, and in all of them together, {form:groups} is "
    "measured with noise, from 0 to {largest}; then all levels are repaired at once to non-negative whole numbers that "
    "add up (Differential Privacy of Hierarchical Census Data, CP 2019; sensitivities as stated here; this repair is "
    "not in the paper).",
    "mechanism.groups_exact": "{name}: in every region of every level, and in all of them together, {form:groups} is "
    "measured with noise, from 0 to {largest}; then all levels are repaired at once to non-negative whole numbers that "
    "add up (Differential Privacy of Hierarchical Census Data, CP 2019; sensitivities as stated here).",
    "mechanism.regions": "{name}: in every region of every level, and in all of them together, {form:people} is "
    "measured with noise, from 0 to {largest}; then all levels are repaired at once to non-negative whole numbers that "
    "add up (Differential Privacy of Hierarchical Census Data, CP 2019, with people as its groups; sensitivities as "
    "stated here).",
    "mechanism.degrees": "All at once: {form:people} is measured with noise, from 0 to {largest}, and repaired to "
    "non-negative whole numbers.",
    "mechanism.degrees_open": "All at once: {form:people} is measured with noise, from 0 to that degree, and repaired "
    "to non-negative whole numbers.",
    "mechanism.degree": lambda relation, directed, degree: (
        f"A degree is {_degrees(relation, directed, degree).meaning}."
    ),
    "mechanism.theta": "First the largest degree, {largest:,}, is chosen among {candidates:thousands}: for each the "
    "number of people who reach it, once edges have been left out until nobody has more, is measured with noise, and "
    "the one is taken for which that number, at least 0, and the noise of one count of the release, as wide as it is "
    "two times in three, sum to the least. That takes {share:percent} of the loss.",
    "mechanism.theta_open": "First the largest degree is chosen among {candidates:thousands}: for each the number of "
    "people who reach it, once edges have been left out until nobody has more, is measured with noise, and the one is "
    "taken for which that number, at least 0, and the noise of one count of the release, as wide as it is two times in "
    "three, sum to the least. That takes {share:percent} of the loss.",
    "noise.law": lambda law: LAWS[law].words,
    "noise.laplace": "Discrete Laplace noise; one {entity} moves the counts of a level by {l1} in all (L1), a level "
    "costs that divided by the scale, and levels add up.",
    "noise.gaussian": "Discrete Gaussian noise; one {entity} moves the counts of a level by {l2_squared} in squares "
    "(L2²), a level costs that divided by twice the variance, as rho of zero-concentrated differential privacy, and "
    "levels add up.",
    "sampler": "Exact: noise is drawn from the discrete law itself, by comparing random bits with its cumulative "
    "probabilities in rigorous interval arithmetic; no floating-point approximation.",
    "randomness.fresh": "A fresh 256-bit key from the operating system for this run only, expanded by AES-256-CTR; it "
    "was not kept.",
    "randomness.testing": "A testing key, which others know: anyone who has it can remove the noise.",
    "derivation": "The noise of a count depends only on that key, on the level and on the count's place in "
    "the public table, not on the order of computation.",
    "after.repair": lambda repair, step, order: REPAIRS[repair].words[step].format(order=ORDERS[order].words),
    "after.margins": "The measurements of each attribute alone were combined by least squares and made whole numbers "
    "from the top down, so that every margin adds up to its parent and to the total.",
    "after.shared_again": "At the last level the counts were then shared again by how likely each unit is to be there, "
    "as far as the measurements themselves tell how true counts are spread; every parent and every cell of the margin "
    "kept its count.",
    "after.two_sided": "Where a margin counts the same children, all nodes that have them were fitted together: to the "
    "nearest counts that add up to every parent and to every cell of the margin, and then to whole numbers that do so "
    "exactly.",
    "after.crossing": "Tables that cross one before them cannot be kept exactly beside it ({tables:list}): "
    "measurements were moved towards them before each fit, and their counts are sums of the released leaves. How far "
    "the counts are off what was measured of them is stated. Their intervals are around what was measured of them: "
    "they hold the true counts as stated, and a released count may lie outside its own.",
    "after.facts": "Children were repaired within what is public of them: what they have at least and at most. "
    "Impossible children were no children.",
    "after.facts_nearly": "Facts about single cells may leave no counts that agree with every margin: {tables:list} "
    "are kept as nearly as the facts allow. How far the counts are off what was measured of them is stated.",
    "after.zeros": "Nodes that were repaired to zero were not refined: everything below them is released as zero.",
    "after.sums": "Coarser counts are the sums of the released leaves.",
    "after.named": lambda rule, value: (
        f"A child was named only where a measurement shows that it is not empty: {_rule(rule, value)}. An only child, "
        "which is not measured, was tested with the measurement of its parent, or of the nearest node above that has "
        "one."
    ),
    "after.unresolved": "What the other children would have had was left at their parent, as unresolved: it is in the "
    "count of that node and in all coarser counts, and in no finer one. What was not named was not descended into.",
    "after.sums_unresolved": "Coarser counts are the sums of the released leaves and of what is unresolved at them or "
    "below.",
    "after.rising": "In each region the cumulative measurements were replaced by the nearest whole numbers that rise "
    "from 0 to at most the number of all groups, and these by their differences.",
    "after.certified": "All levels were then repaired at once: to the non-negative whole numbers with the number of "
    "all groups, and with regions that add up size by size, that have the least sum of squared changes, weighted by "
    "one over the variance of the noise; ties were broken at random. That there are none nearer was proven by a "
    "certificate.",
    "after.joint_fit": _joint_fit,
    "after.joint_whole": "From the top down these became whole numbers: the parts of each region got the "
    "nearest non-negative numbers, by the sum of squared changes, that add up to the region {axis} by {axis} "
    "and in each part to its number of {what}. Ties were broken at random. Dual prices prove that none are "
    "nearer.",
    "after.joint_whole_free": "From the top down these became whole numbers: the parts of each region got "
    "the nearest non-negative numbers, by the sum of squared changes, that add up to the region {axis} by "
    "{axis} and in each part to its number of {what}, which was found in the same way. Ties were broken at "
    "random. Dual prices prove that none are nearer.",
    "after.degrees_rising": "The measurements were replaced by the nearest whole numbers that rise from 0 to the "
    "number of people: their differences are the counts.",
    "after.degrees_rising_free": "The measurements were replaced by the nearest whole numbers that rise from 0 to at "
    "most the highest of them: their differences are the counts.",
    "after.degrees_clipped": "Measurements below zero were replaced by zero.",
    "after.degrees_rest": "Measurements below zero were replaced by zero, and lowered to the number of people where "
    "they summed to more, with the least sum of squared changes; people without edges are what the others leave.",
    "after.degrees_sum": "The measurements were replaced by the non-negative whole numbers that sum to the number of "
    "people with the least sum of squared changes.",
}


# How accurate counts are.

_ACCURACY: Mapping[str, Text] = {
    "margin": "One measurement is within its margin of the truth with this confidence: the exact quantile of its "
    "noise.",
    "margin.degrees": "One measurement of {form:of people} is within its margin of the truth with this confidence: the "
    "exact quantile of its noise.",
    "margin.regions": "Half the width of the interval of one number of {what}, of one {axis} in one region "
    "of the level, around {form:source}: the exact quantile of its noise.",
    "bound": "All counts of a level are, at once, within its bound of the truth with this confidence, repairs "
    "included; most are far closer (inftda-categorical, Theorem 1, with exact quantiles).",
    "bound.named": "All named counts of a level are, at once, within its bound of the truth with this confidence, "
    "repairs included; most are far closer (inftda-categorical, Theorem 1, with exact quantiles).",
    "bound.not_released": "All counts of the descent, before they were estimated again, are at once within their bound "
    "of the truth with this confidence (inftda-categorical, Theorem 1, with exact quantiles). The released counts are "
    "closer on average, but the bound is not proved for them.",
    "bound.margins": "No bound is stated for all counts at once: none is proved for counts that agree with their "
    "parents and with margins.",
    "bound.degrees": "All counts of a level are, at once, within its bound of the truth with this confidence, repairs "
    "included, each by a part of the risk; most are far closer.",
    "bound.regions": "No bound is proven for all released counts of a level at once.",
    "interval": "The bounds beside a count, lower and upper, contain the true count with this confidence. "
    "They account for the privacy noise only, not for errors of the survey or records that were left out. "
    "The count's own measurement takes nine tenths of the risk, the upper bounds above it one tenth. A count "
    "that is not listed is at most what the nearest released count above it allows.",
    "interval.named": "The bounds beside a count, lower and upper, are about the privacy noise only, and account for "
    "how counts came to be named, by their own measurements: of those named at a level, the expected share whose true "
    "counts lie outside is at most 1 less this confidence (false coverage rate, Benjamini and Yekutieli 2005: a count "
    "has the interval of its measurement at that risk times R/m, for R named of m tested). The true count of a node "
    "that was chosen in advance lies within with this confidence. A count that is not listed is at most what the "
    "nearest released count above it allows for. Errors of the survey and records that were left out are not covered.",
    "interval.margins": "The interval of a margin's count, and of any sum that is one, is that of its own measurement "
    "alone.",
    "interval.groups": _group_interval,
    "interval.degrees": "The bounds beside a count, lower and upper, hold the true number of people of that degree, "
    f"listed or not, with this confidence, {_ROUGHLY}. They come from {{form:source}}, by the exact law of the noise "
    "in it, half of the risk on each side; sums over degrees from the measurements that these take. They are about one "
    "count at a time. Errors of the data are not covered.",
    "interval.degrees_left": "The bounds beside a count, lower and upper, hold the true number of people of that "
    f"degree after edges were left out, listed or not, with this confidence, {_ROUGHLY}. They come from "
    "{form:source}, by the exact law of the noise in it, half of the risk on each side; sums over degrees from the "
    "measurements that these take. They are about one count at a time. Errors of the data are not covered.",
    "coverage.untried": "The interval of a count, released or not, holds the truth with a confidence of "
    "{nominal:percent}, over the noise of all runs that there could have been; it was not tried on a public table.",
    "coverage.named_untried": "The interval of a count, released or not, holds the truth with a confidence of "
    "{nominal:percent}, and {nominal:percent} or more of those that are named at a level are expected to hold it, over "
    "the noise of all runs that there could have been; it was not tried on a public table.",
    "coverage": "The interval of a count, released or not, holds the truth with a confidence of {nominal:percent}.",
    "coverage.named": "The interval of a count, released or not, holds the truth with a confidence of "
    "{nominal:percent}, and {nominal:percent} or more of those that are named at a level are expected to hold it.",
    "coverage.tried": _tried,
    "coverage.raised": "Fewer of the counts that are released above zero may be covered, because noise that "
    "raises a count makes its release more likely.",
}


# What a release does not promise.

_CAVEATS: Mapping[str, Text] = {
    "caveat.reckless": lambda part, value: say_reckless(part, Fraction(value)),
    "caveat.large_delta": "Delta {delta:number} is one in the number of {entity:plural}, or more, or may be: a release "
    "that told all about one {entity}, chosen at random, could keep it. The plan says that this is meant.",
    "caveat.declared_limit": "The limit of {most} per {entity} was declared, not enforced: {entity:a} with more "
    "records is less protected, as the table of what the loss means shows.",
    "caveat.declared_caps": "The limits of records per node were declared, not enforced.",
    "caveat.declared": "Some conditions were declared, not enforced. If one does not hold, the protection is "
    "weaker or void: {conditions:sentences}",
    "caveat.facts_true": "Intervals exclude what public facts rule out. They hold as stated if these facts "
    "are true of the table.",
    "caveat.facts_agreed": "The private table agreed with the public facts; otherwise there would be no "
    "release. The release reveals this agreement without noise.",
    "caveat.exact_total": "The total is exact: whether {entity:a} is in the data at all is not hidden.",
    "caveat.exact_accounting": "Epsilon {alone:epsilon} is that of this release alone, by exact accounting. Beside "
    "other releases about the same data it counts as rho {rho:number}, which is epsilon {beside:epsilon} at the same "
    "delta.",
    "caveat.kept_rows": "The guarantee is about tables of such rows as were kept ({columns:list}): a change that would "
    "take {entity:a} out of them, or into them, is not covered.",
    "caveat.left_out": "Margins and bounds describe the table as it was counted, without records beyond the "
    "limit or with unknown codes. The number of those records is private.",
    "caveat.groups_exact": "The number of groups is exact, and which groups there are, and where, is not hidden.",
    "caveat.groups_one": "The number of groups is exact. The release protects one {entity}. What is true of "
    "several at once, such as the size of a large group, is protected less, as the table of what the loss "
    "means shows.",
    "caveat.people_exact": "The number of people is exact, and is not hidden.",
    "caveat.people_noisy": "The number of people is not exact: it is what the measured degrees come to, noise "
    "included.",
    "caveat.projected": "Degrees are those of the graph as it was counted, after edges were left out until nobody had "
    "more than {largest}: true degrees are higher. How many edges those were is private.",
    "caveat.cut": "Degrees are those of the lists as they were counted, after longer ones were cut to {most}: true "
    "degrees are higher. How many edges that left out is private.",
    "caveat.small.leaf": "Small counts are uncertain. A count within the margin of zero may be noise. A leaf "
    "that is not listed is released as zero, and may have a small true count.",
    "caveat.small.size": "Small counts are uncertain. A count within the margin of zero may be noise. A size "
    "that is not listed for a region is released as zero, and may have a small true count.",
    "caveat.small.degree": "Small counts are uncertain. A count within the margin of zero may be noise. A "
    "degree that is not listed is released as zero, and may have a small true count.",
    "caveat.unresolved": "A leaf that is not listed is not a released zero: it may have a part of what is unresolved "
    "at a coarser node above it. The sum of the listed leaves alone is too small; add what is unresolved.",
    "caveat.named": "That a node is named says that it is very likely there, not that its count is exact: that of a "
    "small one is uncertain.",
    "caveat.rule": lambda rule, value: _rule(rule, value, caution=True),
    "caveat.outside": "A count may lie outside its interval: counts were adjusted to add up, and intervals "
    "come from the measurements. If they disagree, believe the interval.",
    "caveat.many": "The guarantee protects each {entity} by itself. The release describes {entity:plural} in "
    "general, and anyone can use that to guess about one of them.",
    "caveat.machine": "The guarantee covers the published files, not the machine that made them. The steward "
    "must protect its memory, its logs and its running times.",
    "caveat.others": "Every other release about the same data adds to the loss.",
}

# What there is to know before a release: no card has these.

_NOTES: Mapping[str, Text] = {
    "note.bound": "± all: {bound:sentences}",
    "note.named": lambda rule, value: (
        f"A child will be named only where a measurement shows that it is not empty: {_rule(rule, value)}. An only "
        "child, which is not measured, is tested with the measurement of its parent, or of the nearest node above that "
        "has one."
    ),
    "note.no_intervals": "The release will have no noise intervals.",
    "note.empty_table": "An empty table would be wrong by one for every edge. The noise here, for people with up to "
    "{most:,} edges, sums to about {noise:,.0f} over the {nodes:,} possible cells of {level}. In studies a table was "
    "nearer to the truth than an empty one only where the graph had more than about a tenth of that, {needed:,.0f} "
    'edges. With fewer, release less of it: coarser groups, or fewer levels; or choose the relation "edge" or '
    '"user-out", if they protect enough.',
    "note.worse_than_none": "with about {edges:,.0f} edges this table would be worse than an empty one: it takes some "
    "{needed:,.0f}, or {times:,.3g} times as many, for its noise to be worth it.",
    "note.fact_meaning": "What this means for one {entity}: {meaning:sentences}",
    "note.facts_compared": "The private table is compared with the public facts before anything is charged. "
    "A table that contradicts them is refused. Anyone who learns of the refusal learns that they disagree.",
    "note.groups": "{name}: a row of the table is {rows:row of groups}; {form:groups} is measured in every region.",
    "note.largest_noise": "Sizes from {largest} up are counted as one. Telling more of them apart costs "
    "noise in proportion to the largest size; the direct form does not.",
    "note.largest_counts": "Sizes from {largest} up are counted as one. Telling more of them apart costs "
    "more counts in every region, each as uncertain as these, and no more noise on any of them.",
    "note.people_noisy": "The number of people is not exact: it is what the measured degrees come to.",
    "note.theta": _theta,
    "note.candidates": _candidates,
}


TEXTS: Mapping[str, Text] = {**_PROTECTION, **_DATA, **_METHOD, **_ACCURACY, **_CAVEATS, **_NOTES}
"""The text of every sentence by its identifier: with parameters in braces, or a function of them."""
