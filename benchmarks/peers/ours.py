"""Treetop itself, run as the others are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import treetop as tt
from benchmarks.peers.common import Release, Square, serve


def prepare(square: Square) -> Callable[[], Release]:
    """Codes, spine and plan are public; the clock runs from the table of records to the release."""
    names = pa.array([f"{region:02}{zone:03}" for zone, region in enumerate(square.region)])
    places = tt.Hierarchy.from_prefixes(names.to_pylist(), widths=[2], levels=["region", "zone"])
    records = pa.table(
        {"origin": names.take(pa.array(square.origin)), "destination": names.take(pa.array(square.destination))}
    )
    plan = tt.Plan(
        tt.Spine.destination_first(origin=places, destination=places),
        tt.Unit("trip", contributions=1, neighbours="replace"),
        tt.Loss(epsilon=square.epsilon, delta=square.delta),
        margins="none" if square.plain else "each",
    )
    if abs(float(plan.spent) / square.rho - 1) > 0.001:
        raise SystemExit(f"this plan spends rho {float(plan.spent)}, and the others are to spend {square.rho}")
    order = [plan.spine.trees[0].codes[-1].to_pylist().index(name) for name in names.to_pylist()]
    back = np.argsort(order)

    def run() -> Release:
        release = tt.make_release(plan, records, tt.RunOptions(threads=1))
        leaves = np.zeros((square.zones, square.zones), np.int64)
        ends = dict(zip(plan.spine.attributes, release.nodes, strict=True))
        leaves[back[ends["origin"]], back[ends["destination"]]] = release.count
        return {"leaves": leaves}

    return run


if __name__ == "__main__":
    serve(
        prepare,
        "as a plan is by default: top down, every level, and margins; total public",
        f"Treetop {tt.__version__}",
    )
