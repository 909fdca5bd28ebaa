"""The descent against an independent one: a dictionary of true counts, every key written out, one node at a time.

It would notice noise that is used twice, children that get none, ties that share the words of the noise, and anything
that depends on how the tree is cut.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import treetop as tt
from treetop import Counts
from treetop.domain.spine_level import Level
from treetop.engine.engine import Threads
from treetop.measure import descent as descents
from treetop.measure.descent import Descent, descent_of, run_descent
from treetop.measure.level import Step
from treetop.noise import Key, NoiseStream
from treetop.plan.workload import Measured

Node = tuple[int, ...]
Nodes = list[tuple[Node, int]]


def draw(law: Any, key: Key, slot: int, size: int) -> list[int]:
    noise = np.empty(size, np.int64)
    NoiseStream(law, key).fill(noise, slot)
    return [int(value) for value in noise]


class Reference:
    """A slow descent that shares nothing with the engine but the noise and the repair of one node."""

    def __init__(self, spine: tt.Spine, truth: dict[Node, int]) -> None:
        self.spine, self.truth = spine, truth
        self.used: set[tuple[bytes, int]] = set()

    def descend(self, descent: Descent, key: Key) -> Nodes:
        total = sum(self.truth.values())
        if isinstance(descent.total, Measured):
            total = max(total + draw(descent.total.law, key.derive("total"), 0, 1)[0], 0)
        nodes: Nodes = [((0,) * len(self.spine.trees), total)] if total else []
        for step in descent.steps:
            nodes = self.refine(step, nodes, key.derive("level", step.level.index))
        return nodes

    def refine(self, step: Step, nodes: Nodes, key: Key) -> Nodes:
        level = step.level
        true = self.true_counts(level.index)
        noise_key, ties = key.derive("noise"), int.from_bytes(key.derive("ties").secret[:7], "little")
        kept = []
        for node, count in nodes:
            children = [node]
            for part in level.parts:  # in lexicographic order, where several are refined at once
                first, last = (int(part.first[node[part.attribute] + one]) for one in (0, 1))
                children = [
                    (*one[: part.attribute], child, *one[part.attribute + 1 :])
                    for one in children
                    for child in range(first, last)
                ]
            if len(children) == 1:
                kept.append((children[0], count))
                continue
            assert isinstance(step.how, Measured)
            slot = self.place(level, node)
            noise = draw(step.how.law, noise_key, slot, len(children))
            self.use(noise_key, slot, len(children))
            measured = [value + true.get(child, 0) for value, child in zip(noise, children, strict=True)]
            repaired = step.repair.function(np.array(measured), count, step.order.name, ties + slot)
            kept += [(child, int(value)) for child, value in zip(children, repaired, strict=True) if value > 0]
        return kept

    def place(self, level: Level, node: Node) -> int:
        """How many cells of the level are before those of a node: by what is not refined, then by what is."""
        refined = {part.attribute for part in level.parts}
        sizes = [len(part.above) for part in level.parts]
        before = 0
        for attribute, (tree, depth) in enumerate(zip(self.spine.trees, self.spine.depths(level.index), strict=True)):
            if attribute not in refined:
                before = before * (tree.sizes[depth - 1] if depth else 1) + node[attribute]
        before *= math.prod(sizes)
        wide = 1
        for number, part in enumerate(level.parts):
            eldest, after = (int(part.first[node[part.attribute] + one]) for one in (0, 1))
            before += wide * eldest * math.prod(sizes[number + 1 :])
            wide *= after - eldest
        return before

    def use(self, key: Key, slot: int, size: int) -> None:
        """No word of noise may serve two children."""
        words = {(key.secret, word) for word in range(slot, slot + size)}
        assert self.used.isdisjoint(words)
        self.used |= words

    def true_counts(self, index: int) -> dict[Node, int]:
        counts: dict[Node, int] = {}
        for leaf, count in self.truth.items():
            parts = zip(self.spine.trees, self.spine.depths(index), leaf, strict=True)
            node = tuple(int(tree.ancestors(depth - 1)[end]) if depth else 0 for tree, depth, end in parts)
            counts[node] = counts.get(node, 0) + count
        return counts


def random_tree(rng: random.Random) -> tt.Hierarchy:
    codes = [""]
    depth = rng.randint(1, 3)
    for _ in range(depth):
        codes = [code + f"{i:02d}" for code in codes for i in range(rng.choice([1, 1, 2, 3, rng.randint(1, 20)]))]
        codes = rng.sample(codes, min(len(codes), 60))
    return tt.Hierarchy.from_prefixes(codes, widths=[2 * (k + 1) for k in range(depth)])


def random_spine(rng: random.Random, merging: float = 0.0) -> tt.Spine:
    """Steps of different attributes that follow each other are merged at some rate."""
    attributes = {f"x{i}": random_tree(rng) for i in range(rng.randint(1, 3))}
    waiting = {name: list(tree.levels) for name, tree in attributes.items()}
    order: list[list[str]] = []
    while waiting:
        name = rng.choice(sorted(waiting))
        split = f"{name}.{waiting[name].pop(0)}"
        if merging and order and all(one.split(".")[0] != name for one in order[-1]) and rng.random() < merging:
            order[-1].append(split)
        else:
            order.append([split])
        if not waiting[name]:
            del waiting[name]
    return tt.Spine([" * ".join(step) for step in order], attributes)


def random_plan(rng: random.Random, spine: tt.Spine) -> tt.Plan:
    unit = tt.Unit("record", rng.randint(1, 3), rng.choice(["replace", "add-remove"]))
    size = 10.0 ** rng.uniform(-6, 4)
    loss = rng.choice([tt.Loss(rho=size), tt.Loss(epsilon=size)])
    options: Any = {"repair": rng.choice(["chebyshev", "euclidean"]), "order": rng.choice(["ascending", "descending"])}
    return tt.Plan(spine, unit, loss, **options, margins="none")


@pytest.mark.parametrize(("seed", "merging"), [(seed, 0.8 if seed >= 150 else 0.0) for seed in range(210)])
def test_the_engine_does_what_the_plain_descent_does(
    seed: int, merging: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(descents, "LARGEST_TRUNK", rng.choice([1, 20, 1 << 14]))
    monkeypatch.setattr(descents, "CHUNK", rng.choice([1, 8, 1 << 15]))
    spine = random_spine(rng, merging)
    planned = descent_of(random_plan(rng, spine))
    rows, largest = rng.choice([0, 1, 5, 60]), rng.choice([1, 50, 10**6])
    truth: dict[Node, int] = {}
    for _ in range(rows):
        leaf = tuple(rng.randrange(tree.sizes[-1]) for tree in spine.trees)
        truth[leaf] = truth.get(leaf, 0) + rng.randint(1, largest)
    leaves = [np.array([leaf[i] for leaf in truth], np.int64) for i in range(len(spine.trees))]
    counts = Counts.from_leaves(spine, leaves, np.array(list(truth.values()), np.int64))
    key = Key(rng.randbytes(32))
    executor, chunk = Threads(rng.choice([1, 3])), rng.choice([1, 2, 5, 17, 1 << 15])
    engine = run_descent(planned, counts, key, executor, chunk=chunk).leaves
    expected = Reference(spine, truth).descend(planned, key)
    assert list(zip(map(tuple, engine.nodes.T.tolist()), engine.count.tolist(), strict=True)) == expected
