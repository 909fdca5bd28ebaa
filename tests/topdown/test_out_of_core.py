"""Out of core, the levels of a descent are in files: it gives the same, and memory does not grow with the leaves."""

from __future__ import annotations

import tracemalloc
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treetop as tt
from treetop.measure import _regrouped as regrouped
from treetop.measure import blocks
from treetop.measure import descent as descents
from treetop.measure import level as gathered
from treetop.measure import margin_tables as margins
from treetop.measure.descent import Outcome, descent_of, run_descent
from treetop.noise import Key

KEY = Key(bytes(range(32)))
PLACE = tt.Hierarchy.from_prefixes(
    [f"{a}{b}{c}" for a in "ABCD" for b in "123" for c in "wxyz"], widths=[1, 2], levels=["r", "d", "t"]
)
ENDS = {"origin": PLACE, "destination": PLACE}
IN_TURN = tt.Spine.destination_first(**ENDS)
MERGED = tt.Spine(["destination.r * origin.r", "destination.d", "origin.d * destination.t", "origin.t"], ENDS)
FACTS = {"origin.r": tt.Fact(invariant=True), "origin.d": tt.Fact(at_most={"A1": 900})}
CROSSED = ["origin.r * destination.d", "origin.d * destination.r"]
KINDS: dict[str, tuple[tt.Spine, dict[str, Any]]] = {
    "margins": (IN_TURN, {}),
    "margins, some standard deviations": (IN_TURN, {"resolve": {"sigmas": 2}}),
    "margins, false discoveries": (IN_TURN, {"resolve": {"fdr": 0.2}}),
    "margins of one end": (IN_TURN, {"margins": ["origin.r"]}),
    "margins of one end, false discoveries": (IN_TURN, {"margins": ["origin.t"], "resolve": {"fdr": 0.2}}),
    "margins that cross": (IN_TURN, {"margins": CROSSED}),
    "facts": (IN_TURN, {"facts": FACTS}),
    "false discoveries": (IN_TURN, {"margins": "none", "resolve": {"fdr": 0.2}}),
    "merged steps": (MERGED, {}),
}


def planned(kind: str) -> descents.Descent:
    spine, options = KINDS[kind]
    return descent_of(tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1), **options))


def counts_of(spine: tt.Spine) -> tt.Counts:
    rng = np.random.default_rng(0)
    leaves = [rng.integers(0, tree.sizes[-1], 300) for tree in spine.trees]
    return tt.Counts.from_leaves(spine, leaves, rng.integers(1, 30, 300))


def arrays(found: Outcome) -> list[list[Any]]:
    given: list[Any] = [found.leaves.nodes, found.leaves.count, found.left.level, found.left.nodes, found.left.count]
    if found.evidence is not None:
        given += [array for one in found.evidence.levels for array in (one.measured, one.highest, one.slots)]
    return [array.tolist() for array in given]


def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have small trees cut into several tasks, and looked at few rows at a time."""
    monkeypatch.setattr(descents, "LARGEST_TRUNK", 20)
    monkeypatch.setattr(descents, "CHUNK", 40)
    monkeypatch.setattr(blocks, "CELLS", 100)
    monkeypatch.setattr(gathered, "ROWS", 7)
    monkeypatch.setattr(regrouped, "CHILDREN", 5)


@pytest.mark.parametrize("every", [None, 0, 300, 1 << 20])
@pytest.mark.parametrize("kind", KINDS)
def test_a_descent_is_the_same_however_it_is_cut_and_wherever_its_levels_are(
    kind: str, every: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = counts_of(KINDS[kind][0])
    whole = arrays(run_descent(planned(kind), counts, KEY, every=every))
    cut_small(monkeypatch)
    assert arrays(run_descent(planned(kind), counts, KEY, every=every)) == whole
    monkeypatch.setattr(gathered, "IN_MEMORY", 0)
    found = run_descent(planned(kind), counts, KEY, every=every, scratch=tmp_path)
    assert arrays(found) == whole
    assert isinstance(found.leaves.count.base, np.memmap) and isinstance(found.leaves.nodes.base, np.memmap)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["margins of one end", "margins"])
def test_leaves_are_found_where_the_first_ones_were_pruned(kind: str) -> None:
    """Below a level that agrees with no margin, and without its first region, which is all but empty."""
    rng = np.random.default_rng(0)
    leaves = [rng.integers(0, 48, 300), np.where(np.arange(300) < 6, 0, rng.integers(12, 48, 300))]
    weight = np.where(np.arange(300) < 6, 1, rng.integers(1_000, 3_000, 300))
    true, pruned = np.zeros((48, 48), np.int64), 0
    np.add.at(true, tuple(leaves), weight)
    counts = tt.Counts.from_leaves(IN_TURN, leaves, weight)
    for run in range(10):
        found = run_descent(planned(kind), counts, KEY.derive("run", run)).leaves
        released = np.zeros((48, 48), np.int64)
        released[tuple(found.nodes)] = found.count
        assert np.abs(released - true).sum() < 0.01 * true.sum()
        pruned += int(released[:, 0].sum() == 0)
    assert pruned > 2


@pytest.mark.parametrize("large", [False, True], ids=["blocks in memory", "large blocks"])
def test_large_blocks_are_between_others(large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = arrays(run_descent(planned("margins"), counts_of(IN_TURN), KEY, every=0))
    cut_small(monkeypatch)
    monkeypatch.setattr(blocks, "LARGE", 60 if large else 1 << 22)
    monkeypatch.setattr(blocks, "PIECE", 30)
    assert arrays(run_descent(planned("margins"), counts_of(IN_TURN), KEY, every=0, scratch=tmp_path)) == whole


def most_held(kind: str, counts: tt.Counts, scratch: Path | None) -> int:
    """The most bytes that a descent has in memory at a time; what is in files is not among them."""
    tracemalloc.start()
    try:
        found = run_descent(planned(kind), counts, KEY, every=0, scratch=scratch)
        assert len(found.leaves) > len(counts) / 2
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["margins", "margins, false discoveries", "false discoveries"])
def test_the_driver_does_not_hold_the_leaves(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes for each leaf more: in files there are a few for the nodes of coarse levels, and in memory many."""
    monkeypatch.setitem(KINDS, kind, (wide(), KINDS[kind][1]))
    monkeypatch.setattr(descents, "LARGEST_TRUNK", 20)
    some = [(descents, "LEAVES_A_TASK"), (blocks, "CELLS"), (gathered, "ROWS"), (regrouped, "CHILDREN")]
    for module, name in (*some, (margins, "_KEYS"), (gathered, "IN_MEMORY")):
        monkeypatch.setattr(module, name, 1 << 10)
    few, many = (dense(size) for size in (40, 160))
    most_held(kind, few, tmp_path)  # makes what is kept for other runs, such as tables of noise
    more = len(many) - len(few)
    in_files = (most_held(kind, many, tmp_path) - most_held(kind, few, tmp_path)) / more
    in_memory = (most_held(kind, many, None) - most_held(kind, few, None)) / more
    assert in_files < 10 and in_memory > 50


def wide() -> tt.Spine:
    towns = tt.Hierarchy.from_prefixes([f"{a:02d}{b:02d}" for a, b in product(range(16), range(10))], widths=[2])
    return tt.Spine.destination_first(origin=towns, destination=towns)


def dense(size: int) -> tt.Counts:
    """Every pair of so many towns, with a count far above the noise."""
    origin, destination = np.divmod(np.arange(size * size), size)
    return tt.Counts.from_leaves(wide(), [origin, destination], np.full(size * size, 500))
