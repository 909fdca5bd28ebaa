"""Reading a plan file: from TOML to a plan, with every mistake named by section and field."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treetop.data.positions import Positions, as_positions
from treetop.data.source import Source
from treetop.errors import LossError, PlanError, PlanFileError
from treetop.frozen import FrozenMap
from treetop.hierarchy import Hierarchy
from treetop.nearest import nearest
from treetop.plan import Plan
from treetop.planfile import questions
from treetop.planfile.attributes import Attribute, Lookup, read_attributes, read_hierarchies, read_lookups
from treetop.planfile.fields import Fields
from treetop.privacy import Loss, Unit
from treetop.privacy.exact import Number
from treetop.spine import Spine

if TYPE_CHECKING:
    from treetop.graphs.planfile import GraphFile

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "spine": ("order",),
    "unit": ("entity", "contributions", "neighbours", "id", "per_node"),
    "loss": ("epsilon", "delta", "rho", "split", "accounting"),
    "repair": ("method", "order"),
    "data": ("source", "query", "count", "unknown", "period", "delimiter", "encoding", "fields", "keep"),
}
TOP = ("title", "description", "attributes", *SECTIONS, "graph", "groups")
_HOMES = {key: section for section, keys in SECTIONS.items() for key in keys if key != "order"}
_ENDS = ("origin", "destination")


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
    graph: GraphFile | None = None
    """The graph whose edges or nodes are the private table."""
    groups: Mapping[str, Any] | None = field(default=None, repr=False)
    """The section of a plan for group sizes as it is written."""

    def table(self, location: str, query: str | None = None) -> Any:
        """Return a private table with the options to read it that the file states: a `Source`, or a graph's table."""
        if self.graph is not None:
            return self.graph.table(location)
        source = Source(location, query or self.query, self.delimiter, self.encoding, self.fields, self.keep)
        return self.plan.own_table(source)


def read_plan(path: str | Path, *, stand_in: Number | None = None) -> PlanFile:
    """Read a plan file; private data is not touched.

    A loss that is left open is a question, unless there is an epsilon to stand in for it while one is looked for.
    Raises `PlanFileError` for what cannot be understood, `IncompletePlan` for questions that are left open,
    and the engine's own errors, with file and section, for what does not fit together.
    """
    from treetop.graphs import planfile as graphs

    path = Path(path)
    text = _read_text(path)
    values = _parse(text, path)
    if "groups" in values:
        from treetop.groups.planfile import read_groups

        return read_groups(path, text, values, stand_in)
    top = Fields(str(path), "", graphs.as_ordinary(values, str(path))).only(TOP, _HOMES)
    section = {name: top.table(name).only(keys) for name, keys in SECTIONS.items()}
    attributes = read_attributes(top)
    title, description = top.text("title") or "", top.text("description") or ""
    data = _Data.read(section["data"], path.parent)
    order = _order(section["spine"], attributes)
    unit, loss, repair = _unit(section["unit"]), _loss(section["loss"]), _repair(section["repair"])
    loss_is_open = not (section["loss"].has("epsilon") or section["loss"].has("rho"))
    if loss_is_open:
        loss["epsilon"] = stand_in
    split = _split(section["loss"])
    open_ = [*graphs.open_questions(top), *_open_questions(section, attributes, order, loss["epsilon"])]
    questions.refuse_open(str(path), open_)

    for table in (data.source, *graphs.private_tables(top, path.parent)):
        _refuse_private_hierarchy(attributes, table, path)
    columns = {name: attribute.column for name, attribute in attributes.items()}
    _check_fields(section["data"], data.kept, [*columns.values(), unit["id"]])
    trees = read_hierarchies(attributes, path.parent)
    if isinstance(order, str):
        _refuse_third(order, trees, str(path))
    with section["spine"].located():
        spine = _spine(order, trees)
    _check_digests(attributes, spine)
    _check_unknown(section["data"], data.unknown, trees)
    with section["unit"].located():
        protected = Unit(**unit)
    graph = graphs.read_graph(top, path.parent, columns, protected, data.unknown)
    if graph is not None:
        description = graphs.described(description, graph)
    with section["loss"].located():
        stated_loss = Loss(**loss)
    # What remains to go wrong: a split that misses a level, a cap on a level that is not there.
    with section["loss"].located(LossError), section["unit"].located(PlanError):
        if isinstance(split, str) and split != "uniform":
            from treetop.planning.split import named_split

            split = named_split(split, spine, protected, stated_loss, unknown=data.unknown)
        plan = Plan(spine, protected, stated_loss, split, **repair, unknown=data.unknown, title=title)
    return PlanFile(
        plan=plan,
        path=path,
        text=text,
        attributes=FrozenMap({name: attribute.fields.values for name, attribute in attributes.items()}),
        columns=FrozenMap(columns),
        lookups=FrozenMap(read_lookups(attributes, path.parent)),
        description=description,
        loss_is_open=loss_is_open,
        graph=graph,
        **data.kept,
    )


