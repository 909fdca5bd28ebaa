"""Sentences of cards: a card stores an identifier and parameters, and readers get the English text of the catalogue."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from functools import cache
from string import Formatter
from typing import Any, TypeAlias

from treetop._util.choices import with_article
from treetop._util.numbers import plain
from treetop.card.catalogue import CHOICES, TEXTS
from treetop.errors import ReleaseError, TreetopError
from treetop.io.row_batch import say_kept

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
