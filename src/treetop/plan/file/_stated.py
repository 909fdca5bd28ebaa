"""Parse the fields of a plan file that all families of plans share, before its hierarchies are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from treetop._util.choices import nearest
from treetop._util.lazy import FrozenMap
from treetop._util.numbers import Number
from treetop.counts.graph_reader import tables_within
from treetop.domain.constraints import COUNTED, LISTED, ORDERED, SAME
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import DataError, IncompletePlan, PlanFileError
from treetop.io.row_batch import as_text
from treetop.io.source import OPTIONS, BlankLines, Positions, Prepare, Source, as_public
from treetop.io.table import read, same_table
from treetop.plan import fields
from treetop.plan.fields._field import OPEN, Section
from treetop.plan.fields.declarations import ATTRIBUTE
from treetop.plan.file._graph import GraphFile, private_tables
from treetop.plan.file.attributes import Attribute, Lookup, read_attributes, read_lookups
from treetop.plan.group_plan import inner
from treetop.plan.plan import Plan
from treetop.privacy import Loss

# The files that a plan file names, without reading them.


def named_files(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each file that a plan file names, as (dotted field, name as written).

    Args:
        values: The plan file's values, as TOML has them. Values of a wrong type are left to the reader of plans.

    >>> list(named_files({"data": {"source": "trips.csv"}, "facts": {"place.state": "totals.csv"}}))
    [('facts.place.state', 'totals.csv'), ('data.source', 'trips.csv')]
    """
    for section in dict.fromkeys(one.section for one in fields.file_fields()):
        names = [one.name for one in fields.file_fields() if one.section == section]
        for place, stated in _sections(values, section.split(".")):
            if isinstance(stated, str):  # the short form of a fact
                yield place, stated
            elif isinstance(stated, Mapping):
                for name in names:
                    yield from _texts(f"{place}.{name}", stated.get(name))


