"""A plan that was read from a file, with what the file says about the private table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from treetop.errors import PlanError
from treetop.plan.file.attributes import Lookup
from treetop.plan.file.graph import GraphFile
from treetop.plan.plan import PurePlan
from treetop.tables.positions import Positions
from treetop.tables.source import BlankLines, Source


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
    header: bool | None = None
    """Whether the first line of a CSV file holds names: None is yes, unless one of them looks like a value."""
    names: tuple[str, ...] | None = None
    """The names of all columns of a CSV file that does not hold them."""
    blank_lines: BlankLines = "record"
    """What a line with nothing in it is: a record, or nothing."""
    graph: GraphFile | None = None
    """The graph whose edges or nodes are the private table."""
    keep_measurements: bool = False
    """Whether a release keeps all that was measured."""
    groups: Mapping[str, Any] | None = field(default=None, repr=False)
    """The section of a plan for group sizes as it is written."""

    def table(self, location: str, query: str | None = None) -> Any:
        """Return a private table with the options to read it that the file states: a `Source`, or a graph's table."""
        if self.graph is not None:
            if query is not None:
                raise PlanError(
                    "a query is given, but the tables of a graph are read as they are: leave --query out, and make "
                    "a view or a file of what is to be read"
                )
            return self.graph.table(location)
        options = ("delimiter", "encoding", "fields", "keep", "header", "names", "blank_lines")
        source = Source(location, query or self.query, **{name: getattr(self, name) for name in options})
        return self.plan.own_table(source)
