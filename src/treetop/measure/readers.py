"""Readers: from a private table to the true counts that a plan measures.

All counts returned here are private. Only a steward who compares a release with the truth sees them without noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.choices import nearest
from treetop.counts.counts import Counts
from treetop.counts.degree_projection import projected_degrees, projections, shortened
from treetop.counts.graph_reader import Edges, Graph, GraphTable, Nodes, may_drop, refuse_exact_total, tables_within
from treetop.counts.group_reader import GroupColumns, GroupSizes, GroupTableReader
from treetop.counts.reading import read_counts
from treetop.counts.tally import Tally
from treetop.errors import DataError, PlanError
from treetop.io.header import refuse_code
from treetop.io.source import as_source
from treetop.io.table import Table
from treetop.noise import Key
from treetop.plan.constraints_kept import refuse_private_facts
from treetop.plan.degree_unit import DegreeUnit
from treetop.plan.degrees import DegreeHistogram
from treetop.plan.group_plan import COLUMNS, SIZE, GroupSizeReader, inner
from treetop.plan.group_unit import GroupUnit
from treetop.plan.plan import Plan

Ints = NDArray[np.int64]

_ANY = int(np.iinfo(np.int64).max)


class TableReader(Protocol):
    """The half of a plan's reader that sees the private table."""

    def check(self, plan: Plan, table: Table) -> None:
        """Refuse a table with read options that do not agree with the plan; nothing is read or spent."""

    def true_counts(
        self, plan: Plan, table: Table, columns: Mapping[str, str] | None, count: str | None, tally: Tally | None
    ) -> Counts:
        """Read the table as true counts."""


def check_table(plan: Plan, table: Table) -> None:
    """Refuse a table with read options that do not agree with the plan; nothing is read or spent."""
    READERS[plan.reader.name].check(plan, table)


def read_true_counts(
    plan: Plan,
    table: Table,
    columns: Mapping[str, str] | None = None,
    count: str | None = None,
    tally: Tally | None = None,
) -> Counts:
    """Read a private table as true counts, with all records of every unit, for comparisons by a steward.

    A `tally` receives the number of dropped records.
    """
    return READERS[plan.reader.name].true_counts(plan, table, columns, count, tally)


# Rows.


def check_rows(plan: Plan, table: Table) -> None:
    """Refuse a table of records if its graph, total or facts do not agree with the plan."""
    if (table.facts if isinstance(table, GraphTable) else None) != plan.graph:
        raise PlanError(
            "the plan and the table do not state the same graph: relation, direction, degree bound and what is "
            "dropped must agree. Take the unit of the plan from the graph, as in unit=graph.unit(…), and release "
            "graph.table()"
        )
    refuse_exact_total(plan.unit, plan.reads_total, table)
    refuse_private_facts(plan.public_facts, tables_within(table))


class _Records:
    """Rows of a table, or edges of a graph."""

    def check(self, plan: Plan, table: Table) -> None:
        check_rows(plan, table)

    def true_counts(
        self, plan: Plan, table: Table, columns: Mapping[str, str] | None, count: str | None, tally: Tally | None
    ) -> Counts:
        return read_counts(table, plan.spine, columns, count, plan.unknown, tally=tally, pairs=plan.pairs)


# Group sizes.


def group_reader(plan: Plan, columns: Mapping[str, str] | None = None, count: str | None = None) -> GroupTableReader:
    """Return the reader of a private table of group sizes; `columns` as in `RunOptions`."""
    stated, unit, given = GroupSizeReader.of(plan), GroupUnit.of(plan.unit), dict(columns or {})
    known = (plan.place, *COLUMNS)
    for name in given:
        if name not in known:
            raise DataError(f"columns: there is no {name!r}{nearest(name, known)}; name {', '.join(known)}")
    if stated.listed is None and stated.list_sha256 is not None:
        raise PlanError(
            "this plan comes from a card, which names the public list of groups by its hash only: give the plan "
            "file that has it, as `plan`"
        )
    region = given.pop(plan.place, None)
    if region is None and stated.rows != "people":
        region = plan.place
    defaults = {"people": {"group": "group"}, "groups": {"size": SIZE}, "histogram": {"size": SIZE}}[stated.rows]
    person = unit.id if stated.rows == "people" and unit.event != "group" else None
    own = GroupColumns(region=region, number=count, person=person, **{**defaults, **given})
    most = _ANY if unit.event == "group" else unit.quantity
    return GroupTableReader(plan.regions, plan.largest, stated.rows, own, stated.number, stated.listed, most)


