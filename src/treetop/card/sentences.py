"""Sentences of cards: a card stores an identifier and parameters, and readers get the English text of the catalogue."""

from __future__ import annotations

import inspect
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any, TypeAlias

from treetop._util.choices import with_article
from treetop._util.numbers import plain
from treetop.domain.unit import Unit
from treetop.errors import ReleaseError, TreetopError
from treetop.io.row_batch import say_kept
from treetop.noise import LAWS
from treetop.noise.gate import WARNING
from treetop.plan.degree_unit import DegreeFacts, DegreeUnit
from treetop.plan.group_unit import GroupUnit
from treetop.plan.resolution import RULES
from treetop.privacy import Loss
from treetop.privacy.loss import say_reckless
from treetop.privacy.relation import GraphRules, one_edge, one_weighted_edge
from treetop.repair import ORDERS, REPAIRS

# The catalogue: the sentences of `sentences.toml`, and those whose words depend on more than their parameters.
# Words of what can be registered, such as laws and repairs, stay with it, and their sentence looks them up.

Text: TypeAlias = str | Callable[..., str]
_FILE: dict[str, Any] = tomllib.loads(files("treetop.card").joinpath("sentences.toml").read_text(encoding="utf-8"))

CHOICES: Mapping[str, Mapping[str, str]] = _FILE["choices"]
"""Words for values of a parameter, by the name after the colon in a text."""


def _guarantee(**amounts: str) -> str:
    accounting: Any = amounts.pop("accounting", None)
    stated: dict[str, Any] = {name: Fraction(exact) for name, exact in amounts.items()}
    return Loss(**stated, accounting=accounting).sentence()


def _protected_degrees(relation: str, directed: bool, degree: Any, neighbours: Any, entity: str) -> str:
    facts = DegreeFacts(relation, directed, degree=degree)
    return DegreeUnit(facts, neighbours, "histogram", 1, entity, contributions=1 if facts.cut else None).sentence()


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
        "not, with this confidence, as far as the privacy noise is concerned. They come from "
        f"{source}{ends}{rest}, by the exact law of the noise in it, half of the risk on each side, and are no less "
        "than 0 and no more than the groups that there are. Sums over sizes come from the measurements that these "
        "take. They are about one count at a time; those of a cumulative table hold for all sizes of a region at once, "
        "each with its part of the risk. Errors of the data are not covered."
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


TEXTS: Mapping[str, Text] = {
    **_FILE["sentences"],
    "warning": WARNING,
    "guarantee": lambda loss: _guarantee(**loss),
    "protects.records": lambda unit: Unit(**unit).sentence(),
    "protects.groups": lambda entity, event, quantity: GroupUnit(entity, event, quantity).sentence(),
    "protects.degrees": _protected_degrees,
    "composition.ledger": _earlier,
    "counted.limit": _limit,
    "counted.distinct": _distinct,
    "fact": _fact,
    "graph.edges": lambda graph, number: GraphRules.of(graph).sentences()[number],
    "graph.degrees": lambda relation, directed, degree, number: DegreeFacts(
        relation, directed, degree=degree
    ).sentences()[number],
    "graph.one_edge": one_edge,
    "graph.one_weighted_edge": one_weighted_edge,
    "mechanism.degree": lambda relation, directed, degree: (
        f"A degree is {DegreeFacts(relation, directed, degree=degree).meaning}."
    ),
    "noise.law": lambda law: LAWS[law].words,
    "after.repair": lambda repair, step, order: REPAIRS[repair].words[step].format(order=ORDERS[order].words),
    "after.named": lambda rule, value: (
        f"A child was named only where a measurement shows that it is not empty: {_rule(rule, value)}. An only child, "
        "which is not measured, was tested with the measurement of its parent, or of the nearest node above that has "
        "one."
    ),
    "after.joint_fit": _joint_fit,
    "interval.groups": _group_interval,
    "coverage.tried": _tried,
    "caveat.reckless": lambda part, value: say_reckless(part, Fraction(value)),
    "caveat.rule": lambda rule, value: _rule(rule, value, caution=True),
    "note.named": lambda rule, value: (
        f"A child will be named only where a measurement shows that it is not empty: {_rule(rule, value)}. An only "
        "child, which is not measured, is tested with the measurement of its parent, or of the nearest node above that "
        "has one."
    ),
    "note.theta": _theta,
    "note.candidates": _candidates,
}
"""The text of every sentence by its identifier: with parameters in braces, or a function of them."""


Sentence: TypeAlias = dict[str, Any]
"""A sentence as cards store it: its `id` and, if its text has parameters, their values as plain data under `with`."""

PARAGRAPH = "paragraph"
"""The identifier of several sentences in a row, its parameter `sentences`."""


def sentence(id: str, /, **values: Any) -> Sentence:
    """Return a sentence as a card stores it.

    >>> sentence("caveat.many", entity="trip")
    {'id': 'caveat.many', 'with': {'entity': 'trip'}}
    """
    assert values.keys() == _parameters(id), f"{id} has the parameters {sorted(_parameters(id))}"
    return {"id": id, "with": values} if values else {"id": id}


