"""Edit fields of a plan file in its text; comments, order and layout are kept.

An answer replaces the commented-out line of an open question. If the edited text does not parse to the expected values,
the file is left unchanged.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from treetop.errors import PlanFileError
from treetop.plan.file.describe import key as written_key
from treetop.plan.file.describe import value as written

Path = tuple[str, ...]
"""The names of a section, from the top: `("attributes", "origin")`."""
Changes = Mapping[tuple[Path, str], Any]
"""New value by section and field; None removes the field."""

_HEADER = re.compile(r"\s*\[(?P<name>[^\[\]]+)\]\s*(?:#.*)?")
_KEY = re.compile(r"\s*(?P<name>\"(?:[^\"\\]|\\.)*\"|'[^']*'|[A-Za-z0-9_-]+)\s*=\s*(?P<value>.*)")
_OPEN = re.compile(r"\s*#\s*(?P<name>[a-z_]+)\s*=\s*(?P<value>.*)")
_TEXTS = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'")


@dataclass(frozen=True)
class _Item:
    """Some lines of the file: a section's header, a field, or a commented-out field."""

    kind: Literal["header", "field", "open"]
    section: Path
    name: str
    start: int
    stop: int


def parsed(text: str, file: str = "the plan") -> dict[str, Any]:
    """Return the parsed values of a plan file."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"), parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise PlanFileError(f"{file}: this is not valid TOML: {problem}") from problem


def changed(text: str, changes: Changes, file: str = "the plan") -> str:
    """Return the text of a plan file with some fields changed, and everything else unchanged.

    >>> print(changed('[unit]\\n# Who?\\n# entity = "trip"\\n', {(("unit",), "entity"): "person"}), end="")
    [unit]
    # Who?
    entity = "person"
    """
    expected = parsed(text, file)
    lines = _lines(text)
    for (section, name), item in changes.items():
        _state(expected, section, name, item, file)
        lines = _without_table(lines, (*section, name))
        lines = _without(lines, section, name) if item is None else _with(lines, section, name, written(item))
    return _checked(lines, expected, file)


def without_section(text: str, section: Path, file: str = "the plan") -> str:
    """Return the text of a plan file without a section and its subsections, and everything else unchanged."""
    expected = parsed(text, file)
    inner = expected
    for name in section[:-1]:
        inner = inner.get(name, {})
    inner.pop(section[-1], None)
    if len(section) > 1 and not inner:
        expected.pop(section[0], None)
    lines = _without_table(_lines(text), section)
    return _checked(lines, expected, file)


def moved(text: str, section: Path, before: Path, file: str = "the plan") -> str:
    """Return the text of a plan file with a section, its comments and subsections moved before another section.

    >>> print(moved("[a.x]\\ni = 1\\n[a.y]\\ni = 2\\n", ("a", "y"), ("a", "x")), end="")
    [a.y]
    i = 2
    [a.x]
    i = 1
    """
    expected = parsed(text, file)
    lines = _lines(text)
    gone = _table_lines(lines, section)
    block = [line for at, line in enumerate(lines) if at in gone]
    rest = [line for at, line in enumerate(lines) if at not in gone]
    starts = [one.start for one in _items(rest) if one.kind == "header" and one.section[: len(before)] == before]
    if not starts or not block:
        raise _not_understood(file)
    at = _before(rest, starts[0])
    return _checked([*rest[:at], *block, *rest[at:]], expected, file)


def renamed(text: str, section: Path, name: str, file: str = "the plan") -> str:
    """Return the text of a plan file with the last name of a section changed, also in its subsections.

    >>> renamed("[a.x]\\n[a.x.z]\\ni = 2\\n", ("a", "x"), "y")
    '[a.y]\\n[a.y.z]\\ni = 2\\n'
    """
    expected = parsed(text, file)
    outer, deep = expected, len(section)
    for part in section[:-1]:
        outer = outer[part]
    items = {(name if own == section[-1] else own): item for own, item in outer.items()}
    outer.clear()
    outer.update(items)
    lines = _lines(text)
    for one in list(_items(lines)):
        if one.kind == "header" and one.section[:deep] == section:
            path = [*section[:-1], name, *one.section[deep:]]
            lines[one.start] = f"[{'.'.join(map(written_key, path))}]{_remark(lines[one.start])}"
    return _checked(lines, expected, file)


def _state(values: dict[str, Any], section: Path, name: str, item: Any, file: str) -> None:
    inner = values
    for part in section:
        if item is None and part not in inner:
            return
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            raise _not_understood(file)
    if item is None:
        inner.pop(name, None)
    else:
        inner[name] = tomllib.loads(f"x = {written(item)}", parse_float=Decimal)["x"]


def _lines(text: str) -> list[str]:
    return text.removeprefix("\ufeff").splitlines()


def _checked(lines: Sequence[str], expected: dict[str, Any], file: str) -> str:
    result = "\n".join(lines).rstrip() + "\n"
    try:
        told = parsed(result, file)
    except PlanFileError:
        told = {}
    if _plain(told) != _plain(expected):
        raise _not_understood(file)
    return result


def _not_understood(file: str) -> PlanFileError:
    return PlanFileError(f"{file}: is written in a way that cannot be changed here: change it in an editor")


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    found = {name: _plain(item) if isinstance(item, dict) else item for name, item in values.items()}
    return {name: item for name, item in found.items() if item != {}}


def _items(lines: Sequence[str]) -> Iterator[_Item]:
    section: Path = ()
    at = 0
    while at < len(lines):
        line, stop = lines[at], at + 1
        if header := _HEADER.fullmatch(line):
            section = _path(header["name"])
            yield _Item("header", section, "", at, stop)
        elif field := _KEY.match(line):
            stop = _end(lines, at, field["value"])
            (name,) = _path(field["name"])
            yield _Item("field", section, name, at, stop)
        elif (left := _OPEN.match(line)) and _is_value(left["value"]):  # not a sentence of somebody
            yield _Item("open", section, left["name"], at, stop)
        at = stop


def _is_value(text: str) -> bool:
    try:
        return "x" in tomllib.loads(f"x = {text}")
    except tomllib.TOMLDecodeError:
        return False


def _path(name: str) -> Path:
    """Return the names of a header or key, each without its quotes."""
    try:
        inner = tomllib.loads(f"[{name}]")
    except tomllib.TOMLDecodeError:
        return (name,)
    names = []
    while inner:
        ((one, inner),) = inner.items()
        names.append(one)
    return tuple(names)


def _end(lines: Sequence[str], start: int, value: str) -> int:
    """Return the end of a value that may take several lines."""
    stop = start + 1
    while not _is_value(value) and stop < len(lines):
        value += f"\n{lines[stop]}"
        stop += 1
    return stop


def _remark(line: str) -> str:
    """Return the comment at the end of a field's line, with the blanks before it."""
    bare = _TEXTS.sub(lambda found: "x" * len(found[0]), line)
    at = bare.find("#", 1 + len(bare) - len(bare.lstrip()))
    return "" if at < 0 else line[len(line[:at].rstrip()) :]


