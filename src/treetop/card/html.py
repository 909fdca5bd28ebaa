"""The card as one page for people: no scripts, nothing loaded from elsewhere, printable on A4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from treetop._util.choices import say_size
from treetop._util.numbers import plain
from treetop.card.meaning import BOTH
from treetop.card.sentences import HUGE, in_words, plural, say_epsilon, say_odds
from treetop.domain.constraints import INVARIANT
from treetop.errors import ReleaseError
from treetop.noise import LAWS

if TYPE_CHECKING:
    from jinja2 import Template
import json
import re
from hashlib import sha256

_BAR = 72
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def render(card: Mapping[str, Any], card_sha256: str) -> str:
    """Return the page of a finished card; it names card.json by its SHA-256."""
    from jinja2 import TemplateError

    card = in_words(card)
    levels = _levels(card)
    widest = max((level["share"]["value"] for level in levels), default=0) or 1.0
    shown = {"card": card, "card_sha256": card_sha256, "levels": levels, "widest": widest, "bar": _BAR}
    shown |= {"titles": {table["name"]: table["counts"] or table["name"] for table in levels}}
    shown |= {**_noise(card), **_unprotected(card), "covered": _covered(card)}
    shown |= {"plainly": list(_plainly(card)) if card["private"] else []}
    try:
        return template().render(shown)
    except TemplateError as problem:
        raise ReleaseError(f"the card cannot be shown as a page: {problem}") from problem


@cache
def template() -> Template:
    """Return the compiled template of the page."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {
        "epsilon": say_epsilon,
        "odds": say_odds,
        "plain": lambda text: power(plain(Fraction(text))),
        "whole": whole,
        "maybe": lambda value: "–" if value is None else whole(value),
        "short": lambda value: f"{value:,.4g}",
        "percent": lambda value: f"{100 * value:.1f} %",
        "sure": lambda value: f"{100 * value:g} %",
        "size": say_size,
    }
    return environment.from_string(files("treetop.card").joinpath("page.html").read_text(encoding="utf-8"))


def whole(value: int) -> str:
    """Write a whole number with thousands apart; beyond a thousand billions, as a power of ten.

    >>> whole(1234567), whole(131_000_000_000_000_000)
    ('1,234,567', '1.31 × 10¹⁷')
    """
    return f"{value:,}" if value < 10**15 else power(f"{Decimal(value):.2e}")


def power(text: str) -> str:
    """Write 1e-08 as 10⁻⁸.

    >>> power("1e-08"), power("2.5e-07"), power("0.25")
    ('10⁻⁸', '2.5 × 10⁻⁷', '0.25')
    """
    digits, exponent, ten = text.partition("e")
    if not exponent:
        return text
    factor = "" if digits == "1" else f"{digits} × "
    return f"{factor}10{str(int(ten)).translate(_SUPERSCRIPT)}"


