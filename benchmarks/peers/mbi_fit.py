"""`mbi` (Private-PGM): every level measured with Gaussian noise, then the table of largest entropy that fits best.

It adds no noise and keeps no account itself: the noise is NumPy's, which is good enough for errors and not for privacy.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.peers.common import Release, Square, serve

ITERATIONS = 10_000
"""Ten times its default, with which it stopped far from the fit when that was tried."""


def prepare(square: Square) -> Callable[[], Release]:
    """The four levels as linear queries on one clique; the total is known."""
    jax: Any = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mbi: Any = import_module("mbi")
    jnp = jax.numpy
    cells = square.cells()
    regions, zones = int(square.region.max()) + 1, square.zones
    member = np.zeros((regions, zones))
    member[square.region, np.arange(zones)] = 1
    one_hot = jnp.asarray(member)

    def table(factor: Any) -> Any:
        return factor.datavector().reshape(zones, zones)

    queries: list[Callable[[Any], Any]] = [
        lambda factor: one_hot @ table(factor).sum(axis=0),
        lambda factor: (one_hot @ table(factor) @ one_hot.T).ravel(),
        lambda factor: (one_hot @ table(factor)).ravel(),
        lambda factor: factor.datavector(),
    ]
    truth = [member @ cells.sum(axis=0), (member @ cells @ member.T).ravel(), (member @ cells).ravel(), cells.ravel()]
    # One trip exchanged for another: Δ₂² = 2 at each level, and each has a quarter of rho.
    deviation = math.sqrt(2 / (2 * square.rho / len(queries)))
    domain = mbi.Domain(["o", "d"], [zones, zones])
    rng = np.random.default_rng()

    def run() -> Release:
        measurements = [
            mbi.LinearMeasurement(true + rng.normal(0, deviation, len(true)), ("o", "d"), deviation, query)
            for true, query in zip(truth, queries, strict=True)
        ]
        model = mbi.estimation.MirrorDescent().estimate(
            domain, measurements, known_total=float(cells.sum()), iters=ITERATIONS
        )
        return {"leaves": np.asarray(model.project(("o", "d")).datavector()).reshape(zones, zones)}

    return run


if __name__ == "__main__":
    about = f"Gaussian noise on every level, fitted by {ITERATIONS:,} steps; total public; real numbers"
    serve(prepare, about, f"mbi {version('mbi')}")
