"""Graphs as they are read: people, edges, cleaning and projection, by public rules."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from treetop._util.arrays import sort_rows
from treetop._util.choices import nearest
from treetop._util.dtypes import whole_numbers
from treetop._util.lazy import FrozenMap
from treetop.counts.cleaning import Changes, Cleaning, NodeColumn, clean
from treetop.counts.codebook import Codebook
from treetop.counts.encode import Weighing, first_unknown
from treetop.counts.tally import LeftOut, Tally, UnknownCodes, tell_steward
from treetop.domain.unit import Neighbours, Policies, Unit
from treetop.errors import DataError, NumberError, PlanError
from treetop.io import table as tables
from treetop.io.header import UNVOUCHED, is_unvouched
from treetop.io.row_batch import as_text, first_missing, require
from treetop.io.source import as_source, leaves_out, selected
from treetop.privacy.relation import (
    GraphRules,
    GraphUnit,
    Relation,
    check_relation,
    one_edge,
    one_weighted_edge,
    unit_of,
)

# The node table in memory: a number for every id, and the codes of its attributes.

MOST_NODES = 1 << 31


@dataclass(frozen=True, eq=False, repr=False)
class Nodes:
    """The people of a graph, numbered as they stand in their table: private."""

    ids: pa.StringArray
    columns: Mapping[str, NodeColumn]
    changes: Mapping[str, Changes]
    """For the steward only: the changes by each rule."""
    book: Codebook
    may_drop: str | None = None
    """Reasons why people may have been left out; None if all rows of the table are here."""
    unvouched: bool = False
    """Whether the names of the columns are from a first line for which nobody vouches."""

    @staticmethod
    def read(
        table: tables.Table,
        id: str = "id",
        columns: Sequence[str] | None = None,
        cleaning: Mapping[str, Cleaning] | None = None,
    ) -> Nodes:
        """Read some columns of a node table, or all of them, by the rules that are declared for them."""
        rules = dict(cleaning or {})
        wanted = None if columns is None else list(dict.fromkeys([id, *columns]))
        rows = tables.read(table, wanted)
        require([id], rows.column_names, "the node table")
        for name in rules:
            if columns is None and name not in rows.column_names:
                raise DataError(
                    f"the node table has no column {name!r} to clean{nearest(name, rows.column_names)}; the columns "
                    f"are {', '.join(rows.column_names)}"
                )
        ids = as_text(rows.column(id), id).combine_chunks()
        row = first_missing(ids)
        if row is not None:
            raise DataError(f"the node table, column {id!r}, row {row + 1}: the id is missing. Every node needs one")
        if len(ids) > MOST_NODES:
            raise DataError(f"the node table has more than {MOST_NODES:,} rows")
        if len(pc.unique(ids)) < len(ids):
            counts = pc.value_counts(ids)
            twice = counts.field("values")[pc.index(pc.greater(counts.field("counts"), 1), True).as_py()].as_py()
            raise DataError(f"the node table, column {id!r}: {twice!r} is there more than once. Give each node one row")
        names = [name for name in rows.column_names if name != id] if columns is None else list(dict.fromkeys(columns))
        cleaned = {name: clean(rows.column(name), name, rules.get(name)) for name in names}
        return Nodes(
            ids,
            {name: column for name, (column, _) in cleaned.items()},
            {name: changes for name, (_, changes) in cleaned.items() if changes is not None},
            Codebook(ids),
            may_drop(table),
            is_unvouched(rows.schema),
        )

    @cached_property
    def width(self) -> int:
        """How many characters the longest id has."""
        return int(pc.max(pc.utf8_length(self.ids)).as_py() or 0)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return "Nodes(private)"

    def groups(self) -> NDArray[np.int64]:
        """Return for each node the position of its combination of codes, in the order of the codes as text."""
        place = np.zeros(len(self), np.int64)
        for column in self.columns.values():
            rank = np.empty(len(column.codes) + 1, np.int64)
            rank[np.asarray(pc.sort_indices(column.codes))] = np.arange(1, len(column.codes) + 1)
            rank[-1] = 0
            _, place = np.unique(place * (len(column.codes) + 1) + rank[column.index], return_inverse=True)
        return place

    def arrays(self, numbers: NDArray[np.integer[Any]] | None = None) -> dict[str, pa.DictionaryArray]:
        """Return the codes of some nodes, or of all, by column."""
        made = {}
        for name, column in self.columns.items():
            index = column.index if numbers is None else column.index[numbers]
            made[name] = pa.DictionaryArray.from_arrays(pa.array(index, mask=index < 0), column.codes)
        return made


# The edge table in memory: two node numbers an edge, with the declared policies for what is no proper edge.

Numbers: TypeAlias = NDArray[np.int32]

_MOST = (1 << 31) - 1
_SAMPLE = 1 << 16
_MOST_WEIGHT = 1 << 29
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, eq=False, repr=False)
class Edges:
    """The edges of a graph: private."""

    source: Numbers
    target: Numbers
    directed: bool
    """Whether edges have a direction; if not, the smaller number comes first unless repeated edges are kept."""

    def __post_init__(self) -> None:
        for name in ("source", "target"):
            end = getattr(self, name)
            if getattr(end, "dtype", None) != np.int32 or end.ndim != 1:
                end = whole_numbers(end, "the ends of edges", most=_MOST).astype(np.int32)
            if len(end) != len(self.source) or (len(end) and end.min() < 0):
                raise NumberError("an edge has two ends, each the number of a node, counted from 0")
            object.__setattr__(self, name, np.ascontiguousarray(end))

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return "Edges(private)"

    def degrees(self, nodes: int, which: Literal["out", "in", "total"] = "total") -> NDArray[np.int64]:
        """Return the number of edges of each node: that start there, that end there, or both."""
        ends = {"out": [self.source], "in": [self.target], "total": [self.source, self.target]}[which]
        degrees: NDArray[np.int64] = np.array([np.bincount(end, minlength=nodes) for end in ends]).sum(axis=0)
        return degrees

    @property
    def mutual(self) -> float:
        """The share of edges that stand in the table in the other direction as well, from a sample: private."""
        if not self.directed or len(self) == 0:
            return 0.0
        here = _keys([self.source], [self.target], directed=True)
        if (here[1:] < here[:-1]).any():
            here.sort()
        some = slice(None, None, -(-len(self) // _SAMPLE))
        turned = _keys([self.target[some]], [self.source[some]], directed=True)
        at = np.minimum(np.searchsorted(here, turned), len(here) - 1)
        return float((here[at] == turned).mean())


def read_edges(
    table: tables.Table,
    nodes: Nodes,
    source: str = "source",
    target: str = "target",
    directed: bool = True,
    policies: Policies | None = None,
    left: LeftOut | None = None,
    weight: str | None = None,
) -> Edges:
    """Read an edge table, batch by batch; a row stands for as many edges as the column `weight` says.

    `left` counts the rows left out; without it they are logged.
    """
    rules, out = policies or Policies(), LeftOut() if left is None else left
    ends: list[tuple[Numbers, Numbers]] = []
    weighing = None if weight is None else Weighing(weight, "weight")
    wanted = [source, target, *([] if weight is None else [weight])]
    for batch in tables.batches(table, list(dict.fromkeys(wanted))):
        found = []
        for name in (source, target):
            ids = as_text(batch.rows.column(name), name)
            numbers = nodes.book.find(ids)
            if (unknown := first_unknown(ids, numbers)) is not None:
                if rules.unknown != "drop":
                    problem = f"{unknown.code!r} is not in the node table" if unknown.code else "the id is missing"
                    raise DataError(
                        f"{batch.place(name, unknown.row)}: {problem}. Correct the tables, or set unknown to "
                        '"drop" under [data] to leave such edges out'
                    )
                strangers = ids.take(pa.array(np.flatnonzero(numbers < 0)))
                out.codes.setdefault(name, UnknownCodes(name)).add(strangers, None, nodes.book, nodes.width)
            found.append(numbers)
        start, end = found
        proper = (start >= 0) & (end >= 0)
        out.rows += len(proper)
        out.unknown += int(np.count_nonzero(~proper))
        loops = proper & (start == end)
        if loops.any():
            if rules.self_loops != "drop":
                raise DataError(
                    f"{batch.place(source, int(loops.argmax()))}: the edge goes from a node to itself. Correct the "
                    'table, or set self_loops to "drop"'
                )
            proper &= ~loops
            out.self_loops += int(np.count_nonzero(loops))
        if not proper.all():
            start, end = start[proper], end[proper]
        if weighing is not None:
            often = weighing.read(batch)
            if weighing.total > _MOST_WEIGHT:
                raise DataError(f"the weights add up to more than {_MOST_WEIGHT:,} edges, which are held in memory")
            start, end = (np.repeat(numbers, often[proper]) for numbers in (start, end))
        ends.append((start.astype(np.int32), end.astype(np.int32)))
    starts, stops = [start for start, _ in ends], [end for _, end in ends]
    ends.clear()
    if rules.repeated == "keep":
        source_nodes = np.concatenate([np.empty(0, np.int32), *starts])
        starts.clear()
        edges = Edges(source_nodes, np.concatenate([np.empty(0, np.int32), *stops]), directed)
    else:
        (keys,), _ = sort_rows([_keys(starts, stops, directed)])
        again = keys[1:] == keys[:-1]
        number = int(np.count_nonzero(again))
        if number and rules.repeated == "error":
            raise DataError(
                f"{number:,} edge{'s stand' if number > 1 else ' stands'} in the table more than once"
                f"{'' if directed else ', in one direction or the other'}. Correct the table, or set repeated to "
                '"drop" (the graph is then the set of different edges) or "keep"'
            )
        keys = keys[np.append(True, ~again)] if number else keys
        edges = Edges((keys >> _HALF).astype(np.int32), (keys & _LOW).astype(np.int32), directed)
        out.repeated = out.rows - out.unknown - out.self_loops - len(edges)
    if left is None:
        tell_steward(list(out.sentences()))
    return edges


def _keys(starts: list[Numbers], stops: list[Numbers], directed: bool) -> NDArray[np.uint64]:
    keys = np.empty(sum(map(len, starts)), np.uint64)
    at = len(keys)
    while starts:
        start, stop = starts.pop(), stops.pop()
        low, high = (start, stop) if directed else (np.minimum(start, stop), np.maximum(start, stop))
        at -= len(start)
        keys[at : at + len(start)] = (low.astype(np.uint64) << _HALF) | high.astype(np.uint64)
    return keys


# A graph as a table: its edges with the attributes of both ends, or its nodes, as an Arrow stream for a plan.

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
    source: str = SOURCE
    """The column of the edge table with the id where an edge starts."""
    target: str = TARGET
    directed: bool = True
    contributions: int | None = None
    """Under "user-out", how many out-edges of a person count."""
    degree_bound: int | None = None
    """Under "node", the promise: nobody has more edges, in and out together."""
    policies: Policies = field(default_factory=Policies)
    """Policies for self-loops, repeated edges and edges to unknown nodes."""
    cleaning: Mapping[str, Cleaning] = field(default_factory=dict)
    """By column of the node table, the public rule that makes its codes."""
    weight: str | None = None
    """The column of the edge table that says how many edges a row stands for."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "policies", replace(self.policies, weighted=self.weight is not None))
        object.__setattr__(self, "cleaning", FrozenMap(dict(self.cleaning)))
        if self.kind is not None and (self.degree_bound is not None or not self.kind.bounded):
            _ = self.facts  # what does not fit is refused now

    @property
    def kind(self) -> Relation | None:
        """The relation; None where only nodes are counted."""
        return None if self.relation is None else check_relation(self.relation)

    @property
    def facts(self) -> GraphRules:
        """Declarations about the edges, which must agree with the unit of the plan."""
        if self.relation is None:
            raise PlanError("the graph has no neighbour relation, so its edges cannot be released: name one")
        return GraphRules(self.relation, self.directed, self.degree_bound, self.policies)

    def unit(self, neighbours: Neighbours | None = None, entity: str | None = None) -> GraphUnit:
        """Return the protected unit of a release of edges between groups.

        Under `replace` the total is exact only where no exchange can change the number of edges; the unit knows.
        """
        if self.relation is None:
            raise PlanError("the graph has no neighbour relation, so its edges cannot be released: name one")
        unit = unit_of(
            self.relation, neighbours, contributions=self.contributions, degree_bound=self.degree_bound, entity=entity
        )
        return GraphUnit(unit, self.facts)

    @property
    def one_edge(self) -> str:
        """One edge, in words."""
        return (one_edge if self.weight is None else one_weighted_edge)(self.directed)

    def sentences(self) -> list[str]:
        """Describe the protection of the relation and the counting of edges."""
        if self.kind is None:
            return []
        return self.kind.sentences(self.degree_bound, self.directed, self.policies.weighted)

    def read_nodes(self, columns: Sequence[str] | None = None) -> Nodes:
        """Read the node table."""
        return Nodes.read(self.nodes, self.id, columns, self.cleaning)

    def read_edges(self, nodes: Nodes, left: LeftOut | None = None) -> Edges:
        """Read the edge table, and check the declarations about it.

        `left` counts the edges that policies leave out; without it they are logged.
        """
        if self.edges is None:
            raise DataError("the graph has no edge table: name one")
        edges = read_edges(self.edges, nodes, self.source, self.target, self.directed, self.policies, left, self.weight)
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

    def table(self, edges: tables.Table | None = None, columns: Sequence[str] | None = None) -> GraphTable:
        """Return the edges as a table: `source`, and `source.NAME` and `target.NAME` for each column of the nodes."""
        return GraphTable(self if edges is None else replace(self, edges=edges), "edges", columns)

    def node_table(self, columns: Sequence[str] | None = None) -> GraphTable:
        """Return the nodes as a table, cleaned."""
        return GraphTable(self, "nodes", columns)


