"""A small release folder of each kind, for tests that edit or save them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import treetop as tt
from tests.commands import said
from treetop.release.folder import drafted

from .conftest import people

KEY = bytes(range(32))
PLACE = tt.Hierarchy.from_table(
    pa.table(
        {"region": ["N", "N", "S", "S"], "town": ["n1", "n2", "s1", "s2"], "name": ["North", "North", "South", "South"]}
    ),
    levels=["region", "town"],
    names={"region": "name"},
)
SEX = tt.Hierarchy.flat(["f", "m"])
SPINE = tt.Spine(["place.region", "sex", "place.town"], {"place": PLACE, "sex": SEX})
CROSSED = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
TRIP, PERSON = tt.Unit("trip", neighbours="replace"), tt.Unit("person", neighbours="add-remove")
LOSS = tt.Loss(rho=2)


def trips(rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(3)
    ends = [np.array(["n1", "n2", "s1"])[rng.integers(0, 3, rows)] for _ in range(2)]
    return pa.table(dict(zip(("origin", "destination"), ends, strict=True)))


def few() -> pa.Table:
    """A table with so few records that some of them are left unresolved."""
    return pa.table({"place": ["n1", "n2", "s1", "s1", "s2"] * 4, "sex": ["f", "m", "m", "f", "f"] * 4})


def without_n2() -> pa.Table:
    table = people()
    return table.filter(pc.not_equal(table["place"], "n2"))


FACTS: Mapping[str, tt.Fact] = {
    "place.region": tt.Fact(invariant=True),
    "place.region * sex": tt.Fact(at_least={("N", "f"): 1}, at_most={("S", "m"): 999}, unchecked=True),
    "place.town": tt.Fact(impossible=["n2"]),
}
CROSSING = ["origin.town * destination.region", "origin.region * destination.town"]
PLANS: Mapping[str, tuple[Callable[[], pa.Table], dict[str, Any], dict[str, Any]]] = {
    "exact total": (people, {"spine": SPINE, "unit": TRIP, "margins": "none"}, {"nodes": True}),
    "measured total": (people, {"spine": SPINE, "unit": PERSON, "margins": "none"}, {}),
    "no intervals": (people, {"spine": SPINE, "unit": TRIP, "margins": "none", "confidence": None}, {}),
    "margins": (trips, {"spine": CROSSED, "unit": TRIP}, {}),
    "crossing margins": (trips, {"spine": CROSSED, "unit": TRIP, "margins": CROSSING}, {}),
    "facts": (without_n2, {"spine": SPINE, "unit": TRIP, "facts": FACTS, "margins": "none"}, {}),
    "unresolved": (few, {"spine": SPINE, "unit": PERSON, "resolve": {"sigmas": 4}, "margins": "none"}, {"nodes": True}),
    "unresolved, margins": (trips, {"spine": CROSSED, "unit": TRIP, "resolve": {"fdr": 0.05}}, {}),
    "lower error": (people, {"spine": SPINE, "unit": PERSON, "prefer": "lower-error", "margins": "none"}, {}),
    "lower error, margins": (trips, {"spine": CROSSED, "unit": TRIP, "prefer": "lower-error"}, {}),
    "parts": (people, {"spine": SPINE, "unit": PERSON, "margins": "none"}, {"nodes": True, "part": 2}),
    "parts, margins": (trips, {"spine": CROSSED, "unit": TRIP}, {"part": 3}),
    "parts, facts": (without_n2, {"spine": SPINE, "unit": TRIP, "facts": FACTS, "margins": "none"}, {"part": 2}),
    "parts, no intervals": (people, {"spine": SPINE, "unit": TRIP, "margins": "none", "confidence": None}, {"part": 2}),
}


def of_plan(kind: str, folder: Path) -> None:
    table, about, options = PLANS[kind]
    tt.make_release(tt.Plan(loss=LOSS, **about), table(), tt.RunOptions(testing_key=KEY)).save(folder, **options)


def with_places(folder: Path) -> None:
    """A release with coordinates and names of its towns."""
    plan = tt.Plan(SPINE, TRIP, LOSS, margins="none")
    columns = {"code": PLACE.codes[-1], "latitude": [45.0, 46, 40, 41], "longitude": [9.0, 10, 11, 12]}
    towns = pa.table(columns | {"name": ["N one", "N two", "S one", "S two"]})
    release = tt.make_release(plan, people(), tt.RunOptions(testing_key=KEY))
    with drafted(release, folder, places={PLACE.digest: towns}) as draft:
        draft.place()


PLACES = "region,town\nN,n1\nN,n2\nS,s1\n"
HOMES = "town,persons,homes\nn1,0,30\nn1,1,60\nn1,9,10\nn2,2,100\ns1,1,40\ns1,3,60\n"
GROUPS = """
[attributes.place]
column = "town"
hierarchy = "places.csv"
levels = ["region", "town"]
[groups]
rows = "histogram"
size = "persons"
largest = 3
number = 300
event = "join-leave"
[unit]
entity = "person"
[loss]
epsilon = 2
[data]
source = "sizes.csv"
count = "homes"
"""
BY_REGION = GROUPS.replace("number = 300", 'public = "regions"\nlist = "homes.csv"')
DEGREES = """
[graph]
counts = "degrees"
nodes = "nodes.csv"
edges = "edges.csv"
relation = "edge"
largest = 5
[unit]
neighbours = "add-remove"
[loss]
epsilon = 4
delta = 1e-8
"""
BY_PLACE = """
[attributes.place]
column = "town"
hierarchy = "places.csv"
levels = ["region", "town"]
"""
EDGES = """
[graph]
nodes = "nodes.csv"
edges = "edges.csv"
relation = "user-out"
directed = true
[attributes.origin]
column = "source.town"
hierarchy = "places.csv"
levels = ["region", "town"]
[attributes.destination]
column = "target.town"
same_as = "origin"
[spine]
order = "origin-first"
[unit]
contributions = 3
neighbours = "add-remove"
[loss]
epsilon = 4
delta = 1e-8
"""
FILES = {
    "groups": GROUPS,
    "degrees": DEGREES,
    "degrees, histogram": DEGREES.replace("largest = 5", 'largest = 5\nform = "histogram"'),
    "degrees, theta chosen": DEGREES.replace('"edge"', '"node"').replace("largest = 5", "largest = [3, 5]"),
    "degrees by place": DEGREES + BY_PLACE,
    "graph": EDGES,
}


def of_file(kind: str, folder: Path) -> None:
    """A release by a plan file, with its tables beside it."""
    beside = folder.parent / f"{folder.name} tables"
    beside.mkdir()
    rng = np.random.default_rng(7)
    nodes = [f"{number},{('n1', 'n2', 's1')[number % 3]}" for number in range(60)]
    pairs = sorted({(int(a), int(b)) for a, b in rng.integers(0, 60, (150, 2)) if a != b})
    tables = {
        "plan.toml": FILES[kind],
        "places.csv": PLACES,
        "sizes.csv": HOMES,
        "nodes.csv": "\n".join(["id,town", *nodes, ""]),
        "edges.csv": "\n".join(["source,target", *(f"{a},{b}" for a, b in pairs), ""]),
    }
    for name, text in tables.items():
        (beside / name).write_text(text, encoding="utf-8")
    told = said(("release", beside / "plan.toml", "--out", folder, "--quiet", "--testing-key", KEY.hex()))
    assert told.code == 0, told.err


KINDS = (*PLANS, "places", *FILES)
"""All kinds of release folder."""


def make(kind: str, folder: Path) -> Path:
    """Write a small release folder of a kind."""
    if kind == "places":
        with_places(folder)
    elif kind in PLANS:
        of_plan(kind, folder)
    else:
        of_file(kind, folder)
    return folder