def paragraph(*sentences: Sentence) -> Sentence:
    """Return several sentences as one."""
    return sentences[0] if len(sentences) == 1 else {"id": PARAGRAPH, "with": {"sentences": list(sentences)}}


def render(said: Mapping[str, Any]) -> str:
    """Return the English text of a sentence.

    >>> render(sentence("counted.limit", what="records", limit=3, entity="person"))
    'At most 3 records of each person are counted; the true total may be higher.'
    """
    id, values = said["id"], said.get("with", {})
    try:
        if id == PARAGRAPH:
            return _together(values["sentences"])
        if values.keys() != _parameters(id):
            known = ", ".join(sorted(_parameters(id)))
            raise ReleaseError(f"the sentence {id!r} has the parameters {known}, not {', '.join(sorted(values))}")
        text = TEXTS[id]
        return _FORMATTER.vformat(text, (), values) if isinstance(text, str) else text(**values)
    except ReleaseError:  # of a sentence inside this one
        raise
    except RecursionError:
        raise ReleaseError("sentences of the card are nested too deeply") from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, TreetopError) as problem:
        raise ReleaseError(f"the sentence {id!r} cannot be said with {values}: {problem!r}") from problem


def in_words(value: Any) -> Any:
    """Return a card, or a part of one, with the text of each sentence in its place.

    >>> in_words({"warning": None, "caveats": [sentence("caveat.others")]})
    {'warning': None, 'caveats': ['Every other release about the same data adds to the loss.']}
    """
    if isinstance(value, list):
        return [in_words(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "id" in value and value.keys() <= {"id", "with"}:
        return render(value)
    return {name: item if name in _NAMES else in_words(item) for name, item in value.items()}


_NAMES = ("columns", "keep", "drop", "per_node", "plan")
"""Parts of a card without sentences, whose own names are those of columns, levels and attributes."""


@cache
def _parameters(id: str) -> frozenset[str]:
    text = TEXTS[id]
    if not isinstance(text, str):
        return frozenset(inspect.signature(text).parameters)
    return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)


class _English(Formatter):
    """Fills in values: `{entity:plural}` writes it in a way of `_WAYS`, `{form:measured}` by a table of `CHOICES`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec in CHOICES:
            return CHOICES[format_spec][value]
        if (write := _WAYS.get(format_spec)) is not None:
            return write(value)
        return str(super().format_field(value, format_spec))


_FORMATTER = _English()


def _together(sentences: Iterable[Mapping[str, Any]]) -> str:
    return " ".join(map(render, sentences))


def records(number: int, noun: str = "record") -> str:
    """Write a number of records.

    >>> records(1), records(3)
    ('1 record', '3 records')
    """
    return f"1 {noun}" if number == 1 else f"{number} {plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of an English noun.

    >>> plural("trip"), plural("journey"), plural("family"), plural("box")
    ('trips', 'journeys', 'families', 'boxes')
    """
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def say_epsilon(epsilon: float) -> str:
    """Write an epsilon with three digits, rounded up: a loss is never understated.

    >>> say_epsilon(1.0), say_epsilon(2.7142)
    ('1', '2.72')
    """
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(repr(epsilon))):.3g}"


HUGE = math.log(1e6)
"""From this epsilon on, odds move by more than a million."""


def say_odds(epsilon: float) -> str:
    """Write the factor by which an epsilon can move anyone's odds, rounded up.

    >>> say_odds(1.0), say_odds(50.0)
    ('× 2.72', 'over a million')
    """
    if epsilon > HUGE:
        return "over a million"
    factor = math.exp(epsilon)
    return f"× {math.ceil(factor * 100) / 100:.2f}" if factor < 10 else f"× {math.ceil(factor):,}"


def _rows(count: str | None, number: str = "rows") -> str:
    """Say what a unit has in the table; with a count column a row stands for several records."""
    if count is None:
        return number
    return f"{number.replace('row', 'record')} (a row stands for as many as its {count!r} says)"


_WAYS: Mapping[str, Callable[[Any], str]] = {
    "a": with_article,
    "plural": plural,
    "list": ", ".join,
    "and": " and ".join,
    "by": " and by ".join,
    "kept": say_kept,
    "either": lambda values: ", or with ".join(say_kept({name: listed}) for name, listed in values.items()),
    "under": lambda leaves: ", ".join(f"{attribute} under {code!r}" for attribute, code in leaves.items()),
    "thousands": lambda numbers: ", ".join(f"{number:,}" for number in numbers),
    "number": lambda exact: plain(Fraction(exact)),
    "percent": lambda share: f"{100 * float(Fraction(share)):g} %",
    "epsilon": say_epsilon,
    "records": records,
    "extent": lambda extent: CHOICES["extents"][extent] if isinstance(extent, str) else _extent(extent),
    "row": lambda count: _rows(count, "row"),
    "rows": _rows,
    "sentences": _together,
}
"""How a value can be written, by the name after the colon in a text of the catalogue."""


def _extent(contributions: int) -> str:
    return "1 record" if contributions == 1 else f"up to {records(contributions)}"