@dataclass(frozen=True, eq=False, repr=False)
class GraphTable:
    """The edges of a graph with the attributes of both ends, or its nodes: private, and read when the stream is."""

    graph: Graph
    part: Literal["edges", "nodes"]
    columns: Sequence[str] | None = None

    @property
    def counted(self) -> tables.Table | None:
        """The table with the records: that of the edges, or of the nodes."""
        return self.graph.edges if self.part == "edges" else self.graph.nodes

    @property
    def facts(self) -> GraphRules | None:
        """Rules that a plan which counts these edges must declare; None of nodes."""
        return self.graph.facts if self.part == "edges" else None

    @cached_property
    def _nodes(self) -> Nodes:
        return self.graph.read_nodes(self.columns)

    @property
    def public_units(self) -> int | None:
        """How many people have a list of edges, where that is the unit: who is in the graph is then public."""
        kind = self.graph.kind
        return None if self.part == "nodes" or kind is None or kind.id is None else len(self._nodes)

    def opened(self, tally: Tally) -> pa.RecordBatchReader:
        """Return the rows; the tally counts the edges that policies leave out."""
        if self.part == "nodes":
            nodes = self.graph.read_nodes(self.columns)
            unvouched = UNVOUCHED if nodes.unvouched else None
            return pa.table({**nodes.arrays(), self.graph.id: nodes.ids}, metadata=unvouched).to_reader()
        nodes = self._nodes
        first = _batch(nodes, Edges(np.empty(0, np.int32), np.empty(0, np.int32), True))
        tally.left = LeftOut()
        edges = self.graph.read_edges(nodes, tally.left)  # now: what is wrong is said before anything is measured
        if not edges.directed:  # each edge is turned so that its source is the end in the earlier group
            group = nodes.groups()
            turned = group[edges.source] > group[edges.target]
            ends = (edges.source, edges.target)
            edges = Edges(np.where(turned, *ends[::-1]), np.where(turned, *ends), edges.directed)
        starts = range(0, len(edges), tables.ROWS)
        parts = (slice(start, start + tables.ROWS) for start in starts)
        batches = (_batch(nodes, Edges(edges.source[own], edges.target[own], edges.directed)) for own in parts)
        return pa.RecordBatchReader.from_batches(first.schema, batches)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.opened(Tally()).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return "GraphTable(private)"


