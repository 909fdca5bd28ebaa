"""The section [graph] of a plan file: turn two tables and a neighbour relation into an ordinary plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from treetop._util.choices import nearest
from treetop.counts.graph_reader import SOURCE, TARGET, Changes, Cleaning, Graph, GraphTable
from treetop.domain.unit import Policies
from treetop.errors import PlanFileError, TreetopError
from treetop.io.source import Source
from treetop.plan import fields
from treetop.plan.fields.field import NAME, Section
from treetop.plan.fields.graph import CLEANING
from treetop.privacy import Unit
from treetop.privacy.relation import GraphUnit, check_entity, check_relation, one_edge

DEGREES = "degrees"
_TABLES = {"edges": "edges", "nodes": "nodes", DEGREES: "edges"}
"""The private table that a run is given, by the counted object."""
OF_DATA = ("unknown", "period")
"""Keys that graph plans may have under [data]."""


@dataclass(frozen=True, eq=False)
class GraphFile:
    """The graph of a plan file, and how its tables are read."""

    graph: Graph
    """The graph; its tables are named, not read."""
    counts: str
    """The counted object: "edges", "nodes" or "degrees"."""
    columns: tuple[str, ...]
    """Columns of the node table that the plan uses."""
    reading: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Read options of the tables "nodes" and "edges": header and delimiter, as arguments of `Source`."""

    def table(self, location: str) -> GraphTable | Graph:
        """Return the private table that the plan counts; `location` is the edge table, or the node table."""
        named = _as_said(location, self.reading.get(_TABLES[self.counts]))
        if self.counts == DEGREES:
            return replace(self.graph, edges=named)
        if self.counts == "nodes":
            return Graph(named, id=self.graph.id, cleaning=self.graph.cleaning).node_table(self.columns)
        return self.graph.table(named, self.columns)

    @property
    def beside(self) -> tuple[str, ...]:
        """Locations of the private tables that are read beside the counted one."""
        return () if self.of_edges is None else (str(self.graph.nodes),)

    def changes(self) -> Mapping[str, Changes]:
        """Read the node table and return the changes by each cleaning rule. Private, for the steward only."""
        return self.graph.read_nodes(self.columns).changes

    @property
    def of_edges(self) -> Graph | None:
        """The graph, if its edges are counted (between groups or by person); otherwise None."""
        return self.graph if _TABLES[self.counts] == "edges" else None

    def describe(self) -> dict[str, Any]:
        """Return how the graph is read, as plain values, without the private locations of its tables."""
        stated = fields.written("graph", self)
        return {**stated, "clean": {name: rule.describe() for name, rule in self.graph.cleaning.items()}}

    def unit(self, stated: Unit) -> Unit:
        """Return the unit of a plan with the graph it refers to; if people are counted, the unit is unchanged."""
        return stated if self.counts == "nodes" else GraphUnit(stated, self.graph.facts)

    def described(self, description: str) -> str:
        """Return a description that includes the reading of people; the relation is described separately."""
        return " ".join(part for part in (description, *(s for s in self._cleaned() if s not in description)) if part)

    def sentences(self) -> list[str]:
        """Describe the protected unit and the counting of edges, for the plan and the card."""
        if self.counts == DEGREES:  # what is protected is said by the unit
            return [one_edge(self.graph.directed), *self._cleaned()]
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
    """Return a plan file's values with the unit and the source that follow from its section [graph].

    Values that the sections state are kept, and refused if they contradict the relation.
    """
    if "graph" not in values:
        return values
    top = Section(file, "", values)
    section = top.table("graph").only(fields.names("graph"))
    graph, stated = fields.read(section, "graph"), top.table("unit")
    unit, data = dict(stated.values), dict(top.table("data").values)
    refuse_data(top.table("data"))
    if "id_clean" in unit:
        raise stated.problem(
            "id_clean: the people of a graph are told apart by its tables, in which ids stand as they are spelt: clean "
            "the ids of both tables, and leave id_clean out"
        )
    if "distinct" in unit:
        raise stated.problem(
            "distinct: edges between the same two people are dealt with by `repeated` of the graph: leave distinct out"
        )
    if graph[graph["counts"]] is not None:
        data["source"] = graph[graph["counts"]]
    relation = graph["relation"]
    if graph["counts"] == "nodes":
        _fill(unit, "id", graph["id"], stated)
    elif relation is not None:
        with stated.located():
            unit["entity"] = check_entity(relation, NAME.read(stated, "entity"))
        kind = check_relation(relation)
        if kind.id is not None:
            _fill(unit, "id", kind.id, stated)
        elif graph["degree_bound"] is not None or not kind.bounded:
            _fill(unit, "contributions", kind.edges(None, graph["degree_bound"]), stated)
    return {**values, "unit": unit, "data": data}


