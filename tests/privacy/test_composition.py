"""What several releases come to: an accountant of its own finds the truth below, close by, and a fault above."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treetop.privacy import epsilon_from_rho, rho_from_epsilon
from treetop.privacy.accountant import exact_delta
from treetop.privacy.composition import (
    NARROWER,
    Cells,
    certain_rho,
    epsilon_together,
    gaussian_rho,
    gaussian_room,
    rho_of,
)

from .accountant import Losses, coin, gaussian, together

NONE = Fraction(0)


def widest_gap(variance: float) -> float:
    """The widest gap between the normal scores of the tails of the discrete Gaussian."""
    reach = math.ceil(30 * math.sqrt(variance)) + 60
    weight = [math.exp(-x * x / (2 * variance)) for x in range(reach)]
    total = 2 * math.fsum(weight) - 1
    tails, above = [], 0.0
    for one in reversed(weight):
        above += one / total
        tails.append(above)
    scores = [-NormalDist().inv_cdf(tail) for tail in tails[::-1] if 1e-100 < tail < 0.5]
    return max(2 * scores[0], *(right - left for left, right in pairwise(scores)))


@pytest.mark.parametrize("variance", [1, 1.02, 1.3, 2, 3.7, 10, 33, 100, 312, 2000])
def test_discrete_noise_tells_no_more_than_gaussian_noise_a_tenth_narrower(variance: float) -> None:
    gap = widest_gap(variance)
    assert gap <= 1 / math.sqrt(variance - float(NARROWER))
    # Nor would it do without: with the same variance, or one that is smaller by less than a twelfth, it tells more.
    assert gap > 1 / math.sqrt(variance - 1 / 12.01)


@pytest.mark.parametrize("variance", [Fraction(99, 100), Fraction(1, 2)])
def test_nothing_is_claimed_of_narrower_noise(variance: Fraction) -> None:
    assert gaussian_rho([(Fraction(50), 2), (variance, 1)]) is None
    assert gaussian_rho([(Fraction(50), 2)]) is not None


def some_releases(seed: int) -> tuple[list[Cells], Fraction]:
    """A few releases of a few tables each, at all sizes of noise."""
    chance = random.Random(seed)
    scale = chance.choice([2, 8, 30, 200])
    releases = [
        tuple((scale * chance.randint(4, 40) / Fraction(8), chance.randint(1, 3)) for _ in range(chance.randint(1, 3)))
        for _ in range(chance.randint(1, 4))
    ]
    return releases, Fraction(1, 10 ** chance.randint(3, 8))


def bounds(releases: list[Cells], others: Any = ()) -> tuple[Losses, Losses]:
    rho = float(sum(rho_of(cells) for cells in releases))
    step = math.sqrt(2 * rho) / 800
    found = []
    for up in (False, True):
        parts = [gaussian(v, step, up=up).times(n) for cells in releases for v, n in cells]
        found.append(together([*parts, *(other(step, up=up) for other in others)]))
    return found[0], found[1]


@pytest.mark.parametrize("seed", range(12))
def test_the_epsilon_of_random_releases_is_true_and_close(seed: int) -> None:
    releases, delta = some_releases(seed)
    known = [gaussian_rho(cells) for cells in releases]
    epsilon = epsilon_together(sum((one for one in known if one is not None), NONE), NONE, delta)
    low, high = bounds(releases)
    assert low.delta(epsilon) <= delta
    assert high.delta(epsilon * 0.96) > delta
    added = epsilon_from_rho(sum(rho_of(cells) for cells in releases), delta)
    least = min(v for cells in releases for v, _ in cells)
    assert epsilon < added or least < 3
    every = [pair for cells in releases for pair in cells]
    assert low.delta(epsilon) <= exact_delta(epsilon, every) <= high.delta(epsilon)


@pytest.mark.parametrize("seed", range(12))
def test_releases_of_which_only_rho_is_known_are_covered_beside_the_others(seed: int) -> None:
    releases, delta = some_releases(seed)
    *known, hidden = [*releases, tuple((v, 1) for v, _ in releases[0])]
    flip = random.Random(seed).choice([0.1, 0.4, 1.0])
    rho = rho_of(hidden) + Fraction(str(flip)) ** 2 / 2
    sums = [gaussian_rho(cells) or NONE for cells in known]
    epsilon = epsilon_together(sum(sums, NONE), rho, delta)
    low, _ = bounds([*known, hidden], [lambda step, up: coin(flip, step, up=up)])
    assert low.delta(epsilon) <= delta
    assert epsilon <= epsilon_from_rho(sum(sums, NONE) + rho, delta)


def test_a_release_that_is_left_out_or_counted_in_part_is_found_by_that_accountant() -> None:
    cells: Cells = ((Fraction(300), 12),)
    delta = Fraction(1, 10**6)
    once, twice = (gaussian_rho(cells[:1] * number) for number in (1, 2))
    assert once is not None and twice is not None
    low, _ = bounds([cells, cells])
    assert low.delta(epsilon_together(twice, NONE, delta)) <= delta
    assert low.delta(epsilon_together(once, NONE, delta)) > delta
    half = gaussian_rho([(Fraction(300), 6)])
    assert half is not None
    assert bounds([cells])[0].delta(epsilon_together(half, NONE, delta)) > delta


@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.floats(-2, 1.3).map(lambda power: round(10.0**power, 6)),
    delta=st.integers(2, 30).map(lambda power: Fraction(1, 10**power)),
    part=st.fractions(0, 1, max_denominator=50),
)
def test_what_fits_beside_rho_is_never_less_than_what_adding_allows(
    epsilon: float, delta: Fraction, part: Fraction
) -> None:
    stated = Fraction(str(epsilon))
    budget = rho_from_epsilon(stated, delta)
    room = gaussian_room(stated, delta, part * budget)
    assert room >= (1 - part) * budget * Fraction(99999, 100000)
    assert room == 0 or epsilon_together(room, part * budget, delta) <= stated
    assert gaussian_room(stated, delta, budget * 2) == 0


@pytest.mark.parametrize(("epsilon", "gain"), [("0.1", 1.134), (1, 1.117), (10, 1.090)])
def test_gaussian_noise_alone_leaves_a_tenth_more_rho_than_the_conversion(epsilon: Any, gain: float) -> None:
    room = gaussian_room(Fraction(epsilon), Fraction(1, 10**8), NONE)
    assert gain < float(room / rho_from_epsilon(Fraction(epsilon), 1e-8)) < gain + 0.002


@settings(max_examples=50, deadline=None)
@given(room=st.fractions(Fraction(1, 10**6), 2), number=st.integers(1, 12))
def test_a_release_with_the_rho_that_is_certain_fits_however_it_is_divided(room: Fraction, number: int) -> None:
    rho = certain_rho(room)
    weights = range(1, number + 1)
    shares = [rho * weight / sum(weights) for weight in weights]
    told = gaussian_rho([(1 / (2 * share), 1) for share in shares])
    assert told is not None and told <= room
