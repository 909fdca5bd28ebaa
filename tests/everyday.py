"""The everyday plan: trips between the towns of two regions, counted by both ends, with every single trip protected.

A test that needs a plan, and none in particular, takes this one; what it is about, it says as a change to it.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import treetop as tt
from treetop.counts.graph_reader import Edges, Nodes
from treetop.measure.vectors import Degrees, measured_degrees, measured_groups
from treetop.noise import Key
from treetop.noise.gate import Charge, Gate

TOWNS = ("n1", "n2", "s1", "s2", "s3")
TRIP = tt.Unit("trip", neighbours="replace")

PLAN = """
title = "Trips"
[attributes.origin]
column = "home"
hierarchy = "places.csv"
levels = ["region", "town"]
[attributes.destination]
column = "work"
same_as = "origin"
[spine]
order = "destination-first"
[unit]
entity = "trip"
contributions = 1
neighbours = "replace"
[loss]
epsilon = 1.0
delta = 1e-8
[data]
"""


def plan_file(*changes: tuple[str, str], data: str = "") -> str:
    """The text of the plan file; each change is a text and what stands in its place, `data` more about the data."""
    text = PLAN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text + data


def places() -> tt.Hierarchy:
    regions = [town[0].upper() for town in TOWNS]
    return tt.Hierarchy.from_table(pa.table({"region": regions, "town": TOWNS}), levels=["region", "town"])


def plan(loss: tt.Loss | None = None, **options: Any) -> tt.Plan:
    """The plan in Python; `columns={"origin": "home", "destination": "work"}` of a table are those of the file."""
    spine = tt.Spine.destination_first(origin=places(), destination=places())
    return tt.Plan(spine, TRIP, loss or tt.Loss(epsilon=1, delta=1e-8), **{"title": "Trips", **options})


def write(folder: Path, text: str = PLAN, trips: int = 600) -> Path:
    """Write the plan file with its hierarchy and a private table of trips, and return the folder."""
    rng = random.Random(1)
    rows = "".join(f"{rng.choice(TOWNS)},{rng.choice(TOWNS)}\n" for _ in range(trips))
    (folder / "places.csv").write_text("region,town\n" + "".join(f"{town[0].upper()},{town}\n" for town in TOWNS))
    (folder / "plan.toml").write_text(text)
    (folder / "trips.csv").write_text(f"home,work\n{rows}")
    return folder


def measure_degrees(
    plan: tt.Plan, nodes: Nodes, edges: Edges, charge: Charge | None = None, testing_key: bytes | None = None
) -> Degrees:
    """The degrees of a graph that has been read, without a card."""
    with measured_degrees(plan, nodes, edges, Gate(testing_key), charge) as found:
        return found


def measure_sizes(
    plan: tt.Plan, sizes: tt.GroupSizes, key: Key | None = None, charge: Charge | None = None, threads: int = 1
) -> NDArray[np.int64]:
    """The released sizes of all regions, from the root down, without a card."""
    with measured_groups(plan, sizes, Gate(key), charge, threads) as found:
        return found.counts
