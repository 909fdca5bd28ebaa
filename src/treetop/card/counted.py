"""What the counts of a release are: of what, up to which limit, and with which open class."""

from __future__ import annotations

from typing import Any

from treetop.plan.graphs.degrees import DegreeCounts
from treetop.plan.groups.planned import PureGroupTablePlan
from treetop.plan.plan import PurePlan


def counted(plan: PurePlan) -> dict[str, Any]:
    """Return what is counted, and every rule that makes a released count smaller than the number in the table.

    `what` is "records", "edges", "groups" or "people". `limit` is the most records or edges of one unit that are
    counted, if that is enforced; `distinct` says that those of one leaf count as one; `projected` is the largest degree
    up to which edges were kept; `open` names the attribute whose largest value stands for larger ones as well;
    `dropped` says that records with unknown codes are left out. `sentences` say the same in words.
    """
    if isinstance(plan, PureGroupTablePlan):
        return _with_words(plan, {"what": "groups", "open": {"attribute": "size", "from": plan.sizes.largest}})
    if isinstance(plan, DegreeCounts):
        rules: dict[str, Any] = {"what": "people"}
        if plan.relation == "node":
            rules["projected"] = plan.degrees.largest
        if plan.degrees.graph.cut:
            rules["limit"] = plan.unit.contributions
        return _with_words(plan, rules | {"open": {"attribute": "degree", "from": plan.degrees.largest}})
    rules = {"what": "records" if plan.graph is None else "edges"}
    if plan.unit.enforced:
        rules |= {"limit": plan.unit.contributions} | ({"distinct": True} if plan.unit.distinct else {})
    if plan.unknown == "drop":
        rules["dropped"] = True
    return _with_words(plan, rules)


def _with_words(plan: PurePlan, rules: dict[str, Any]) -> dict[str, Any]:
    return rules | {"sentences": [*_limit(plan, rules), *_others(rules)]}


def _limit(plan: PurePlan, rules: dict[str, Any]) -> list[str]:
    """Say how much of one unit is counted, if that is limited."""
    most, entity, noun = rules.get("limit"), plan.unit.entity, "edge" if rules["what"] != "records" else "record"
    if most is None:
        return []
    those = f"1 {noun} of each {entity} is counted" if most == 1 else f"{most:,} {noun}s of each {entity} are counted"
    if rules["what"] == "people":
        return [f"At most {those}; true degrees may be higher."]
    if rules.get("distinct"):
        return [
            f"Records of one {entity} in the same leaf count as one, and at most {those}; the true number of records "
            "may be higher."
        ]
    return [f"At most {those}; the true total may be higher."]


def _others(rules: dict[str, Any]) -> list[str]:
    told = []
    if "projected" in rules:
        told.append(
            f"Edges were left out until nobody had more than {rules['projected']:,}; true degrees may be higher."
        )
    if "open" in rules:
        told.append(f"A {rules['open']['attribute']} of {rules['open']['from']:,} stands for that or more.")
    if rules.get("dropped"):
        told.append("Records with an unknown code are not counted.")
    return told
