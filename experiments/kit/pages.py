"""Pages of results: words are in the study's `page.md`, a template, and numbers are put into it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parents[1]), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)


def render(template: str, **values: object) -> str:
    """Fill in a template of a study."""
    return _TEMPLATES.get_template(template).render(**values)


def write(file: Path, text: str) -> Path:
    """Write a page, with what it was made by as its last line."""
    made = f"Measured with Treetop {version('treetop')}, written on {datetime.now(UTC):%Y-%m-%d}."
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text.rstrip()}\n\n{made}\n", encoding="utf-8")
    return file


def insert(page: Path, texts: Mapping[str, str]) -> None:
    """Put each text between the two marks of its name in a page that is there already."""
    text = page.read_text(encoding="utf-8")
    for name, body in texts.items():
        start, stop = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        head, found, rest = text.partition(start)
        _, closed, tail = rest.partition(stop)
        if not found or not closed:
            raise ValueError(f"{page} has no marks {start.strip()} and {stop.strip()} for the {name}")
        text = f"{head}{start}\n{body}\n\n{stop}{tail}"
    page.write_text(text, encoding="utf-8")


def pictures(captions: Mapping[str, str], form: str = "![{caption}](../images/{name})\n\n{caption}") -> str:
    """Return pictures, by file name, with their captions."""
    return "\n\n".join(form.format(name=name, caption=caption) for name, caption in captions.items())


BELOW_ITS_CAPTION = "**{caption}**\n\n![{caption}](../images/{name})"
"""Another form of `pictures`."""


def machine() -> str:
    """Say what this is run on."""
    return f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}"
