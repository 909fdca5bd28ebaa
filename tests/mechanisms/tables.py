"""Public trees of every shape, and private tables on them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

import treetop as tt
from treetop import Counts
from treetop.addons.lab.mechanisms.compared import Estimate, LevelEstimate
from treetop.counts.counts import layout, pack
from treetop.noise import Key

KEY = Key(bytes(range(32)))
TRIP = tt.Unit("trip", neighbours="replace")
ANYONE = tt.Unit("person", neighbours="add-remove")
LOSS = tt.Loss(epsilon=1, delta=1e-8)
NO_NOISE = tt.Loss(epsilon=10**6, delta=1e-8)
"""So large a loss that the noise is zero, but for a chance that nobody lives to see."""


def places(regions: int = 3, towns: int = 5) -> tt.Hierarchy:
    """A tree of two levels whose regions have 1, 2, … towns."""
    codes = [f"{region:02d}{town:02d}" for region in range(regions) for town in range(1 + (region % towns))]
    return tt.Hierarchy.from_prefixes(codes, widths=[2], levels=["region", "town"])


def pairs() -> tt.Spine:
    return tt.Spine.destination_first(origin=places(), destination=places(4))


def one_leaf() -> tt.Spine:
    return tt.Spine(["x"], {"x": tt.Hierarchy.flat(["only"])})


def flat(size: int) -> tt.Spine:
    return tt.Spine(["x"], {"x": tt.Hierarchy.flat([f"{i:06d}" for i in range(size)])})


def only_children() -> tt.Spine:
    """Levels that divide nothing at the top, in the middle and at the bottom."""
    tree = tt.Hierarchy.from_prefixes(["aaaaa", "aabaa", "abbaa"], widths=[1, 2, 3, 4, 5])
    return tt.Spine([f"x.{level}" for level in tree.levels], {"x": tree})


def two_words() -> tt.Spine:
    """A spine whose paths do not fit one word, with few leaves: at each of 70 levels one node is divided in two."""
    depth = 70
    codes = ["1" * i + "0" * (depth - i) for i in range(depth + 1)]
    tree = tt.Hierarchy.from_prefixes(codes, widths=list(range(1, depth + 1)))
    return tt.Spine([f"x.{level}" for level in tree.levels], {"x": tree})


SPINES = {"pairs": pairs, "one leaf": one_leaf, "flat": lambda: flat(7), "only children": only_children}


def random_tree(rng: random.Random) -> tt.Hierarchy:
    codes = [""]
    depth = rng.randint(1, 3)
    for _ in range(depth):
        codes = [code + f"{i:02d}" for code in codes for i in range(rng.choice([1, 1, 2, 3, rng.randint(1, 9)]))]
        codes = rng.sample(codes, min(len(codes), 20))
    return tt.Hierarchy.from_prefixes(codes, widths=[2 * (k + 1) for k in range(depth)])


def random_spine(rng: random.Random) -> tt.Spine:
    attributes = {f"x{i}": random_tree(rng) for i in range(rng.randint(1, 2))}
    waiting = {name: list(tree.levels) for name, tree in attributes.items()}
    order = []
    while waiting:
        name = rng.choice(sorted(waiting))
        order.append(f"{name}.{waiting[name].pop(0)}")
        if not waiting[name]:
            del waiting[name]
    return tt.Spine(order, attributes)


def table(spine: tt.Spine, rows: int, seed: int = 0, largest: int = 50) -> Counts:
    """A table with so many rows, each worth up to `largest` records."""
    rng = np.random.default_rng(seed)
    leaves = [rng.integers(0, tree.sizes[-1], rows) for tree in spine.trees]
    return Counts.from_leaves(spine, leaves, rng.integers(1, largest + 1, rows))


def dense(spine: tt.Spine, keys: tuple[NDArray[np.uint64], ...], value: NDArray[Any]) -> NDArray[Any]:
    """Write values out over all public leaves, in spine order, by a dictionary of paths."""
    sizes = [tree.sizes[-1] for tree in spine.trees]
    every = pack(spine, np.indices(sizes).reshape(len(sizes), -1))
    paths = sorted(zip(*(word.tolist() for word in every), strict=True))
    known = dict(zip(zip(*(word.tolist() for word in keys), strict=True), value.tolist(), strict=True))
    assert set(known) <= set(paths)
    return np.array([known.get(path, 0) for path in paths], value.dtype)


def truth(spine: tt.Spine, counts: Counts) -> NDArray[Any]:
    return dense(spine, counts.keys, np.diff(counts.before))


def leaves(estimate: Estimate) -> NDArray[Any]:
    return dense(estimate.spine, estimate.keys, estimate.value)


def at(estimate: Estimate, index: int) -> LevelEstimate:
    """Return the nodes of a level that are not zero, as they were published or as sums of the leaves."""
    if estimate.levels is not None:
        return estimate.levels[index]
    if index == 0:
        kept = [0] * len(estimate.keys)
    else:
        digit = layout(estimate.spine)[index - 1]
        last = (2**64 - 1) >> digit.shift << digit.shift
        kept = [2**64 - 1 if i < digit.word else last if i == digit.word else 0 for i in range(len(estimate.keys))]
    sums: dict[tuple[int, ...], Any] = {}
    for *path, value in zip(*(word.tolist() for word in estimate.keys), estimate.value.tolist(), strict=True):
        node = tuple(word & mask for word, mask in zip(path, kept, strict=True))
        sums[node] = sums.get(node, 0) + value
    there = sorted(node for node in sums if sums[node] != 0)
    keys = np.array(there, np.uint64).reshape(-1, len(kept)).T
    values: Any = np.array([sums[node] for node in there], estimate.value.dtype)
    return LevelEstimate(tuple(keys), values)


def words(spine: tt.Spine) -> int:
    return layout(spine)[-1].word + 1