class _GroupSizes:
    """Group sizes, from people, groups or histograms."""

    def check(self, plan: Plan, table: Table) -> None:
        GroupSizeReader.of(plan).check_source(plan, as_source(table))

    def true_counts(
        self, plan: Plan, table: Table, columns: Mapping[str, str] | None, count: str | None, tally: Tally | None
    ) -> Counts:
        sizes = group_reader(plan, columns, count).read(inner(table))
        nodes, number = leaves_above_zero(sizes.number)
        return Counts.from_leaves(plan.spine, list(nodes), number)


def leaves_above_zero(number: Ints) -> tuple[Ints, Ints]:
    """Return the leaves above zero in spine order: by size, then by region; sizes are numbered as their codes sort."""
    size, region = np.nonzero(number.T)
    return np.stack([size, region]), number[region, size]


# Degrees.


def graph_of(plan: Plan, table: Table) -> Graph:
    """Return the graph for counting degrees; refuse one that does not agree with the plan."""
    if not isinstance(table, Graph):
        raise PlanError("degrees are those of a graph: give a treetop.Graph, which has people and edges")
    facts = DegreeUnit.of(plan.unit).graph
    if table.directed != facts.directed:
        raise PlanError("the plan and the graph do not agree on whether edges have a direction")
    if table.relation != facts.relation:
        raise PlanError(
            f"the plan is made for the relation {facts.relation!r}, and the graph's is {table.relation!r}: "
            "the noise of one does not protect the other"
        )
    if table.policies != facts.policies:
        raise PlanError(
            "the plan and the graph do not agree on which edges are dropped: make the plan with "
            "policies=graph.policies, so that its card says what was"
        )
    refuse_selected_people(plan, may_drop(table.nodes))
    return table


def people_are_public(plan: Plan) -> bool:
    """Whether all neighbours have the same number of nodes."""
    return plan.unit.total_is_exact(False)


def _relation(plan: Plan) -> str:
    return DegreeUnit.of(plan.unit).graph.relation


def refuse_selected_people(plan: Plan, reason: str | None) -> None:
    """Refuse an exact number of people if an exchange of one may change it."""
    if reason is not None and _relation(plan) == "node" and people_are_public(plan):
        raise PlanError(
            f"the number of people would be released without noise, but neighbours may differ in it: {reason}, so "
            "that one person may be exchanged for one who is not counted. Choose neighbours = "
            '"add-remove", under which it is measured, or give a node table of which every row counts'
        )


def check_people(plan: Plan, people: int) -> None:
    """Refuse too many people; the message contains their number only if it is public."""
    if people_are_public(plan) and _relation(plan) != "edge":
        plan.loss.refuse_large_delta(people, "the number of people, which is public")
    widest = DegreeHistogram.of(plan).law(plan).margin(Fraction(1, 2**80))
    if (people + widest) * (plan.largest + 1) ** 2 >= 2**62:
        raise PlanError(f"degrees up to {plan.largest:,} of so many people do not fit 64-bit sums: lower largest")


def all_degrees(plan: Plan, nodes: Nodes, edges: Edges) -> Ints:
    """Return the degree of everybody, with no edge left out."""
    return edges.degrees(len(nodes), DegreeUnit.of(plan.unit).graph.counted)


def bounded_degrees(plan: Plan, nodes: Nodes, edges: Edges, key: Key) -> Ints:
    """Return the degree of everybody, with edges left out as the sensitivity requires.

    The key selects the edges; the choice for one person does not depend on others.
    """
    unit = DegreeUnit.of(plan.unit)
    if unit.graph.relation == "node":
        return projected_degrees(nodes, edges, unit.largest, key, unit.graph.counted)
    if unit.graph.cut:
        edges = shortened(nodes, edges, unit.contributions, key)
    return all_degrees(plan, nodes, edges)


