"""Run a plan once: read the private table, charge the loss, measure the counts.

`charge` is called after the table is read and before anything is measured. If it raises, nothing is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from treetop._util.system import Progress
from treetop.card import RunInfo, describe_release
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.counts import Counts
from treetop.counts.encode import Encoder
from treetop.counts.graph_reader import Edges, GraphTable, Nodes, Rules, rules_of
from treetop.counts.group_reader import GroupSizes
from treetop.counts.reading import read_encoded
from treetop.counts.spill import BYTES_A_WORD, Space, read_staged
from treetop.counts.tally import LeftOut, Tally, tell_projected
from treetop.engine.engine import AUTO, Engine, Machine, as_engine
from treetop.errors import DataError, PlanError
from treetop.io.table import Table, rows_at_most
from treetop.ledger import Ledger
from treetop.measure.descent import descent_of
from treetop.measure.facts import refuse_contradiction
from treetop.measure.measure import measuring
from treetop.measure.readers import (
    check_table,
    graph_of,
    group_reader,
    leaves_above_zero,
    region_column,
    regional_sizes,
)
from treetop.measure.vectors import measured_degrees, measured_groups
from treetop.noise import Key
from treetop.noise.gate import Charge, Gate, bind
from treetop.noise.sampler import sampler
from treetop.plan.degree_unit import DegreeUnit
from treetop.plan.degrees import DegreeHistogram
from treetop.plan.group_plan import GroupSizeReader, inner
from treetop.plan.mechanism import JointMechanism, TopDown
from treetop.plan.plan import Plan
from treetop.plan.region_histograms import RegionHistograms, region_tree
from treetop.plan.workload import noise_of
from treetop.release.intervals.cells import Cells, measurements_of
from treetop.release.measurements import Measurements
from treetop.release.release import Release
from treetop.release.run import run_joint, run_plan


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of a run: how to read the table, where to compute, and which ledger to charge.

    The result depends on neither engine nor threads.
    """

    columns: Mapping[str, str] | None = None
    """Column of each attribute, if it is not called like the attribute."""
    count: str | None = None
    """Column with the number of records that a row stands for."""
    description: str = ""
    """Description of the release, for its card."""
    period: str | None = None
    """Period of the data, in words, for the card."""
    allow_dropped: bool = False
    """Allow any number of records with unknown codes. Otherwise `ManyDropped` is raised above 3 % of the table, and
    nothing is spent."""
    keep_measurements: bool = False
    """Keep all measurements in the release, for later estimates. One of lower error with intervals always does."""
    engine: str | Engine = AUTO
    """Engine, by name or as an `Engine`. By default a table larger than memory is counted on disk."""
    threads: int | None = None
    """Number of threads or workers (default: all cores)."""
    ledger: str | Path | Ledger | None = None
    """Ledger that the loss is charged to, before anything is measured."""
    dataset: str | None = None
    """Data set of the ledger."""
    expect_head: str | None = None
    """Fingerprint that the ledger must have, to detect a rollback."""
    testing_key: bytes | None = None
    """32 bytes that make the noise reproducible. The release then says that it is not private."""
    progress: Progress | None = None
    """Called with the stage of the run and the share of it that is done."""
    before_measuring: Charge | None = None
    """Called when the table has been read and nothing has been spent yet. An exception stops the run there."""

    @cached_property
    def workplace(self) -> Engine:
        """The engine with its number of workers."""
        return as_engine(self.engine, self.threads)

    def refuse_engine(self, what: str) -> None:
        """Refuse any engine but the local one for counts that are always held in memory."""
        if self.workplace.name not in (AUTO, "local"):
            raise PlanError(
                f'{what} are counted in memory: leave the engine {self.workplace.name!r} out, or say "local"'
            )


@dataclass(frozen=True)
class Run:
    """One run of a plan: its options, its card fields, and its charge."""

    options: RunOptions
    facts: RunInfo
    charge: Charge | None = None

    def card(self, plan: Plan, gate: Gate, rules: Rules) -> dict[str, Any]:
        """Draft the card before anything is spent; a missing required field stops the release."""
        rules = rules._replace(prepared=(*rules.prepared, *plan.spine.coded))
        own = {name: value for name, value in rules._asdict().items() if value and not getattr(self.facts, name)}
        return describe_release(plan, replace(self.facts, **own, private=gate.private))


