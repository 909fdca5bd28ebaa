"""Pages for the public: the HTML that sites and maps share.

Values from a release are text in them, and only their own parts run or load.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Template


def render(
    package: str, values: Mapping[str, Any], scripts: Sequence[str] = ("page.js",), page: str = "page.html"
) -> str:
    """Return a page of a package, with its page.css and, one after the other, its scripts."""
    style, script = _part(package, "page.css"), _joined(package, tuple(scripts))
    return _template(package, page).render(
        **values, style=style, script=script, style_hash=_hash(style), script_hash=_hash(script)
    )


@cache
def _template(package: str, page: str) -> Template:
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        loader=DictLoader({"head.html": _part("treetop.addons.pages", "head.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # Compact, and with <, >, & and ' as escapes, so that no text can end the element that it stands in.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    return environment.from_string(_part(package, page))


@cache
def _joined(package: str, scripts: tuple[str, ...]) -> str:
    """Return scripts as one; their declarations are private to them."""
    if len(scripts) < 2:
        return "".join(_part(package, script) for script in scripts)
    parts = "\n".join(_part(package, script) for script in scripts)
    return f'\n"use strict";\n(() => {{\n{parts}}})();\n'


@cache
def _part(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash that a content security policy uses to allow a script or style."""
    return "sha256-" + base64.b64encode(sha256(text.encode()).digest()).decode()
