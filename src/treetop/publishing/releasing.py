"""Running a plan once: the private table is read, the loss is charged, and the counts are measured.

Who pays, and when: `charge` is called when the table has been read and nothing has been measured yet; what cannot be
charged raises, and nothing is measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any

import numpy as np

from treetop._util.system import Progress
from treetop.card import Facts, describe_release
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.counts import Counts
from treetop.counts.encode import Encoder
from treetop.counts.graph_reader import Edges, Graph, Nodes
from treetop.counts.group_reader import GroupSizes
from treetop.counts.reading import read_encoded
from treetop.counts.spill import BYTES_A_WORD, Space, read_staged
from treetop.counts.tally import DerivedTable, LeftOut, Rules, Tally, rules_of, tell_projected
from treetop.engine.engine import AUTO, Engine, Machine
from treetop.errors import DataError, PlanError
from treetop.io.table import Table, rows_at_most
from treetop.measure.bounded import refuse_contradiction
from treetop.measure.descent import descent_of
from treetop.measure.measure import measuring
from treetop.measure.vectors import measured_degrees, measured_groups
from treetop.noise import Key
from treetop.noise.gate import Charge, Gate, bind
from treetop.plan.graphs.degrees import DegreeCounts, PureDegreePlan
from treetop.plan.graphs.regional import PureRegionalPlan
from treetop.plan.groups.plan import GroupPlan
from treetop.plan.groups.planned import PureGroupTablePlan, inner, leaves_above_zero
from treetop.plan.plan import PurePlan
from treetop.plan.workload import noise_of
from treetop.release.derived import GroupRelease
from treetop.release.intervals.cells import Cells, measurements_of
from treetop.release.measurements import Measurements
from treetop.release.release import Release
from treetop.release.run import run_plan


@dataclass(frozen=True)
class Run:
    """What one run is told beside its plan and its table."""

    facts: Facts = field(default_factory=Facts)
    """What the card states that the plan does not know."""
    charge: Charge | None = None
    """Charges the loss; what it raises stops the run."""
    engine: Engine = field(default_factory=Engine)
    """Where it is computed. The result does not depend on it."""
    progress: Progress | None = None
    """Told what is being done."""
    keep_measurements: bool = False
    """Whether the release keeps all that was measured, for later estimates."""
    allow_dropped: bool = False
    """Whether any number of records may have unknown codes, which are dropped or counted under a leaf."""
    testing_key: bytes | None = None
    """Reproducible noise, of a release that is not private."""

    @property
    def columns(self) -> Mapping[str, str] | None:
        """The column of each attribute."""
        return self.facts.columns

    @property
    def workers(self) -> int:
        """How many threads there are."""
        return self.engine.number

    def refuse_engine(self, what: str) -> None:
        """Refuse an engine for what is always in memory."""
        if self.engine.name not in (AUTO, "local"):
            raise PlanError(f'{what} are counted in memory: leave the engine {self.engine.name!r} out, or say "local"')

    def card(self, plan: PurePlan, gate: Gate, rules: Rules) -> dict[str, Any]:
        """Draft the card, before anything is spent: one that lacks a required field stops the release."""
        own = {name: value for name, value in rules._asdict().items() if value and not getattr(self.facts, name)}
        return describe_release(plan, replace(self.facts, **own, private=gate.private))


@singledispatch
def run(plan: object, table: Table, how: Run) -> Release:
    """Read the private table, run the plan once, and return the public result."""
    raise PlanError(f"{plan!r} is not a plan")


@run.register
def _top_down(plan: PurePlan, table: Table, how: Run) -> Release:
    gate = Gate(how.testing_key)
    plan.check_table(table)
    card = how.card(plan, gate, rules_of(table))
    descent_of(plan)  # now, before data is read: a noise that cannot be drawn is refused here
    decided = bytes.fromhex(plan.digest)
    bound = None if plan.unit.id is None else ContributionCap.of(plan.unit, gate.choice("bound", decided))
    encoder = Encoder(plan.spine, how.columns, how.facts.count, plan.unknown, bound)
    needed = _bytes_at_most(table, encoder) if how.engine.name == AUTO else None
    with how.engine.settled(table, needed).started() as machine:
        tally = Tally()
        counts = _read(table, encoder, machine, how, tally)
        _refuse_large_delta(plan, table, counts)
        tally.settle(plan.unit, how.allow_dropped)
        refuse_contradiction(plan.public_facts, counts)
        data = counts.digest_under(gate.choice("counts", decided))
        with measuring(plan.workload, gate, how.charge, "run", decided, data) as door:
            return run_plan(
                plan,
                counts,
                door.key,
                card,
                executor=machine.executor,
                scratch=machine.folder,
                progress=how.progress,
                keep_measurements=how.keep_measurements,
            )


def _read(table: Table, encoder: Encoder, machine: Machine, how: Run, tally: Tally) -> Counts:
    """Read the private table into memory, or where that is not to hold it into files."""
    table = machine.reachable(table, encoder.wanted)
    if machine.folder is None:
        return read_encoded(table, encoder, how.progress, tally)
    return read_staged(table, encoder, Space(machine.folder, machine.memory, machine.executor), how.progress, tally)


def _bytes_at_most(table: Table, encoder: Encoder) -> int | None:
    """Return about how many bytes of memory a table takes at most; None where nobody knows before it is read."""
    rows = None if isinstance(table, DerivedTable) else rows_at_most(table)
    return None if rows is None else BYTES_A_WORD * (encoder.words + 1) * rows


def _refuse_large_delta(plan: PurePlan, table: Table, counts: Counts) -> None:
    """Ask about a large delta, now that a number of units is known which is the same for all neighbours.

    It would be published, or is public already: to refuse for it tells nothing of anyone.
    """
    if plan.reads_total:
        plan.loss.refuse_large_delta(counts.total, f"the number of units ({plan.unit.entity}), which is exact")
    elif isinstance(table, DerivedTable):
        plan.loss.refuse_large_delta(table.public_units, f"the number of units ({plan.unit.entity}), which is public")


@run.register
def _group_sizes(plan: PureGroupTablePlan, table: Table, how: Run) -> Release:
    how.refuse_engine("group sizes")
    gate = Gate(how.testing_key)
    plan.core.check_memory()
    table = inner(table)
    plan.check_table(table)
    card = how.card(plan, gate, rules_of(table))
    sizes = _sizes(plan, table, how)
    given = how.testing_key
    # The mechanism binds its key to its own decisions: a testing key is bound to those of the plan as well.
    own = gate if given is None else Gate(bind(Key(given), "plan", bytes.fromhex(plan.digest)))
    return _of_regions(plan, sizes, own, card, how)


def _of_regions(
    plan: PureGroupTablePlan | PureRegionalPlan, sizes: GroupSizes, gate: Gate, card: dict[str, Any], how: Run
) -> Release:
    """Measure the sizes of all regions, and return them with what was measured and what is public."""
    core = plan.core
    with measured_groups(core, sizes, gate, how.charge, how.workers) as found:
        if how.progress is not None:
            how.progress("measuring", 1.0)
        pairs = zip(plan.workload.measured, core.workload.measured, strict=True)
        levels = {own.index: Cells(0, found.measured[core.tree.levels[of.index]].T) for (own, _), (of, _) in pairs}
        there, number = leaves_above_zero(found.counts[core.tree.levels[-1]])
        public = sizes.number.sum(axis=1) if plan.keeps_regions else None
        measured = _cells(plan, levels, how) if plan.has_intervals or how.keep_measurements else None
        return Release(plan.spine, there.astype(np.int32), number, card, all_measured=measured, public=public)


def _sizes(plan: PureGroupTablePlan, table: Any, how: Run) -> GroupSizes:
    """Read the group sizes, which must be as many as is public."""
    given = isinstance(table, GroupSizes)
    sizes = table if given else plan.reader(how.columns, how.facts.count).read(table, how.progress)
    if int(sizes.number.sum()) != plan.number:
        raise DataError(
            f"there are {int(sizes.number.sum()):,} groups, but the plan says {plan.number:,}, which is public"
        )
    if plan.listed is not None and not np.array_equal(sizes.number.sum(axis=1), plan.listed.by_region):
        raise DataError("the groups of some region are not as many as on the public list: correct one of them")
    return sizes


@run.register
def _degrees(plan: PureDegreePlan, table: Table, how: Run) -> Release:
    how.refuse_engine("degrees")
    gate = Gate(how.testing_key)
    graph = plan.of_table(table)
    card = how.card(plan, gate, rules_of(graph.edges))
    nodes = graph.read_nodes([])
    with measured_degrees(plan, nodes, _edges(plan, graph, nodes, how), gate, how.charge, tell_projected) as found:
        chosen = found.plan
        if chosen.choice is not None:  # what was chosen, and by what, is on the card
            card = how.card(chosen, gate, rules_of(graph.edges))
        (there,) = np.nonzero(found.number)
        measured = _cells(chosen, {1: Cells(int(chosen.rest), found.measured[:, None])}, how)
        return Release(chosen.spine, there[None, :].astype(np.int32), found.number[there], card, all_measured=measured)


@run.register
def _degrees_by_region(plan: PureRegionalPlan, table: Table, how: Run) -> Release:
    how.refuse_engine("degrees by region")
    gate = Gate(how.testing_key)
    plan.core.check_memory()
    graph = plan.of_table(table)
    card = how.card(plan, gate, rules_of(graph.edges))
    nodes = graph.read_nodes([plan.column(how.columns)])
    sizes = plan.sizes(nodes, _edges(plan, graph, nodes, how), how.columns, gate.choice("order"))
    return _of_regions(plan, sizes, gate, card, how)


def _edges(plan: DegreeCounts, graph: Graph, nodes: Nodes, how: Run) -> Edges:
    """Read the edges, and tell the steward what was left out of them."""
    left = LeftOut()
    edges = graph.read_edges(nodes, left)
    tally = Tally(left=left)
    if plan.degrees.graph.cut:
        lists = edges.degrees(len(nodes), "out")
        tally.offered, tally.counted = len(edges), int(np.minimum(lists, plan.unit.contributions).sum())
    tally.settle(plan.unit, how.allow_dropped)
    return edges


def _cells(plan: PurePlan, cells: Mapping[int, Cells], how: Run) -> Measurements | None:
    """Keep what was measured, where intervals or later estimates need it."""
    if plan.confidence is None and not how.keep_measurements:
        return None
    return measurements_of(plan.spine, [noise_of(level.how) for level in plan.levels], cells)


# Running the mechanism for group sizes by itself, for comparisons.


def release_groups(
    plan: GroupPlan,
    sizes: GroupSizes,
    key: Key | None = None,
    threads: int = 1,
    *,
    before_measuring: Charge | None = None,
) -> GroupRelease:
    """Measure the private sizes once and return what may be published.

    `before_measuring` is called when nothing has been spent yet: it charges a ledger. The key is fresh; with one that a
    test gives, the release says that it is not private.
    """
    gate = Gate(key)
    with measured_groups(plan, sizes, gate, before_measuring, threads) as found:
        return GroupRelease(plan, found.counts, gate.private)