def open_table(table: Any, tally: Tally) -> tuple[tables.Table, bool]:
    """Return a table, or the rows of a graph, to be read, and whether its ids are of units: those of nodes are not."""
    if isinstance(table, GraphTable):
        return table.opened(tally), table.part == "edges"
    return table, True


def tables_within(table: Any) -> list[Any]:
    """Return the tables that are read for a table: those of a graph, or the table itself."""
    graph = table.graph if isinstance(table, GraphTable) else table
    tables = (graph.nodes, graph.edges) if isinstance(graph, Graph) else (table,)
    return [one for one in tables if one is not None]


def _batch(nodes: Nodes, edges: Edges) -> pa.RecordBatch:
    ends = {SOURCE: nodes.arrays(edges.source), TARGET: nodes.arrays(edges.target)}
    columns: dict[str, Any] = {SOURCE: pa.array(edges.source)}  # a number stands for the id: only who is who matters
    columns |= {f"{end}.{name}": array for end, arrays in ends.items() for name, array in arrays.items()}
    return pa.RecordBatch.from_pydict(columns, metadata=UNVOUCHED if nodes.unvouched else None)


# What is decided about a table before it is read: how it is prepared, and what may leave a record out on the way.


class Rules(NamedTuple):
    """Preparation of a table before it is counted, for its card."""

    keep: Mapping[str, Sequence[str]] | None = None
    drop: Mapping[str, Sequence[str]] | None = None
    prepared: tuple[str, ...] = ()


