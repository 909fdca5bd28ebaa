"""Measure degrees and group sizes once, and repair them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treetop.counts.graph_reader import Edges, Nodes
from treetop.counts.group_reader import GroupSizes
from treetop.errors import DataError, PlanError
from treetop.measure.measure import Measuring, measuring
from treetop.measure.readers import (
    check_people,
    degree_cells,
    degree_cells_by_theta,
    people_are_public,
    refuse_selected_people,
)
from treetop.noise.gate import Charge, Gate, digest
from treetop.plan.degree_unit import DegreeUnit
from treetop.plan.degrees import DegreeHistogram
from treetop.plan.plan import Plan
from treetop.plan.region_histograms import RegionHistograms, region_tree
from treetop.repair import euclidean, isotonic
from treetop.repair.groups import KnownTotals

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Degrees:
    """The measured degrees of one run (released)."""

    measured: Ints
    """The measurements of the counts that `degree_cells` returns."""
    number: Ints
    """Number of people of each degree, from 0 to the largest, which includes higher degrees."""
    people: int | None
    """Number of people; None if it is not public."""
    plan: Plan
    """The plan, with the chosen theta if it had candidates."""

    @property
    def cumulative(self) -> Ints:
        """Number of people of each degree or less."""
        return self.number.cumsum()


@contextmanager
def measured_degrees(
    plan: Plan,
    nodes: Nodes,
    edges: Edges,
    gate: Gate,
    charge: Charge | None = None,
    tell: Callable[[int, int, int], None] | None = None,
) -> Iterator[Degrees]:
    """Measure a graph that has been read. An error in the block is raised as `Unfinished`, since the loss is spent.

    Under "node", `tell` receives the number of edges, the number that the projection kept, and theta: the first two are
    private, for the steward only.
    """
    mechanism, graph = DegreeHistogram.of(plan), DegreeUnit.of(plan.unit).graph
    if edges.directed != graph.directed:
        raise PlanError("the plan and the edges do not agree on whether edges have a direction")
    refuse_selected_people(plan, nodes.may_drop)
    if len(nodes) == 0 and people_are_public(plan):
        raise DataError("the graph has no nodes: there are no degrees to release")
    check_people(plan, len(nodes))
    order, reaching = gate.choice("order"), list[int]()
    if mechanism.choice is not None:
        reaching, counts = degree_cells_by_theta(plan, nodes, edges, order)
    else:
        counts = {plan.largest: degree_cells(plan, nodes, edges, order)}
    people = len(nodes) if people_are_public(plan) else None
    data = hashlib.sha256(b"".join([np.array(reaching, np.int64).tobytes(), *map(bytes, counts.values())])).digest()
    with measuring(plan.workload, gate, charge, "degrees", digest(mechanism.binding(plan)), data) as run:
        chosen = plan if mechanism.choice is None else _chosen(plan, run, reaching)
        own = counts[chosen.largest]
        measured = run.settled(chosen.workload).noisy(chosen.levels[1], own)
        if tell is not None and graph.relation == "node":
            tell(len(edges), _kept(chosen, own, len(nodes)), chosen.largest)
        yield Degrees(measured, repaired(chosen, measured, people), people, chosen)


def _kept(plan: Plan, counts: Ints, people: int) -> int:
    """Return the number of edges that a projection kept, from the true counts. Private."""
    if plan.unit.cumulative:  # the sum of degrees is that of the people above 0, 1, …
        ends = int((people - counts[: plan.largest]).sum())
    else:
        ends = int(counts @ np.arange(plan.largest + 1 - len(counts), plan.largest + 1))
    return ends // 2 if DegreeUnit.of(plan.unit).graph.counted == "total" else ends


def _chosen(plan: Plan, run: Measuring, reaching: Sequence[int]) -> Plan:
    """Measure how many people reach each candidate, and return the plan with the chosen theta."""
    mechanism = DegreeHistogram.of(plan)
    pairs = zip(mechanism.choice_parts(plan), reaching, strict=True)
    noisy = [run.noisy(part, np.array([number]), run.key.derive(part.name)) for part, number in pairs]
    return mechanism.settled(plan, [int(one[0]) for one in noisy])


def repaired(plan: Plan, measured: Ints, people: int | None) -> Ints:
    """Return the number of people of each degree. Reads measurements only; the same ones give the same numbers."""
    if plan.unit.cumulative:
        high = max(0, int(measured.max())) if people is None else people
        rising = isotonic(measured[None, :], high)[0]
        ends = rising if people is None else np.append(rising, people)
        return np.diff(ends, prepend=0)
    if people is None:
        return np.maximum(measured, 0)
    if DegreeHistogram.of(plan).rest(plan):
        # The remainder has no noise of its own: take from the others only the excess over the number of people.
        kept = np.maximum(measured, 0)
        kept = euclidean(kept, people, "ascending", _seed(measured)) if kept.sum() > people else kept
        return np.append(people - kept.sum(), kept)
    return euclidean(measured, people, "ascending", _seed(measured))


def _seed(measured: Ints) -> int:
    """Return the tie-breaking seed, a function of the measurements, so that checks of a release reproduce it."""
    return int.from_bytes(hashlib.sha256(measured.astype("<i8").tobytes()).digest()[:8], "little")


# Measuring group sizes: every region of every level at once, and the repair that makes them add up.


class Groups(NamedTuple):
    """The measured group sizes of one run: regions from the root down (rows) by size (columns)."""

    measured: NDArray[np.int64]
    """The measurements, in the plan's form; 0 if not measured."""
    counts: NDArray[np.int64]
    """The repaired numbers of groups."""


