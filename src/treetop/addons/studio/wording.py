"""Messages of the library in the words of the pages: the control that mends something, and no field or argument."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from treetop.errors import translate_arguments

STEPS: Mapping[str, str] = {
    "table": "Table",
    "columns": "Columns",
    "protected": "Who is protected",
    "accuracy": "How accurate",
    "review": "Review",
    "release": "Release",
    "explore": "Explore",
    "publish": "Publish",
}
_SECTIONS: Mapping[str, str] = {
    "attributes": "columns", "spine": "columns", "unit": "protected", "loss": "accuracy", "release": "accuracy",
    "data": "table",
}  # fmt: skip
"""By section of a plan file, the step that changes it."""
_LABELS: Mapping[str, str] = {
    "source": "Take another table",
    "header": "Does the first line hold the names of the columns?",
    "names": "Names of all columns",
    "delimiter": "Between fields",
    "encoding": "Encoding",
    "sheet": "Sheet of a workbook",
    "missing": "Texts that mean missing",
    "trim": "Trim blanks",
    "pad": "Zeros in front, up to",
    "thousands": "Between thousands",
    "decimal": "Decimal mark",
    "keep": "Keep only rows with",
    "drop": "Leave out rows with",
    "bands": "Bands of a number",
    "dates": "Dates",
    "labels": "Names of the codes",
    "blank": "A blank is",
    "unknown": "Codes that are not listed",
    "allow_dropped": "Go on however many records have unknown codes",
    "skip_missing": "Leave out places whose coordinates are not known",
    "coordinates": "Where the places are",
    "count": "Does a row stand for several records?",
    "values": "These values",
    "hierarchy": "A public file",
    "levels": "Its columns, coarse to fine",
    "same_as": "The same list as another column",
    "column": "Column of the table",
    "order": "Order the levels anew",
    "margins": "Order the levels anew",
    "entity": "One of those who are to be protected",
    "contributions": "At most",
    "neighbours": "What must stay hidden?",
    "id": "The column that tells them apart",
    "population": "At least so many of them",
    "epsilon": "Epsilon",
    "delta": "Delta",
    "resolve": "Which counts are named?",
    "title": "Title of the release",
    "period": "The time that it is about",
}
"""By field of a plan file or argument of the library, the label of its control."""
_ELSEWHERE = {"columns": ("count", "unknown", "pad", "trim", "thousands", "bands")}
_PLACE = re.compile(r"(?:[^\s:\[]+\.toml: )?\[([a-z]+)(?:\.((?:\"[^\"]*\"|[^\]\"\n])+))?\](?: ([a-z_]+)\b)?")
_FIELD = re.compile(
    rf"\b({'|'.join(_LABELS)}) = (\{{[^{{}}\n]*\}}|\[[^\[\]\n]*\]|\"[^\"\n]*\"|true\b|false\b|…|[0-9]+)"
)


def step(name: str) -> str:
    """Name a step as the pages do."""
    return f"step {list(STEPS).index(name) + 1} ({STEPS[name]})"


def in_page_words(text: str) -> str:
    """Replace fields of a plan file and arguments of the library by the controls of the pages.

    >>> in_page_words('plan.toml: [unit] contributions must be 1 or more')
    '“At most” in step 3 (Who is protected) must be 1 or more'
    >>> in_page_words('not UTF-8: give `encoding`, such as encoding = "latin-1"')
    'not UTF-8: give “Encoding”, such as “Encoding”: latin-1'
    """
    text = _FIELD.sub(lambda found: f"“{_LABELS[found[1]]}”: {_said(found[2])}", text)
    text = _PLACE.sub(_placed, text)
    return translate_arguments(text, _argument).replace("`", "")


def control_for(message: str) -> str:
    """Return the place that mends what a message of the library is about, as the end of a sentence."""
    found = _PLACE.search(message)
    if found is None or found[1] not in _SECTIONS:
        return "in an editor: no page of the studio has a control for it"
    if found[1] == "spine":
        return f"in {step('columns')}, by “Order the levels anew”"
    return f"in {step(_step_of(found[1], found[3]))}"


def _step_of(section: str, field: str | None) -> str:
    if section == "data":
        field = field or ""
        return next((name for name, fields in _ELSEWHERE.items() if field in fields), "table")
    return _SECTIONS[section]


def _placed(found: re.Match[str]) -> str:
    section, inner, field = found[1], found[2], found[3]
    if section == "data" and inner:
        field, inner = field or inner, None
    if section not in _SECTIONS:
        return found[0]
    where = f"“{inner.strip(chr(34))}” in {step('columns')}" if inner else f"in {step(_step_of(section, field))}"
    if field in _LABELS:
        return f"“{_LABELS[field]}”{' of' if inner else ''} {where}"
    where = where[:1].upper() + where[1:]
    return f"{where}: {field}" if field else f"{where}:"


def _argument(name: str, value: str | None) -> str:
    label = f"“{_LABELS[name]}”" if name in _LABELS else name.replace("_", " ")
    return label if value in (None, "True") else f"{label}: {str(value).strip(chr(34))}"


def _said(written: str) -> str:
    """Say a value of a plan file without its brackets and quotes."""
    try:
        item: Any = tomllib.loads(f"x = {written}")["x"]
    except tomllib.TOMLDecodeError:
        return written
    if isinstance(item, Mapping):
        return ", ".join(f"{_said_one(own)} for {name}" for name, own in item.items())
    return _said_one(item)


def _said_one(item: Any) -> str:
    return ", ".join(map(str, item)) if isinstance(item, list) else {True: "yes", False: "no"}.get(item, str(item))
