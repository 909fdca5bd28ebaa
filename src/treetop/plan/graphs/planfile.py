"""The section [graph] of a plan file: from two tables and a relation to an ordinary plan for an ordinary table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from treetop.basics.nearest import nearest
from treetop.domain.graph_unit import GraphUnit
from treetop.domain.policies import Policies
from treetop.domain.relation import RELATIONS, Relation, check_entity
from treetop.errors import PlanFileError, TreetopError
from treetop.plan.file.fields import Fields
from treetop.privacy import Unit
from treetop.read.graph.cleaning import Changes, Cleaning
from treetop.read.graph.graph import SOURCE, TARGET, EdgeTable, Graph, NodeTable
from treetop.tables.source import Source

GRAPH = "graph"
KEYS = (
    "counts",
    "nodes",
    "edges",
    "id",
    "source",
    "target",
    "relation",
    "degree_bound",
    "directed",
    "self_loops",
    "repeated",
    "clean",
    "nodes_header",
    "nodes_names",
    "edges_header",
    "edges_names",
)
OF_DATA = ("unknown", "period")
"""What may be said about the data of a graph in the section of that name."""
CLEANING = ("vocabulary", "keyword", "code", "least", "most", "width", "missing", "other")

_RELATION = (
    'Which graphs must be hard to tell apart? "edge": those that differ in one friendship. "user-out": in all the '
    'out-edges of one person, which that person lists. "node": in one person with all edges, in and out, for which a '
    "public bound on the degree must be promised."
)


@dataclass(frozen=True, eq=False)
class GraphFile:
    """What a plan file says about a graph."""

    graph: Graph
    """The graph; its tables are named, not read."""
    counts: str
    """What is counted: "edges" or "nodes"."""
    columns: tuple[str, ...]
    """The columns of the node table that the plan uses."""
    reading: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is said of the first lines of the tables "nodes" and "edges", as arguments of `Source`."""

    def table(self, location: str) -> EdgeTable | NodeTable:
        """Return the private table that the plan counts; `location` is the edge table, or the node table."""
        named = _as_said(location, self.reading.get(self.counts))
        if self.counts == "nodes":
            return Graph(named, id=self.graph.id, cleaning=self.graph.cleaning).node_table(self.columns)
        return self.graph.table(named, self.columns)

    @property
    def beside(self) -> tuple[str, ...]:
        """Where the private tables are that are read beside the one that is counted."""
        return (str(self.graph.nodes),) if self.counts == "edges" else ()

    def changes(self) -> Mapping[str, Changes]:
        """Read the node table and return what each rule of cleaning changed: private, for the steward only."""
        return self.graph.read_nodes(self.columns).changes

    def describe(self) -> dict[str, Any]:
        """Return how the graph is read, as plain values; where its tables are is the steward's own."""
        graph = self.graph
        stated: dict[str, Any] = {"counts": self.counts, "id": graph.id}
        if self.counts == "edges":
            stated |= {"source": graph.source, "target": graph.target}
            stated |= {"relation": graph.relation, "degree_bound": graph.degree_bound, "directed": graph.directed}
            stated |= {"self_loops": graph.policies.self_loops, "repeated": graph.policies.repeated}
        stated |= {f"{table}_{key}": said for table, about in self.reading.items() for key, said in about.items()}
        stated |= {"clean": {name: rule.describe() for name, rule in graph.cleaning.items()}}
        return {key: entry for key, entry in stated.items() if entry is not None}

    def unit(self, stated: Unit) -> Unit:
        """Return the unit of a plan that says of which graphs it is; people who are counted are an ordinary unit."""
        return stated if self.counts == "nodes" else GraphUnit(stated, self.graph.facts)

    def described(self, description: str) -> str:
        """Return a description that says how people were read; what the relation protects is a fact of its own."""
        return " ".join(part for part in (description, *(s for s in self._cleaned() if s not in description)) if part)

    def sentences(self) -> list[str]:
        """Say what is protected and how edges are counted, for the plan and the card."""
        return [*(self.graph.sentences() if self.counts == "edges" else []), *self._cleaned()]

    def _cleaned(self) -> list[str]:
        names = list(self.graph.cleaning)
        if not names:
            return []
        many = f"columns {', '.join(names)} were" if len(names) > 1 else f"column {names[0]} was"
        return [
            f"The {many} cleaned by public rules, each value by itself; "
            "missing and implausible values are a category of their own. How many there were is private."
        ]


