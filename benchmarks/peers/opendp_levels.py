"""OpenDP's Polars interface: counts of every level by themselves, with a quarter of the loss each."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.peers.common import Release, Square, serve

LEVELS = {"1": ("dr",), "2": ("dr", "or"), "3": ("d", "or"), "leaves": ("o", "d")}


def prepare(square: Square) -> Callable[[], Release]:
    """Asked for rho, OpenDP takes Gaussian noise."""
    dp: Any = import_module("opendp.prelude")
    pl: Any = import_module("polars")
    dp.enable_features("contrib")
    region = square.region.astype(np.int32)
    columns = {
        "o": square.origin.astype(np.int32),
        "d": square.destination.astype(np.int32),
        "or": region[square.origin],
        "dr": region[square.destination],
    }
    records = pl.LazyFrame(columns)
    sizes = {"o": square.zones, "d": square.zones, "or": int(region.max()) + 1, "dr": int(region.max()) + 1}

    def run() -> Release:
        context = dp.Context.compositor(
            data=records,
            privacy_unit=dp.unit_of(changes=1),
            privacy_loss=dp.loss_of(rho=square.rho),
            split_evenly_over=len(LEVELS),
        )
        found = {}
        for name, by in LEVELS.items():
            shape = tuple(sizes[column] for column in by)
            index = [axis.ravel().astype(np.int32) for axis in np.indices(shape)]
            keys = pl.LazyFrame(dict(zip(by, index, strict=True)))
            counts = context.query().group_by(*by).agg(dp.len(signed=True)).with_keys(keys).release().collect()
            values = np.zeros(shape, np.int64)
            values[tuple(counts[column].to_numpy() for column in by)] = counts["len"].to_numpy()
            found[name] = values
        return found

    return run


if __name__ == "__main__":
    serve(prepare, "Gaussian noise on every level; levels do not add up", f"OpenDP {version('opendp')}")
