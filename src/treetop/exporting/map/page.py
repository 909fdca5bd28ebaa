"""The page of a map: one HTML file with everything in it, which loads nothing and runs only its own script."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Template

_STATED = ("title", "private", "warning", "guarantee", "protects", "data", "time", "id")


def render(card: Mapping[str, Any], content: Mapping[str, Any], credit: str | None) -> str:
    """Return the page; whatever comes from the release is text in it, never markup."""
    style, script = _part("page.css"), _part("page.js")
    return _template().render(
        card={key: card.get(key) for key in _STATED},
        credit=credit,
        content=content,
        kind=content["kind"],
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    # Compact, and with <, >, & and ' as escapes, so that no text can end the element that it stands in.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    return environment.from_string(_part("page.html"))


@cache
def _part(name: str) -> str:
    return files("treetop.exporting.map").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return what a content security policy calls a script or style that may run."""
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()
