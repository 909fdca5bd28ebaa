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
    "keep": "Keep only rows with",
    "drop": "Leave out rows with",
    "bands": "Bands of a number",
    "dates": "Dates",
    "standard": "A standard list",
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
_OF_COLUMNS = ("count", "unknown", "pad", "trim", "thousands", "bands")
"""Fields of a plan's data that the step of the columns changes."""
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
    _, field, _ = _parts(found)
    label = _LABELS["order"] if found[1] == "spine" else _LABELS.get(field)
    return f"in {step(_step_of(found[1], field))}{f', by “{label}”' if label else ''}"


def _parts(found: re.Match[str]) -> tuple[str, str, str]:
    """Return the attribute that a place names, its field, and the text behind it that belongs to neither."""
    inner, word = (found[2] or "").replace('"', ""), found[3] or ""
    before, _, last = inner.rpartition(".")
    if last in _LABELS and (before or found[1] != "attributes"):
        return before, last, f" {word}" if word else ""
    return (inner, word, "") if word in _LABELS else (inner, "", f" {word}" if word else "")


def _step_of(section: str, field: str) -> str:
    return "columns" if section == "data" and field in _OF_COLUMNS else _SECTIONS[section]


def _placed(found: re.Match[str]) -> str:
    if found[1] not in _SECTIONS:
        return found[0]
    inner, field, rest = _parts(found)
    where = f"in {step(_step_of(found[1], field))}"
    if found[1] == "attributes" and inner:
        where = f"{'of ' if field else ''}“{inner}” {where}"
    if field:
        return f"“{_LABELS[field]}” {where}{rest}"
    return f"{where[:1].upper()}{where[1:]}:{rest}"


def _argument(name: str, value: str | None) -> str:
    label = f"“{_LABELS[name]}”" if name in _LABELS else name.replace("_", " ")
    return label if value in (None, "True") else f"{label}: {str(value).strip(chr(34))}"


def _said(written: str) -> str:
    """Say a value of a plan file without its brackets and quotes."""
    try:
        item: Any = tomllib.loads(f"x = {written}")["x"]
    except tomllib.TOMLDecodeError:
        return written
    if isinstance(item, Mapping) and "fdr" in item:
        return "only what stands out from the noise"
    if isinstance(item, Mapping):
        return ", ".join(f"{_said_one(own)} for {name}" for name, own in item.items())
    return _said_one(item)


def _said_one(item: Any) -> str:
    return ", ".join(map(str, item)) if isinstance(item, list) else {True: "yes", False: "no"}.get(item, str(item))