def _with(lines: list[str], section: Path, name: str, value: str) -> list[str]:
    items = [one for one in _items(lines) if one.section == section]
    line = f"{written_key(name)} = {value}"
    for kind in ("field", "open"):
        found = [one for one in items if one.kind == kind and one.name == name]
        if found:
            one = found[0]
            remark = _remark(lines[one.start]) if one.stop == one.start + 1 else ""
            return [*lines[: one.start], line + remark, *lines[one.stop :]]
    if not items and section:
        header = f"[{'.'.join(map(written_key, section))}]"
        return [*lines, *([""] if lines and lines[-1].strip() else []), header, line]
    fields = [one for one in items if one.kind != "open"]
    at = fields[-1].stop if fields else 0
    return [*lines[:at], line, *lines[at:]]


def _without(lines: list[str], section: Path, name: str) -> list[str]:
    for one in _items(lines):
        if one.kind == "field" and (one.section, one.name) == (section, name):
            return [*lines[: one.start], *lines[one.stop :]]
    return lines


def _without_table(lines: list[str], section: Path) -> list[str]:
    gone = _table_lines(lines, section)
    return [line for at, line in enumerate(lines) if at not in gone]


def _table_lines(lines: Sequence[str], section: Path) -> set[int]:
    """Return the numbers of the lines of a section, of those under it, and of the comments above them."""
    headers = [one for one in _items(lines) if one.kind == "header"]
    starts = [_before(lines, one.start) for one in headers]
    return {
        at
        for one, start, stop in zip(headers, starts, [*starts[1:], len(lines)][: len(headers)], strict=True)
        if one.section[: len(section)] == section
        for at in range(start, stop)
    }


def _before(lines: Sequence[str], header: int) -> int:
    """Return the start of the comments directly above a header; they belong to that section."""
    while header and lines[header - 1].lstrip().startswith("#"):
        header -= 1
    return header


# What one plan file says otherwise than another: field by field, for a reviewer.


@dataclass(frozen=True)
class Difference:
    """A field that differs between two plan files."""

    field: str
    before: str | None
    after: str | None


def differences(before: str, after: str) -> list[Difference]:
    """Return the fields that differ between two plan files; comments and order do not count.

    >>> [(one.field, one.before, one.after) for one in differences("[loss]\\nepsilon = 1.0", "[loss]\\nepsilon = 0.5")]
    [('loss.epsilon', '1', '0.5')]
    """
    old, new = dict(_fields(parsed(before, "the earlier plan"))), dict(_fields(parsed(after)))
    names = [*new, *(name for name in old if name not in new)]
    return [Difference(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def _fields(values: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, str]]:
    for name, item in values.items():
        if isinstance(item, Mapping) and item:
            yield from _fields(item, f"{section}{name}.")
        else:
            yield f"{section}{name}", written(item)
