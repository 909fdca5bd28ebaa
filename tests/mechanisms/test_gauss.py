"""Noise on every leaf: what is kept, what is clamped, and that the noise is the noise of the law."""

from __future__ import annotations

import numpy as np
import pytest

import treetop as tt
from treetop import Counts
from treetop.addons.lab.mechanisms.baselines import BottomUp, VanillaGauss

from . import tables
from .tables import ANYONE, KEY, LOSS, TRIP


def test_negative_counts_are_kept_or_set_to_zero_as_asked() -> None:
    spine = tables.pairs()
    counts = tables.table(spine, 20)
    kept = tables.leaves(VanillaGauss(spine, TRIP, LOSS).run(counts, KEY))
    assert (kept < 0).any()
    for clamped in (BottomUp(spine, TRIP, LOSS), VanillaGauss(spine, TRIP, LOSS, clamp=True)):
        assert np.array_equal(tables.leaves(clamped.run(counts, KEY)), np.maximum(kept, 0))


def test_every_public_leaf_gets_noise_whether_it_is_in_the_table_or_not() -> None:
    spine = tables.flat(100_000)
    counts = Counts.from_leaves(spine, [np.arange(50_000)], np.full(50_000, 7))
    mechanism = VanillaGauss(spine, ANYONE, LOSS)
    law = mechanism.levels[-1].law
    assert law is not None
    error = tables.leaves(mechanism.run(counts, KEY)) - tables.truth(spine, counts)
    for half in (error[:50_000], error[50_000:]):
        # Five standard deviations of the spread, and of the mean, of so many draws.
        assert half.std() == pytest.approx(law.standard_deviation, rel=5 / (2 * len(half)) ** 0.5)
        assert abs(half.mean()) < 5 * law.standard_deviation / len(half) ** 0.5


def test_sums_of_clamped_leaves_are_too_large_and_sums_of_others_are_not() -> None:
    spine = tables.flat(20_000)
    counts = Counts.from_leaves(spine, [np.arange(10)], np.full(10, 100))
    spread = 18.7 / 6**0.5 * 20_000**0.5
    assert abs(VanillaGauss(spine, TRIP, LOSS).run(counts, KEY).total - 1_000) < 5 * spread
    assert BottomUp(spine, TRIP, LOSS).run(counts, KEY).total > 1_000 + 20 * spread


def test_a_pure_loss_is_kept_by_laplace_noise() -> None:
    law = VanillaGauss(tables.pairs(), TRIP, tt.Loss(epsilon=2)).levels[-1].law
    assert law is not None
    assert law.describe() == {"law": "discrete Laplace", "scale": "1"}


def test_an_empty_table_has_noise_too() -> None:
    estimate = VanillaGauss(tables.flat(1_000), TRIP, LOSS).run(tables.table(tables.flat(1_000), 0), KEY)
    assert len(estimate) > 900