@dataclass(frozen=True)
class _Data:
    """The section about the private table."""

    source: str | None
    unknown: Any
    kept: dict[str, Any]

    @staticmethod
    def read(data: Fields, folder: Path) -> _Data:
        source = data.name("source")
        if source is not None and "://" not in source and source != "-":
            source = str(folder / source)
        kept: dict[str, Any] = {key: data.name(key) for key in ("query", "count", "period")}
        kept |= {"delimiter": data.delimiter(), "encoding": data.encoding(), "keep": data.keep()}
        kept["fields"] = _positions(data) if data.has("fields") else None
        if kept["fields"] is not None and kept["delimiter"] is not None:
            raise PlanFileError(f"{data.file}: [data] fields are of fixed-width text, which has no delimiter: keep one")
        unknown: Any
        if isinstance(data.values.get("unknown"), dict):
            table = data.table("unknown")
            unknown = {attribute: table.text(attribute) for attribute in table.values}
        else:
            unknown = data.choice("unknown", ("error", "drop")) or "error"
        return _Data(source, unknown, {"source": source, **kept})


def _positions(data: Fields) -> Positions:
    table = data.table("fields")
    with table.located():
        return as_positions(table.values)


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
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


def _order(spine: Fields, attributes: Mapping[str, Attribute]) -> str | tuple[str, ...] | None:
    if isinstance(spine.values.get("order"), list):
        return spine.texts("order")
    order = spine.text("order")
    if order is None:
        return None
    if order not in (choices := ("destination-first", "origin-first")):
        spine.refuse("order", f'"destination-first", "origin-first" or a list of levels{nearest(order, choices)}')
    if not set(_ENDS) <= set(attributes):
        raise PlanFileError(
            f"{spine.file}: [spine] order is {order!r}, which is for two attributes called origin and "
            f"destination, but they are {', '.join(attributes)}: rename them, or list the levels in order"
        )
    return order


def _refuse_third(order: str, trees: Mapping[str, Hierarchy], file: str) -> None:
    """Refuse an order of two ends for more attributes, with the list to write instead."""
    others = {name: tree for name, tree in trees.items() if name not in _ENDS}
    if not others:
        return
    ends = _spine(order, {name: tree for name, tree in trees.items() if name in _ENDS})
    listed = [*ends.splits, *(f"{name}.{level}" for name, tree in others.items() for level in tree.levels)]
    shown = ", ".join(f'"{split}"' for split in listed)
    raise PlanFileError(
        f"{file}: [spine] order is {order!r}, which is for origin and destination, and there is "
        f"{', '.join(others)} as well. Where it comes is yours to say: what comes first is more accurate. For example, "
        f"at the end:\n  order = [{shown}]"
    )


def _spine(order: str | tuple[str, ...] | None, trees: dict[str, Hierarchy]) -> Spine:
    if order == "destination-first":
        return Spine.destination_first(**trees)
    if order == "origin-first":
        return Spine.origin_first(**trees)
    if order is None:  # one attribute: there is only one order
        ((name, tree),) = trees.items()
        order = tuple(f"{name}.{level}" for level in tree.levels)
    return Spine(order, trees)


def _unit(unit: Fields) -> dict[str, Any]:
    caps = unit.table("per_node")
    entity = unit.text("entity")
    return {
        "entity": entity.strip() if entity else None,
        "contributions": unit.whole("contributions"),
        "neighbours": unit.choice("neighbours", ("replace", "add-remove")),
        "id": unit.name("id"),
        "per_node": {level: caps.whole(level) for level in caps.values},
    }


def _loss(loss: Fields) -> dict[str, Any]:
    amounts = {key: loss.number(key) for key in ("epsilon", "delta", "rho")}
    return {**amounts, "accounting": loss.choice("accounting", ("zcdp", "exact")) or "zcdp"}


