"""The attributes of a plan file: their columns in the private table and their public hierarchies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.choices import nearest
from treetop.domain.branches import Ragged, read_columns
from treetop.domain.coding import MONTHLY
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.spine import problem_with_name
from treetop.errors import DataError, HierarchyError
from treetop.io import table as tables
from treetop.io.row_batch import as_text, first_missing
from treetop.io.source import Source, as_public
from treetop.plan import fields
from treetop.plan.fields._field import Section
from treetop.plan.fields.declarations import ATTRIBUTE, SOURCES

_OF_A_FILE = (
    "codes", "child", "parent", "ragged", "name", "names", "latitude", "longitude", "delimiter", "encoding",
    "keep", "drop", "sheet",
)  # fmt: skip


@dataclass(frozen=True)
class Lookup:
    """The public file of an attribute's hierarchy, with its columns for exports."""

    file: Path
    source: Source
    code: str
    """Column with the leaf codes."""
    name: str | None = None
    latitude: str | None = None
    longitude: str | None = None


@dataclass(frozen=True)
class Attribute:
    """One attribute as stated in a plan file, before its hierarchy is read."""

    section: Section
    column: str
    stated: Mapping[str, Any]
    """Its fields, checked for type."""

    @property
    def same_as(self) -> str | None:
        """Another attribute that this one takes its hierarchy from; None if it has its own."""
        return self.stated["same_as"]  # type: ignore[no-any-return]

    def file(self, folder: Path) -> Path | None:
        """Return the path of the hierarchy file, found from the plan file's folder; None if there is none."""
        return None if self.stated["hierarchy"] is None else folder / self.stated["hierarchy"]

    def source(self, folder: Path) -> Source | None:
        """Return the hierarchy file with its read options."""
        path, stated = self.file(folder), self.stated
        if path is None:
            return None
        return Source(path, **{key: stated[key] for key in ("delimiter", "encoding", "keep", "drop", "sheet")})

    def read(self, folder: Path) -> Hierarchy:
        """Read the hierarchy."""
        with self.section.located(), _system_errors():
            tree, blank = self._tree(folder), self.stated["blank"]
            return (tree if blank is None else tree.with_blank(blank)).named(self._labels(tree))

    def _labels(self, tree: Hierarchy) -> Mapping[str, Mapping[str, str]]:
        """Return the labels by level; refuse those of codes that there are not."""
        given = self.stated["labels"] or {}
        nested = any(isinstance(value, Mapping) for value in given.values())
        labels = given if nested else {tree.levels[-1]: given} if given else {}
        for level, named in labels.items():
            codes = [*tree.codes[tree.depth(level)].to_pylist(), self.stated["blank"] or ""]
            if (missing := next((code for code in named if code not in codes), None)) is not None:
                raise HierarchyError(
                    f"labels: there is no code {missing!r} at level {level!r}{nearest(missing, codes)}"
                )
        return labels

    def _tree(self, folder: Path) -> Hierarchy:
        stated = self.stated
        file = self.source(folder)
        ragged: Ragged = stated["ragged"]
        if stated["widths"] is not None or stated["standard"] is not None:
            codes = stated["values"] if file is None else _column(file, stated["codes"])
            if stated["widths"] is not None:
                tree = Hierarchy.from_prefixes(codes, stated["widths"], stated["levels"])
            else:
                tree = Hierarchy.standard(stated["standard"], stated["levels"], codes)
            return tree.with_names(_names_of_prefixes(file, tree, self.names(tree.levels), stated["codes"]))
        if stated["bands"] is not None:
            return _banded(stated["bands"], stated["levels"])
        if stated["dates"] is not None:
            return Hierarchy.from_dates(**stated["dates"], levels=stated["levels"] or MONTHLY)
        if file is None:
            return _flat(stated["values"] or stated["labels"], stated["levels"])
        if stated["child"] is not None:
            if isinstance(stated["names"], dict):
                raise HierarchyError('a list of parents names all codes in one column: say names = "COLUMN"')
            return Hierarchy.from_parents(
                file, stated["child"], stated["parent"], stated["levels"], ragged, name=stated["names"]
            )
        return Hierarchy.from_table(file, stated["levels"], ragged, names=self.names(stated["levels"]))

    def names(self, levels: Sequence[str]) -> dict[str, str]:
        """Return the columns with the names of codes by level; `name` is for leaves if these have coordinates."""
        stated = self.stated
        if not levels:  # refused when the tree is made
            return {}
        given, finest = stated["names"] or {}, list(levels)[-1]
        own = {finest: given} if isinstance(given, str) else dict(given)
        name = stated["name"] if own or stated["latitude"] is not None else None
        if name is not None and own.setdefault(finest, name) != name:
            raise HierarchyError(f"name and names say different columns for the level {finest!r}: keep one of them")
        for level in own:
            if level not in levels:
                raise HierarchyError(
                    f"names: there is no level {level!r}{nearest(level, levels)}; the levels are {', '.join(levels)}"
                )
        return own

    def lookup(self, folder: Path) -> Lookup | None:
        """Return the file and columns that exports use."""
        source = self.source(folder)
        if source is None:
            return None
        stated = self.stated
        levels = stated["levels"]
        finest = list(levels.values())[-1] if isinstance(levels, dict) else levels and levels[-1]
        code = stated["codes"] or stated["child"] or finest
        wanted = {key: stated[key] for key in ("name", "latitude", "longitude")}
        with self.section.located(), _system_errors():
            if columns := [column for column in wanted.values() if column]:
                tables.read(as_public(source), columns)
        return Lookup(Path(str(source.location)), source, code, **wanted)


