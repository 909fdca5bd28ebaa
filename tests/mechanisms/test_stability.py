"""The stability histogram: its thresholds, its exact loss on tiny domains, and what it publishes at the threshold."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from math import ceil, exp, log
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop import Counts
from treetop.addons.lab.mechanisms.baselines import StabilityHistogram, tight_threshold
from treetop.addons.lab.mechanisms.compared import NotServed
from treetop.noise import DiscreteLaplace, NoiseStream
from treetop.privacy import Neighbours

from . import tables
from .tables import ANYONE, KEY, LOSS, TRIP

Reals = NDArray[np.float64]
LOSSES = [(1, 0.01), (0.2, 0.003), (4, 1e-4), (0.1, 0.3), (6, 0.2)]


def histogram(spine: tt.Spine, unit: tt.Unit, epsilon: Any, delta: Any, **options: Any) -> StabilityHistogram:
    return StabilityHistogram(spine, unit, tt.Loss(epsilon=epsilon, delta=delta), **options)


def test_the_thresholds_are_the_ones_worked_out_by_hand() -> None:
    spine = tables.pairs()
    # About 1 + 2·ln(1/2δ)/ε = 36.45 and 1 + ln(1/2δ)/ε = 18.73, a little more since noise is whole.
    assert StabilityHistogram(spine, TRIP, LOSS).least == 37
    assert StabilityHistogram(spine, ANYONE, LOSS).least == 20
    # 1 + 2·ln(2/δ)/ε = 39.23 and 1 + ln(2/δ)/ε = 20.11.
    assert StabilityHistogram(spine, TRIP, LOSS, threshold="paper").least == 40
    assert StabilityHistogram(spine, ANYONE, LOSS, threshold="paper").least == 21


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(("epsilon", "delta"), LOSSES)
def test_the_tight_threshold_is_the_first_whose_tail_is_small_enough(
    epsilon: float, delta: float, neighbours: Neighbours
) -> None:
    found = histogram(tables.pairs(), tt.Unit("trip", 1, neighbours), epsilon, delta).least
    q = exp(-epsilon / (2 if neighbours == "replace" else 1))
    tail = [q**k / (1 + q) for k in range(2 * ceil(log(1 / delta) * 2 / epsilon) + 9)]  # P(Z ≥ k)
    assert found == 1 + next(k for k, p in enumerate(tail) if p <= delta)
    paper = histogram(tables.pairs(), tt.Unit("trip", 1, neighbours), epsilon, delta, threshold="paper").least
    assert paper >= found


@pytest.mark.parametrize("count", [1, 3, 12])
def test_a_noisy_count_at_the_threshold_is_published_and_one_below_is_not(count: int) -> None:
    mechanism = histogram(tables.flat(3), TRIP, 1, 0.01)
    counts = Counts.from_leaves(mechanism.spine, [np.array([1])], np.array([count]))
    for noisy in range(mechanism.least - 3, mechanism.least + 4):

        def fill(_: NoiseStream, out: NDArray[np.int64], slot: int, noisy: int = noisy) -> None:
            out[:] = noisy - count

        with mock.patch.object(NoiseStream, "fill", fill):
            published = mechanism.run(counts, KEY)
        assert tables.leaves(published).tolist() == [0, noisy if noisy >= mechanism.least else 0, 0]


REACH = 160


@lru_cache(maxsize=4096)
def _masses(scale: Fraction) -> Reals:
    """P(Z = z) for −REACH < z < REACH, with what is beyond at the ends."""
    law = DiscreteLaplace(scale)
    tail = law.cumulative(-REACH)
    return np.array([tail, *(law.mass(z) for z in range(1 - REACH, REACH)), tail])


def law_of_leaf(scale: Fraction, least: int, count: int) -> Reals:
    """The law of what is published of one leaf: absent, or least, least + 1, …; what is far away is lumped together."""
    law = np.zeros(REACH + 2)
    if count == 0:
        law[0] = 1
        return law
    for z, mass in zip(range(-REACH, REACH + 1), _masses(scale), strict=True):
        at = 0 if count + z < least else min(count + z - least + 1, REACH + 1)
        law[at] += mass
    return law


def divergence(scale: Fraction, least: int, epsilon: float, one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """The hockey-stick divergence of the histograms of two tables; leaves that are the same in both do not matter."""
    joint = [np.ones(1), np.ones(1)]
    for counts in zip(one, other, strict=True):
        if counts[0] != counts[1]:
            leaves = [law_of_leaf(scale, least, count) for count in counts]
            used = np.flatnonzero(leaves[0] + leaves[1] > 1e-13)
            joint = [np.outer(law, leaf[used]).ravel() for law, leaf in zip(joint, leaves, strict=True)]
    return float(np.maximum(joint[0] - exp(epsilon) * joint[1], 0).sum())


def neighbours_of(unit: tt.Unit, leaves: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every pair of tables that differ by one unit, with nobody, one or many others in each leaf."""
    m = unit.contributions
    always_one = unit.neighbours == "replace" and m == 1
    records = [
        tuple(chosen.count(leaf) for leaf in range(leaves))
        for size in range(1 if always_one else 0, m + 1)
        for chosen in combinations_with_replacement(range(leaves), size)
    ]
    for others in product((0, 1, 9), repeat=leaves):
        for gone in records:
            for come in records if unit.neighbours == "replace" else [(0,) * leaves]:
                one, other = (tuple(map(sum, zip(others, unit, strict=True))) for unit in (gone, come))
                if one != other:
                    yield one, other
                    yield other, one