def _unprotected(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the factor of the loss does not bound: tables that are told as they are, and mutual edges."""
    told = [fact["table"] for fact in card.get("facts", ()) if INVARIANT in fact["states"]]
    both = next((row for row in card["meaning"] if row["units"] == BOTH), None)
    return {"invariants": told, "both": both}


def _covered(card: Mapping[str, Any]) -> str:
    """Return how much of one unit is protected together, for the strip at the top and the first paragraph."""
    unit, rules, relation = card["unit"], card["counted"], card.get("graph", {}).get("relation")
    if (event := unit.get("event")) is not None:
        return {
            "join-leave": "and whether it is in its group",
            "move": "and the group that it is in",
            "group": "with all that is in it",
        }[event]
    if relation == "edge":
        return "between two people, and no person as a whole"
    if relation == "node":
        bound = rules.get("projected")
        return "with all edges" + ("" if bound is None else f", of which at most {whole(bound)} are counted")
    most, kept = unit["contributions"], "enforced" if unit["enforced"] else "declared, not enforced"
    noun = "edge" if relation == "user-out" else "record"
    return f"with at most {whole(most)} {noun if most == 1 else plural(noun)} ({kept})"


def _plainly(card: Mapping[str, Any]) -> Iterator[str]:
    """Yield the guarantee in plain words: the noise, the factor and its exceptions, the limit, the ranges."""
    entity, epsilon, told = card["unit"]["entity"], card["loss"]["epsilon"]["value"], _unprotected(card)
    if not any(level["measured"] for level in (*card["levels"], *card.get("margins", ()))):
        yield "These counts carry no noise: they were public before, or are published as they are."
        return
    yield f"Noise was added to these counts on purpose, so that they tell only so much about any one {entity}."
    moves = (
        f"may move the odds by a factor {say_odds(epsilon)}"
        if epsilon > HUGE
        else (f"moves the odds by a factor of at most {say_odds(epsilon).removeprefix('× ')}")
    )
    delta = card["loss"]["delta"]
    but = f", up to a tolerance of {power(plain(Fraction(delta['exact'])))}" if delta else ""
    yield f"Whatever somebody believed about one {entity} before, this release {moves}{but}."
    if told["invariants"]:
        yield f"That is not so for true counts that are published as they are: {', '.join(told['invariants'])}."
    states = [fact for fact in card.get("facts", ()) if INVARIANT not in fact["states"]]
    if compared := [fact["table"] for fact in states if not fact.get("unchecked", False)]:
        yield f"The factor is about tables that agree with what is public of {', '.join(compared)}."
    if told["both"]:
        factor = say_odds(told["both"]["epsilon"]).removeprefix("× ")
        yield f"Where two people list each other there are two edges, and the factor for both is {factor}."
    yield f"Protected is one {entity}, {_covered(card)}."
    yield from card["counted"]["sentences"]
    total = card["levels"][0]
    if not total["measured"] and (total.get("exact") is True or total["bound"] == 0):
        yield "The total carries no noise."
    if "interval" in card["accuracy"]:
        sure = f"{100 * card['accuracy']['confidence']:g} %"
        yield f"Counts have ranges, which account for the noise alone, with a confidence of {sure}."
    yield "Small counts may be noise altogether. Other releases from the same table add to what is told."


def _noise(card: Mapping[str, Any]) -> dict[str, str]:
    """Return the law of the noise, and the name of its parameter; where nothing is measured, that of the loss."""
    default = "discrete Gaussian" if card["loss"]["rho"] else "discrete Laplace"
    law = next((level["noise"]["law"] for level in card["levels"] if level["noise"]), default)
    return {"law": law, "parameter": LAWS[law].parameter}


def _levels(card: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Put each level's plan and its released size side by side; margins have a number for every public node."""
    sizes = {level["name"]: level["nodes"] for level in card["released"]["levels"]}
    levels = [{"counts": "", **level, "released": sizes.get(level["name"], 0)} for level in card["levels"]]
    margins = [{**table, "bound": None, "released": table["nodes"]} for table in card.get("margins", [])]
    if margins:
        margins[0]["heading"] = "margins: tables beside these, with all other attributes summed over"
    return levels + margins


# What binds a card to its folder: plan.toml ends with the SHA-256 of all that the card states but its files.
# Most of a card is computed again from the plan and the tables when it is checked. What no computation gives, such as
# the day, is bound by this line: whoever changes it in the card alone is found.

_LINE = re.compile(r"^# card_statement_sha256 = \"([0-9a-f]{64})\"\n", re.MULTILINE)


def statement_sha256(card: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a card without its list of files, which names that of plan.toml itself."""
    stated = {name: value for name, value in card.items() if name != "files"}
    return sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()


def bind(plan_toml: str, card: Mapping[str, Any]) -> str:
    """Return plan.toml with the line of this card, and of no other, at its end."""
    return f'{_LINE.sub("", plan_toml).rstrip()}\n\n# card_statement_sha256 = "{statement_sha256(card)}"\n'


def bound(plan_toml: str) -> list[str]:
    """Return the hashes of the cards that a plan.toml says it belongs to: one, since the second format of cards."""
    return _LINE.findall(plan_toml)
