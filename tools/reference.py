"""The tables of fields and options in `docs/reference.md`, made of the declarations: `python -m tools.reference`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import click

from treetop.cli import COMMANDS, cli
from treetop.plan import fields
from treetop.plan.fields._field import Field
from treetop.plan.fields.declarations import ATTRIBUTE, CLEANING, FACT
from treetop.plan.file.describe import value

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"
FIRST = "<!-- The tables of fields are written by `python -m tools.reference`. -->"
LAST = "<!-- Here they end. -->"
FIRST_OPTION = "<!-- The tables of options are written by `python -m tools.reference`. -->"
LAST_OPTION = "<!-- Here the options end. -->"


def tables() -> str:
    """Return the tables, one a section."""
    named = ["", ATTRIBUTE, FACT, *fields.sections()]
    named.insert(named.index("graph") + 1, CLEANING)
    return "\n".join(_table(section) for section in named)


def page(text: str) -> str:
    """Return the page with its tables as they are declared."""
    return _between(_between(text, FIRST, LAST, tables()), FIRST_OPTION, LAST_OPTION, options())


def options() -> str:
    """Return the commands with what they do and their options, one a section."""
    context = click.Context(cli)
    return "\n".join(part for name in COMMANDS for part in _command(name, cli.get_command(context, name)))


def _command(name: str, command: click.Command | None) -> Iterator[str]:
    assert command is not None
    if isinstance(command, click.Group):
        for inner, one in command.commands.items():
            yield from _command(f"{name} {inner}", one)
        return
    info = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(info)).replace("[OPTIONS]", "").strip()
    words = " ".join((command.help or "").split("\f")[0].split("\n\n")[0].split())
    options = [one for one in command.params if isinstance(one, click.Option)]
    rows = [record for one in options if (record := one.get_help_record(info)) is not None]
    table = [f"| `{left}` | {_cell(right)} |" for left, right in rows if "--help" not in left]
    yield "\n".join(
        [f"### `{f'treetop {name} {usage}'.strip()}`", "", words, "", "| option | meaning |", "|---|---|", *table, ""]
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _between(text: str, first: str, last: str, body: str) -> str:
    before, rest = text.split(first)
    return f"{before}{first}\n\n{body}\n{last}{rest.split(last)[1]}"


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
