"""Statements of pages on a release: the counts without noise, and the protection of a unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from treetop._util.numbers import plain
from treetop.card.html import power
from treetop.card.meaning import BOTH
from treetop.card.sentences import HUGE, say_epsilon, say_odds
from treetop.domain.constraints import INVARIANT
from treetop.domain.marginal import MARGIN
from treetop.exporting.language import Language
from treetop.exporting.levels import ENDS
from treetop.exporting.sheet import is_exact
from treetop.release.selection import Selection

if TYPE_CHECKING:
    from markupsafe import Markup


def invariants(card: Mapping[str, Any]) -> list[str]:
    """Return the tables whose true counts are published without noise."""
    return [fact["table"] for fact in card.get("facts", ()) if INVARIANT in fact["states"]]


def compared(card: Mapping[str, Any]) -> list[str]:
    """Return the tables that the private table had to agree with."""
    return [
        fact["table"]
        for fact in card.get("facts", ())
        if INVARIANT not in fact["states"] and not fact.get("unchecked", False)
    ]


def carries_no_noise(release: Selection, depths: Sequence[int]) -> bool:
    """Whether the counts of a table, given by its depths, carry no noise."""
    if not any(depths):
        return is_exact(release.card["levels"][0])
    whole = release.whole
    if whole.facts is not None and whole.facts.decides(tuple(depths)):
        return True
    return whole.public is not None and not depths[0]  # of groups and people by region, the number is public


# How well a unit is protected, in the words of a language.

_COUNTED = {
    "records": ("counted.records", "counted.limit", "counted.limit_one"),
    "edges": ("counted.edges", "counted.limit_edges", "counted.limit_edges_one"),
    "people": ("counted.people", "counted.limit_people", "counted.limit_people_one"),
    "groups": ("counted.groups", "", ""),
}
"""By kind of count: the words for it, and those for a limit of several or of one; groups have no limit."""


def guarantee(card: Mapping[str, Any], own: Language, name: str) -> Markup:
    """Return the words of a name, or of the name with `_huge` if the loss protects next to nothing."""
    epsilon, entity = float(card["loss"]["epsilon"]["value"]), card["unit"]["entity"]
    if epsilon > HUGE:
        return own.say(f"{name}_huge", entity=entity, epsilon=own.decimal(say_epsilon(epsilon)))
    odds = own.decimal(say_odds(epsilon).removeprefix("× "))
    return own.say(name, entity=entity, odds=odds, epsilon=own.decimal(say_epsilon(epsilon)))


def exceptions(card: Mapping[str, Any], own: Language) -> Iterator[Markup]:
    """Yield the exceptions to a guarantee's factor: true counts, tables that disagree, mutual edges."""
    if tables := invariants(card):
        yield own.say("guarantee.invariant", tables=called(tables))
    if tables := compared(card):
        yield own.say("guarantee.agreeing", tables=called(tables))
    relation, entity = card.get("graph", {}).get("relation"), card["unit"]["entity"]
    if relation == "edge":
        yield own.say("guarantee.edge", entity=entity)
    if relation == "user-out":
        yield own.say("guarantee.lists")
    if relation == "node":
        yield own.say("guarantee.node", entity=entity)
    if (both := next((row for row in card["meaning"] if row["units"] == BOTH), None)) is not None:
        odds = own.decimal(say_odds(both["epsilon"]).removeprefix("× "))
        yield own.say("guarantee.mutual_huge" if both["epsilon"] > HUGE else "guarantee.mutual", odds=odds)


def is_plain(card: Mapping[str, Any]) -> bool:
    """Whether plain sentences on the protected unit fit: the table has records, and one unit has some of them."""
    unit = card["unit"]
    if "graph" in card or invariants(card) or compared(card):
        return False
    return isinstance(unit.get("contributions"), int) and not any(
        unit.get(key) for key in ("conditions", "event", "per_node")
    )


_EVENTS = {"join-leave": "event_join_leave", "move": "event_move", "group": "event_group"}


def covered(card: Mapping[str, Any], own: Language) -> Iterator[Markup]:
    """Yield how much of one unit the guarantee covers: records up to a limit, or its place in a group."""
    unit = card["unit"]
    if event := unit.get("event"):
        yield own.say(f"headline.{_EVENTS[event]}", entity=unit["entity"])
    elif isinstance(most := unit.get("contributions"), int) and not unit.get("per_node") and "graph" not in card:
        yield own.say("headline.limit_one" if most == 1 else "headline.limit", number=most, entity=unit["entity"])
        yield own.say("guarantee.enforced" if unit["enforced"] else "guarantee.declared")


def plainly(card: Mapping[str, Any], own: Language) -> Iterator[Markup]:
    """Yield the guarantee as one paragraph: the factor, how much of one unit it covers, and its exceptions."""
    yield guarantee(card, own, "headline.guarantee")
    yield from covered(card, own)
    yield from exceptions(card, own)


def or_more(card: Mapping[str, Any], own: Language) -> Iterator[Markup]:
    """Yield what an open class counts, if there is one."""
    if rule := card.get("counted", {}).get("open"):
        label = own.words["table"]["or_more"].format(number=own.number(rule["from"]))
        yield own.say("counted.open", label=label, number=rule["from"])


def attribute_label(name: str, card: Mapping[str, Any], own: Language) -> str:
    """Return the label of an attribute: names that the package gives are in the language."""
    given = card.get("counted", {}).get("open", {}).get("attribute") == name and name in ("size", "degree")
    return str(own.words["attributes"][name]) if given or name in ENDS else name


def called(tables: Sequence[str]) -> str:
    """Return the labels of tables."""
    return ", ".join(table.removeprefix(MARGIN).replace(".", " ") for table in tables)


def counted(card: Mapping[str, Any], own: Language) -> tuple[Markup | None, list[Markup]]:
    """Return the unit of the counts, and the reasons that they are smaller than the numbers in the table."""
    rules, entity = card.get("counted"), card["unit"]["entity"]
    if rules is None:
        return None, []
    most, group = rules.get("limit"), (card.get("data", {}).get("columns") or {}).get("group")
    noun, several, one = _COUNTED[rules["what"]]
    told = [own.say("counted.distinct", entity=entity)] if rules.get("distinct") else []
    if most is not None:
        told.append(own.say(one if most == 1 else several, number=most, entity=entity))
    if "projected" in rules:
        told.append(own.say("counted.projected", number=rules["projected"]))
    if rules.get("dropped"):
        told.append(own.say("counted.dropped"))
    if rules["what"] == "groups" and group:
        return own.say("counted.groups_named", name=group), told
    return own.say(noun, entity=entity), told


def tolerance(card: Mapping[str, Any], own: Language) -> Iterator[Markup]:
    """Yield the sentence on delta, if there is one."""
    if delta := card["loss"].get("delta"):
        yield own.say("sure.protected_delta", delta=own.decimal(power(plain(Fraction(delta["exact"])))))


def protection(card: Mapping[str, Any], own: Language) -> Iterator[Markup]:
    """Yield the protection: the factor, its tolerance, and the measure that experts ask for."""
    yield guarantee(card, own, "sure.protected")
    yield from tolerance(card, own)
    yield own.say("guarantee.epsilon", epsilon=own.decimal(say_epsilon(float(card["loss"]["epsilon"]["value"]))))
