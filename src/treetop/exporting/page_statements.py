"""Statements on a release in the words of a language: exactness, noise, protection; and the notes of a workbook."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from treetop._util.distribution import DISTRIBUTION
from treetop._util.numbers import plain
from treetop.card import in_words
from treetop.card.html import power
from treetop.card.meaning import BOTH
from treetop.card.sentences import HUGE, say_epsilon, say_odds
from treetop.card.statements import EVERY_PLAN_TELLS
from treetop.domain.constraints import INVARIANT
from treetop.domain.marginal import MARGIN
from treetop.exporting.language import ENGLISH, Language
from treetop.exporting.levels import ENDS, trees_of
from treetop.plan.workload import CONFIDENCE
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


def citation(card: Mapping[str, Any], own: Language) -> str:
    """Return how to cite a release."""
    title = str(card.get("title") or own.words["page"]["untitled"])
    if not card["private"]:
        return f"{title}. {own.say('files.cited_test')}"
    day, version = own.day(str(card.get("time") or "")), card.get("software", {}).get(DISTRIBUTION, "")
    return own.say("downloads.citation", title=title, id=card.get("id"), day=day, version=version).striptags()


# The noise of every measured table, and the notes of a workbook.

_PRODUCT = " × "
Row = tuple[object, ...]
"""One line of the notes: a heading alone, or cells."""


def is_exact(level: Mapping[str, Any]) -> bool:
    """Whether a level of a card carries no noise. One that is not measured may still follow from noisy ones."""
    return not level["measured"] and (level.get("exact") is True or level.get("bound") == 0)


def noise_of(card: Mapping[str, Any], own: Language) -> Markup:
    """Return what a margin is, with its confidence."""
    from markupsafe import Markup

    confidence = card.get("accuracy", {}).get("confidence") or CONFIDENCE
    return own.say("guarantee.noise", confidence=Markup(own.percent(float(confidence))))


def noise_rows(card: Mapping[str, Any], own: Language) -> Iterator[dict[str, Any]]:
    """Yield the levels and the tables beside them: title, number of counts, margin and share."""
    from markupsafe import Markup

    for table, level in ((key, level) for key in ("levels", "margins") for level in card.get(key) or ()):
        called = Markup("<bdi>{}</bdi>").format(_level_label(level.get("counts") or level["name"], card, own))
        margin = own.words["guarantee"]["exact" if is_exact(level) else "follows"]
        if level["measured"] and level["margin"] is not None:
            margin = f"± {own.number(level['margin'])}"
        yield {
            "name": called if table == "levels" else own.say("guarantee.alone", level=called),
            "nodes": level["nodes"],
            "margin": margin,
            "share": own.percent(round(level["share"]["value"], 3)) if level["measured"] else "",
        }
    if choice := card.get("choice"):
        candidates = ", ".join(own.number(one["theta"]) for one in choice)
        share = sum(one["share"]["value"] for one in choice)
        yield {
            "name": own.say("guarantee.choice", candidates=candidates),
            "nodes": len(choice),
            "margin": "",
            "share": own.percent(round(share, 3)),
        }


def _level_label(counts: str, card: Mapping[str, Any], own: Language) -> str:
    """Return the title of a level; labels of the package are in the language."""
    if counts == "total":
        return str(own.words["guarantee"]["total"])
    parts = [re.sub(r"\.(?=\S)", " ", part, count=1).partition(" ") for part in counts.split(_PRODUCT)]
    said = [(attribute_label(name, card, own), level) for name, _, level in parts]
    return _PRODUCT.join(" ".join(filter(None, one)) for one in said)


def attribute_at(name: str, level: str, card: Mapping[str, Any], own: Language) -> str:
    """Return the label of an attribute, with its level if that says more."""
    label, by = attribute_label(name, card, own), str(own.words["attributes"]["by"])
    return label if level in (name, "value") else by.format(attribute=label, level=level)


def notes_on(release: Selection, depths: Mapping[str, int], own: Language) -> Iterator[Row]:
    """Yield the notes on a table: subject, protection, and how to read small or unlisted counts.

    In English the exact words of the card follow the plain ones.
    """
    card, trees, files = release.card, trees_of(release), own.words["files"]

    def say(name: str, **values: object) -> str:
        return str(own.say(name, **values).striptags())

    exact_words = in_words(card) if own.code == ENGLISH else {}
    yield (str(card.get("title") or own.words["page"]["untitled"]),)
    if card.get("description"):
        yield "", card["description"]
    label, limits = counted(card, own) if "unit" in card else (None, [])
    by = ", ".join(attribute_at(name, tree.levels[depths[name]], card, own) for name, tree in trees.items())
    yield files["counted"], by if label is None else f"{label.striptags()}: {by}"
    yield from (("", one.striptags()) for one in (*limits, *or_more(card, own)))
    if release.conditions:
        yield "", say("page.only", conditions=", ".join(release.conditions))
    if (period := card.get("data", {}).get("period")) is not None:
        yield say("headline.period"), period

    yield (files["privacy"],)
    if not card.get("private", True):
        yield say("page.not_private"), say("page.not_private_why")
    elif "meaning" in card:
        yield say("guarantee.title"), " ".join(one.striptags() for one in plainly(card, own))
    quoted = [exact_words[name] for name in ("warning", "guarantee", "protects") if exact_words.get(name)]
    yield from ((own.words["sure"]["exact_words"], one) for one in quoted)
    if card.get("id"):
        yield say("page.release", id=card["id"]), say("page.released", day=own.day(str(card.get("time") or "")))
    yield "", files["more"]

    yield (files["read"],)
    if own.code == ENGLISH:
        exact = in_words([one for one in card.get("exact", ()) if one not in EVERY_PLAN_TELLS])
    else:
        exact = [say("guarantee.exact_total")] if card.get("levels") and is_exact(card["levels"][0]) else []
        tables = [fact["table"] for fact in card.get("facts", ()) if {"exact", INVARIANT} & set(fact["states"])]
        exact += [say("headline.exact_tables", tables=called(tables))] if tables else []
    yield "count", files["count_but" if exact else "count"]
    yield from ((files["told"], one) for one in exact)
    if release.confidence is not None:
        means = "sure.means_named" if release.whole.selective else "sure.means"
        told = exact_words.get("accuracy", {}).get("interval", "")
        yield "lower, upper", f"{say(means, confidence=own.percent(release.confidence))} {told}".strip()
        yield "outside", say("sure.outside")
    if release.whole.left is None:
        yield files["listed"], files["zero"]
    else:
        yield files["listed"], say("files.unnamed", left=release.unresolved_total, total=release.total)
    yield files["sums"], say("sure.sums")

    if card.get("levels"):
        yield (say("guarantee.noise_title"),)
        yield "", f"{noise_of(card, own).striptags()} {exact_words.get('accuracy', {}).get('margin', '')}".strip()
        yield tuple(say(f"guarantee.{name}") for name in ("level", "numbers", "margin"))
        for row in noise_rows(card, own):
            yield row["name"].striptags(), own.number(row["nodes"]), row["margin"]
