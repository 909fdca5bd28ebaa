"""A graph as a table: its edges with the attributes of both ends, or its nodes, as an Arrow stream for a plan."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from treetop.basics.frozen import FrozenMap
from treetop.domain.policies import Policies
from treetop.domain.unit import Neighbours
from treetop.errors import DataError, PlanError
from treetop.intake.dropping import MadeTable, may_drop, rules_of
from treetop.intake.graph.cleaning import Cleaning
from treetop.intake.graph.edges import Edges, read_edges
from treetop.intake.graph.nodes import Nodes
from treetop.intake.tally import LeftOut, Tally
from treetop.privacy.graph_unit import Facts, GraphUnit
from treetop.privacy.relation import Relation, check_relation, unit_of
from treetop.sources import table as tables
from treetop.sources.header import UNVOUCHED

_LOG = logging.getLogger(__name__)
MUTUAL = 0.5
"""From this share of edges in both directions on, a steward is asked whether edges really have one."""

SOURCE, TARGET = "source", "target"
"""The ends of an edge: their attributes are the columns `source.NAME` and `target.NAME` of its table."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Where a graph is, which neighbours it has, and how it is read; nothing is read before a table is asked for."""

    nodes: tables.Table = field(repr=False)
    """The node table: an id and attributes."""
    edges: tables.Table | None = field(default=None, repr=False)
    """The edge table: two ids a row."""
    relation: str | None = None
    """Which graphs are neighbours, by the name of the relation; None where only nodes are counted."""
    id: str = "id"
    """The column of the node table with the ids."""
    source: str = SOURCE
    """The column of the edge table with the id where an edge starts."""
    target: str = TARGET
    """The column of the edge table with the id where it ends."""
    directed: bool = True
    """Whether edges have a direction."""
    contributions: int | None = None
    """Under "user-out", how many out-edges of a person count."""
    degree_bound: int | None = None
    """Under "node", the promise: nobody has more edges, in and out together."""
    policies: Policies = field(default_factory=Policies)
    """What happens to self-loops, repeated edges and edges to unknown nodes."""
    cleaning: Mapping[str, Cleaning] = field(default_factory=dict)
    """By column of the node table, the public rule that makes its codes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "cleaning", FrozenMap(dict(self.cleaning)))
        if self.kind is not None and (self.degree_bound is not None or not self.kind.bounded):
            _ = self.facts  # what does not fit is refused now

    @property
    def kind(self) -> Relation | None:
        """The relation; None where only nodes are counted."""
        return None if self.relation is None else check_relation(self.relation)

    @property
    def facts(self) -> Facts:
        """What is stated of the edges, and must agree with the unit of the plan that counts them."""
        if self.relation is None:
            raise PlanError("the graph has no neighbour relation, so its edges cannot be released: name one")
        return Facts(self.relation, self.directed, self.degree_bound, self.policies)

    def unit(self, neighbours: Neighbours | None = None, entity: str | None = None) -> GraphUnit:
        """Return the protected unit of a release of edges between groups.

        Under `replace` the total is exact only where no exchange can change the number of edges; the unit knows.
        """
        if self.relation is None:
            raise PlanError("the graph has no neighbour relation, so its edges cannot be released: name one")
        unit = unit_of(
            self.relation,
            neighbours,
            contributions=self.contributions,
            degree_bound=self.degree_bound,
            entity=entity,
        )
        return GraphUnit(unit, self.facts)

    def sentences(self) -> list[str]:
        """Say what the relation protects and how edges are counted."""
        return [] if self.kind is None else self.kind.sentences(self.degree_bound, self.directed)

    def read_nodes(self, columns: Sequence[str] | None = None) -> Nodes:
        """Read the node table."""
        return Nodes.read(self.nodes, self.id, columns, self.cleaning)

    def read_edges(self, nodes: Nodes, left: LeftOut | None = None) -> Edges:
        """Read the edge table, and see that what was promised about it is true.

        `left` is told what the policies leave out; without it the log is.
        """
        if self.edges is None:
            raise DataError("the graph has no edge table: name one")
        edges = read_edges(self.edges, nodes, self.source, self.target, self.directed, self.policies, left)
        kind = self.kind
        if kind is not None and kind.bounded and self.degree_bound is not None:
            busiest = int(edges.degrees(len(nodes)).max(initial=0))
            if busiest > self.degree_bound:
                raise DataError(
                    f"a node has {busiest:,} edges, and the promise is that none has more than {self.degree_bound:,}: "
                    "nothing can be released under it. Do not take a bound from the data"
                )
        if kind is not None and kind.mutual and (share := edges.mutual) >= MUTUAL:
            _LOG.warning(
                "the edge table: %.0f %% of the edges stand in it in both directions. If friendship is mutual, one of "
                "them is half a friendship, and no more is protected: set directed = false, and repeated = "
                '"drop" if each is listed twice',
                100 * share,
            )
        return edges

    def table(self, edges: tables.Table | None = None, columns: Sequence[str] | None = None) -> EdgeTable:
        """Return the edges as a table: `source`, and `source.NAME` and `target.NAME` for each column of the nodes."""
        return EdgeTable(self if edges is None else replace(self, edges=edges), columns)

    def node_table(self, columns: Sequence[str] | None = None) -> NodeTable:
        """Return the nodes as a table, cleaned."""
        return NodeTable(self, columns)


@dataclass(frozen=True, eq=False, repr=False)
class EdgeTable(MadeTable):
    """The edges of a graph with the attributes of both ends: private, and read when the stream is."""

    graph: Graph
    """The graph."""
    columns: Sequence[str] | None = None
    """The columns of the node table that are needed; None for all."""

    @property
    def facts(self) -> Facts:
        """What the plan that counts these edges must state of them."""
        return self.graph.facts

    @cached_property
    def _nodes(self) -> Nodes:
        return self.graph.read_nodes(self.columns)

    @property
    def public_units(self) -> int | None:
        """How many people have a list of edges, where that is the unit: who is in the graph is then public."""
        kind = self.graph.kind
        return None if kind is None or kind.id is None else len(self._nodes)

    @property
    def may_drop(self) -> str | None:
        """Say what may leave an edge out, or why a person may have none."""
        return self.facts.may_drop or (None if self.graph.edges is None else may_drop(self.graph.edges))

    @property
    def keep(self) -> Mapping[str, Sequence[str]] | None:
        """The values that edges are kept by."""
        return None if self.graph.edges is None else rules_of(self.graph.edges).keep

    @property
    def drop(self) -> Mapping[str, Sequence[str]] | None:
        """The values that leave edges out."""
        return None if self.graph.edges is None else rules_of(self.graph.edges).drop

    def opened(self, tally: Tally) -> pa.RecordBatchReader:
        """Return the rows; the tally is told what the policies leave out."""
        nodes = self._nodes
        first = _batch(nodes, Edges(np.empty(0, np.int32), np.empty(0, np.int32), True))
        tally.left = LeftOut()
        edges = self.graph.read_edges(nodes, tally.left)  # now: what is wrong is said before anything is measured
        if not edges.directed:
            edges = _by_group(edges, nodes)
        return pa.RecordBatchReader.from_batches(first.schema, _batches(nodes, edges))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.opened(Tally()).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return "EdgeTable(private)"


@dataclass(frozen=True, eq=False, repr=False)
class NodeTable(MadeTable):
    """The nodes of a graph, cleaned: private, and read when the stream is."""

    graph: Graph
    """The graph."""
    columns: Sequence[str] | None = None
    """The columns that are needed; None for all."""

    @property
    def one_row_each(self) -> bool:
        """A person who stands in it twice is refused, so that an id that never repeats is as it should be."""
        return True

    @property
    def may_drop(self) -> str | None:
        """Say what may leave a node out."""
        return may_drop(self.graph.nodes)

    @property
    def keep(self) -> Mapping[str, Sequence[str]] | None:
        """The values that nodes are kept by."""
        return rules_of(self.graph.nodes).keep

    @property
    def drop(self) -> Mapping[str, Sequence[str]] | None:
        """The values that leave nodes out."""
        return rules_of(self.graph.nodes).drop

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        nodes = self.graph.read_nodes(self.columns)
        table = pa.table({**nodes.arrays(), self.graph.id: nodes.ids}, metadata=UNVOUCHED if nodes.unvouched else None)
        return table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return "NodeTable(private)"


def tables_within(table: Any) -> list[Any]:
    """Return the tables that are read for a table: those of a graph, or the table itself."""
    graph = table.graph if isinstance(table, EdgeTable | NodeTable) else table
    tables = (graph.nodes, graph.edges) if isinstance(graph, Graph) else (table,)
    return [one for one in tables if one is not None]


def _batches(nodes: Nodes, edges: Edges) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(edges), tables.ROWS):
        part = slice(start, start + tables.ROWS)
        yield _batch(nodes, Edges(edges.source[part], edges.target[part], edges.directed))


def _batch(nodes: Nodes, edges: Edges) -> pa.RecordBatch:
    ends = {SOURCE: nodes.arrays(edges.source), TARGET: nodes.arrays(edges.target)}
    columns: dict[str, Any] = {SOURCE: pa.array(edges.source)}  # a number stands for the id: only who is who matters
    columns |= {f"{end}.{name}": array for end, arrays in ends.items() for name, array in arrays.items()}
    return pa.RecordBatch.from_pydict(columns, metadata=UNVOUCHED if nodes.unvouched else None)


def _by_group(edges: Edges, nodes: Nodes) -> Edges:
    """Turn each edge so that the end whose group comes first is its source."""
    group = nodes.groups()
    turned = group[edges.source] > group[edges.target]
    source = np.where(turned, edges.target, edges.source)
    return Edges(source, np.where(turned, edges.source, edges.target), edges.directed)
