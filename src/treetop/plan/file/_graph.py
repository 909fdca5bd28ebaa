"""The section [graph] of a plan file: turn two tables and a neighbour relation into an ordinary plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from treetop._util.choices import nearest
from treetop.counts.cleaning import Changes, Cleaning
from treetop.counts.graph_reader import SOURCE, TARGET, Graph, GraphTable
from treetop.domain.unit import Policies
from treetop.errors import PlanFileError, TreetopError
from treetop.io.row_batch import say_kept
from treetop.io.source import OPTIONS, Prepare, Source, as_source
from treetop.plan import fields
from treetop.plan.fields._field import NAME, Section
from treetop.plan.fields.declarations import CLEANING, READING
from treetop.privacy import Unit
from treetop.privacy.relation import GraphUnit, check_entity, check_relation

DEGREES = "degrees"
_TABLES = {"edges": "edges", "nodes": "nodes", DEGREES: "edges"}
"""The private table that a run is given, by the counted object."""
_OPTIONS = tuple(one.name for one in READING)


@dataclass(frozen=True, eq=False)
class GraphFile:
    """The graph of a plan file, and how its tables are read."""

    graph: Graph
    counts: str
    columns: tuple[str, ...]
    """Columns of the node table that the plan uses."""
    people: Mapping[str, Any] = field(default_factory=dict)
    """How the table of the people is read, if edges are counted, as written."""

    def table(self, counted: Source) -> GraphTable | Graph:
        """Return the private table that the plan counts, given the edge table, or the node table."""
        if self.counts == DEGREES:
            return replace(self.graph, edges=counted)
        if self.counts == "nodes":
            return Graph(counted, id=self.graph.id, cleaning=self.graph.cleaning).node_table(self.columns)
        return self.graph.table(counted, self.columns)

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
            return [self.graph.one_edge, *self._cleaned()]
        return [*(self.graph.sentences() if self.counts == "edges" else []), *self._cleaned()]

    def _cleaned(self) -> list[str]:
        names, people, told = list(self.graph.cleaning), as_source(self.graph.nodes), []
        if self.people and people is not None:
            chosen = f"the rows with {say_kept(people.keep)}" if people.keep else ""
            left = f"no row with {say_kept(people.drop)}" if people.drop else ""
            if chosen or left:
                told.append(f"The people are {' and '.join(part for part in (chosen, left) if part)} of their table.")
            told += [f"Of the people's table, {rule}." for rule in (people.prepare.words() if people.prepare else ())]
        if names:
            many = f"columns {', '.join(names)} were" if len(names) > 1 else f"column {names[0]} was"
            told.append(
                f"The {many} cleaned by public rules, each value by itself; "
                "missing and implausible values are a category of their own. How many there were is private."
            )
        return told


_ELSEWHERE = {
    "source": "the tables of a graph are named under [graph], as nodes and edges",
    "count": "of a graph, how many edges a row stands for is said by weight under [graph]",
}
"""Data options that a graph states elsewhere."""


def as_ordinary(values: Mapping[str, Any], file: str) -> Mapping[str, Any]:
    """Return the values with unit and source as [graph] implies them; stated ones that contradict it are refused."""
    if "graph" not in values:
        return values
    top = Section(file, "", values)
    section = top.table("graph").only(fields.names("graph"))
    graph, stated = fields.read(section, "graph"), top.table("unit")
    unit, data = dict(stated.values), dict(top.table("data").values)
    for key, other in _ELSEWHERE.items():
        if key in data:
            raise top.table("data").problem(f"{key}: {other}: leave {key} out")
    if "id_clean" in unit:
        raise stated.problem(
            "id_clean: the people of a graph are told apart by its two tables. Blanks at the ends of ids are taken "
            "away by trim = true under [data] and nodes_trim = true under [graph]: leave id_clean out"
        )
    if "distinct" in unit:
        raise stated.problem(
            "distinct: edges between the same two people are dealt with by `repeated` of the graph: leave distinct out"
        )
    if (source := graph[_TABLES[graph["counts"]]]) is not None:
        data["source"] = source
    relation = graph["relation"]
    if graph["counts"] == "nodes":
        _fill(unit, "id", graph["id"], stated)
    elif relation is not None:
        with stated.located():
            unit["entity"] = check_entity(relation, NAME.read(stated, "entity"))
        kind = check_relation(relation)
        if graph["counts"] == DEGREES:
            pass  # its plan has a unit of its own
        elif kind.id is not None:
            _fill(unit, "id", kind.id, stated)
        elif graph["degree_bound"] is not None or not kind.bounded:
            _fill(unit, "contributions", kind.edges(None, graph["degree_bound"]), stated)
    return {**values, "unit": unit, "data": data}


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
    """Make a graph that fits the rest of the plan; `unit` is None for degrees. No table is read."""
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
        people = {key: stated[f"nodes_{key}"] for key in _OPTIONS if stated[f"nodes_{key}"] is not None}
        if people and counts == "nodes":
            raise section.problem(f"nodes_{next(iter(people))}: the people are counted: say it under [data]")
        graph = Graph(
            _people_table(tables[0], people),
            tables[1] if len(tables) > 1 else None,
            relation if _TABLES[counts] == "edges" else None,
            stated["id"],
            stated["source"],
            stated["target"],
            directed=stated["directed"],
            contributions=unit.contributions if unit and relation and check_relation(relation).id else None,
            degree_bound=stated["degree_bound"] if counts == "edges" else None,
            policies=policies,
            cleaning=cleaning,
            weight=stated["weight"] if counts != "nodes" else None,
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
    return GraphFile(graph, counts, used, people)


def _people_table(location: str, stated: Mapping[str, Any]) -> Source:
    prepare = {key: value for key, value in stated.items() if key not in OPTIONS}
    options = {key: value for key, value in stated.items() if key in OPTIONS}
    return Source(location, **options, prepare=Prepare(**prepare) if prepare else None, option_prefix="nodes_")


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
