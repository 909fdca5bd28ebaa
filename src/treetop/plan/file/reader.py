"""Reading a plan file: from TOML to a plan, with every mistake named by section and field."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treetop.basics.exact import Number
from treetop.basics.frozen import FrozenMap
from treetop.errors import LossError, PlanError, PlanFileError
from treetop.plan.file import checks, questions, sections
from treetop.plan.file.attributes import Lookup, read_attributes, read_hierarchies, read_lookups
from treetop.plan.file.fields import Fields
from treetop.plan.plan import Plan
from treetop.plan.splits import named_split
from treetop.privacy import Loss, Unit
from treetop.read.dropping import selected
from treetop.tables.positions import Positions
from treetop.tables.source import BlankLines, Source, is_database

if TYPE_CHECKING:
    from treetop.plan.graphs.planfile import GraphFile

_LARGEST = 1 << 24
"""How many bytes a plan file may have."""


@dataclass(frozen=True, eq=False)
class PlanFile:
    """A plan that was read from a file, with what the file says about the private table."""

    plan: Plan
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
        source = Source(
            location,
            query or self.query,
            self.delimiter,
            self.encoding,
            self.fields,
            self.keep,
            self.header,
            self.names,
            self.blank_lines,
        )
        return self.plan.own_table(source)


def read_plan(path: str | Path, *, stand_in: Number | None = None) -> PlanFile:
    """Read a plan file; private data is not touched.

    A loss that is left open is a question, unless there is an epsilon to stand in for it while one is looked for.
    Raises `PlanFileError` for what cannot be understood, `IncompletePlan` for questions that are left open,
    and the engine's own errors, with file and section, for what does not fit together.
    """
    from treetop.plan.graphs import planfile as graphs

    path = Path(path)
    text = _read_text(path)
    values = _parse(text, path)
    if "groups" in values:
        from treetop.plan.groups.planfile import read_groups

        return read_groups(path, text, values, stand_in)
    top = Fields(str(path), "", graphs.as_ordinary(values, str(path))).only(sections.TOP, sections.HOMES)
    section = {name: top.table(name).only(keys) for name, keys in sections.SECTIONS.items()}
    attributes = read_attributes(top)
    title, description = top.text("title") or "", top.text("description") or ""
    data = sections.read_data(section["data"], path.parent)
    order = sections.read_order(section["spine"], attributes)
    unit, loss = sections.read_unit(section["unit"]), sections.read_loss(section["loss"], stand_in)
    repair, split = sections.read_repair(section["repair"]), sections.read_split(section["loss"])
    favoured = sections.read_release(section["release"], section["repair"])
    open_ = [
        *graphs.open_questions(top),
        *checks.open_questions(section, attributes, order, loss.amounts["epsilon"]),
    ]
    questions.refuse_open(str(path), open_)

    for table in (data.source, *graphs.private_tables(top, path.parent)):
        checks.refuse_private_hierarchy(attributes, table, path)
    columns = {name: attribute.column for name, attribute in attributes.items()}
    checks.check_fields(section["data"], data.kept, [*columns.values(), unit["id"]])
    trees = read_hierarchies(attributes, path.parent)
    spine = sections.make_spine(section["spine"], order, trees)
    for name, tree in zip(spine.attributes, spine.trees, strict=True):
        checks.check_digest(name, attributes[name], tree)
    checks.check_unknown(section["data"], data.unknown, trees)
    database = data.source is not None and is_database(Source(data.source))
    dropped = selected(data.kept["keep"], data.kept["query"], data.kept["blank_lines"], database)
    if data.unknown != "drop" and dropped is not None:
        unit["may_be_missing"] = True
    with section["unit"].located():
        protected = Unit(**unit)
    graph = graphs.read_graph(top, path.parent, columns, protected, data.unknown)
    if graph is not None:
        protected, description = graph.unit(protected), graph.described(description)
    with section["loss"].located():
        stated_loss = Loss(**loss.amounts)
    # What remains to go wrong: a split that misses a level, a cap on a level that is not there.
    with section["loss"].located(LossError), section["unit"].located(PlanError):
        if isinstance(split, str) and split != "uniform":
            split = named_split(split, spine, protected, stated_loss, unknown=data.unknown)
        plan = Plan(spine, protected, stated_loss, split, **repair, **favoured, unknown=data.unknown, title=title)
    return PlanFile(
        plan=plan,
        path=path,
        text=text,
        attributes=FrozenMap({name: attribute.fields.values for name, attribute in attributes.items()}),
        columns=FrozenMap(columns),
        lookups=FrozenMap(read_lookups(attributes, path.parent)),
        description=description,
        loss_is_open=loss.is_open,
        graph=graph,
        keep_measurements=section["release"].flag("keep_measurements") or False,
        **data.kept,
    )


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)  # a device may have no end
        if len(data) > _LARGEST:
            raise PlanFileError(f"{path}: is larger than {_LARGEST >> 20} MB, and is no plan file: name a plan file")
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        if re.match("[A-Za-z][A-Za-z0-9+.-]+:/", str(path)):
            raise PlanFileError(
                f"{path}: no such file. It looks like the address of a table: `treetop inspect` drafts a plan file "
                "from that, with --out plan.toml"
            ) from None
        raise PlanFileError(f"{path}: no such file; `treetop inspect TABLE --out {path}` drafts one") from None
    except UnicodeDecodeError as problem:
        raise PlanFileError(f"{path}: byte {problem.start} is not UTF-8: save the plan file as UTF-8 text") from problem
    except (OSError, ValueError) as problem:
        raise PlanFileError(f"{path}: cannot be read: {problem}") from problem


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as problem:
        raise PlanFileError(f"{path}: this is not valid TOML: {problem}") from problem
    except RecursionError:
        raise PlanFileError(f"{path}: this is not valid TOML: it is nested too deeply") from None
    except (ValueError, ArithmeticError) as problem:
        raise PlanFileError(f"{path}: a number has too many digits: {problem}") from problem
