"""How well a unit is protected, in the words of a language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from treetop.basics.exact import plain
from treetop.card.html import power
from treetop.card.meaning import HUGE, say_epsilon, say_odds
from treetop.exporting.language import Language

if TYPE_CHECKING:
    from markupsafe import Markup


def guarantee(card: Mapping[str, Any], own: Language, name: str) -> Markup:
    """Return the words of a name, or where the loss says next to nothing, those of the name with `_huge`."""
    epsilon, entity = float(card["loss"]["epsilon"]["value"]), card["unit"]["entity"]
    if epsilon > HUGE:
        return own.say(f"{name}_huge", entity=entity, epsilon=own.decimal(say_epsilon(epsilon)))
    odds = own.decimal(say_odds(epsilon).removeprefix("× "))
    return own.say(name, entity=entity, odds=odds, epsilon=own.decimal(say_epsilon(epsilon)))


def tolerance(card: Mapping[str, Any], own: Language) -> Iterator[Markup]:
    """Yield the sentence on delta, if there is one."""
    if delta := card["loss"].get("delta"):
        yield own.say("sure.protected_delta", delta=own.decimal(power(plain(Fraction(delta["exact"])))))


def protection(card: Mapping[str, Any], own: Language) -> Iterator[Markup]:
    """Yield how well: the factor, its tolerance, and the measure that experts ask for."""
    yield guarantee(card, own, "sure.protected")
    yield from tolerance(card, own)
    yield own.say("guarantee.epsilon", epsilon=own.decimal(say_epsilon(float(card["loss"]["epsilon"]["value"]))))
