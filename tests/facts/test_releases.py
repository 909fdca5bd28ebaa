"""Releases keep facts: whatever the noise, the spine, the margins and the repair, for facts that are true."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import treetop as tt
from treetop.errors import FactError

PLACE = tt.Hierarchy.from_prefixes(["AX1", "AX2", "AY1", "BX1", "BX2", "BZ1"], [1, 2], ["state", "county", "tract"])
AGE = tt.Hierarchy.from_prefixes(["a1", "a2", "b1", "b2"], [1], ["band", "year"])
ATTRIBUTES = {"place": PLACE, "sex": tt.Hierarchy.flat(["f", "m"]), "age": AGE}
ORDERS = {
    "one by one": ["place.state", "sex", "place.county", "age.band", "place.tract", "age.year"],
    "places first": ["place.state", "place.county", "place.tract", "age.band", "age.year", "sex"],
    "sex first": ["sex", "age.band", "place.state", "age.year", "place.county", "place.tract"],
}
Rows = dict[str, NDArray[np.str_]]


def some_rows(seed: int, size: int = 120) -> Rows:
    """People of whom no man is in the first band of ages, and nobody of 'b2' in the county BX."""
    rng = np.random.default_rng(seed)
    rows = {name: rng.choice(tree.codes[-1].to_pylist(), size) for name, tree in ATTRIBUTES.items()}
    wrong = np.char.startswith(rows["age"], "a") & (rows["sex"] == "m")
    wrong |= (rows["age"] == "b2") & np.char.startswith(rows["place"], "BX")
    return {name: codes[~wrong] for name, codes in rows.items()}


def coarse(rows: Rows, name: str) -> list[str]:
    """Return the codes of rows at a level."""
    attribute, _, level = name.partition(".")
    width = {"state": 1, "county": 2, "band": 1}.get(level)
    return [str(code)[:width] for code in rows[attribute]]


def counted(rows: Rows, table: str) -> dict[Any, int]:
    """Return how many rows there are in each cell of a table that has any."""
    names = [name.strip() for name in table.split("*")]
    found: dict[Any, int] = {}
    for key in zip(*(coarse(rows, name) for name in names), strict=True):
        cell = key[0] if len(key) == 1 else key
        found[cell] = found.get(cell, 0) + 1
    return found


def every_cell(table: str) -> list[Any]:
    names = [name.strip().partition(".") for name in table.split("*")]
    trees = [(ATTRIBUTES[attribute], level) for attribute, _, level in names]
    listed = [tree.codes[tree.depth(level) if level else 0].to_pylist() for tree, level in trees]
    return [key[0] if len(key) == 1 else key for key in product(*listed)]


def exact(rows: Rows, table: str) -> dict[Any, int]:
    own = counted(rows, table)
    return {cell: own.get(cell, 0) for cell in every_cell(table)}


def around(rows: Rows, table: str, seed: int) -> tt.Fact:
    """Return bounds of some cells that the rows keep."""
    rng, own = np.random.default_rng(seed), exact(rows, table)
    below = {cell: max(count - int(rng.integers(3)), 0) for cell, count in own.items() if rng.random() < 0.5}
    above = {cell: count + int(rng.integers(3)) for cell, count in own.items() if rng.random() < 0.5}
    return tt.Fact(at_least=below or None, at_most=above or {next(iter(own)): own[next(iter(own))] + 1})


MARRIED = {"sex * age.band": tt.Fact(impossible=[("m", "a")])}
NOBODY = {"place.county * age.year": tt.Fact(impossible=[("BX", "b2")])}


def some_facts(kind: str, rows: Rows, order: str, seed: int) -> Any:
    """Return facts of a kind that a plan with an order can keep."""
    first = {"one by one": "place.state", "places first": "place.state", "sex first": "sex"}[order]
    second = {
        "one by one": "place.state * sex",
        "places first": "place.tract * age.band",
        "sex first": "sex * age.band * place.state",
    }[order]
    return {
        "first level": {first: exact(rows, first)},
        "second level": {second: exact(rows, second)},
        "bounds": {second: around(rows, second, seed)},
        "first level and bounds": {first: exact(rows, first), second: around(rows, second, seed)},
        "one attribute": {"age.year": exact(rows, "age.year")},
        "two attributes": {"age.band": exact(rows, "age.band"), "place.tract": exact(rows, "place.tract")},
        "bounds of attributes": {
            "age.year": around(rows, "age.year", seed),
            "place.county": around(rows, "place.county", seed),
        },
        "zeros": MARRIED,
        "more zeros": MARRIED | NOBODY,
        "no tract": {"place.tract": tt.Fact(impossible=["AX2"])},
        "zeros and first level": MARRIED | NOBODY | {first: exact(rows, first)},
        "zeros and bounds": MARRIED | {second: around(rows, second, seed)},
        "invariant": {first: tt.Fact(invariant=True)},
        "invariant beside": {"place.county": tt.Fact(invariant=True)},
    }[kind]


KINDS = (
    "first level", "second level", "bounds", "first level and bounds", "one attribute", "two attributes",
    "bounds of attributes", "zeros", "more zeros", "no tract", "zeros and first level", "zeros and bounds", "invariant",
    "invariant beside",
)  # fmt: skip


def as_table(rows: Rows) -> pa.Table:
    return pa.table({name: pa.array(codes.tolist()) for name, codes in rows.items()})


def without(rows: Rows, attribute: str, code: str) -> Rows:
    there = rows[attribute] != code
    return {name: codes[there] for name, codes in rows.items()}


def released(release: tt.Release, table: str) -> dict[Any, int]:
    """Return the released counts of a table, zeros included."""
    names = [name.strip() for name in table.split("*")]
    rows = release.table(names, intervals=False).to_pylist()
    own = {tuple(row[name] for name in names): row["count"] for row in rows}
    return {cell: own.get(cell if isinstance(cell, tuple) else (cell,), 0) for cell in every_cell(table)}


def assert_kept(release: tt.Release, facts: dict[str, Any], rows: Rows) -> None:
    for table, stated in facts.items():
        fact, own = tt.Fact.of(stated), released(release, table)
        if fact.invariant:
            assert own == exact(rows, table)
        for cell, count in (fact.exact or {}).items():
            assert own[cell] == count, (table, cell)
        for cell, count in (fact.at_least or {}).items():
            assert own[cell] >= count, (table, cell)
        for cell, count in (fact.at_most or {}).items():
            assert own[cell] <= count, (table, cell)
        for cell in fact.impossible or ():
            assert own[cell] == 0, (table, cell)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("margins", ["none", "each"])
@pytest.mark.parametrize("repair", ["chebyshev", "euclidean"])
def test_a_release_keeps_its_facts(order: str, kind: str, margins: str, repair: Any) -> None:
    for seed in range(3):
        rows = some_rows(seed)
        if kind == "no tract":
            rows = without(rows, "place", "AX2")
        facts = some_facts(kind, rows, order, seed)
        if kind == "bounds of attributes" and margins == "none":
            with pytest.raises(FactError, match="kept only where a margin is measured|no level of the spine"):
                make(order, facts, margins, repair)
            return
        plan = make(order, facts, margins, repair)
        release = tt.make_release(plan, as_table(rows), tt.RunOptions(testing_key=bytes([seed]) * 32))
        assert release.total == len(rows["sex"])
        assert_kept(release, facts, rows)


def make(order: str, facts: dict[str, Any], margins: Any = "each", repair: Any = "chebyshev", **more: Any) -> tt.Plan:
    spine = tt.Spine(ORDERS[order], ATTRIBUTES)
    unit = tt.Unit("person", 1, more.pop("neighbours", "replace"))
    loss = tt.Loss(epsilon=more.pop("epsilon", 1), delta=1e-6)
    return tt.Plan(spine, unit, loss, facts=facts, margins=margins, repair=repair, **more)