def refuse_data(section: Section) -> None:
    """Refuse data options that do not apply to a graph."""
    for key in section.values:
        if key not in OF_DATA:
            raise section.problem(
                f"{key}: the tables of a graph are named under [graph], as nodes and edges, and read as they are: "
                f"leave {key} out"
            )


def _fill(unit: dict[str, Any], key: str, value: Any, section: Section) -> None:
    if unit.setdefault(key, value) != value:
        raise section.problem(f"{key} is {unit[key]!r}, but the relation of the graph makes it {value!r}")


def private_tables(graph: Mapping[str, Any], folder: Path) -> list[str]:
    """Return the named node and edge tables: neither may serve as a public file."""
    return [str(folder / graph[key]) for key in ("nodes", "edges") if graph.get(key) is not None]


def read_graph(
    section: Section,
    stated: Mapping[str, Any],
    folder: Path,
    columns: Mapping[str, str],
    unit: Unit | None,
    unknown: Any,
) -> GraphFile | None:
    """Make a graph from the section, and check that it fits the rest of the plan; the tables are not read.

    `unit` is that of a plan along a spine; degree plans have their own.
    """
    if not stated:
        return None
    counts: str = stated["counts"]
    relation: str | None = stated["relation"]
    if counts == "nodes" and relation not in (None, "node"):
        raise section.problem(
            f"relation is {relation!r}, under which the people themselves are public: to count them, leave it out, or "
            "protect more edges than theirs"
        )
    tables, cleaning = private_tables(stated, folder), _cleaning(section.table("clean"), folder)
    policies = Policies(stated["self_loops"], stated["repeated"], "drop" if unknown == "drop" else "error")
    with section.located():
        reading = {table: said for table in ("nodes", "edges") if (said := _first_line(stated, table))}
        graph = Graph(
            _as_said(tables[0], reading.get("nodes")),
            _as_said(tables[1], reading.get("edges")) if len(tables) > 1 else None,
            relation if _TABLES[counts] == "edges" else None,
            stated["id"],
            stated["source"],
            stated["target"],
            directed=stated["directed"],
            contributions=unit.contributions if unit and relation and check_relation(relation).id else None,
            degree_bound=stated["degree_bound"] if counts == "edges" else None,
            policies=policies,
            cleaning=cleaning,
        )
        if counts == "edges" and unit is not None:
            graph.unit(unit.neighbours, unit.entity)
    used = _node_columns(section, columns, counts)
    for name in graph.cleaning:
        if name not in used:
            raise (
                section.table("clean")
                .table(name)
                .problem(f"is a column that the plan does not use{nearest(name, used)}; it uses {', '.join(used)}")
            )
    return GraphFile(graph, counts, used, reading)


def _first_line(stated: Mapping[str, Any], table: str) -> dict[str, Any]:
    """Return the header and delimiter options of a table."""
    said = {key: stated[f"{table}_{key}"] for key in ("header", "names", "delimiter")}
    Source("-", **said)  # what does not fit is refused now
    return {key: value for key, value in said.items() if value is not None}


def _as_said(location: str, said: Mapping[str, Any] | None) -> str | Source:
    return Source(location, **said) if said else location


def _node_columns(section: Section, columns: Mapping[str, str], counts: str) -> tuple[str, ...]:
    """Return the columns of the node table behind the attributes of the plan."""
    if counts != "edges":
        return tuple(dict.fromkeys(columns.values()))
    used = []
    for attribute, column in columns.items():
        end, _, name = column.partition(".")
        if end not in (SOURCE, TARGET) or not name:
            raise PlanFileError(
                f"{section.file}: [attributes.{attribute}] column is {column!r}: say of which end of an edge it is, as "
                f'in "{SOURCE}.{column}" or "{TARGET}.{column}"'
            )
        used.append(name)
    return tuple(dict.fromkeys(used))


def _cleaning(sections: Section, folder: Path) -> dict[str, Cleaning]:
    rules = {}
    for column in sections.values:
        section = sections.table(column).only(fields.names(CLEANING))
        rule = fields.read(section, CLEANING)
        codes = {key: rule[key] for key in ("missing", "other") if rule[key] is not None}
        try:
            if rule["vocabulary"] is None:
                rules[column] = Cleaning(**{key: rule[key] for key in ("least", "most", "width")}, **codes)
            else:
                rules[column] = Cleaning.read(folder / rule["vocabulary"], rule["keyword"], rule["code"], **codes)
        except TreetopError as problem:
            raise section.problem(str(problem)) from problem
    return rules