def as_ordinary(values: Mapping[str, Any], file: str) -> Mapping[str, Any]:
    """Return a plan file's values with the unit and the source that its section [graph] comes to.

    What the sections say themselves stays, and is refused where the relation says otherwise.
    """
    if GRAPH not in values:
        return values
    top = Fields(file, "", values)
    graph = top.table(GRAPH).only(KEYS)
    counts = graph.choice("counts", ("edges", "nodes")) or "edges"
    unit, data = dict(top.table("unit").values), dict(top.table("data").values)
    for key in data:
        if key not in OF_DATA:
            raise PlanFileError(
                f"{file}: [data] {key}: the tables of a graph are named under [graph], as nodes and edges, and read as "
                f"they are: leave {key} out"
            )
    if "id_clean" in unit:
        raise PlanFileError(
            f"{file}: [unit] id_clean: the people of a graph are told apart by its tables, in which ids stand as they "
            "are spelt: clean the ids of both tables, and leave id_clean out"
        )
    if graph.has(counts):
        data["source"] = graph.name(counts)
    if counts == "nodes":
        _fill(unit, "id", graph.name("id") or "id", file)
    else:
        relation = graph.choice("relation", RELATIONS)
        if relation is not None:
            stated = top.table("unit")
            with stated.located():
                unit["entity"] = check_entity(relation, stated.name("entity"))  # type: ignore[arg-type]
            if relation == "edge":
                _fill(unit, "contributions", 1, file)
            elif relation == "user-out":
                _fill(unit, "id", SOURCE, file)
            elif graph.has("degree_bound"):
                _fill(unit, "contributions", graph.whole("degree_bound"), file)
    return {**values, "unit": unit, "data": data}


def _fill(unit: dict[str, Any], key: str, value: Any, file: str) -> None:
    if unit.setdefault(key, value) != value:
        raise PlanFileError(f"{file}: [unit] {key} is {unit[key]!r}, but the relation of the graph makes it {value!r}")


def open_questions(top: Fields) -> list[tuple[str, str]]:
    """Return what a section [graph] leaves open that has no safe default."""
    if GRAPH not in top.values:
        return []
    graph = top.table(GRAPH)
    counts = graph.choice("counts", ("edges", "nodes")) or "edges"
    questions = [] if graph.has("nodes") else [("graph.nodes", "Which table lists the people, with id and attributes?")]
    if counts == "edges" and not graph.has("relation"):
        questions.append(("graph.relation", _RELATION))
    if graph.choice("relation", RELATIONS) == "node" and not graph.has("degree_bound"):
        questions.append(
            ("graph.degree_bound", "How many edges has a person at most, in and out together? Promise it from public "
             "knowledge: it cannot be enforced, and must not be taken from the data.")
        )  # fmt: skip
    return questions


def private_tables(top: Fields, folder: Path) -> list[str]:
    """Return the node table and the edge table, as far as they are named: neither may serve as a hierarchy."""
    graph = top.table(GRAPH)
    return [str(folder / name) for key in ("nodes", "edges") if (name := graph.name(key)) is not None]


