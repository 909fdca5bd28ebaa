"""Theta, the largest degree under "node": every fixed one, and one that is chosen privately, beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

import treetop as tt
from experiments.graphs.networks import Network
from experiments.kit.runs import Kept, key
from treetop.counts.graph_reader import Edges, Nodes
from treetop.measure import readers
from treetop.measure.vectors import measured_degrees
from treetop.noise import Key
from treetop.noise.gate import Gate

DELTA = 1e-8
THETAS = (10, 20, 30, 45, 70, 100, 150, 200, 300, 450, 700, 1_000)
"""The fixed ones, which are also the candidates of the choice."""
EPSILONS = (0.2, 0.5, 1.0, 2.0, 5.0)
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sweep:
    """One network: the largest distance between the released and the true cumulative shares of people, by degree."""

    thetas: tuple[int, ...]
    epsilons: tuple[float, ...]
    fixed: Floats
    """By epsilon, theta and run."""
    cut: Floats
    """By theta: what leaving edges out does alone, without noise."""
    chosen: NDArray[np.int64]
    """By epsilon and run: the theta that was chosen privately."""
    private: Floats
    """By epsilon and run: the distance of that release, which paid for the choice as well."""

    def best(self, at: int) -> int:
        """Return the index of the best fixed theta at an epsilon, which nobody knows without the truth."""
        return int(self.fixed[at].mean(axis=1).argmin())

    @property
    def price(self) -> Floats:
        """By epsilon, the mean distance with the private choice over that with the best fixed theta."""
        prices: Floats = self.private.mean(axis=1) / self.fixed.mean(axis=2).min(axis=1)
        return prices

    @property
    def blind(self) -> Floats:
        """The same of a fixed theta that is taken among the candidates at random."""
        prices: Floats = self.fixed.mean(axis=(1, 2)) / self.fixed.mean(axis=2).min(axis=1)
        return prices

    @property
    def beaten(self) -> NDArray[np.int64]:
        """By epsilon, how many of the fixed thetas the private choice is better than, on average."""
        better: NDArray[np.int64] = (self.private.mean(axis=1)[:, None] < self.fixed.mean(axis=2)).sum(axis=1)
        return better


def sweep(
    network: Network,
    epsilons: Sequence[float] = EPSILONS,
    runs: int = 20,
    kept: Kept | None = None,
    thetas: tuple[int, ...] = THETAS,
) -> Sweep:
    """Release the degrees of a network with every theta, and with one that is chosen among them."""
    kept = kept or Kept()
    graph = network.graph("node")
    nodes = graph.read_nodes([])
    edges = graph.read_edges(nodes)
    truth = np.bincount(edges.degrees(len(nodes))).cumsum()
    fixed = np.empty((len(epsilons), len(thetas), runs))
    chosen, private = np.empty((len(epsilons), runs), np.int64), np.empty((len(epsilons), runs))
    for i, epsilon in enumerate(epsilons):
        for j, theta in enumerate(thetas):
            for run in range(runs):
                name = f"{network.name} theta {theta} {epsilon} {run}"
                fixed[i, j, run] = kept.run(
                    float, name, partial(_distance, network, epsilon, theta, nodes, edges, truth, name)
                )
        for run in range(runs):
            name = f"{network.name} choice {thetas} {epsilon} {run}"
            found = kept.run(list[float], name, partial(_chosen, network, epsilon, thetas, nodes, edges, truth, name))
            chosen[i, run], private[i, run] = int(found[0]), found[1]
    cut = np.array([_cut(network, theta, nodes, edges, truth) for theta in thetas])
    return Sweep(thetas, tuple(epsilons), fixed, cut, chosen, private)


def plan(network: Network, epsilon: float, largest: int | tuple[int, ...]) -> tt.Plan:
    """Return the plan for a network's degrees under "node", with one theta or several candidates."""
    loss = tt.Loss(epsilon=epsilon, delta=DELTA, accounting="zcdp")
    return tt.degree_plan("node", "add-remove", loss, largest, directed=network.directed)


def distance(released: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """Return the largest distance of cumulative counts, as a share of the people; above theta all are below it."""
    longest = np.full(max(len(truth), len(released)), truth[-1])
    longest[: len(truth)] = truth
    told = np.full(len(longest), released[-1])
    told[: len(released)] = released
    return float(np.abs(told - longest).max() / truth[-1])


def _distance(
    network: Network, epsilon: float, theta: int, nodes: Nodes, edges: Edges, truth: NDArray[np.int64], name: str
) -> float:
    with measured_degrees(plan(network, epsilon, theta), nodes, edges, Gate(key(name))) as found:
        return distance(found.cumulative, truth)


def _chosen(
    network: Network,
    epsilon: float,
    thetas: tuple[int, ...],
    nodes: Nodes,
    edges: Edges,
    truth: NDArray[np.int64],
    name: str,
) -> list[float]:
    with measured_degrees(plan(network, epsilon, thetas), nodes, edges, Gate(key(name))) as found:
        return [float(found.plan.largest), distance(found.cumulative, truth)]


def _cut(network: Network, theta: int, nodes: Nodes, edges: Edges, truth: NDArray[np.int64]) -> float:
    return distance(readers.degree_cells(plan(network, 1.0, theta), nodes, edges, Key(key("cut", network.name))), truth)