def _sections(values: Any, path: list[str], place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the sections of a declared path; a name in capitals stands for every name."""
    if not path:
        yield place, values
    elif isinstance(values, Mapping):
        for name in values if path[0].isupper() else [path[0]]:
            if name in values:
                yield from _sections(values[name], path[1:], f"{place}.{name}" if place else name)


def _texts(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(f"{place}.{name}", inner)


# The public files that a plan names: none of them may be the private table.

_CODES = "which codes occur there is private. Take the list of codes from a public source"


@dataclass(frozen=True)
class PublicFile:
    """A public file that a plan names."""

    section: str
    field: str
    path: Path
    why: str
    """Reason why it may not be the private table, with a remedy."""


def public_files(
    values: Mapping[str, Any], attributes: Mapping[str, Attribute], folder: Path
) -> tuple[PublicFile, ...]:
    """Return every public file that a plan file names; fields of other types are left out."""
    own = ((one.section.name, "hierarchy", one.stated["hierarchy"], _CODES) for one in attributes.values())
    return tuple(
        PublicFile(section, field, folder / name, why)
        for section, field, name, why in (*_named(values), *own)
        if isinstance(name, str) and name != OPEN
    )


def refuse_private(plan: Path, files: Iterable[PublicFile], tables: Iterable[Any]) -> None:
    """Refuse a public file that is one of the private tables; tables that are None or in memory have no file."""
    private = [one for table in tables for one in tables_within(inner(table))]
    for file in files:
        for table in private:
            if (how := same_table(file.path, table)) is not None:
                raise PlanFileError(
                    f"{plan}: [{file.section}] {file.field} is the private table itself ({how}): {file.why}. If the "
                    "file is public, name the private table instead of it"
                )


def _named(values: Mapping[str, Any]) -> Iterator[tuple[str, str, Any, str]]:
    for table, fact in _items(values[""].get("facts")):
        given = fact if isinstance(fact, Mapping) else {"exact": fact}
        for kind in (*COUNTED, *LISTED):
            if kind in given and (kind in COUNTED or given[kind] not in (SAME, ORDERED)):
                yield (
                    f'facts."{table}"', kind, given[kind],
                    "what it says is private. To publish its own counts as they are, unprotected, write invariant = "
                    "true",
                )  # fmt: skip
    for column, name in _items(values["data"].get("replace")):
        yield "data.replace", column, name, "give a public file of two columns, codes and what each is counted as"
    groups = values.get("groups") or {}
    yield "groups", "list", groups.get("list"), "which groups occur there is private. Take it from a public source"
    for column, rule in _items((values.get("graph") or {}).get("clean")):
        if isinstance(rule, Mapping):
            yield f"graph.clean.{column}", "vocabulary", rule.get("vocabulary"), _CODES


def _items(given: Any) -> Iterable[tuple[str, Any]]:
    return given.items() if isinstance(given, Mapping) else ()


# A plan that was read from a file, with its notes on the private table.


@dataclass(frozen=True, eq=False)
class PlanFile:
    """A plan that was read from a file, with the file's notes on the private table."""

    plan: Plan
    path: Path
    text: str = field(repr=False)
    attributes: Mapping[str, Mapping[str, Any]] = field(repr=False)
    """Sections of the attributes, as written."""
    columns: Mapping[str, str]
    lookups: Mapping[str, Lookup] = field(repr=False)
    description: str = ""
    notes: tuple[str, ...] = ()
    """What was decided that the file leaves open, in sentences."""
    loss_is_open: bool = False
    """Whether the file leaves the loss open, so that the plan's epsilon is only a stand-in."""
    source: str | None = None
    query: str | None = None
    count: str | None = None
    records: int | None = None
    period: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    fields: Positions | None = None
    keep: Mapping[str, tuple[str, ...]] | None = None
    drop: Mapping[str, tuple[str, ...]] | None = None
    sheet: str | None = None
    comment: str | None = None
    header: bool | None = None
    names: tuple[str, ...] | None = None
    blank_lines: BlankLines = "record"
    trim: bool | tuple[str, ...] | None = None
    missing: tuple[str, ...] | None = None
    thousands: Mapping[str, str] | None = None
    replace: Mapping[str, str] | None = None
    pad: Mapping[str, int] | None = None
    elsewhere: bool = False
    """Whether every hierarchy was given a leaf for unknown codes, which its file does not have."""
    graph: GraphFile | None = None
    """The graph, if its edges or nodes are the private table."""
    keep_measurements: bool = False
    groups: Mapping[str, Any] | None = field(default=None, repr=False)
    """Section [groups] as written; None for other plans."""
    public_files: tuple[PublicFile, ...] = field(default=(), repr=False)
    """Every public file that the plan names: hierarchies, facts, replaced codes, group lists, vocabularies."""

    def refuse_private(self, table: Any) -> None:
        """Refuse a private table that is one of the plan's public files, even under another path."""
        refuse_private(self.path, self.public_files, [table, *([] if self.graph is None else [self.graph.graph])])

    def table(self, location: str, query: str | None = None) -> Any:
        """Return a private table with the file's options to read it; one of its public files is refused."""
        self.refuse_private(location)
        if self.graph is not None:
            return self.graph.table(self.as_source(location, query))
        return self.plan.reader.own_table(self.as_source(location, query))

    def as_source(self, location: str, query: str | None = None) -> Source:
        """Return a table with the options of [data] to read it."""
        options = {name: getattr(self, name) for name in OPTIONS if name != "query"}
        return Source(location, query or self.query, **options, prepare=self.prepare)

    @cached_property
    def prepare(self) -> Prepare | None:
        """Preparation of text columns before they are read as codes; None for none."""
        replaced = {column: _codes(self.path.parent / name) for column, name in (self.replace or {}).items()}
        made = Prepare(
            trim=self.trim or (),
            missing=self.missing or (),
            thousands=self.thousands or {},
            replace=replaced,
            pad=self.pad or {},
        )
        return made or None

    @property
    def prepared(self) -> tuple[str, ...]:
        """The preparation in short words."""
        return (*(() if self.prepare is None else self.prepare.words()), *self.plan.spine.coded)


def _codes(path: Path) -> dict[str, str]:
    """Read a public file with two columns: codes and their replacements."""
    table = read(as_public(path))
    if table.num_columns != 2:
        raise DataError(f"{path}: has {table.num_columns} columns: give two, codes and what each is counted as")
    codes, others = (
        as_text(column.combine_chunks(), name) for name, column in zip(table.column_names, table.columns, strict=True)
    )
    for row, (code, other) in enumerate(zip(codes.to_pylist(), others.to_pylist(), strict=True), start=1):
        if not code or not other:
            raise DataError(f"{path}, row {row}: a code is missing: give both, or delete the row")
    found = dict(zip(codes.to_pylist(), others.to_pylist(), strict=True))
    if len(found) < len(codes):
        twice = next(code for code in found if codes.to_pylist().count(code) > 1)
        raise DataError(f"{path}: the code {twice!r} is replaced twice: keep one row")
    return found


_AT_ONCE = "are measured at all levels together and repaired at once"
_REASONS: Mapping[str, Mapping[str, str]] = {
    fields.GROUPS: {
        "release.resolve": f"group sizes {_AT_ONCE}, so that no count stays behind at a coarser node",
        "release.prefer": f"it decides a repair from the top down, and group sizes {_AT_ONCE}, as [groups] repair says",
        "unit.id_clean": "ids of people and groups are compared as they are written, and with the public list; blanks "
        "at their ends are taken away by trim under [data]",
    },
    fields.DEGREES: {
        "release.resolve": f"degrees {_AT_ONCE}, so that no count stays behind at a coarser node",
        "release.prefer": f"it decides a repair from the top down, and degrees {_AT_ONCE}",
    },
}
"""Why plans of a family cannot have some fields of the others."""
_FIRST_ASKED = ("graph", ATTRIBUTE, "", "spine", "groups")
"""Sections with questions that are asked first."""


@dataclass(frozen=True, eq=False)
class ParsedPlan:
    """The parsed fields of a plan file, each checked by itself."""

    path: Path
    text: str
    family: str
    sections: Mapping[str, Section]
    """Sections as written; missing ones are empty."""
    values: Mapping[str, Any]
    """Fields by section and name; those of attributes by attribute."""
    attributes: Mapping[str, Attribute]
    loss_is_open: bool
    """Whether no loss is stated, so that epsilon is a stand-in or missing."""

    @property
    def source(self) -> str | None:
        """Location of the private table; None if it is not stated."""
        return self.values["data"]["source"]  # type: ignore[no-any-return]

    @property
    def counted(self) -> Source:
        """The private table with its reading options, as far as they decide which rows there are."""
        return Source(self.source or "-", **{key: self.values["data"][key] for key in OPTIONS})

    @property
    def public_files(self) -> tuple[PublicFile, ...]:
        """The public files that the plan names."""
        return public_files(self.values, self.attributes, self.path.parent)

    def refuse_private_files(self) -> None:
        """Refuse a private table that the plan names as a public file, before any of them is read."""
        tables = [self.source, *private_tables(self.values.get("graph", {}), self.path.parent)]
        refuse_private(self.path, self.public_files, tables)

    def loss(self) -> Loss:
        """Return the loss."""
        with self.sections["loss"].located():
            return Loss(**fields.arguments(self.values, "plan.loss", self.family))

    def refuse_open(self) -> None:
        """Refuse open questions without a safe default; the error names every field at once."""
        asked = []
        for section in dict.fromkeys((*_FIRST_ASKED, *self.sections)):
            if section == ATTRIBUTE:
                for one in self.attributes.values():
                    own = fields.open_questions(section, one.stated, one.stated, self.family)
                    asked += [(one.section.dotted(name), question) for name, question in own]
            else:
                own = fields.open_questions(section, self.values.get(section, {}), self.values, self.family)
                asked += [(f"{section}.{name}" if section else name, question) for name, question in own]
        if asked:
            many = "a question" if len(asked) == 1 else f"{len(asked)} questions"
            lines = [f"  {name}: {question}" for name, question in asked]
            head = f"{self.path} leaves {many} open, for which there is no safe default:"
            raise IncompletePlan("\n".join([head, *lines]))

    def check_columns(self, columns: Sequence[str | None]) -> None:
        """Refuse columns that a fixed-width table, or a CSV file without header, does not have."""
        data, section, graph = self.values["data"], self.sections["data"], self.values["graph"]
        if graph and graph["counts"] != "nodes":
            columns = [graph["source"], graph["target"], graph["weight"]]
        chosen = (*(data["keep"] or ()), *(data["drop"] or ()))
        used = [one for one in (*columns, data["count"], *chosen) if one is not None]
        names, positions = data["names"], data["fields"]
        for column in used if names is not None else ():
            if column not in names:
                raise section.problem(
                    f"names: there is no column {column!r}{nearest(column, names)}; the names are {', '.join(names)}"
                )
        for column in used if positions is not None else ():
            if column not in positions:
                raise section.table("fields").problem(
                    f"there is no field {column!r}{nearest(column, positions)}: say where it stands, as in {column} = "
                    f"[8, 13]; the fields are {', '.join(positions)}"
                )

    def read_trees(self) -> dict[str, Hierarchy]:
        """Read the hierarchy of every attribute, unless a public file is the private table."""
        self.refuse_private_files()
        trees = {name: attribute.read(self.path.parent) for name, attribute in self.attributes.items()}
        for name, tree in trees.items():
            self.check_digest(name, tree)
        return trees

    def check_digest(self, name: str, tree: Hierarchy) -> None:
        """Refuse a hierarchy with another hash than the plan states."""
        attribute = self.attributes[name]
        stated = attribute.stated["hierarchy_sha256"]
        if stated is not None and stated.lower() != tree.digest:
            raise attribute.section.problem(
                f"the hierarchy of {name} has SHA-256 {tree.digest}, but hierarchy_sha256 is {stated}: the plan was "
                "made for another tree"
            )

    def plan_file(self, plan: Plan, columns: Mapping[str, str], **more: Any) -> PlanFile:
        """Return the plan with the notes on the private table."""
        said, own = (fields.arguments(self.values, what, self.family) for what in ("said", "file"))
        return PlanFile(
            plan=plan,
            path=self.path,
            text=self.text,
            attributes=FrozenMap({name: one.section.values for name, one in self.attributes.items()}),
            columns=FrozenMap(columns),
            lookups=FrozenMap(read_lookups(self.attributes, self.path.parent)),
            public_files=self.public_files,
            loss_is_open=self.loss_is_open,
            **{**said, **own, **more},
        )


def read_stated(path: Path, text: str, given: Mapping[str, Any], family: str, stand_in: Number | None) -> ParsedPlan:
    """Read every field; if no loss is stated, the epsilon `stand_in` may replace it."""
    named = fields.sections(family)
    homes: dict[str, str] = {}
    known = [*fields.names("", family), *named]
    if family == fields.RECORDS:
        known.append("groups")
        homes = {key: name for name in named if name != "graph" for key in fields.names(name) if key != "order"}
    if family == fields.GROUPS and "facts" in given:
        raise PlanFileError(
            f"{path}: [facts] are about counts of records, and this plan counts groups by size. What is public of "
            "groups is their list: name it with [groups] list, and every region keeps its number of groups (public = "
            '"regions"); leave [facts] out'
        )
    top = Section(str(path), "", given).only(known, homes)
    reasons = _REASONS.get(family)
    sections = {name: top.table(name).only(fields.names(name, family), reasons=reasons) for name in named}
    attributes = read_attributes(top, family)
    values: dict[str, Any] = {name: fields.read(section, name, family) for name, section in sections.items()}
    values |= {"": fields.read(top, "", family), "attributes": attributes}
    if "graph" not in given:
        values["graph"] = {}
    _check_data(sections["data"], values["data"], path.parent)
    release = values["release"]
    if not release["intervals"]:
        if sections["release"].has("confidence"):
            raise sections["release"].problem("intervals are off, but have a confidence: keep one")
        release["confidence"] = None
    loss = values["loss"]
    is_open = loss["epsilon"] is None and loss["rho"] is None
    if is_open:
        loss["epsilon"] = stand_in
    return ParsedPlan(path, text, family, sections, values, attributes, is_open)


def _check_data(section: Section, data: dict[str, Any], folder: Path) -> None:
    """Check the data options for contradictions, and find the private table from the plan file's folder."""
    source = data["source"]
    if source is not None and "://" not in source and source != "-":
        data["source"] = str(folder / source)
    if data["fields"] is not None and data["delimiter"] is not None:
        raise section.problem("fields are of fixed-width text, which has no delimiter: keep one")
    with section.located():
        Source("-", **{key: data[key] for key in OPTIONS})
        Prepare(
            trim=data["trim"] or (),
            missing=data["missing"] or (),
            thousands=data["thousands"] or {},
            pad=data["pad"] or {},
        )