def read_graph(top: Fields, folder: Path, columns: Mapping[str, str], unit: Unit, unknown: Any) -> GraphFile | None:
    """Read the section [graph] and see that it fits the rest of the plan; the tables are not touched."""
    if GRAPH not in top.values:
        return None
    fields = top.table(GRAPH)
    counts = fields.choice("counts", ("edges", "nodes")) or "edges"
    relation: Relation | None = fields.choice("relation", RELATIONS)  # type: ignore[assignment]
    if counts == "nodes" and relation not in (None, "node"):
        raise PlanFileError(
            f"{fields.file}: [graph] relation is {relation!r}, under which the people themselves are public: to count "
            "them, leave it out, or protect more edges than theirs"
        )
    tables = private_tables(top, folder)
    policies = Policies(
        self_loops=fields.choice("self_loops", ("error", "drop")) or "error",  # type: ignore[arg-type]
        repeated=fields.choice("repeated", ("error", "drop", "keep")) or "error",  # type: ignore[arg-type]
        unknown="drop" if unknown == "drop" else "error",
    )
    with fields.located():
        reading = {table: said for table in ("nodes", "edges") if (said := _first_line(fields, table))}
        graph = Graph(
            _as_said(tables[0], reading.get("nodes")),
            _as_said(tables[1], reading.get("edges")) if len(tables) > 1 else None,
            relation if counts == "edges" else None,
            fields.name("id") or "id",
            fields.name("source") or "source",
            fields.name("target") or "target",
            directed=_truth(fields, "directed"),
            contributions=unit.contributions if relation == "user-out" else None,
            degree_bound=fields.whole("degree_bound") if counts == "edges" else None,
            policies=policies,
            cleaning=_cleaning(fields, folder),
        )
        if counts == "edges":
            graph.unit(unit.neighbours, unit.entity)
    used = _node_columns(fields, columns, counts)
    for name in graph.cleaning:
        if name not in used:
            raise PlanFileError(
                f"{fields.file}: [graph.clean.{name}] is a column that the plan does not use{nearest(name, used)}; "
                f"it uses {', '.join(used)}"
            )
    return GraphFile(graph, counts, used, reading)


def _first_line(fields: Fields, table: str) -> dict[str, Any]:
    """Read what is said of the first line of a table."""
    said = {"header": fields.flag(f"{table}_header"), "names": fields.texts(f"{table}_names")}
    Source("-", **said)  # type: ignore[arg-type]  # what does not fit is refused now
    return {key: value for key, value in said.items() if value is not None}


def _as_said(location: str, said: Mapping[str, Any] | None) -> str | Source:
    return Source(location, **said) if said else location


def _node_columns(fields: Fields, columns: Mapping[str, str], counts: str) -> tuple[str, ...]:
    """Return the columns of the node table behind the attributes of the plan."""
    if counts == "nodes":
        return tuple(dict.fromkeys(columns.values()))
    used = []
    for attribute, column in columns.items():
        end, _, name = column.partition(".")
        if end not in (SOURCE, TARGET) or not name:
            raise PlanFileError(
                f"{fields.file}: [attributes.{attribute}] column is {column!r}: say of which end of an edge it is, as "
                f'in "{SOURCE}.{column}" or "{TARGET}.{column}"'
            )
        used.append(name)
    return tuple(dict.fromkeys(used))


def _truth(fields: Fields, key: str) -> bool:
    value = fields.values.get(key, True)
    if not isinstance(value, bool):
        fields.refuse(key, "true or false, without quotes")
    return value


def _cleaning(fields: Fields, folder: Path) -> dict[str, Cleaning]:
    sections = fields.table("clean")
    rules = {}
    for column in sections.values:
        rule = sections.table(column).only(CLEANING)
        codes = {key: text for key in ("missing", "other") if (text := rule.name(key)) is not None}
        try:
            vocabulary = rule.name("vocabulary")
            if vocabulary is not None:
                names = {key: rule.name(key) or key for key in ("keyword", "code")}
                rules[column] = Cleaning.read(folder / vocabulary, **names, **codes)
            else:
                numbers = {key: _integer(rule, key) for key in ("least", "most", "width")}
                rules[column] = Cleaning(**numbers, **codes)  # type: ignore[arg-type]
        except PlanFileError:
            raise
        except TreetopError as problem:
            raise PlanFileError(f"{fields.file}: [{rule.section}] {problem}") from problem
    return rules


def _integer(fields: Fields, key: str) -> int | None:
    value = fields.values.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        fields.refuse(key, "a whole number")
    return value
