"""The fields of graphs: node and edge tables, neighbour relation, and cleaning of columns."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

from treetop.domain.unit import Policy
from treetop.io.source import OPTIONS
from treetop.plan.degree_unit import Degree, Form
from treetop.plan.fields.field import (
    DEGREES,
    FILE,
    FLAG,
    INTEGER,
    NAME,
    NUMBER,
    RECORDS,
    WHOLE,
    WHOLES,
    Field,
    Kind,
    Section,
    Values,
    choice,
)
from treetop.plan.fields.ordinary import FIELDS as FIELDS_OF_ALL
from treetop.privacy.relation import RELATIONS

CLEANING = "graph.clean.COLUMN"
"""The section of a cleaning rule, as declared."""
READING = tuple(
    one for one in FIELDS_OF_ALL if one.section == "data" and one.name in (*OPTIONS, "trim", "missing", "pad")
)
"""The fields of `[data]` that say how a table is read, which the second table of a graph has too."""
COUNTED = ("edges", "nodes", "degrees")
"""The countable objects of a graph."""
LOOPS = ("error", "drop")
"""Treatment of self-loops; they can never be kept."""


def _truth(section: Section, key: str) -> bool | None:
    value = section.values.get(key)
    if value is not None and not isinstance(value, bool):
        section.refuse(key, "true or false, without quotes")
    return value


def _largest(section: Section, key: str) -> int | tuple[int, ...] | None:
    """Read one whole number, or a list of candidates."""
    return (WHOLES if isinstance(section.values.get(key), list) else WHOLE).read(section, key)  # type: ignore[no-any-return]


def _edges(read: Values) -> bool:
    return bool(read["graph"]) and read["graph"]["counts"] in ("edges", "degrees")


def _declare(section: str, name: str, kind: Kind, help: str, at: str = "", **more: Any) -> Field:
    return Field(section, name, kind, help, **{"since": "0.2", "at": at, "families": (RECORDS, DEGREES), **more})


_graph = partial(_declare, "graph")
_clean = partial(_declare, CLEANING)

FIELDS = (
    _graph("counts", choice(COUNTED), '`"edges"`; `"nodes"` to count the people; or `"degrees"`, how many people have '
           'how many edges (since 0.3). Of the last two the attributes\' columns are those of the node table', "counts",
           default="edges", always=True),
    _graph("nodes", FILE, "Instead of `[data] source`: a table of people ([graphs](graphs.md)). Attributes then have "
           "the columns `source.NAME` and `target.NAME`", asked=lambda read: bool(read["graph"]), place=None,
           question="Which table lists the people, with id and attributes?"),
    _graph("edges", FILE, "And a table of who connects to whom", place=None),
    _graph("id", NAME, "The column of the node table with the ids", "graph.id", default="id", always=True),
    _graph("source", NAME, "The column of the edge table with the ids of those from whom edges go", "of_edges.source",
           default="source", always=True),
    _graph("target", NAME, "The column with the ids of those to whom they go", "of_edges.target", default="target",
           always=True),
    _graph("relation", choice(RELATIONS), '`"edge"`, `"user-out"` (with `[unit] contributions`) or `"node"` (with '
           '`degree_bound`), of which degrees need neither; it makes the unit, and only under `"node"` may that have '
           'another `entity`', "of_edges.relation", asked=_edges,
           question='Which graphs must be hard to tell apart? "edge": those that differ in one friendship. "user-out": '
           'in all the out-edges of one person, which that person lists. "node": in one person with all edges, in and '
           "out, for which a public bound on the degree must be promised."),
    _graph("degree_bound", WHOLE, 'Under `"node"`, a promise: nobody has more edges, in and out together',
           "of_edges.degree_bound", families=(RECORDS,),
           asked=lambda read: bool(read["graph"]) and read["graph"]["relation"] == "node",
           question="How many edges has a person at most, in and out together? Promise it from public knowledge: it "
           "cannot be enforced, and must not be taken from the data."),
    _graph("directed", Kind(_truth, FLAG.schema), "`true` (one edge is one row, from one person to another) or `false` "
           "(one edge is two people)", "of_edges.directed", default=True, always=True),
    _graph("self_loops", choice(LOOPS), 'Edges from a person to the same: `"error"` or `"drop"`',
           "of_edges.policies.self_loops", default="error", always=True),
    _graph("repeated", choice(get_args(Policy)), 'Further edges between the same two: `"error"`, `"drop"` or `"keep"`',
           "of_edges.policies.repeated", default="error", always=True),
    _graph("largest", Kind(_largest, {"anyOf": [WHOLE.schema, WHOLES.schema]}),
           'Of degrees: the largest that is told apart, public; higher ones are counted with it. Under `"node"` edges '
           'are left out until nobody has more, and a list of candidates has it chosen privately (since 0.4)',
           families=(DEGREES,), since="0.3", asked=lambda _: True,
           question="Which is the largest degree to tell apart? Higher ones are counted with it. Take it from public "
           "knowledge, never from the graph."),
    _graph("choosing", NUMBER, "With several candidates for `largest`: the share of the loss that choosing takes, all "
           "together; 0.2 when left out", families=(DEGREES,), since="0.4"),
    _graph("degree", choice(get_args(Degree)), 'Which edges of a person are counted: `"out"`, `"in"` or `"total"`. '
           'Left out, those that go out if edges have a direction, and all of them without, and under `"node"`',
           "plan.unit.graph.degree", families=(DEGREES,), since="0.4", digest="degrees.degree"),
    _graph("form", choice(get_args(Form)), 'How degrees are measured: `"cumulative"` or `"histogram"`',
           "plan.unit.form", families=(DEGREES,), since="0.3", default="cumulative", digest="degrees.form",
           always=True),
    _graph("clean", Kind(lambda section, key: section.table(key).values or None, {}),
           "Public rules for columns of the node table, see below", place=None),
    _graph("weight", NAME, "The column of the edge table that says how many edges a row stands for; with `repeated = "
           '"keep"`. Each of them is an edge', "of_edges.weight", since="0.4"),
    *(_graph(f"nodes_{one.name}", one.kind, f"As `{one.name}` under `[data]`, of the people's table if edges are "
             "counted; `[data]` itself is about the table that is counted", f"people.{one.name}", since="0.4",
             place=one.place) for one in READING),

    _clean("vocabulary", FILE, "A public file by which free text becomes codes"),
    _clean("keyword", NAME, "Its column with the keywords", default="keyword"),
    _clean("code", NAME, "Its column with the codes", default="code"),
    _clean("least", INTEGER, "Instead, of numbers: the least that is plausible"),
    _clean("most", INTEGER, "The most that is plausible"),
    _clean("width", INTEGER, "How many numbers become one code"),
    _clean("missing", NAME, "The code for what is missing or implausible"),
    _clean("other", NAME, "The code for what no keyword fits"),
)  # fmt: skip