def degree_histogram(plan: Plan, degrees: Ints) -> Ints:
    """Return the number of people of each degree from 0 to the largest, which includes higher degrees."""
    largest = plan.largest
    return np.bincount(np.minimum(degrees, largest), minlength=largest + 1).astype(np.int64)


def degree_cells(plan: Plan, nodes: Nodes, edges: Edges, order: Key) -> Ints:
    """Return the counts to be measured, without noise."""
    return _in_form(plan, degree_histogram(plan, bounded_degrees(plan, nodes, edges, order)))


def degree_cells_by_theta(plan: Plan, nodes: Nodes, edges: Edges, order: Key) -> tuple[list[int], dict[int, Ints]]:
    """Return the number of people who reach each candidate, and the counts to be measured by candidate."""
    choice, graph = DegreeHistogram.of(plan).choice, DegreeUnit.of(plan.unit).graph
    assert choice is not None
    reaching, counts = [], {}
    every = projections(nodes, edges, choice.candidates, order, graph.counted)
    for theta, degrees in zip(choice.candidates, every, strict=True):
        reaching.append(int((degrees == theta).sum()))
        counts[theta] = _in_form(plan, np.bincount(degrees, minlength=theta + 1).astype(np.int64))
    return reaching, counts


def _in_form(plan: Plan, number: Ints) -> Ints:
    """Return the numbers of people by degree in the plan's form (histogram or cumulative), without noise."""
    if not plan.unit.cumulative:
        return number[1:] if DegreeHistogram.of(plan).rest(plan) else number
    total = number.cumsum()
    return total[:-1] if people_are_public(plan) else total  # the last is everyone, which is then known


# Degrees by region.


def region_column(plan: Plan, columns: Mapping[str, str] | None) -> str:
    """Return the column of the node table with the leaf regions."""
    return (columns or {}).get(plan.place, plan.place)


def regional_sizes(
    plan: Plan, nodes: Nodes, edges: Edges, columns: Mapping[str, str] | None, key: Key | None = None
) -> GroupSizes:
    """Return the number of people of each degree by region; without a key, with no edge left out."""
    column = region_column(plan, columns)
    if nodes.unvouched:
        refuse_code(column, plan.regions.codes, "the node table")
    if _relation(plan) == "user-out":
        plan.loss.refuse_large_delta(len(nodes), "the number of people, which is public")
    degrees = all_degrees(plan, nodes, edges) if key is None else bounded_degrees(plan, nodes, edges, key)
    return GroupSizes.from_rows(plan.regions, _leaf_regions(plan, nodes, column), degrees, largest=plan.largest)


def _leaf_regions(plan: Plan, nodes: Nodes, column: str) -> Ints:
    """Return the leaf region of everybody."""
    codes = nodes.columns[column]
    known = plan.regions.read(pa.concat_arrays([codes.codes, pa.nulls(1, pa.string())]), column)
    leaf: Ints = plan.regions.encode(known)[codes.index]  # the last is for missing values, as is the index -1
    if (leaf < 0).any():
        row = int((leaf < 0).argmax())
        code = None if codes.index[row] < 0 else codes.codes[int(codes.index[row])].as_py()
        raise DataError(f"the node table, column {column!r}, row {row + 1}: {code!r} is not a leaf region; clean it")
    return leaf


class _Degrees:
    """Degrees of a graph, of everybody together or by region."""

    def check(self, plan: Plan, table: Table) -> None:
        graph_of(plan, table)

    def true_counts(
        self, plan: Plan, table: Table, columns: Mapping[str, str] | None, count: str | None, tally: Tally | None
    ) -> Counts:
        graph = graph_of(plan, table)
        if DegreeHistogram.runs(plan):
            nodes = graph.read_nodes([])
            number = degree_histogram(plan, all_degrees(plan, nodes, graph.read_edges(nodes)))
            (degree,) = np.nonzero(number)
            return Counts.from_leaves(plan.spine, [degree], number[degree])
        nodes = graph.read_nodes([region_column(plan, columns)])
        leaves, number = leaves_above_zero(regional_sizes(plan, nodes, graph.read_edges(nodes), columns).number)
        return Counts.from_leaves(plan.spine, list(leaves), number)


READERS: Mapping[str, TableReader] = {"records": _Records(), "groups": _GroupSizes(), "degrees": _Degrees()}
"""The private half of every reader of plans, by its name."""
