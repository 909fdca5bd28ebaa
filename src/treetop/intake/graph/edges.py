"""The edge table in memory: two node numbers an edge, with the declared policies for what is no proper edge.

Each policy is a function of an edge, or of the edges with the same two ends, so neighbours stay neighbours: dropping
repeated edges makes the data the set of different edges, and one edge more in the file is at most one more there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.basics.checked import whole_numbers
from treetop.basics.sorting import sort_rows
from treetop.domain.policies import Policies
from treetop.errors import DataError, NumberError
from treetop.intake.graph.nodes import Nodes
from treetop.intake.tally import LeftOut
from treetop.sources import table as tables
from treetop.sources.batch import Batch, as_text

Numbers: TypeAlias = NDArray[np.int32]

_MOST = (1 << 31) - 1
_SAMPLE = 1 << 16
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, eq=False, repr=False)
class Edges:
    """The edges of a graph: private."""

    source: Numbers
    """The node where each starts."""
    target: Numbers
    """The node where it ends."""
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
) -> Edges:
    """Read an edge table, batch by batch. `left` is told what is left out; without it the log is."""
    rules, out = policies or Policies(), LeftOut() if left is None else left
    ends: list[tuple[Numbers, Numbers]] = []
    for batch in tables.batches(tables.as_part_of_graph(table, "edges"), list(dict.fromkeys([source, target]))):
        found = []
        for name in (source, target):
            numbers = nodes.find(batch.rows.column(name), name)
            if len(numbers) and numbers.min() < 0:
                if rules.unknown != "drop":
                    _refuse_unknown(batch, name, int(numbers.argmin()))
                strangers = batch.rows.column(name).take(pa.array(np.flatnonzero(numbers < 0)))
                out.add_codes(name, as_text(strangers, name), nodes.book, nodes.width)
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
        ends.append((start.astype(np.int32), end.astype(np.int32)))
    starts, stops = [start for start, _ in ends], [end for _, end in ends]
    ends.clear()
    if rules.repeated == "keep":
        edges = Edges(_joined(starts), _joined(stops), directed)
    else:
        edges = _distinct(_keys(starts, stops, directed), directed, rules)
        out.repeated = out.rows - out.unknown - out.self_loops - len(edges)
    if left is None:
        out.tell()
    return edges


def _joined(parts: list[Numbers]) -> Numbers:
    joined = np.concatenate([np.empty(0, np.int32), *parts])
    parts.clear()
    return joined


def _keys(starts: list[Numbers], stops: list[Numbers], directed: bool) -> NDArray[np.uint64]:
    """Return the two ends of each edge as one word; of an edge without direction the smaller end is above."""
    keys = np.empty(sum(map(len, starts)), np.uint64)
    at = len(keys)
    while starts:
        start, stop = starts.pop(), stops.pop()
        low, high = (start, stop) if directed else (np.minimum(start, stop), np.maximum(start, stop))
        at -= len(start)
        keys[at : at + len(start)] = (low.astype(np.uint64) << _HALF) | high.astype(np.uint64)
    return keys


def _distinct(keys: NDArray[np.uint64], directed: bool, rules: Policies) -> Edges:
    (keys,), _ = sort_rows([keys])
    again = keys[1:] == keys[:-1]
    if again.any():
        if rules.repeated == "error":
            number = int(np.count_nonzero(again))
            raise DataError(
                f"{number:,} edge{'s stand' if number > 1 else ' stands'} in the table more than once"
                f"{'' if directed else ', in one direction or the other'}. Correct the table, or set repeated to "
                '"drop" (the graph is then the set of different edges) or "keep"'
            )
        keys = keys[np.append(True, ~again)]
    return Edges((keys >> _HALF).astype(np.int32), (keys & _LOW).astype(np.int32), directed)


def _refuse_unknown(batch: Batch, name: str, row: int) -> None:
    value = as_text(batch.rows.column(name), name)[row].as_py()
    what = "the id is missing" if not value else f"{value!r} is not in the node table"
    raise DataError(
        f'{batch.place(name, row)}: {what}. Correct the tables, or set unknown to "drop" under [data] to leave such '
        "edges out"
    )
