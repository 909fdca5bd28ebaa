"""How long OpenDP's exact discrete Gaussian takes for one sample."""

from __future__ import annotations

import time
from importlib.metadata import version

import opendp.prelude as dp


def seconds_per_sample(scale: float, n: int = 100_000, repeats: int = 3) -> float:
    """Seconds a sample when OpenDP adds noise to a vector of `n` zeros: the best of `repeats` calls.

    One call for a vector: a call for each sample costs about eight times as much, in crossing from Python to
    Rust. The width of the integers, the type of the distance and a known length make no difference.
    """
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    mechanism = dp.m.make_gaussian(*space, scale=scale)
    zeros = [0] * n
    mechanism(zeros[:100])
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        mechanism(zeros)
        best = min(best, time.perf_counter() - start)
    return best / n


def main() -> None:
    print(f"OpenDP {version('opendp')}, discrete Gaussian over a vector of integers")
    for scale in (5.0, 50.0, 500.0):
        seconds = seconds_per_sample(scale)
        print(f"scale {scale:5g}: {seconds * 1e9:8,.0f} ns a sample, {1 / seconds:10,.0f} samples a second")


if __name__ == "__main__":
    main()