@contextmanager
def measured_groups(
    plan: Plan, sizes: GroupSizes, gate: Gate, charge: Charge | None, threads: int = 1
) -> Iterator[Groups]:
    """Measure private sizes once, and yield the repaired numbers of groups of every region and size.

    An error in the block is raised as `Unfinished`, since the loss is spent. The result does not depend on `threads`.
    """
    mechanism = RegionHistograms.of(plan)
    if sizes.regions.digest != plan.regions.digest or sizes.largest != plan.largest:
        raise DataError("these group sizes have other regions, or another largest size, than the plan")
    mechanism.check_number(plan, int(sizes.number.sum()))
    mechanism.check_memory(plan)
    with measuring(plan.workload, gate, charge, "groups", digest(mechanism.binding(plan)), sizes.digest) as run:
        measured, known = measure_groups(plan, sizes, run)
        repair, tree = mechanism.repaired(plan), region_tree(plan.regions)
        yield Groups(
            measured, repair(tree, measured, mechanism.weights(plan), known, run.key.derive("repair"), threads)
        )


def measure_groups(plan: Plan, sizes: GroupSizes, run: Measuring) -> tuple[Ints, KnownTotals]:
    """Return the counts of every region and size plus noise, and the public numbers of groups.

    Only this step reads private counts. One unit moves each level by at most the sensitivity that its noise is made
    for. Levels that are not measured are zero, with no weight.
    """
    mechanism, tree = RegionHistograms.of(plan), region_tree(plan.regions)
    measured = np.zeros((tree.nodes, plan.largest + 1), np.int64)
    truth = tree.sum_up(sizes.number.T).T
    groups = truth.sum(axis=1)
    if plan.unit.cumulative:
        truth = truth.cumsum(axis=1)
    for part, depth in mechanism.levels(plan):
        own = tree.levels[depth]
        measured[own] = run.noisy(part, truth[own], run.key.derive("noise").derive("level", depth))
    spread = min(law.standard_deviation for _, law in plan.workload.measured)
    if mechanism.keeps_regions:
        return measured, KnownTotals(int(groups[0]), groups, np.full(len(groups), True), spread)
    high = np.full(len(groups), groups[0])
    return measured, KnownTotals(int(groups[0]), high, np.arange(len(groups)) == 0, spread)