def measure_release(plan: Plan, table: Table, run: Run) -> Release:
    """Read the private table, run the plan once, and return the public result."""
    return MECHANISMS[plan.mechanism.name](plan, table, run)


def _top_down(plan: Plan, table: Table, run: Run) -> Release:
    descent_of(plan)  # now, before data is read: a noise that cannot be drawn is refused here
    return _counted(plan, table, run, run_plan)


def _joint(plan: Plan, table: Table, run: Run) -> Release:
    for _, law in plan.workload.measured:
        sampler(law)
    return _counted(plan, table, run, run_joint)


def _counted(plan: Plan, table: Table, run: Run, measure: Callable[..., Release]) -> Release:
    """Count records by leaf, and measure them."""
    gate = Gate(run.options.testing_key)
    check_table(plan, table)
    card = run.card(plan, gate, rules_of(table))
    decided = bytes.fromhex(plan.digest)
    cap = None if plan.unit.id is None else ContributionCap.of(plan.unit, gate.choice("bound", decided))
    encoder = Encoder(plan.spine, run.facts.columns, run.facts.count, plan.unknown, cap, plan.pairs)
    needed = _bytes_at_most(table, encoder) if run.options.workplace.name == AUTO else None
    with run.options.workplace.settled(table, needed).started() as machine:
        tally = Tally()
        counts = _read(table, encoder, machine, run, tally)
        _refuse_large_delta(plan, table, counts)
        tally.settle(plan.unit, run.options.allow_dropped)
        refuse_contradiction(plan.public_facts, counts)
        data = counts.digest_under(gate.choice("counts", decided))
        with measuring(plan.workload, gate, run.charge, "run", decided, data) as door:
            return measure(
                plan,
                counts,
                door.key,
                card,
                executor=machine.executor,
                scratch=machine.folder,
                progress=run.options.progress,
                keep_measurements=run.options.keep_measurements,
            )


def _read(table: Table, encoder: Encoder, machine: Machine, run: Run, tally: Tally) -> Counts:
    """Read the private table into memory, or into files if it does not fit."""
    table = machine.reachable(table, encoder.wanted)
    if machine.folder is None:
        return read_encoded(table, encoder, run.options.progress, tally)
    return read_staged(
        table, encoder, Space(machine.folder, machine.memory, machine.executor), run.options.progress, tally
    )


def _bytes_at_most(table: Table, encoder: Encoder) -> int | None:
    """Return an approximate upper bound on a table's memory in bytes; None if unknown before it is read."""
    rows = None if isinstance(table, GraphTable) else rows_at_most(table)
    return None if rows is None else BYTES_A_WORD * (encoder.words + 1) * rows


def _refuse_large_delta(plan: Plan, table: Table, counts: Counts) -> None:
    """Refuse a large delta for the number of units, if that number is the same for all neighbours.

    That number is published or already public, so the refusal reveals nothing private.
    """
    if plan.reads_total:
        plan.loss.refuse_large_delta(counts.total, f"the number of units ({plan.unit.entity}), which is exact")
    elif isinstance(table, GraphTable):
        plan.loss.refuse_large_delta(table.public_units, f"the number of units ({plan.unit.entity}), which is public")


def _region_histograms(plan: Plan, table: Table, run: Run) -> Release:
    """Measure the sizes of all regions, and return them with the measurements and the public counts."""
    run.options.refuse_engine("group sizes" if plan.reader.name == "groups" else "degrees by region")
    gate, mechanism = Gate(run.options.testing_key), RegionHistograms.of(plan)
    mechanism.check_memory(plan)
    sizes, card, gate = REGIONS[plan.reader.name](plan, table, run, gate)
    with measured_groups(plan, sizes, gate, run.charge, run.options.workplace.number) as found:
        if run.options.progress is not None:
            run.options.progress("measuring", 1.0)
        rows = region_tree(plan.regions).levels
        levels = {part.index: Cells(0, found.measured[rows[depth]].T) for part, depth in mechanism.levels(plan)}
        leaves, number = leaves_above_zero(found.counts[rows[-1]])
        public = sizes.number.sum(axis=1) if mechanism.keeps_regions else None
        measured = _cells(plan, levels, run)
        return Release(plan.spine, leaves.astype(np.int32), number, card, all_measured=measured, public=public)


