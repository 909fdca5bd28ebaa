"""The measurements of the study: errors by epsilon, degrees, the noise of many questions; and all of it together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

import treetop as tt
from experiments.graphs.networks import Network
from experiments.graphs.rebalanced import Rebalancing, rebalancing
from experiments.graphs.theta import THETAS, Sweep, sweep
from experiments.graphs.tradeoff import PAPER_DELTA, Tradeoff, deviation, tradeoff
from experiments.kit.runs import Kept, key
from treetop.card.statements import WORTH
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.counts import Counts
from treetop.counts.graph_reader import Graph
from treetop.counts.reading import read_counts
from treetop.measure import readers
from treetop.measure.vectors import measured_degrees
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key
from treetop.noise.gate import Gate
from treetop.privacy import rho_from_epsilon
from treetop.release.errors import measure_errors

DELTA = 1e-8
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
RELATIONS: tuple[str, ...] = ("edge", "user-out", "node")
COLUMNS = {"origin": "source.group", "destination": "target.group"}


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of friendships between groups under one relation."""

    relation: str
    truncated: float
    """The share of edges that truncation of lists leaves out: a bias that no epsilon mends."""
    misplaced: NDArray[np.float64]
    """By epsilon and run, half the sum of all errors at the leaves, as a share of the edges: where the total is right,
    the share of edges that are in the wrong cell; 50% is what releasing nothing would do."""
    edges: int = 0
    """How many edges there are."""
    needed: NDArray[np.float64] | None = None
    """Under "node", by epsilon: how many there should be by the arithmetic of `treetop plan`, from the noise alone."""


def friendships(network: Network, epsilons: Sequence[float], runs: int, kept: Kept) -> list[Errors]:
    """Release the edges between groups under every relation, and compare with all edges."""
    spine = tt.Spine.origin_first(origin=network.groups, destination=network.groups)
    found = []
    for relation in RELATIONS:
        graph = network.graph(relation)
        truth = read_counts(graph.table(), spine, COLUMNS)
        unit = graph.unit("add-remove")
        truncated = 0.0
        if unit.id is not None:
            bound = ContributionCap(unit.id, unit.contributions, Key(key("cut")))
            truncated = 1 - read_counts(graph.table(), spine, COLUMNS, cap=bound).total / truth.total
        errors, needed = np.empty((len(epsilons), runs)), np.empty(len(epsilons))
        for i, epsilon in enumerate(epsilons):
            plan = tt.Plan(spine, unit, tt.Loss(epsilon=epsilon, delta=DELTA, accounting="zcdp"), margins="none")
            needed[i] = plan.levels[-1].nodes * plan.levels[-1].deviation / WORTH
            for run in range(runs):
                name = f"{network.name} {relation} {epsilon} {run}"
                errors[i, run] = kept.run(float, name, partial(_misplaced, plan, graph, truth, key(name)))
        found.append(Errors(relation, truncated, errors, truth.total, needed if relation == "node" else None))
    return found


def _misplaced(plan: tt.Plan, graph: Graph, truth: Counts, testing_key: bytes) -> float:
    leaves = measure_errors(
        tt.make_release(plan, graph.table(), tt.RunOptions(columns=COLUMNS, testing_key=testing_key)), truth
    )[-1]
    return leaves.mean_of_all * leaves.nodes / (2 * truth.total)


@dataclass(frozen=True, eq=False)
class Degrees:
    """Cumulative degree distributions of one network, from 0 on: people with so many edges or fewer."""

    what: str
    """Which degree: out-degree, or all edges of a person."""
    truth: NDArray[np.int64]
    projected: NDArray[np.int64]
    """The truth after the projection to theta, before noise."""
    whole: NDArray[np.int64]
    """The truth of what is projected: all edges of a person, in and out."""
    edge: NDArray[np.int64]
    """Released under "edge"."""
    node: NDArray[np.int64]
    """Released under "node", once."""
    theta: int
    """The fixed theta with the least distance: the truth's own choice, which nobody can make in earnest."""
    epsilon: float
    absolute: NDArray[np.float64]
    """Under "node", by third of the degrees from low to high and by run: the mean error of a cumulative count."""
    relative: NDArray[np.float64]
    """The same as shares of the people with more edges than that."""

    @property
    def errors(self) -> dict[str, float]:
        """The largest distances between cumulative shares: what noise does, and what truncation does."""
        people = self.truth[-1]
        longest = np.full(len(self.whole), self.projected[-1])
        longest[: len(self.projected)] = self.projected[: len(longest)]
        return {
            "edge, noise": float(np.abs(self.edge - self.truth[: len(self.edge)])[:-1].max() / people),
            "node, noise": float(np.abs(self.node - self.projected).max() / people),
            "node, truncation": float(np.abs(longest - self.whole).max() / people),
        }