def read_attributes(top: Section, family: str) -> dict[str, Attribute]:
    """Read the sections of the attributes; their hierarchies are read later."""
    sections = top.table("attributes")
    attributes = {name: _attribute(name, sections, family) for name in sections.values}
    for name, attribute in attributes.items():
        _check_same_as(name, attribute, attributes)
    return attributes


def read_hierarchies(attributes: Mapping[str, Attribute], folder: Path) -> dict[str, Hierarchy]:
    """Read every hierarchy once; attributes that share one get the same object."""
    own = {name: one.read(folder) for name, one in attributes.items() if one.same_as is None}
    return {name: own[one.same_as or name] for name, one in attributes.items()}


def read_lookups(attributes: Mapping[str, Attribute], folder: Path) -> dict[str, Lookup]:
    """Return the lookup of every attribute that has one."""
    found = {name: attributes[one.same_as or name].lookup(folder) for name, one in attributes.items()}
    return {name: lookup for name, lookup in found.items() if lookup is not None}


def _attribute(name: str, sections: Section, family: str) -> Attribute:
    section = sections.table(name).only(fields.names(ATTRIBUTE, family))
    others = takewhile(lambda other: other != name, sections.values)
    if (problem := problem_with_name(name, others)) is not None:
        raise sections.problem(problem)
    stated = fields.read(section, ATTRIBUTE, family)
    has_columns = stated["hierarchy"] is not None and stated["widths"] is None and stated["child"] is None
    if isinstance(stated["levels"], dict) and not (has_columns or stated["dates"] or stated["standard"]):
        raise section.problem("levels renames the columns of a hierarchy file, one a level: give a list of names here")
    if (why := _contradiction({key for key in stated if section.has(key)})) is not None:
        raise section.problem(why)
    return Attribute(section, stated["column"] or name, stated)