def _group_sizes(plan: Plan, table: Any, run: Run, gate: Gate) -> tuple[GroupSizes, dict[str, Any], Gate]:
    """Read the group sizes; refuse them if their number differs from the public one."""
    table, reader, given = inner(table), GroupSizeReader.of(plan), run.options.testing_key
    check_table(plan, table)
    card = run.card(plan, gate, rules_of(table))
    sizes = table
    if not isinstance(table, GroupSizes):
        sizes = group_reader(plan, run.facts.columns, run.facts.count).read(table, run.options.progress)
    if (total := int(sizes.number.sum())) != reader.number:
        raise DataError(f"there are {total:,} groups, but the plan says {reader.number:,}, which is public")
    if reader.listed is not None and not np.array_equal(sizes.number.sum(axis=1), reader.listed.by_region):
        raise DataError("the groups of some region are not as many as on the public list: correct one of them")
    # The mechanism binds its key to its own decisions: a testing key is bound to those of the plan as well.
    own = gate if given is None else Gate(bind(Key(given), "plan", bytes.fromhex(plan.digest)))
    return sizes, card, own


def _degrees_by_region(plan: Plan, table: Table, run: Run, gate: Gate) -> tuple[GroupSizes, dict[str, Any], Gate]:
    """Read the degrees of everybody, as sizes of groups."""
    columns = run.facts.columns
    card, nodes, edges = _graph(plan, table, run, gate, [region_column(plan, columns)])
    return regional_sizes(plan, nodes, edges, columns, gate.choice("order")), card, gate


def _degree_histogram(plan: Plan, table: Table, run: Run) -> Release:
    run.options.refuse_engine("degrees")
    gate = Gate(run.options.testing_key)
    card, nodes, edges = _graph(plan, table, run, gate, [])
    with measured_degrees(plan, nodes, edges, gate, run.charge, tell_projected) as found:
        chosen, mechanism = found.plan, DegreeHistogram.of(found.plan)
        if mechanism.choice is not None:  # what was chosen, and by what, is on the card
            card = run.card(chosen, gate, rules_of(graph_of(plan, table).edges))
        (degree,) = np.nonzero(found.number)
        cells = {1: Cells(int(mechanism.rest(chosen)), found.measured[:, None])}
        measured = _cells(chosen, cells, run)
        leaves = degree[None, :].astype(np.int32)
        return Release(chosen.spine, leaves, found.number[degree], card, all_measured=measured)


def _graph(plan: Plan, table: Table, run: Run, gate: Gate, columns: list[str]) -> tuple[dict[str, Any], Nodes, Edges]:
    """Draft the card, read nodes and edges, and report omitted edges to the steward."""
    graph, left = graph_of(plan, table), LeftOut()
    card = run.card(plan, gate, rules_of(graph.edges))
    nodes = graph.read_nodes(columns)
    edges = graph.read_edges(nodes, left)
    tally = Tally(left=left)
    if DegreeUnit.of(plan.unit).graph.cut:
        lists = edges.degrees(len(nodes), "out")
        tally.offered, tally.counted = len(edges), int(np.minimum(lists, plan.unit.contributions).sum())
    tally.settle(plan.unit, run.options.allow_dropped)
    return card, nodes, edges


def _cells(plan: Plan, cells: Mapping[int, Cells], run: Run) -> Measurements | None:
    """Keep the measurements if intervals or later estimates need them."""
    if plan.confidence is None and not run.options.keep_measurements:
        return None
    return measurements_of(plan.spine, [noise_of(level.how) for level in plan.levels], cells)


MECHANISMS: Mapping[str, Callable[[Plan, Any, Run], Release]] = {
    TopDown.name: _top_down,
    JointMechanism.name: _joint,
    RegionHistograms.name: _region_histograms,
    DegreeHistogram.name: _degree_histogram,
}
"""How each mechanism is run, by its name."""
REGIONS: Mapping[str, Callable[[Plan, Any, Run, Gate], tuple[GroupSizes, dict[str, Any], Gate]]] = {
    "groups": _group_sizes,
    "degrees": _degrees_by_region,
}
"""How the private histograms of regions are read, by the name of the reader; with the card, and the gate to noise."""
