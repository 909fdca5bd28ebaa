"""OpenDP's Polars interface: counts of all pairs of zones, with noise, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.peers.common import Release, Square, serve


def prepare(square: Square) -> Callable[[], Release]:
    """All pairs of zones are public keys. With epsilon and delta OpenDP takes Laplace noise here."""
    dp: Any = import_module("opendp.prelude")
    pl: Any = import_module("polars")
    dp.enable_features("contrib")
    zones = square.zones
    records = pl.LazyFrame({"o": square.origin.astype(np.int32), "d": square.destination.astype(np.int32)})
    origin, destination = (end.ravel().astype(np.int32) for end in np.indices((zones, zones)))
    keys = pl.LazyFrame({"o": origin, "d": destination})

    def run() -> Release:
        context = dp.Context.compositor(
            data=records,
            privacy_unit=dp.unit_of(changes=1),
            privacy_loss=dp.loss_of(epsilon=square.epsilon, delta=square.delta),
            split_evenly_over=1,
        )
        counts = context.query().group_by("o", "d").agg(dp.len(signed=True)).with_keys(keys).release().collect()
        leaves = np.zeros((zones, zones), np.int64)
        leaves[counts["o"].to_numpy(), counts["d"].to_numpy()] = counts["len"].to_numpy()
        return {"leaves": leaves}

    return run


if __name__ == "__main__":
    serve(prepare, "Laplace noise on all pairs; larger areas are sums", f"OpenDP {version('opendp')}", pure=True)