def worst(mechanism: StabilityHistogram, least: int, leaves: int) -> float:
    law = mechanism.levels[-1].law
    assert isinstance(law, DiscreteLaplace) and mechanism.loss.epsilon is not None
    epsilon = float(mechanism.loss.epsilon)
    return max(divergence(law.scale, least, epsilon, *pair) for pair in neighbours_of(mechanism.unit, leaves))


@pytest.mark.parametrize(
    ("neighbours", "contributions", "leaves", "epsilon", "delta"),
    [
        ("replace", 1, 2, 1, 0.01),
        ("replace", 1, 2, 0.5, 0.1),
        ("replace", 1, 2, 3, 1e-4),
        ("replace", 1, 3, 2, 0.05),
        ("replace", 1, 2, 0.1, 0.3),
        ("add-remove", 1, 2, 1, 0.01),
        ("add-remove", 1, 2, 0.1, 0.3),
        ("add-remove", 1, 2, 3, 1e-4),
        ("replace", 2, 2, 2, 0.05),
        ("replace", 2, 2, 9, 0.001),
        ("add-remove", 2, 2, 1, 0.05),
        ("add-remove", 3, 3, 4, 0.01),
    ],
)
def test_no_neighbours_exceed_delta_and_one_lower_threshold_would(
    neighbours: Neighbours, contributions: int, leaves: int, epsilon: float, delta: float
) -> None:
    mechanism = histogram(tables.flat(leaves), tt.Unit("person", contributions, neighbours), epsilon, delta)
    assert worst(mechanism, mechanism.least, leaves) <= delta * (1 + 1e-9)
    assert worst(mechanism, mechanism.least - 1, leaves) > delta * (1 + 1e-9)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_threshold_of_the_paper_keeps_delta_with_room_to_spare(neighbours: Neighbours) -> None:
    mechanism = histogram(tables.flat(2), tt.Unit("trip", 1, neighbours), 1, 0.01, threshold="paper")
    found = worst(mechanism, mechanism.least, 2)
    assert 0.01 / 8 < found <= 0.01 / 3  # δ/4 for continuous noise


