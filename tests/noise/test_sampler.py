"""Noise by slot."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from treetop.noise import DiscreteGaussian, DiscreteLaplace, Key, Law, NoiseStream

from .oracles import p_value, scaled_by

FOLLOWED: list[Law] = [
    DiscreteGaussian(Fraction(1, 9)),
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(400)),
    DiscreteGaussian(Fraction(250_000)),
    DiscreteLaplace(Fraction(1, 10)),
    DiscreteLaplace(Fraction(1)),
    DiscreteLaplace(Fraction(20)),
    DiscreteLaplace(Fraction(500)),
]
CUT: list[Law] = [DiscreteGaussian(Fraction(400)), DiscreteGaussian(Fraction(10**12)), DiscreteLaplace(Fraction(10**6))]


@pytest.mark.parametrize("law", FOLLOWED, ids=str)
def test_noise_follows_its_law_and_no_law_three_percent_wider_or_narrower(law: Law, key: Key) -> None:
    out = np.empty(2**22, dtype=np.int64)
    NoiseStream(law, key).fill(out, 0)
    assert p_value(out, law) > 1e-3
    for factor in (Fraction(103, 100), Fraction(100, 103)):
        assert p_value(out, scaled_by(law, factor)) < 1e-4
    assert abs(out.mean()) < 4 * law.standard_deviation / 2**11
    fourth = float(np.mean((out - out.mean()) ** 4.0))
    variance = law.standard_deviation**2
    assert abs(out.var() - variance) < 4 * (fourth - variance**2) ** 0.5 / 2**11


@pytest.mark.parametrize("law", CUT, ids=str)
def test_neighbouring_slots_are_uncorrelated(law: Law, key: Key) -> None:
    out = np.empty(2**20, dtype=np.int64)
    NoiseStream(law, key).fill(out, 0)
    for lag in (1, 2, 3):
        assert abs(np.corrcoef(out[:-lag], out[lag:])[0, 1]) < 4 / 2**10


def test_noise_of_a_tiny_scale_is_zero(key: Key) -> None:
    out = np.empty(2**16, dtype=np.int64)
    NoiseStream(DiscreteGaussian(Fraction(1, 100)), key).fill(out, 0)
    assert not out.any()


@pytest.mark.parametrize("law", CUT, ids=str)
def test_noise_is_the_same_however_calls_are_cut(law: Law, key: Key) -> None:
    whole = np.empty(70_000, dtype=np.int64)
    NoiseStream(law, key).fill(whole, 5)
    cuts = [0, 1, 2, 3, 10, 10, 33_000, 65_999, 70_000]
    stream, pieces = NoiseStream(law, key), np.empty(70_000, dtype=np.int64)
    for start, stop in reversed(list(pairwise(cuts))):
        stream.fill(pieces[start:stop], 5 + start)
    assert (pieces == whole).all()


@pytest.mark.parametrize("law", CUT, ids=str)
def test_other_keys_and_slots_give_other_noise(law: Law, key: Key) -> None:
    noise = np.empty((3, 1000), dtype=np.int64)
    NoiseStream(law, key).fill(noise[0], 0)
    NoiseStream(law, key).fill(noise[1], 1000)
    NoiseStream(law, key.derive("other")).fill(noise[2], 0)
    correlations = np.array(np.corrcoef(noise))[np.triu_indices(3, 1)]
    assert (np.abs(correlations) < 0.15).all()


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (CUT[0], [-20, -35, -48, 42]),
        (CUT[1], [-1496646, -1223253, 387709, -974964]),
        (CUT[2], [-1988166, -1509973, 346749, -1114228]),
    ],
    ids=str,
)
def test_the_noise_of_a_key_never_changes(law: Law, expected: list[int], key: Key) -> None:
    out = np.empty(4, dtype=np.int64)
    NoiseStream(law, key).fill(out, 123_456_789)
    assert out.tolist() == expected


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.float64])
def test_only_int64_is_written(dtype: type, key: Key) -> None:
    with pytest.raises(TypeError, match="int64"):
        NoiseStream(CUT[0], key).fill(np.zeros(8, dtype=dtype), 0)
