"""Small descents of every kind, cut into several tasks, and what they give as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treetop as tt
from treetop.engine.engine import Executor
from treetop.measure import blocks
from treetop.measure import descent as descents
from treetop.measure.descent import Outcome, descent_of, run_descent
from treetop.noise import Key

KEY = Key(bytes.fromhex("c3a91f5e7704d2b86e1cfa33905b47d8e6120dab9f4c7358bb02e1696fd48a17"))
"""No run of its bytes is in a file by chance."""

PLACE = tt.Hierarchy.from_prefixes(
    [f"{a}{b}{c}" for a in "ABCD" for b in "123" for c in "wxyz"], widths=[1, 2], levels=["r", "d", "t"]
)
ENDS = {"origin": PLACE, "destination": PLACE}
IN_TURN = tt.Spine.destination_first(**ENDS)
MERGED = tt.Spine(["destination.r * origin.r", "destination.d", "origin.d * destination.t", "origin.t"], ENDS)

KINDS: dict[str, tuple[tt.Spine, dict[str, Any]]] = {
    "plain": (IN_TURN, {"margins": "none"}),
    "margins": (IN_TURN, {"margins": "each"}),
    "facts": (IN_TURN, {"facts": {"origin.r": tt.Fact(invariant=True), "origin.d": tt.Fact(at_most={"A1": 900})}}),
    "false discoveries": (IN_TURN, {"margins": "none", "resolve": {"fdr": 0.2}}),
    "merged steps": (MERGED, {"margins": "each"}),
}


def counts_of(spine: tt.Spine) -> tt.Counts:
    rng = np.random.default_rng(0)
    leaves = [rng.integers(0, tree.sizes[-1], 300) for tree in spine.trees]
    return tt.Counts.from_leaves(spine, leaves, rng.integers(1, 30, 300))


def descended(kind: str, executor: Executor | None = None) -> tuple[bytes, ...]:
    """Everything that a descent of a kind gives."""
    spine, options = KINDS[kind]
    plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1), **options)
    return _bytes(run_descent(descent_of(plan), counts_of(spine), KEY, executor, every=1 << 20))


def _bytes(found: Outcome) -> tuple[bytes, ...]:
    assert found.evidence is not None
    arrays = [found.leaves.nodes, found.leaves.count, found.left.level, found.left.nodes, found.left.count]
    for level in found.evidence.levels:
        arrays += [level.measured, level.highest, level.slots]
    if found.margins is not None:
        arrays += [found.margins.counts[depths] for depths in sorted(found.margins.counts)]
    return tuple(np.ascontiguousarray(array).tobytes() for array in arrays)


def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have small trees cut into several tasks."""
    monkeypatch.setattr(descents, "LARGEST_TRUNK", 20)
    monkeypatch.setattr(descents, "CHUNK", 40)
    monkeypatch.setattr(blocks, "CELLS", 1 << 10)
