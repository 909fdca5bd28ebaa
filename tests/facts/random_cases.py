"""Random plans with random facts, true or not: what a release must do with any of them.

A case is a function of its number. Whatever it states, a release is refused before anything is charged, or it keeps
every fact, adds up, can be loaded from its folder, and is found to be in order by `check`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import treetop as tt
from treetop.errors import TreetopError

Rows = dict[str, NDArray[np.str_]]
HIERARCHIES = {
    "place": tt.Hierarchy.from_prefixes(
        ["AX1", "AX2", "AY1", "BX1", "BX2", "CZ1"], [1, 2], ["state", "county", "tract"]
    ),
    "age": tt.Hierarchy.from_prefixes(["a1", "a2", "b1", "c1", "c2"], [1], ["band", "year"]),
    "sex": tt.Hierarchy.flat(["f", "m"]),
    "home": tt.Hierarchy.flat(["own"]),
}
WIDTHS = {"state": 1, "county": 2, "tract": 3, "band": 1, "year": 2}
HUGE = (10**6, 10**12, 2**45, 2**57, 2**60, 2**62)


@dataclass(frozen=True, eq=False)
class Case:
    """One plan that may be nonsense, and the private table that it is run on."""

    number: int
    order: list[str]
    facts: dict[str, tt.Fact]
    rows: Rows
    options: dict[str, Any]
    unit: dict[str, Any] = field(default_factory=dict)
    loss: dict[str, Any] = field(default_factory=dict)

    @property
    def attributes(self) -> dict[str, tt.Hierarchy]:
        return {name: HIERARCHIES[name] for name in self.rows}

    def plan(self) -> tt.Plan:
        spine = tt.Spine(self.order, self.attributes)
        return tt.Plan(spine, tt.Unit("person", **self.unit), tt.Loss(**self.loss), facts=self.facts, **self.options)

    @property
    def levels(self) -> list[str]:
        """The tables that are levels of the spine, with their attributes in any order."""
        found: list[str] = []
        reached: dict[str, str] = {}
        for step in self.order:
            reached |= {split.partition(".")[0]: split for split in step.split(" * ")}
            found += [" * ".join(names) for names in permutations(reached.values())]
        return found

    @property
    def table(self) -> pa.Table:
        return pa.table({name: pa.array(codes.tolist(), pa.string()) for name, codes in self.rows.items()})


def case_of(number: int) -> Case:
    """Return the case of a number."""
    rng = np.random.default_rng([number, 20])
    names = list(rng.choice(list(HIERARCHIES), int(rng.integers(1, 4)), replace=False))
    order = _order(rng, names)
    rows = _rows(rng, names)
    true = rng.random() < 0.5
    facts: dict[str, tt.Fact] = {}
    for _ in range(int(rng.integers(1, 4))):
        table = _table(rng, order)
        if (fact := _fact(rng, table, rows, true)) is not None:
            facts[table] = fact
    neighbours = str(rng.choice(["replace", "replace", "add-remove"]))
    unit = {"contributions": int(rng.choice([1, 1, 2])), "neighbours": neighbours}
    unit |= {"may_be_missing": True} if rng.random() < 0.2 else {}
    losses: list[dict[str, Any]] = [
        {"epsilon": 1, "delta": 1e-6},
        {"epsilon": 10, "delta": 1e-6},
        {"epsilon": 2},
        {"rho": 1},
    ]
    return Case(number, order, facts, rows, _options(rng, order), unit, losses[int(rng.integers(4))])


def _levels(names: list[str]) -> list[list[str]]:
    return [[f"{name}.{level}" for level in HIERARCHIES[name].levels] for name in names]


def _order(rng: np.random.Generator, names: list[str]) -> list[str]:
    """Interleave the levels of attributes, leave some out, and merge some neighbours."""
    left = []
    for levels in _levels(names):
        kept = [level for level in levels[:-1] if rng.random() < 0.8] + levels[-1:]
        left.append(kept)
    steps: list[list[str]] = []
    while any(left):
        own = [levels for levels in left if levels]
        level = own[int(rng.integers(len(own)))].pop(0)
        attribute = level.partition(".")[0]
        merges = steps and rng.random() < 0.2 and attribute not in [one.partition(".")[0] for one in steps[-1]]
        if merges:
            steps[-1].append(level)
        else:
            steps.append([level])
    return [" * ".join(step) for step in steps]


def _rows(rng: np.random.Generator, names: list[str]) -> Rows:
    size = int(rng.choice([0, 1, 6, 60, 200]))
    rows = {}
    for name in names:
        leaves = HIERARCHIES[name].codes[-1].to_pylist()
        weight = rng.dirichlet(np.full(len(leaves), 0.7))
        rows[name] = rng.choice(np.array(leaves), size, p=weight)
    return rows


def _table(rng: np.random.Generator, order: list[str]) -> str:
    """Name a table: often one of a level of the spine, or of one attribute."""
    splits = [split for step in order for split in step.split(" * ")]
    chance = rng.random()
    if chance < 0.5:
        reached: dict[str, str] = {}
        for step in order[: int(rng.integers(1, len(order) + 1))]:
            reached |= {split.partition(".")[0]: split for split in step.split(" * ")}
        return " * ".join(reached.values())
    if chance < 0.8:
        return str(rng.choice(splits))
    by_attribute: dict[str, str] = {}
    for split in rng.permutation(splits):
        by_attribute[str(split).partition(".")[0]] = str(split)
    return " * ".join(list(by_attribute.values())[: int(rng.integers(1, 4))])


def cells_of(table: str) -> list[Any]:
    """Return all cells of a table, by their codes."""
    listed = []
    for name in table.split(" * "):
        attribute, _, level = name.partition(".")
        tree = HIERARCHIES[attribute]
        listed.append(tree.codes[tree.depth(level)].to_pylist())
    return [key[0] if len(key) == 1 else key for key in product(*listed)]


def counted(rows: Rows, table: str) -> dict[Any, int]:
    """Return how many rows each cell of a table has."""
    names = [name.partition(".") for name in table.split(" * ")]
    codes = [[str(code)[: WIDTHS.get(level)] for code in rows[attribute]] for attribute, _, level in names]
    found = dict.fromkeys(cells_of(table), 0)
    for key in zip(*codes, strict=True):
        found[key[0] if len(key) == 1 else key] += 1
    return found


def _fact(rng: np.random.Generator, table: str, rows: Rows, true: bool) -> tt.Fact | None:
    own = counted(rows, table)
    wrong = not true and rng.random() < 0.6
    unchecked = bool(rng.random() < (0.8 if wrong else 0.2))
    kind = rng.choice(["exact", "bounds", "zeros", "invariant"], p=[0.3, 0.3, 0.3, 0.1])
    if kind == "invariant":
        return tt.Fact(invariant=True)
    if kind == "zeros":
        empty = [cell for cell, count in own.items() if count == 0 or (wrong and rng.random() < 0.4)]
        chosen = [cell for cell in empty if rng.random() < rng.choice([0.3, 1.0])]
        if not chosen:
            return None
        if rng.random() < 0.3:
            return tt.Fact(possible=[cell for cell in own if cell not in chosen] or chosen, unchecked=unchecked)
        return tt.Fact(impossible=chosen, unchecked=unchecked)
    stated = {cell: _wrong(rng, count) if wrong else count for cell, count in own.items()}
    if kind == "exact":
        return tt.Fact(exact=stated, unchecked=unchecked)
    below = {cell: max(count - int(rng.integers(4)), 0) for cell, count in stated.items() if rng.random() < 0.5}
    above = {cell: count + int(rng.integers(4)) for cell, count in stated.items() if rng.random() < 0.5}
    which = rng.random()
    if not below and not above:
        return None
    if which < 0.3 and below:
        above = {}
    elif which < 0.6 and above:
        below = {}
    return tt.Fact(at_least=below or None, at_most=above or None, unchecked=unchecked)


def _wrong(rng: np.random.Generator, count: int) -> int:
    chance = rng.random()
    if chance < 0.4:
        return count
    if chance < 0.6:
        return 0
    return int(rng.integers(40)) if chance < 0.97 else int(rng.choice(HUGE))


def _options(rng: np.random.Generator, order: list[str]) -> dict[str, Any]:
    options: dict[str, Any] = {"repair": str(rng.choice(["chebyshev", "euclidean"]))}
    chance = rng.random()
    if chance < 0.4:
        options["margins"] = "none"
    elif chance < 0.6:
        options["margins"] = sorted({_table(rng, order) for _ in range(int(rng.integers(1, 3)))})
    resolve: list[Any] = ["full", "full", {"fdr": 0.1}, {"sigmas": 2}]
    options["resolve"] = resolve[int(rng.integers(4))]
    if rng.random() < 0.2:
        options["order"] = "descending"
    if rng.random() < 0.1:
        options["confidence"] = None
    return options


def verdict(case: Case, folder: Path | None) -> str:
    """Run a case; return "refused" or "released", or raise where it did neither as it must.

    With a folder to save it in, the release is also loaded again and checked.
    """
    charged: list[int] = []
    try:
        plan = case.plan()
        key = case.number.to_bytes(32, "little")
        release = tt.make_release(
            plan, case.table, tt.RunOptions(before_measuring=lambda: charged.append(1), testing_key=key, threads=1)
        )
    except TreetopError as problem:
        if charged:
            raise AssertionError("refused after it was charged") from problem
        return "refused"
    assert charged
    assert_kept(release, case)
    _assert_within(release, case)
    if folder is not None:
        saved = folder / f"case{case.number}"
        release.save(saved)
        again = tt.Release.load(saved)
        assert again.total == release.total and np.array_equal(again.count, release.count)
        findings = [finding for one in tt.check(saved) for finding in one.findings]
        assert not findings, findings
    return "released"


def released(release: tt.Release, table: str) -> dict[Any, int]:
    """Return the released counts of a table."""
    names = table.split(" * ")
    found = dict.fromkeys(cells_of(table), 0)
    for row in release.table(names, intervals=False).to_pylist():
        codes = tuple(row.get(name, row.get(name.partition(".")[0])) for name in names)
        found[codes[0] if len(codes) == 1 else codes] = row["count"]
    return found


def assert_kept(release: tt.Release, case: Case) -> None:
    """See that a release keeps the facts of its case."""
    assert release.total >= 0 and (release.count > 0).all()
    for table, fact in case.facts.items():
        own = released(release, table)
        # What is unresolved may belong to any cell, unless the table is a level: there, facts name their nodes.
        missing = 0 if table in case.levels else release.total - sum(own.values())
        exact = counted(case.rows, table) if fact.invariant else fact.exact or {}
        for cell, count in exact.items():
            assert own[cell] <= count <= own[cell] + missing, (table, cell, own[cell], count)
        for cell, count in (fact.at_least or {}).items():
            assert own[cell] + missing >= count, (table, cell, own[cell], count)
        for cell, count in (fact.at_most or {}).items():
            assert own[cell] <= count, (table, cell, own[cell], count)
        for cell in fact.impossible or ():
            assert own[cell] == 0, (table, cell, own[cell])
        if fact.possible is not None:
            assert all(count == 0 for cell, count in own.items() if cell not in fact.possible), table


def _assert_within(release: tt.Release, case: Case) -> None:
    """See that intervals leave out what facts rule out, and none is empty."""
    if case.options.get("confidence", 1) is None:
        return
    for level in release.spine.levels:
        for row in release.level(level.name).to_pylist():
            assert 0 <= row["lower"] <= row["upper"], row
