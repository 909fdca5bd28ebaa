"""The page of a map: one HTML file with everything in it, which loads nothing and runs only its own script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from treetop.addons.pages import language as html
from treetop.addons.pages.language import Language
from treetop.addons.pages.statements import counted, exceptions
from treetop.card import in_words

if TYPE_CHECKING:
    from markupsafe import Markup

SCRIPTS = (
    "words",
    "unpack",
    "outlines",
    "state",
    "view",
    "groups",
    "scene",
    "ribbons",
    "colours",
    "paint",
    "picture",
    "marks",
    "sentences",
    "legend",
    "panel",
    "hits",
    "tip",
    "choices",
    "gestures",
    "link",
    "print",
    "start",
)
"""The scripts of the page, in the order of their dependencies."""

_STATED = ("private", "guarantee", "protects", "data", "time", "id")


def render(
    card: Mapping[str, Any], content: Mapping[str, Any], credit: str | None, own: Language, home: str | None
) -> str:
    """Return the page, with a link back to another if it is named; text from the release is never markup."""
    title = card.get("title") or own.words["page"]["untitled"]
    values = {
        "say": own.say,
        "language": own.code,
        "title": title,
        "title_of_map": own.words["map"]["title"].format(title=title),
        "card": in_words({key: card.get(key) for key in _STATED}),
        "day": own.day(str(card.get("time") or "")),
        "credit": credit,
        "home": home,
        "noise": _noise(card, content, own),
        "exceptions": list(exceptions(card, own)) if card.get("private") and "meaning" in card else [],
        "counted": counted(card, own)[1] if "unit" in card else [],
        "kind": content["kind"],
        "content": {**content, "words": own.words["map_script"], "format": own.numbers},
    }
    return html.render("treetop.addons.map", values, [f"script/{name}.js" for name in SCRIPTS])


def _noise(card: Mapping[str, Any], content: Mapping[str, Any], own: Language) -> Markup:
    """Return the sentence on the noise of a map's numbers."""
    if all(level["exact"] for level in content["levels"]):
        return own.say("map.noise_none")
    return own.say("map.noise" if card["private"] else "map.noise_testing")