def _split(loss: Fields) -> Any:
    if isinstance(loss.values.get("split"), dict):
        weights = loss.table("split")
        return {level: weights.number(level) for level in weights.values}
    given = loss.values["split"] if loss.has("split") else "uniform"
    if given == "uniform":
        return given
    from treetop.planning.split import SPLITS

    if given not in SPLITS:
        hint = nearest(given, SPLITS) if isinstance(given, str) else ""
        named = ", ".join(f'"{name}"' for name in SPLITS)
        loss.refuse(
            "split",
            f'{named} or a table of weights, such as split = {{ "place.state" = 2, "place.town" = 1 }}{hint}',
        )
    return given


def _repair(repair: Fields) -> dict[str, Any]:
    return {
        "repair": repair.choice("method", ("chebyshev", "euclidean")) or "chebyshev",
        "order": repair.choice("order", ("ascending", "descending")) or "ascending",
    }


def _open_questions(
    section: Mapping[str, Fields], attributes: Mapping[str, Attribute], order: object, epsilon: object
) -> list[tuple[str, str]]:
    unit, loss = section["unit"], section["loss"]
    open_ = [question for attribute in attributes.values() for question in attribute.open_questions()]
    if not attributes:
        open_.append(("attributes", questions.ATTRIBUTES))
    if order is None and len(attributes) > 1:
        open_.append(("spine.order", questions.ORDER))
    if not (unit.text("entity") or "").strip():
        open_.append(("unit.entity", questions.ENTITY))
    if not unit.has("contributions"):
        open_.append(("unit.contributions", questions.CONTRIBUTIONS))
    if not unit.has("neighbours"):
        open_.append(("unit.neighbours", questions.NEIGHBOURS))
    if epsilon is None and not loss.has("rho"):
        open_.append(("loss.epsilon", questions.EPSILON))
    return open_


def _refuse_private_hierarchy(attributes: Mapping[str, Attribute], source: str | None, path: Path) -> None:
    """Refuse the private table as its own hierarchy: which codes occur in it is private."""
    for attribute in attributes.values():
        file = attribute.file(path.parent)
        if file is not None and source is not None and _same_file(file, Path(source)):
            raise PlanFileError(
                f"{path}: [{attribute.fields.section}] hierarchy is the private table itself: which codes "
                "occur there is private. Take the list of codes from a public source"
            )


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one == other or one.resolve() == other.resolve()
    except (OSError, ValueError):  # a path that cannot be
        return False


def _check_digests(attributes: Mapping[str, Attribute], spine: Spine) -> None:
    """Refuse a hierarchy that is not the one that the plan names by its hash."""
    for (name, attribute), tree in zip(
        ((name, attributes[name]) for name in spine.attributes), spine.trees, strict=True
    ):
        stated = attribute.stated["hierarchy_sha256"]
        if stated is not None and stated.lower() != tree.digest:
            raise PlanFileError(
                f"{attribute.fields.file}: [{attribute.fields.section}] the hierarchy of {name} has SHA-256 "
                f"{tree.digest}, but hierarchy_sha256 is {stated}: the plan was made for another tree"
            )


def _check_fields(data: Fields, kept: Mapping[str, Any], columns: Sequence[str | None]) -> None:
    """Refuse a column that is not among the fields of a fixed-width table."""
    positions = kept["fields"]
    for column in [*columns, kept["count"], *(kept["keep"] or ())]:
        if positions is not None and column is not None and column not in positions:
            raise PlanFileError(
                f"{data.file}: [data.fields] there is no field {column!r}{nearest(column, positions)}: say where it "
                f"stands, as in {column} = [8, 13]; the fields are {', '.join(positions)}"
            )


def _check_unknown(data: Fields, unknown: Any, trees: Mapping[str, Hierarchy]) -> None:
    """Refuse a leaf for unknown codes that is not one, before private data is read."""
    if isinstance(unknown, str):
        return
    for attribute in unknown:
        if attribute not in trees:
            raise PlanFileError(
                f"{data.file}: [data.unknown] {attribute!r} is not an attribute{nearest(attribute, trees)}"
            )
    for attribute, tree in trees.items():
        code = unknown.get(attribute)
        if code is None or code not in tree.codes[-1].to_pylist():
            stated = f"the leaf {code!r} is not in its hierarchy" if code else "no leaf is named for it"
            raise PlanFileError(
                f"{data.file}: [data.unknown] {attribute}: {stated}; name the leaf under which its "
                "unknown codes are counted"
            )
