"""The tables of fields in `docs/reference.md`, made of the declarations: `python -m tools.reference` writes them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from treetop.plan import fields
from treetop.plan.fields.field import Field
from treetop.plan.fields.graph import CLEANING
from treetop.plan.fields.ordinary import ATTRIBUTE, FACT
from treetop.plan.file.describe import value

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"
FIRST = "<!-- The tables of fields are written by `python -m tools.reference`. -->"
LAST = "<!-- Here they end. -->"


def tables() -> str:
    """Return the tables, one a section."""
    named = ["", ATTRIBUTE, FACT, *fields.sections()]
    named.insert(named.index("graph") + 1, CLEANING)
    return "\n".join(_table(section) for section in named)


def page(text: str) -> str:
    """Return the page with its tables as they are declared."""
    before, rest = text.split(FIRST)
    return f"{before}{FIRST}\n\n{tables()}\n{LAST}{rest.split(LAST)[1]}"


def _table(section: str) -> str:
    title = f"`[{section}]`" if section else "At the top"
    found = dict.fromkeys(one for family in fields.FAMILIES for one in fields.of(section, family))
    rows = [_row(one) for one in found]
    return "\n".join([f"### {title}", "", "| field | left out | since | meaning |", "|---|---|---|---|", *rows, ""])


def _row(one: Field) -> str:
    left_out = "" if one.default in (None, "", (), {}) else f"`{value(_plain(one.default))}`"
    if one.asked is not None:
        left_out = "*asked*"
    return f"| `{one.name}` | {left_out} | {one.since} | {one.help} |"


def _plain(default: object) -> object:
    return Fraction(str(default)) if isinstance(default, float) else default


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