def _contradiction(given: set[str]) -> str | None:
    sources = [key for key in SOURCES[:-1] if key in given]
    if "standard" in given and "hierarchy" in given and "codes" not in given:
        return 'standard cuts the codes of a file: name their column, as in codes = "NUTS_ID"'
    if "standard" in given and len(sources) == 2 and set(sources) & {"hierarchy", "values"}:
        return None  # a public list of codes, which the standard cuts
    if len(sources) > 1:
        return f"both {sources[0]} and {sources[1]} say what the hierarchy is: keep one"
    of_hierarchy = [key for key in ("levels", "widths", "labels", "blank", *_OF_A_FILE) if key in given]
    if "same_as" in given and of_hierarchy:
        return f"{of_hierarchy[0]} belongs to the hierarchy, which is taken from another attribute: leave it out"
    of_file = [key for key in _OF_A_FILE if key in given]
    if "hierarchy" not in given and "same_as" not in given and sources and of_file:
        return f"{of_file[0]} is about a hierarchy file, but {sources[0]} needs none: leave it out"
    if "widths" in given and sources and sources[0] in ("bands", "dates", "standard"):
        return f"widths cuts codes into levels, but {sources[0]} makes them: leave it out"
    if ("child" in given) != ("parent" in given):
        return "a parent list needs both child and parent, the names of its two columns"
    if "codes" in given and "widths" not in given:
        return "codes names a column of codes to be cut, but widths is missing: give the prefixes' lengths"
    if {"child", "widths"} <= given:
        return "widths cuts codes into levels and child/parent lists them: keep one"
    if ("latitude" in given) != ("longitude" in given):
        return "coordinates need both latitude and longitude"
    return None


def _check_same_as(name: str, attribute: Attribute, attributes: Mapping[str, Attribute]) -> None:
    other = attribute.same_as
    if other is None:
        return
    if other not in attributes:
        raise attribute.section.problem(
            f"same_as names {other!r}, which is not an attribute{nearest(other, attributes)}"
        )
    if attributes[other].same_as is not None:
        hint = "itself" if other == name else f"{other!r}, which has no hierarchy of its own"
        raise attribute.section.problem(f"same_as names {hint}: name the attribute that has the hierarchy")


def _banded(bands: Any, levels: tuple[str, ...] | None) -> Hierarchy:
    if isinstance(bands, Mapping) and levels is not None:
        raise HierarchyError("bands names its levels itself: leave levels out")
    if levels is not None and len(levels) != 1:
        raise HierarchyError(
            f"bands has one level, but {len(levels)} are named: give the bands of each, as in "
            "bands = { adult = [0, 18], age = [0, 10, 18] }"
        )
    return Hierarchy.from_bands(bands, *(levels or ()))


def _flat(values: Any, levels: tuple[str, ...] | None) -> Hierarchy:
    if levels is None:
        return Hierarchy.flat(values)
    if len(levels) != 1:
        raise HierarchyError(
            f"a plain list of values has one level, but {len(levels)} are named: give one, or add widths"
        )
    return Hierarchy.flat(values, level=levels[0])


def _names_of_prefixes(
    file: Source | None, tree: Hierarchy, names: Mapping[str, str], codes: str | None
) -> dict[str, tuple[pa.Array | None, pa.Array]]:
    """Return the names of prefix codes, row by row in the order of the file."""
    if file is None or codes is None or not names:
        return {}
    lengths = {level: len(tree.codes[depth][0].as_py()) for depth, level in enumerate(tree.levels)}
    whole, *called = read_columns(file, [codes, *names.values()])
    return {
        level: (pc.utf8_slice_codeunits(whole, 0, lengths[level]), column)
        for level, column in zip(names, called, strict=True)
    }


def _column(file: Source, name: str) -> list[str]:
    try:
        column = as_text(tables.read(as_public(file), [name]).column(name), name)
    except DataError as problem:
        raise HierarchyError(f"hierarchy: {problem}") from problem
    row = first_missing(column)
    if row is not None:
        raise HierarchyError(f"hierarchy: {file}, column {name!r}, row {row + 1}: the code is missing")
    codes: list[str] = column.to_pylist()
    return codes


@contextmanager
def _system_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as problem:
        raise HierarchyError(f"hierarchy: cannot be read: {problem}") from problem
