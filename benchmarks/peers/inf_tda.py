"""The public reference of InfTDA, `inf-tda` 0.1: a release of the whole table, consistent and whole."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.peers.common import Release, Square, loose_epsilon, serve


def prepare(square: Square) -> Callable[[], Release]:
    """Its index must list the whole domain, so the empty cells are filled in first, outside of the clock.

    It takes an epsilon, and finds rho by the looser conversion: it is given the epsilon that makes that the common rho.
    """
    pandas: Any = import_module("pandas")
    reference: Any = import_module("InfTDA")
    cells = square.cells().T  # destinations first
    destination, origin = (zone.ravel() for zone in np.indices(cells.shape))
    index = pandas.MultiIndex.from_arrays([square.region[destination], square.region[origin], destination, origin])
    data = pandas.Series(cells.ravel(), index=index)

    def run() -> Release:
        released = reference.inf_tda(
            data,
            (loose_epsilon(square.rho, square.delta), square.delta),
            contribution=1,
            privacy_type="bounded",
            distinct_tuples=True,
        )
        full = released.reindex(data.index, fill_value=0).to_numpy()
        return {"leaves": full.reshape(cells.shape).T}

    return run


if __name__ == "__main__":
    serve(prepare, "top down, every level; total public", f"inf-tda {version('inf-tda')}")
