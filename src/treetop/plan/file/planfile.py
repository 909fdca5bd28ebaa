"""A plan that was read from a file, with what the file says about the private table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from treetop.errors import DataError, PlanError
from treetop.plan.file.attributes import Lookup
from treetop.plan.file.graph import GraphFile
from treetop.plan.file.public_files import PublicFile, refuse_private
from treetop.plan.plan import PurePlan
from treetop.sources.batch import as_text
from treetop.sources.positions import Positions
from treetop.sources.prepare import Prepare
from treetop.sources.source import BlankLines, Source, as_public
from treetop.sources.table import read


class Said(Protocol):
    """What is said about the data beside a plan: by a plan file, or by the facts of a run in Python."""

    @property
    def description(self) -> str:
        """What the release is about, at length."""

    @property
    def columns(self) -> Mapping[str, str] | None:
        """The column of each attribute in the private table."""

    @property
    def count(self) -> str | None:
        """The column that says how many records a row stands for."""

    @property
    def period(self) -> str | None:
        """The time that the data are about, in words."""

    @property
    def keep(self) -> Mapping[str, Sequence[str]] | None:
        """The values that a row must have to be in the data at all, by column."""

    @property
    def drop(self) -> Mapping[str, Sequence[str]] | None:
        """The values that leave a row out of the data, by column."""

    @property
    def prepared(self) -> Sequence[str]:
        """What was done to columns of text before they were read as codes, in short words."""


@dataclass(frozen=True, eq=False)
class PlanFile:
    """A plan that was read from a file, with what the file says about the private table."""

    plan: PurePlan
    """The plan."""
    path: Path
    """Where it was read from."""
    text: str = field(repr=False)
    """The file, word for word."""
    attributes: Mapping[str, Mapping[str, Any]] = field(repr=False)
    """The attributes' sections as they are written."""
    columns: Mapping[str, str]
    """For each attribute, its column in the private table."""
    lookups: Mapping[str, Lookup] = field(repr=False)
    """For each attribute with a hierarchy file, the file and the columns that exports use."""
    description: str = ""
    """What the release is about, at length."""
    loss_is_open: bool = False
    """Whether the file leaves the loss open, so that the plan's epsilon only stands in for it."""
    source: str | None = None
    """The private table: a path (found from the plan file's folder), a glob, or a database URL."""
    query: str | None = None
    """The query for a database."""
    count: str | None = None
    """The column that says how many records a row stands for."""
    period: str | None = None
    """The time that the data are about, in words."""
    delimiter: str | None = None
    """The character between the fields of a CSV file."""
    encoding: str | None = None
    """The encoding of a text file."""
    fields: Positions | None = None
    """Where the fields of fixed-width text stand."""
    keep: Mapping[str, tuple[str, ...]] | None = None
    """The values that a row must have to be in the data at all."""
    drop: Mapping[str, tuple[str, ...]] | None = None
    """The values that leave a row out of the data."""
    sheet: str | None = None
    """The sheet of a workbook."""
    header: bool | None = None
    """Whether the first line of a CSV file holds names: None is yes, unless one of them looks like a value."""
    names: tuple[str, ...] | None = None
    """The names of all columns of a CSV file that does not hold them."""
    blank_lines: BlankLines = "record"
    """What a line with nothing in it is: a record, or nothing."""
    trim: bool | tuple[str, ...] | None = None
    """The columns of text whose blanks at both ends do not count; True for all."""
    missing: tuple[str, ...] | None = None
    """Texts that stand for a missing value."""
    thousands: Mapping[str, str] | None = None
    """By column of numbers, what stands between their thousands."""
    replace: Mapping[str, str] | None = None
    """By column, a public file of codes and what each is counted as."""
    pad: Mapping[str, int] | None = None
    """By column, how long codes are."""
    bands: Mapping[str, tuple[int, ...]] | None = None
    """By column, where bands of numbers begin."""
    elsewhere: bool = False
    """Whether every hierarchy was given a leaf for unknown codes, which its file does not have."""
    graph: GraphFile | None = None
    """The graph whose edges or nodes are the private table."""
    keep_measurements: bool = False
    """Whether a release keeps all that was measured."""
    groups: Mapping[str, Any] | None = field(default=None, repr=False)
    """The section of a plan for group sizes as it is written."""
    public_files: tuple[PublicFile, ...] = field(default=(), repr=False)
    """Every public file that the plan names: hierarchies, facts, replaced codes, group lists, vocabularies."""

    def refuse_private(self, table: Any) -> None:
        """Refuse a private table that is one of the plan's public files, whatever its location is called."""
        refuse_private(self.path, self.public_files, [table, *([] if self.graph is None else [self.graph.graph])])

    def table(self, location: str, query: str | None = None) -> Any:
        """Return a private table with the options to read it that the file states: a `Source`, or a graph's table.

        A location that is one of the plan's public files is refused.
        """
        self.refuse_private(location)
        if self.graph is not None:
            if query is not None:
                raise PlanError(
                    "a query is given, but the tables of a graph are read as they are: leave --query out, and make "
                    "a view or a file of what is to be read"
                )
            return self.graph.table(location)
        options = (
            "delimiter", "encoding", "sheet", "fields", "keep", "drop", "header", "names", "blank_lines", "prepare",
        )  # fmt: skip
        source = Source(location, query or self.query, **{name: getattr(self, name) for name in options})
        return self.plan.own_table(source)

    @cached_property
    def prepare(self) -> Prepare | None:
        """What is done to columns of text before they are read as codes; None for nothing."""
        replaced = {column: _codes(self.path.parent / name) for column, name in (self.replace or {}).items()}
        made = Prepare(
            trim=self.trim or (),
            missing=self.missing or (),
            thousands=self.thousands or {},
            replace=replaced,
            pad=self.pad or {},
            bands=self.bands or {},
        )
        return made or None

    @property
    def prepared(self) -> tuple[str, ...]:
        """What is done to them, in short words."""
        return () if self.prepare is None else tuple(self.prepare.words())


def _codes(path: Path) -> dict[str, str]:
    """Read a public file of two columns: codes, and what each is counted as."""
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
