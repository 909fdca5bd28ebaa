"""(a) Exact discrete Gaussian samples a second, over OpenDP's vector mechanism; one thread each."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.opendp_gaussian import seconds_per_sample
from benchmarks.timing import median_seconds
from treetop.noise import DiscreteGaussian, Key, NoiseStream

CHUNK = 1 << 15
SAMPLES = 100 * CHUNK


def fill(stream: NoiseStream, out: NDArray[np.int64]) -> None:
    for slot in range(0, SAMPLES, CHUNK):
        stream.fill(out, slot)


def rows() -> list[tuple[str, str, str, str]]:
    found = []
    for scale in (5, 50, 500):
        stream = NoiseStream(DiscreteGaussian(Fraction(scale**2)), Key.fresh())
        ours = median_seconds(partial(fill, stream, np.empty(CHUNK, np.int64))) / SAMPLES
        theirs = seconds_per_sample(scale, n=50_000)
        beside = f"OpenDP {theirs * 1e6:.1f} µs"
        found.append((f"(a) noise, scale {scale}", f"{ours * 1e9:.1f} ns", beside, f"{theirs / ours:,.0f} ×"))
    return found
