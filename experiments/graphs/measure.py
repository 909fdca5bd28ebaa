"""The measurements of the study: errors by epsilon, degrees, the noise of many questions, and rebalancing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

import treetop as tt
from experiments.graphs.networks import Network, town_counts
from experiments.kit.runs import Kept, key
from treetop.measure.degrees import measure_degrees
from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key, NoiseStream
from treetop.privacy import rho_from_epsilon
from treetop.read.bound import Bound
from treetop.read.counts import Counts
from treetop.read.encode import read_counts
from treetop.read.graph.graph import Graph
from treetop.release.errors import measure_errors
from treetop.repair import euclidean
from treetop.repair.rebalance import rebalance

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
            bound = Bound(unit.id, unit.contributions, Key(key("cut")))
            truncated = 1 - read_counts(graph.table(), spine, COLUMNS, bound=bound).total / truth.total
        errors = np.empty((len(epsilons), runs))
        for i, epsilon in enumerate(epsilons):
            plan = tt.Plan(spine, unit, tt.Loss(epsilon=epsilon, delta=DELTA, accounting="zcdp"), margins="none")
            for run in range(runs):
                name = f"{network.name} {relation} {epsilon} {run}"
                errors[i, run] = kept.run(float, name, partial(_misplaced, plan, graph, truth, key(name)))
        found.append(Errors(relation, truncated, errors))
    return found


def _misplaced(plan: tt.Plan, graph: Graph, truth: Counts, testing_key: bytes) -> float:
    leaves = measure_errors(plan.release(graph.table(), columns=COLUMNS, testing_key=testing_key), truth)[-1]
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
    """Released under "node"."""
    theta: int
    epsilon: float

    @property
    def errors(self) -> dict[str, float]:
        """The largest distances between cumulative shares: what noise does, and what truncation does."""
        people = self.truth[-1]
        longest = np.full(len(self.whole), self.projected[-1])
        longest[: len(self.projected)] = self.projected
        return {
            "edge, noise": float(np.abs(self.edge - self.truth[: len(self.edge)])[:-1].max() / people),
            "node, noise": float(np.abs(self.node - self.projected).max() / people),
            "node, truncation": float(np.abs(longest - self.whole).max() / people),
        }


def degrees(network: Network, epsilon: float = 1.0) -> Degrees:
    """Release the degree distribution once under "edge" and "node"."""
    loss = tt.Loss(epsilon=epsilon, delta=DELTA, accounting="zcdp")
    graph = network.graph("edge")
    nodes = graph.read_nodes([])
    edges = graph.read_edges(nodes)
    own = edges.degrees(len(nodes), "out" if network.directed else "total")
    truth = np.bincount(own).cumsum()
    largest = len(truth) - 1
    by_edge = tt.DegreePlan("edge", "add-remove", loss, largest, "cumulative", network.directed)
    by_node = tt.DegreePlan("node", "add-remove", loss, network.theta, "cumulative", network.directed)
    secret = key("degrees", network.name)
    return Degrees(
        "out-degree" if network.directed else "degree",
        truth,
        by_node.truth(nodes, edges, Key(secret).derive("order")),
        np.bincount(edges.degrees(len(nodes))).cumsum(),
        measure_degrees(by_edge, nodes, edges, testing_key=secret).cumulative,
        measure_degrees(by_node, nodes, edges, testing_key=secret).cumulative,
        network.theta,
        epsilon,
    )


QUESTIONS = (1, 2, 5, 10, 20, 50, 100, 200)


def noise_of_questions(epsilons: Sequence[float] = EPSILONS) -> dict[str, NDArray[np.float64]]:
    """Return the standard deviation of one answer among k that all overlap, by k and epsilon: exact."""
    pure = [[DiscreteLaplace(k / Fraction(str(e))).standard_deviation for e in epsilons] for k in QUESTIONS]
    rho = {e: rho_from_epsilon(e, DELTA) for e in epsilons}
    zcdp = [[DiscreteGaussian(k / (2 * rho[e])).standard_deviation for e in epsilons] for k in QUESTIONS]
    return {"pure: epsilon / k each": np.array(pure), "zero-concentrated: rho / k each": np.array(zcdp)}


@dataclass(frozen=True, eq=False)
class Rebalancing:
    """People of each group, measured below a measured parent: errors with and without rebalancing."""

    errors: dict[str, NDArray[np.float64]]
    """By method, the mean absolute error of a group, by epsilon and run."""
    bias: dict[str, NDArray[np.float64]]
    """By method, the mean signed error of the groups in each quarter of sizes, small to large, at epsilon 0.1."""


METHODS = ("repair only", "rebalanced, even shares", "rebalanced, public shares")


def rebalancing(network: Network, epsilons: Sequence[float], runs: int) -> Rebalancing:
    """Measure parents and children, half the rho each; make children sum to the parent, with a pull or without.

    The public shares are made up as a survey of 2,000 other people: close to the truth, and not the data.
    """
    families = town_counts(network)
    survey = np.random.default_rng(7)
    shares = [np.maximum(survey.multinomial(2_000, own / max(own.sum(), 1)), 0.5) for own in families]
    shares = [share / share.sum() for share in shares]
    size = np.concatenate(families)
    quarter = np.searchsorted(np.quantile(size, [0.25, 0.5, 0.75]), size, side="left")
    errors = {method: np.empty((len(epsilons), runs)) for method in METHODS}
    bias = {method: np.zeros(4) for method in METHODS}
    for i, epsilon in enumerate(epsilons):
        variance = 1 / rho_from_epsilon(epsilon, DELTA)  # 1 / (2·rho/2)
        for run in range(runs):
            stream = NoiseStream(DiscreteGaussian(variance), Key(key("rebalance", network.name, epsilon, run)))
            noise = np.empty(len(size) + len(families), np.int64)
            stream.fill(noise, 0)
            found: dict[str, list[NDArray[np.int64]]] = {method: [] for method in METHODS}
            at = len(families)
            for f, own in enumerate(families):
                parent = max(0, int(own.sum() + noise[f]))
                x = own + noise[at : at + len(own)]
                at += len(own)
                found[METHODS[0]].append(euclidean(x, parent, seed=run))
                found[METHODS[1]].append(rebalance(x, parent, variance, seed=run).count)
                found[METHODS[2]].append(rebalance(x, parent, variance, shares[f], seed=run).count)
            for method, parts in found.items():
                error = np.concatenate(parts) - size
                errors[method][i, run] = np.abs(error).mean()
                if i == 0:
                    bias[method] += np.array([error[quarter == q].mean() for q in range(4)]) / runs
    return Rebalancing(errors, bias)


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


def study(
    networks: Iterable[Network], epsilons: tuple[float, ...] = EPSILONS, runs: int = 20, kept: Kept | None = None
) -> Study:
    """Measure everything on every network."""
    errors, shown, balanced = {}, {}, {}
    for network in networks:
        errors[network] = friendships(network, epsilons, runs, kept or Kept())
        shown[network] = degrees(network)
        if len(network.groups.levels) > 1:
            balanced[network] = rebalancing(network, epsilons, 10 * runs)
    return Study(epsilons, runs, errors, shown, noise_of_questions(epsilons), balanced)