def rules_of(table: tables.Table) -> Rules:
    """Return the preparation of a table."""
    if isinstance(table, GraphTable):
        return rules_of(table.counted)
    source = as_source(table)
    if source is None:
        return Rules()
    return Rules(source.keep, source.drop, () if source.prepare is None else tuple(source.prepare.words()))


def may_drop(table: tables.Table) -> str | None:
    """Give the reasons why records may be left out before counting; None if there is no such reason."""
    if isinstance(table, GraphTable):
        # A person may have no edge, and policies may leave an edge out.
        rules = table.facts
        return (None if rules is None else rules.may_drop) or may_drop(table.counted)
    source = as_source(table)
    if source is None:
        return None
    return selected(source, leaves_out(source))


def refuse_exact_total(unit: Unit, total_is_exact: bool, table: tables.Table) -> None:
    """Refuse to tell the total of a table exactly where neighbours may differ in it; nothing is read for this."""
    reason = may_drop(table) if total_is_exact else None
    if reason is not None:
        raise PlanError(
            f"the total would be released without noise, but neighbours may differ in it: {reason}, so that one "
            f"{unit.entity} may be exchanged for one that is not counted. Let the total be measured: may_be_missing = "
            'true under [unit], in Python Unit(…, may_be_missing=True); or choose neighbours = "add-remove"'
        )
