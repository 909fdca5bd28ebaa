"""Places: every child of a level has its own, siblings follow each other, and a release is the same however cut."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest

import treetop as tt
from treetop.domain.spine_level import LARGEST_WORD, Level, PlaceNumbering
from treetop.engine.engine import Threads
from treetop.errors import HierarchyError
from treetop.measure import blocks
from treetop.measure import descent as descents
from treetop.measure.descent import Outcome, descent_of, run_descent
from treetop.noise import Key
from treetop.noise.keystream import Keystream

from .test_reference import random_spine

KEY = Key(bytes(range(32)))


def places_of(spine: tt.Spine, level: Level) -> PlaceNumbering:
    return PlaceNumbering.of_level(level, spine.sizes(level.index - 1))


@pytest.mark.parametrize("seed", range(30))
def test_the_children_of_all_nodes_are_numbered_without_a_gap(seed: int) -> None:
    rng = random.Random(seed)
    spine = random_spine(rng, merging=0.5)
    for level in spine.levels:
        sizes = spine.sizes(level.index - 1)
        if np.prod(sizes) > 20_000:
            continue
        above = np.array(list(product(*map(range, sizes))), np.int32).T
        high, low = places_of(spine, level).first(above)
        assert not high.any()
        order = np.argsort(low)
        ends = (low + level.fanout(above).astype(np.uint64))[order]
        # Where one node's children end, those of another begin: no two share a place, and all places are used.
        assert low[order].tolist() == [0, *ends[:-1].tolist()]
        assert ends[-1] == level.nodes


def test_a_domain_too_large_for_one_word_takes_two() -> None:
    trees = {name: tt.Hierarchy.flat([f"{i:05d}" for i in range(20_000)]) for name in "abcdefg"}
    spine = tt.Spine(list(trees), trees)
    places = places_of(spine, spine.levels[-1])
    assert len(places.above) == 3 and len(places.beside) == 3
    nodes = np.random.default_rng(1).integers(0, 20_000, (7, 50))
    nodes[-1] = 0
    for node, high, low in zip(nodes.T.tolist(), *places.first(nodes).tolist(), strict=True):
        exact = 0
        for digit in node:
            exact = exact * 20_000 + digit
        assert high * 20_000**4 + low == exact
        assert max(high, low) < LARGEST_WORD


def test_a_domain_too_large_for_two_words_is_refused_before_data_is_read() -> None:
    trees = {name: tt.Hierarchy.flat([f"{i:05d}" for i in range(40_000)]) for name in "abcdefgh"}
    plan = tt.Plan(tt.Spine(list(trees), trees), tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1), margins="none")
    with pytest.raises(HierarchyError, match="more than 2\\^120 nodes"):
        descent_of(plan)


@pytest.mark.parametrize("width", [1, 12])
def test_words_of_runs_are_those_of_the_stream(width: int) -> None:
    rng = np.random.default_rng(width)
    size = rng.integers(0, 7, 200)
    place = np.zeros((2, 200), np.uint64)
    place[1] = rng.integers(0, 2**59, 200)
    place[1, :9] = range(9)
    runs = np.empty(int(size.sum()) * width, np.uint64)
    Keystream(KEY).fill_runs(runs, place, size, width)
    at = 0
    for start, number in zip(place[1].tolist(), (size * width).tolist(), strict=True):
        words = np.empty(number, np.uint64)
        Keystream(KEY).fill(words, start * width)
        assert (runs[at : at + number] == words).all()
        at += number


def test_the_first_word_of_a_place_is_the_high_half_of_the_counter() -> None:
    words = np.empty(3, np.uint64)
    Keystream(KEY).fill_runs(words, np.array([[5], [7]], np.uint64), np.array([3]), 1)
    expected = np.empty(3, np.uint64)
    Keystream(KEY).fill(expected, 2 * (5 << 64) + 7)
    assert (words == expected).all()


def outcome(found: Outcome) -> tuple[bytes, ...]:
    parts = [found.leaves.nodes, found.leaves.count]
    assert found.evidence is not None
    for level in found.evidence.levels:
        parts += [level.measured, level.highest, level.slots]
    return tuple(np.ascontiguousarray(part).tobytes() for part in parts)


@pytest.mark.parametrize("margins", ["none", "each"])
@pytest.mark.parametrize("resolve", ["full", {"fdr": 0.2}])
def test_a_release_is_the_same_however_it_is_cut(margins: str, resolve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    town = tt.Hierarchy.from_prefixes([f"{a}{b:02d}" for a in range(8) for b in range(20)], widths=[1])
    spine = tt.Spine.destination_first(origin=town, destination=town)
    unit, loss = tt.Unit("trip", neighbours="add-remove"), tt.Loss(rho=2)
    plan = tt.Plan(spine, unit, loss, margins=margins, resolve=resolve)
    rng = np.random.default_rng(3)
    leaves = [rng.integers(0, 160, 3_000), rng.integers(0, 160, 3_000) % rng.integers(1, 160, 3_000)]
    counts = tt.Counts.from_leaves(spine, leaves, rng.integers(1, 50, 3_000))
    whole = outcome(run_descent(descent_of(plan), counts, KEY, every=1 << 20))
    for trunk, cells, subtrees, chunk in [(1, 64, 3, 7), (40, 30, 64, 64), (1 << 14, 1 << 18, 1, 11), (200, 1, 9, 500)]:
        monkeypatch.setattr(descents, "LARGEST_TRUNK", trunk)
        monkeypatch.setattr(descents, "CHUNK", cells)
        monkeypatch.setattr(descents, "MOST_SUBTREES", subtrees)
        monkeypatch.setattr(blocks, "CELLS", cells)
        found = run_descent(descent_of(plan), counts, KEY, Threads(2), chunk=chunk, every=1 << 20)
        assert outcome(found) == whole
