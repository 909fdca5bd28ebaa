"""Rendering of pages: templates that escape all values, one style, one small script."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from treetop._util.choices import say_size
from treetop.addons.studio.wording import in_page_words
from treetop.errors import printable, visible

ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M8 1l6 9h-4v5H6v-5H2z" fill="#2f6b4f"/></svg>'
)


def render(name: str, values: dict[str, Any]) -> str:
    """Return a page, or a part of one."""
    return _environment().get_template(name).render(values)


@cache
def style() -> str:
    """Return the style of all pages: that of the sites, and additions for forms."""
    return _part("treetop.addons.site", "page.css") + _part("treetop.addons.studio", "pages/studio.css")


@cache
def script() -> str:
    """Return the script."""
    return _part("treetop.addons.studio", "pages/studio.js")


def _part(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("treetop.addons.studio", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": _number, "size": say_size, "cell": _cell, "words": _words}
    return environment


def _cell(value: Any) -> str:
    """Write a value of the table on one line, without characters that would turn the text around it."""
    return printable(str(value))


def _words(text: Any) -> str:
    """Write a message of the library in the words of the pages."""
    return in_page_words(visible(str(text)))


def _number(value: Any) -> str:
    return f"{value:,}"
