"""Black-box audits of the mechanisms beside the engine: many runs on two tables, and no event that is too telling.

A flat mechanism treats every leaf alike and on its own, so that one run on many copies of a table, told apart by a
public attribute, is as many runs on the table. The key is fixed, so the runs never change. Deliberate faults show what
so many runs can find.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop import Counts
from treetop.addons.lab.mechanisms.baselines import StabilityHistogram, only_leaves
from treetop.addons.lab.mechanisms.compared import ComparedMechanism, PublicTree
from treetop.addons.lab.mechanisms.registry import MECHANISMS

from .audits import DEEP
from .cases import PLENTY
from .engine import KEY, words_read
from .events import epsilon_at_least
from .neighbours import Pair, Rows, spine

RUNS = 2_000_000 if DEEP else 200_000
LEAVES = ("A1", "A2", "B1", "B2")
LOSS: dict[str, Any] = {"epsilon": 3, "delta": 0.01}
CLOSE = {"epsilon": 1, "delta": 1e-3}

MANY = Pair("among many", PLENTY, {**PLENTY, "A1": 29, "B2": 31}, loss=LOSS)
ALONE = Pair("alone", {"A1": 1}, {"B2": 1}, loss=LOSS)
LEAVES_NOBODY = Pair("leaves nobody", {"A1": 1}, {}, neighbours="add-remove", loss=LOSS)
PAIRS = [
    MANY,
    ALONE,
    LEAVES_NOBODY,
    Pair("among many", PLENTY, {**PLENTY, "A1": 29, "B2": 31}, loss=CLOSE),
    Pair("leaves many", PLENTY, {**PLENTY, "A1": 29}, neighbours="add-remove", loss=LOSS),
    Pair("leaves nobody", {"A1": 1}, {}, neighbours="add-remove", loss=CLOSE),
    Pair("joins many", {"A1": 1, "B2": 30}, {"B2": 31}, loss=LOSS),
    Pair("three records", {"A1": 3, "B2": 30}, {"A2": 1, "B1": 2, "B2": 30}, contributions=3, loss=LOSS),
    Pair("leaves with three", {"A1": 2, "A2": 1}, {}, neighbours="add-remove", contributions=3, loss=LOSS),
]


def copies(times: int) -> tt.Spine:
    time = tt.Hierarchy.flat([f"{i:07d}" for i in range(times)])
    return tt.Spine(["time", "leaf"], {"time": time, "leaf": tt.Hierarchy.flat(LEAVES)})


MANY_COPIES = copies(RUNS)


def runs_of(mechanism: ComparedMechanism, rows: Rows, which: int) -> NDArray[np.int64]:
    """Run a flat mechanism on many copies of a table: a row of published leaves each."""
    counts = np.tile([rows.get(leaf, 0) for leaf in LEAVES], RUNS)
    there = np.flatnonzero(counts)
    table = Counts.from_leaves(mechanism.spine, [there // len(LEAVES), there % len(LEAVES)], counts[there])
    estimate = mechanism.run(table, KEY.derive("table", which))
    tree = PublicTree.of(mechanism.spine)
    leaves = np.zeros(RUNS * len(LEAVES), np.int64)
    leaves[np.searchsorted(tree.keys[0], estimate.keys[0])] = estimate.value
    return leaves.reshape(RUNS, len(LEAVES))


def proven(mechanism: ComparedMechanism, pair: Pair) -> float:
    """The epsilon that runs on the two tables prove, at the delta of the loss."""
    change = np.array([pair.one.get(leaf, 0) - pair.other.get(leaf, 0) for leaf in LEAVES])
    samples = []
    for which, rows in enumerate((pair.one, pair.other)):
        leaves = runs_of(mechanism, rows, which)
        seen = leaves != 0
        # What an outsider would look at: leaves, sums, the sum that follows the change, and what is there at all.
        sums = leaves.sum(axis=1), leaves @ change, seen.sum(axis=1), seen @ change
        samples.append(np.column_stack([leaves, seen, *sums]))
    return epsilon_at_least(samples[0], samples[1], float(pair.loss["delta"]))[0]


def flat(name: str, pair: Pair) -> ComparedMechanism:
    unit = tt.Unit("person", pair.contributions, pair.neighbours)
    return MECHANISMS[name](MANY_COPIES, unit, tt.Loss(**pair.loss))


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("name", ["gauss", "sh"])
def test_no_event_of_many_runs_tells_neighbours_apart(name: str, pair: Pair) -> None:
    assert proven(flat(name, pair), pair) <= pair.loss["epsilon"]


def with_parts(mechanism: Any, **parts: Any) -> Any:
    """Put something wrong into a mechanism that cannot be made so."""
    for name, value in parts.items():
        object.__setattr__(mechanism, name, value)
    return mechanism


def test_flat_noise_for_one_record_where_a_unit_has_two_is_found() -> None:
    pair = Pair("two records", PLENTY, {**PLENTY, "A1": 28, "B2": 32}, contributions=2, loss=LOSS)
    narrow = only_leaves(MANY_COPIES, tt.Unit("person", neighbours="replace"), tt.Loss(**LOSS))
    assert proven(with_parts(flat("gauss", pair), levels=narrow), pair) > 3


def test_a_histogram_without_a_threshold_is_found() -> None:
    assert proven(with_parts(flat("sh", ALONE), least=1), ALONE) > 3


def test_a_threshold_made_for_ten_times_delta_is_found() -> None:
    unit = tt.Unit("person", neighbours="add-remove")
    generous = StabilityHistogram(MANY_COPIES, unit, tt.Loss(epsilon=3, delta=Fraction(1, 10)))
    assert proven(with_parts(flat("sh", LEAVES_NOBODY), least=generous.least), LEAVES_NOBODY) > 3


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_word_of_noise_serves_once(name: str) -> None:
    tree = spine("three levels")
    mechanism = MECHANISMS[name](tree, tt.Unit("person", neighbours="add-remove"), tt.Loss(epsilon=1, delta=1e-6))
    counts = Counts.from_leaves(tree, [np.arange(6)], np.full(6, 10**5))  # nothing is pruned where counts are large
    with words_read() as reads:
        mechanism.run(counts, KEY)
    times = Counter((secret, word + i) for secret, word, words in reads for i in range(len(words)))
    assert set(times.values()) == {1}
    everywhere, divided = 1 + 2 + 4 + 6, 2 + 4 + 4  # two leaves are only children
    measured = {"gauss": 6, "bottom-up": 6, "sh": 6, "hay": everywhere, "per-level": everywhere}.get(name, 1 + divided)
    ties = divided if name == "tda-l2" else 0  # a word each for the order of equals, from a stream of their own
    assert len(times) == measured + ties