@pytest.mark.parametrize("contributions", [1, 2, 3, 5, 8])
@pytest.mark.parametrize(("epsilon", "delta"), LOSSES)
@pytest.mark.parametrize("share", [1, 2, 100])
def test_for_several_records_no_way_to_lay_them_out_survives_more_often(
    contributions: int, epsilon: float, delta: float, share: int
) -> None:
    cap = max(1, contributions // share) if share < 100 else 1
    law = DiscreteLaplace(contributions / Fraction(str(epsilon)))
    threshold = tight_threshold(law, Fraction(str(delta)), contributions, cap)

    def most(threshold: int) -> float:
        shown = [0.0, *(1 - law.cumulative(threshold - c - 1) for c in range(1, cap + 1))]
        ways = (
            cells
            for size in range(1, contributions + 1)
            for cells in combinations_with_replacement(range(1, cap + 1), size)
            if sum(cells) <= contributions
        )
        return max(1 - float(np.prod([1 - shown[c] for c in cells])) for cells in ways)

    assert most(threshold) <= delta * (1 + 1e-9)
    assert most(threshold - 1) > delta * (1 - 1e-9)


def test_a_cap_at_the_leaves_lowers_the_threshold() -> None:
    spine = tables.flat(5)
    plain, capped = (
        histogram(spine, tt.Unit("person", 4, "add-remove", per_node=caps), 20, 1e-6).least for caps in (None, {"x": 1})
    )
    assert capped < plain


def test_no_leaf_is_invented_and_small_ones_vanish() -> None:
    spine = tables.flat(4_000)
    counts = Counts.from_leaves(spine, [np.arange(2_000)], np.repeat([1, 500], 1_000))
    published = tables.leaves(StabilityHistogram(spine, TRIP, LOSS).run(counts, KEY))
    assert not published[:1_000].any() and (published[1_000:2_000] > 400).all() and not published[2_000:].any()
    error = published[1_000:2_000] - 500
    law = StabilityHistogram(spine, TRIP, LOSS).levels[-1].law
    assert error.std() == pytest.approx(law.standard_deviation, rel=0.2)


def test_the_noise_spends_epsilon_and_the_threshold_delta() -> None:
    mechanism = histogram(tables.pairs(), tt.Unit("person", 3, "replace"), Fraction(1, 2), 1e-6)
    law = mechanism.levels[-1].law
    assert isinstance(law, DiscreteLaplace) and law.scale == 12
    assert mechanism.spent == Fraction(1, 2)
    assert f"noisy counts of {mechanism.least:,} or more" in mechanism.definition


@pytest.mark.parametrize("loss", [tt.Loss(epsilon=1), tt.Loss(rho=1), tt.Loss(rho=1, delta=1e-8)], ids=str)
def test_a_loss_without_epsilon_and_delta_is_refused(loss: tt.Loss) -> None:
    with pytest.raises(NotServed, match=r"needs epsilon and delta.*give Loss\(epsilon=…, delta=…\)"):
        StabilityHistogram(tables.pairs(), TRIP, loss)


def test_what_cannot_be_served_is_refused_with_the_reason() -> None:
    with pytest.raises(NotServed, match="below a half"):
        histogram(tables.pairs(), TRIP, 1, 0.5)
    with pytest.raises(NotServed, match='up to 2: take threshold="tight"'):
        histogram(tables.pairs(), tt.Unit("person", 2, "replace"), 1, 1e-8, threshold="paper")
    with pytest.raises(tt.TreetopError, match="choose tight or paper"):
        histogram(tables.pairs(), TRIP, 1, 1e-8, threshold="loose")


def test_an_empty_table_publishes_nothing() -> None:
    spine = tables.flat(50)
    assert len(StabilityHistogram(spine, ANYONE, LOSS).run(tables.table(spine, 0), KEY)) == 0


def test_a_domain_of_any_size_is_served() -> None:
    tree = tt.Hierarchy.flat([f"{i:05d}" for i in range(20_000)])
    names = ["a", "b", "c", "d", "e"]
    spine = tt.Spine(names, dict.fromkeys(names, tree))
    assert spine.leaves > 10**21
    counts = Counts.from_leaves(spine, [np.array([7])] * 5, np.array([100]))
    assert len(StabilityHistogram(spine, TRIP, LOSS).run(counts, KEY)) == 1