def degrees(network: Network, theta: int, runs: int, epsilon: float = 1.0) -> Degrees:
    """Release the degree distribution under "edge" and "node", and see where the errors of the latter are."""
    loss = tt.Loss(epsilon=epsilon, delta=DELTA, accounting="zcdp")
    graph = network.graph("edge")
    nodes = graph.read_nodes([])
    edges = graph.read_edges(nodes)
    own = edges.degrees(len(nodes), "out" if network.directed else "total")
    truth = np.bincount(own).cumsum()
    largest = len(truth) - 1
    by_edge = tt.degree_plan("edge", "add-remove", loss, largest, "cumulative", network.directed)
    by_node = tt.degree_plan("node", "add-remove", loss, theta, "cumulative", network.directed)
    secrets = [key("degrees", network.name, run) for run in range(runs)]

    def released_by(plan: tt.Plan, secret: bytes) -> NDArray[np.int64]:
        with measured_degrees(plan, nodes, edges, Gate(secret)) as found:
            return found.cumulative

    released = [released_by(by_node, secret) for secret in secrets]
    projected = [readers.degree_cells(by_node, nodes, edges, Key(secret).derive("order")) for secret in secrets]
    off = [np.abs(one - true)[:-1] for one, true in zip(released, projected, strict=True)]
    above = [np.maximum(true[-1] - true[:-1], 1) for true in projected]
    thirds = np.array_split(np.arange(theta), 3)
    return Degrees(
        "out-degree" if network.directed else "degree",
        truth,
        projected[0],
        np.bincount(edges.degrees(len(nodes))).cumsum(),
        released_by(by_edge, secrets[0]),
        released[0],
        theta,
        epsilon,
        np.array([[one[third].mean() for one in off] for third in thirds]),
        np.array([[(one / more)[third].mean() for one, more in zip(off, above, strict=True)] for third in thirds]),
    )


QUESTIONS = (1, 2, 5, 10, 20, 50, 100, 200)
AS_PUBLISHED, PURE, SHARED = (
    "as published: epsilon / k each, Gaussian",
    "pure: epsilon / k each",
    "zero-concentrated: rho / k each",
)


def noise_of_questions(epsilons: Sequence[float] = EPSILONS) -> dict[str, NDArray[np.float64]]:
    """Return the standard deviation of one answer among k that all overlap, by k and epsilon: exact.

    As it was published, every answer has Gaussian noise for epsilon / k and the paper's delta, which then is k times as
    large for all of them together.
    """
    published = [[deviation(e / k, PAPER_DELTA) for e in epsilons] for k in QUESTIONS]
    pure = [[DiscreteLaplace(k / Fraction(str(e))).standard_deviation for e in epsilons] for k in QUESTIONS]
    rho = {e: rho_from_epsilon(e, DELTA) for e in epsilons}
    zcdp = [[DiscreteGaussian(k / (2 * rho[e])).standard_deviation for e in epsilons] for k in QUESTIONS]
    return {AS_PUBLISHED: np.array(published), PURE: np.array(pure), SHARED: np.array(zcdp)}


@dataclass(frozen=True, eq=False)
class Study:
    """All that was measured."""

    epsilons: tuple[float, ...]
    runs: int
    """Releases of each kind; rebalancing, which is quicker, is run ten times as often."""
    errors: Mapping[Network, Sequence[Errors]]
    degrees: Mapping[Network, Degrees]
    noise: Mapping[str, NDArray[np.float64]]
    balanced: Mapping[Network, Rebalancing]
    """Of the networks whose groups have groups above them."""
    sweeps: Mapping[Network, Sweep]
    tradeoff: Tradeoff
    """Of the first network."""


def study(
    networks: Iterable[Network],
    epsilons: tuple[float, ...] = EPSILONS,
    runs: int = 20,
    kept: Kept | None = None,
    thetas: tuple[int, ...] = THETAS,
) -> Study:
    """Measure everything on every network."""
    errors, shown, balanced, sweeps, kept = {}, {}, {}, {}, kept or Kept()
    curve: Tradeoff | None = None
    for network in networks:
        curve = curve or tradeoff(network)
        errors[network] = friendships(network, epsilons, runs, kept)
        losses = [epsilon for epsilon in epsilons if 0.2 <= epsilon <= 5]
        found = sweeps[network] = sweep(network, losses, runs, kept, thetas)
        middle = min(range(len(losses)), key=lambda at: abs(losses[at] - 1))
        shown[network] = degrees(network, found.thetas[found.best(middle)], runs)
        if len(network.groups.levels) > 1:
            balanced[network] = rebalancing(network, epsilons, 10 * runs)
    assert curve is not None
    return Study(epsilons, runs, errors, shown, noise_of_questions(epsilons), balanced, sweeps, curve)
