"""What a map shows as real: nine in ten of it is, whatever was released, by the statistics of resolution."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop.measure.descent import descent_of, run_descent
from treetop.noise import Key
from treetop.release import measurements as module
from treetop.release.measurements import RATE, surviving
from treetop.release.run import run_plan

TOWNS = [f"{a}{b:02d}" for a in range(5) for b in range(12)]
TREE = tt.Hierarchy.from_prefixes(TOWNS, widths=[1])
SPINE = tt.Spine.destination_first(origin=TREE, destination=TREE)
UNIT = tt.Unit("trip", neighbours="replace")
Ints = NDArray[np.int64]


def sparse(seed: int, flows: int = 150) -> tuple[tt.Counts, set[tuple[int, ...]]]:
    """A table of few flows, most of them small."""
    rng = np.random.default_rng(seed)
    ends = [rng.integers(0, len(TOWNS), flows) for _ in range(2)]
    return tt.Counts.from_leaves(SPINE, ends, rng.zipf(1.6, flows).clip(1, 2_000)), set(
        zip(*map(Ints.tolist, ends), strict=True)
    )


def released(options: dict[str, Any], seed: int) -> tuple[tt.Release, set[tuple[int, ...]]]:
    counts, there = sparse(seed)
    plan = tt.Plan(SPINE, UNIT, tt.Loss(epsilon=1, delta=1e-6), **options)
    return run_plan(plan, counts, Key(seed.to_bytes(32, "big")), {}), there


def shares(options: dict[str, Any], runs: int = 25) -> tuple[int, int, float]:
    """How many leaves were shown as real, how many of these are there, and the mean share that is not."""
    shown = true = 0
    missing = []
    for seed in range(runs):
        release, there = released(options, seed)
        real = release.nodes[:, surviving(release.measured, len(SPINE.levels))]
        found = sum(tuple(node) in there for node in real.T.tolist())
        shown, true = shown + real.shape[1], true + found
        missing.append(1 - found / max(real.shape[1], 1))
    return shown, true, float(np.mean(missing))


@pytest.mark.parametrize(
    "options", [{"margins": "none"}, {}, {"prefer": "lower-error"}, {"margins": "none", "repair": "euclidean"}], ids=str
)
def test_nine_in_ten_of_what_is_shown_as_real_are_real(options: dict[str, Any]) -> None:
    shown, true, missing = shares(options)
    assert shown > 100
    assert true >= 0.9 * shown
    assert missing <= 1.5 * float(RATE)  # 25 runs tell the mean to a hundredth or two
    release, there = released(options, 0)
    everything = sum(tuple(node) in there for node in release.nodes.T.tolist()) / release.nodes.shape[1]
    assert everything < 0.9  # of all that is released, fewer are


def test_a_threshold_that_forgets_what_could_have_been_drawn_shows_more_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "number_of_tests", lambda levels, index, nodes: np.ones(len(levels) + 1, np.int64))
    shown, true, _ = shares({"margins": "none"})
    assert true < 0.9 * shown


def test_it_is_the_test_by_which_a_plan_resolves() -> None:
    flat = tt.Spine(["place"], {"place": tt.Hierarchy.flat(TOWNS)})
    rng = np.random.default_rng(1)
    counts = tt.Counts.from_leaves(flat, [rng.integers(0, 60, 25)], rng.integers(1, 60, 25))
    loss, key = tt.Loss(epsilon=1, delta=1e-6), Key(bytes(32))
    whole = run_plan(tt.Plan(flat, UNIT, loss), counts, key, {})
    named = run_descent(descent_of(tt.Plan(flat, UNIT, loss, resolve={"fdr": RATE})), counts, key).leaves
    real = whole.nodes[:, surviving(whole.measured, 1)]
    assert real.tolist() == named.nodes.tolist() and 0 < real.shape[1] < whole.nodes.shape[1]
    fewer = surviving(whole.measured, 1, Fraction(1, 10**6))
    assert fewer.sum() < real.shape[1]


def test_what_facts_decide_is_there() -> None:
    facts = {"destination.digits1": tt.Fact(exact={str(region): 30 for region in range(5)}, unchecked=True)}
    counts, _ = sparse(3)
    plan = tt.Plan(SPINE, tt.Unit("trip", neighbours="add-remove"), tt.Loss(rho=1), margins="none", facts=facts)
    release = run_plan(plan, counts, Key(bytes(32)), {})
    index = next(level.index for level in SPINE.levels if level.name == "destination.digits1")
    assert surviving(release.measured, index).all()
