"""Questions of `treetop inspect --ask`: one by one in the terminal, until the plan is whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from treetop._util.lazy import FrozenMap
from treetop.domain.coding import UNITS
from treetop.domain.standard_hierarchies import STANDARDS
from treetop.errors import TreetopError, printable
from treetop.inspection import HierarchyFile, Inspection, Suggestion
from treetop.plan import fields
from treetop.plan.file import draft_plan, parse_plan
from treetop.plan.file.answers import read_bands, read_levels, read_values, written_bands
from treetop.plan.file.describe import key, value
from treetop.plan.file.edit import changed

Inspect = Callable[[Mapping[str, tuple[str, ...]], tuple[Path, ...]], Inspection]
"""Inspects the table anew, with chosen columns and further public files."""
Fields = dict[tuple[tuple[str, ...], str], Any]
_MAY_LACK = ("id", "delta")
"""Fields that may be left out."""
_REST = """
[unit]
entity = "record"
contributions = 1
neighbours = "replace"
[loss]
epsilon = 1
delta = 1e-8
"""
_MINI = f'[attributes.x]\nvalues = ["a", "b"]\n{_REST}'


def ask_for_plan(inspection: Inspection, inspect: Inspect, path: Path) -> str:
    """Return the text of a whole plan that is to be written to `path`."""
    if inspection.layout is not None:
        raise click.UsageError("--ask is for tables of records: answer the open questions in the draft")
    for column, why in inspection.left_out.items():
        _say(f"{column} is left out: {why}")
    proposed = [one.column for one in inspection.attributes]
    wanted = _ask("Which columns do you publish?", ", ".join(proposed), lambda text: _columns(text, inspection))
    if wanted != proposed:
        inspection = inspect(dict.fromkeys(wanted, ()), ())
    changes: Fields = {}
    attributes = []
    for one in inspection.attributes:
        answered = one if one.match or one.same_as else _attribute(one, inspect, path)
        attributes.append(answered)
        if one.has_blanks and one.same_as is None:
            blank = _ask(f"{one.column}: what is a blank? A name such as none, or - if it is an unknown code", "-", str)
            changes |= {} if blank == "-" else {(("attributes", one.name), "blank"): blank}
        if answered.match is not None and answered.match.fit < 1:
            changes |= _unknown(one.name, ("error", "elsewhere", "drop"))
    inspection = replace(inspection, attributes=tuple(attributes))
    return _whole(draft_plan(inspection, path.parent), {**changes, **_data(inspection), **_unit(inspection)}, path)


def _say(text: str) -> None:
    click.echo(printable(text), err=True)


def _ask(question: str, default: Any, read: Callable[[str], Any]) -> Any:
    """Return an answer, asked for until it is understood; without a default there must be one."""
    while True:
        text = click.prompt(printable(question), default=default, err=True, type=str).strip()
        try:
            return read(text)
        except (TreetopError, ValueError, OSError) as problem:
            _say(f"  {problem}")


def _columns(text: str, inspection: Inspection) -> list[str]:
    names = [one.strip() for one in text.split(",") if one.strip()]
    known = [column.name for column in inspection.columns]
    if missing := [one for one in names if one not in known]:
        raise ValueError(f"there is no column {missing[0]!r}: the columns are {', '.join(known)}")
    if not names:
        raise ValueError("name one column or more, with commas between them")
    return names


def _attribute(one: Suggestion, inspect: Inspect, path: Path) -> Suggestion:
    """Ask for the codes of an attribute."""
    if one.is_stated or ("standard" in one.proposed and not STANDARDS[one.proposed["standard"]].listed):
        return one
    if "dates" in one.proposed:
        return _dates(one, path)
    bands = written_bands(one.proposed["bands"]) if "bands" in one.proposed else None
    ways = "its values (a, b, or 0 = no, 1 = yes), a standard list, or the name of a public file"
    question = f"{one.column}: {'where its bands begin (adult = 0 18; age = 0 10 18), or ' if bands else ''}{ways}"
    return _ask(question, bands, lambda text: _codes(one, text, inspect, path))  # type: ignore[no-any-return]


def _dates(one: Suggestion, path: Path) -> Suggestion:
    written = one.proposed["dates"].get("format", "yyyy-mm-dd")
    levels = _ask(f"{one.column}: counted by ({', '.join(UNITS)})", ", ".join(one.levels), read_levels)
    written = _ask(f"{one.column}: how dates are written", written, str)

    def tried(first: str, last: str) -> Suggestion:
        dates = {"first": first, "last": last, "format": written}
        return _checked(one, {"dates": dates, "levels": levels}, path)

    asked = f"{one.column}: the first day that is counted, from public knowledge (2020-01-31, 2020-01 or 2020)"
    first = str(_ask(asked, None, lambda text: tried(text, text).proposed["dates"]["first"]))
    dated: Suggestion = _ask(f"{one.column}: the last day that is counted", None, lambda text: tried(first, text))
    return dated


def _codes(one: Suggestion, text: str, inspect: Inspect, path: Path) -> Suggestion:
    """Return an attribute with the codes that were typed: bands, a standard, a file, or values."""
    if text in STANDARDS:
        return _checked(one, {"standard": text}, path)
    if Path(text).is_file():
        return _of_file(one, Path(text), inspect, path)
    if "bands" in one.proposed:
        return _checked(one, {"bands": read_bands(text)}, path)
    return _checked(one, read_values(text.split(",")), path)


def _of_file(one: Suggestion, file: Path, inspect: Inspect, path: Path) -> Suggestion:
    found = inspect({one.column: ()}, (file,))
    lookup: HierarchyFile = found.lookups[-1]
    match = next((match for match in found.matches if match.column == one.column and match.lookup is lookup), None)
    if match is not None:
        return replace(found.attributes[0], name=one.name, has_blanks=one.has_blanks)
    levels = _ask(f"  its levels, coarse to fine, of {', '.join(lookup.columns)}", None, read_levels)
    return _checked(one, {"hierarchy": str(file), "levels": levels, **lookup.reading}, path)


def _checked(one: Suggestion, stated: Mapping[str, Any], path: Path) -> Suggestion:
    """Return an attribute with fields for which a hierarchy can be made."""
    listed = "\n".join(f"{key(name)} = {value(item)}" for name, item in stated.items())
    parse_plan(f"[attributes.{key(one.name)}]\n{listed}{_REST}", path)
    return replace(one, proposed=FrozenMap(stated), is_stated=True, chain=(), prefixes=None)


def _unknown(name: str, choices: tuple[str, ...]) -> Fields:
    question = f"{name}: codes that are not listed: stop with an error, count them as elsewhere, or drop their rows"
    chosen = click.prompt(question, default=choices[0], type=click.Choice(choices), err=True)
    return {} if chosen == choices[0] else {(("attributes", name), "unknown"): chosen}


def _data(inspection: Inspection) -> Fields:
    """Ask for the count, the rules that make more codes match, and about how many records there are."""
    changes: Fields = {}
    data = ("data",)
    count = inspection.count
    if not inspection.count_is_stated:
        names = ["-", *(column.name for column in inspection.columns)]
        asked = "Does a row stand for as many records as a column says? Its name, or - if a row is one record"
        count = click.prompt(asked, default="-", type=click.Choice(names), show_choices=False, err=True)
        changes |= {} if count == "-" else {(data, "count"): count}
    prepare = inspection.prepare
    for name in ("trim", "pad", "thousands"):
        rule = getattr(prepare, name, None)
        needed = rule and (name != "thousands" or (data, "count") in changes or inspection.count_is_stated)
        if needed and click.confirm(f"{name} = {value(rule)}: more of the table fits then; take this rule?", err=True):
            changes[data, name] = rule
    records = _ask("About how many records are there, publicly? - if nobody may know", "-", _whole_or_none)
    return changes if records is None else {**changes, (data, "records"): records}


def _whole_or_none(text: str) -> int | None:
    return None if text == "-" else int(text.replace(",", "").replace("_", ""))


def _unit(inspection: Inspection) -> Fields:
    """Ask who is protected, and for the loss."""
    changes: Fields = {}
    repeating = [one for one in inspection.identifiers if one.named and one.repeats]
    for line in (line for one in repeating for line in one.sentences()):
        _say(line)
    names = [column.name for column in inspection.columns]
    asked = [("unit", "entity"), ("unit", "contributions"), ("unit", "id"), ("unit", "neighbours"), ("loss", "epsilon")]
    for section, name in (*asked, ("loss", "delta")):
        default = None
        if name == "id":
            if changes[("unit",), "contributions"] == 1:
                continue
            default = repeating[0].column if repeating else "-"

        def tried(text: str, section: str = section, name: str = name) -> Any:
            if text == "-":
                return None
            if name == "id" and text not in names:
                raise ValueError(f"there is no column {text!r}: the columns are {', '.join(names)}")
            item: Any = Decimal(text) if section == "loss" else int(text) if name == "contributions" else text
            parse_plan(changed(_MINI, {**changes, ((section,), name): item}), Path("plan.toml"))
            return item

        question = fields.find(section, name).question
        answer = _ask(f"{section} {name}: {question}{' - for none.' if name in _MAY_LACK else ''}", default, tried)
        if answer is not None:
            changes[(section,), name] = answer
    return changes


def _whole(text: str, changes: Fields, path: Path) -> str:
    """Return a draft with all answers, which must make a plan."""
    text = changed(text, changes)
    parse_plan(text, path)
    return text
