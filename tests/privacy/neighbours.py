"""Tiny public trees, and pairs of private tables that the guarantee must not tell apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pyarrow as pa

import treetop as tt
from treetop import Counts, Split
from treetop.privacy import Neighbours

Rows = Mapping[str, int]
"""A private table: how many records each leaf has. A leaf of several attributes is written "origin>destination"."""

TREES: dict[str, tuple[list[str], list[int]]] = {
    "two leaves": (["A", "B"], []),
    "three leaves": (["A", "B", "C"], []),
    "two by two": (["A1", "A2", "B1", "B2"], [1]),
    "an only child": (["A1", "B1", "B2"], [1]),
    "three levels": (["A1x", "A1y", "A2x", "B1x", "B1y", "B2x"], [1, 2]),
}
PAIRS_OF_PLACES = "pairs of places"
MERGED_PAIRS = "merged pairs of places"
PAIRS_BOTTOM_UP = "pairs of places, bottom up"
KNOWN_LOSSES: dict[str, dict[str, Any]] = {
    "approximate": {"epsilon": 3, "delta": 0.01, "large_delta": True},
    "rho": {"rho": Fraction(1, 2)},
    "pure": {"epsilon": 2},
}
GENEROUS_LOSSES: dict[str, dict[str, Any]] = {
    "approximate": {"epsilon": 6, "delta": 0.02},
    "rho": {"rho": 2},
    "pure": {"epsilon": 8},
}
"""At which noise is narrow even for several records, so that the laws of releases are soon computed."""
SPLITS: dict[str, tuple[int, int, int] | None] = {"even": None, "top-heavy": (5, 3, 1), "bottom-heavy": (1, 2, 6)}
"""Weights of the total and of the two levels of "two by two"."""
EXACT: dict[str, Any] = {"epsilon": 3, "delta": 0.01, "large_delta": True, "accounting": "exact"}


def split_of(weights: tuple[int, int, int] | None, total_is_measured: bool, exact: bool = False) -> dict[str, Any]:
    """The option of a plan on "two by two" that divides the loss by these weights, or by the same as exact shares."""
    if weights is None:
        return {}
    measured = dict(zip(("total", "place.digits1", "place.digits2"), weights, strict=True))
    if not total_is_measured:
        del measured["total"]
    if not exact:
        return {"split": measured}
    return {"split": Split({name: Fraction(weight, sum(measured.values())) for name, weight in measured.items()})}


def spine(tree: str) -> tt.Spine:
    if tree in (PAIRS_OF_PLACES, MERGED_PAIRS, PAIRS_BOTTOM_UP):
        place = tt.Hierarchy.from_prefixes(["A1", "A2", "B1"], widths=[1])
        if tree == PAIRS_BOTTOM_UP:
            return tt.Spine.bottom_up({"destination": place, "origin": place})
        order = tt.Spine.merged if tree == MERGED_PAIRS else tt.Spine.destination_first
        return order(origin=place, destination=place)
    codes, widths = TREES[tree]
    if not widths:
        return tt.Spine(["place"], {"place": tt.Hierarchy.flat(codes)})
    place = tt.Hierarchy.from_prefixes(codes, widths=widths)
    return tt.Spine([f"place.{level}" for level in place.levels], {"place": place})


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables, and the plan under which they must look alike."""

    about: str
    one: Rows
    other: Rows
    tree: str = "two by two"
    neighbours: Neighbours = "replace"
    contributions: int = 1
    loss: Mapping[str, Any] = field(default_factory=lambda: KNOWN_LOSSES["approximate"])
    options: Mapping[str, Any] = field(default_factory=dict)

    def plan(self) -> tt.Plan:
        """Make the plan anew, so that nothing is remembered from before a fault was made."""
        options = dict(self.options)
        unit = tt.Unit("person", self.contributions, self.neighbours, per_node=options.pop("per_node", None))
        return tt.Plan(spine(self.tree), unit, tt.Loss(**self.loss), **options)

    def __str__(self) -> str:
        loss = " ".join(f"{name}={value}" for name, value in self.loss.items())
        options = "".join(f", {name}={value}" for name, value in self.options.items())
        return f"{self.about}, {self.tree}, {self.neighbours}, m={self.contributions}, {loss}{options}"


def counts_of(plan: tt.Plan, rows: Rows) -> Counts:
    """Count a table; a code that no hierarchy has is a row that the plan drops."""
    number = [{code: i for i, code in enumerate(tree.codes[-1].to_pylist())} for tree in plan.spine.attributes.values()]
    known = {
        tuple(number[i][code] for i, code in enumerate(leaf.split(">"))): count
        for leaf, count in rows.items()
        if all(code in number[i] for i, code in enumerate(leaf.split(">")))
    }
    leaves = [np.array([leaf[i] for leaf in known], np.int64) for i in range(len(number))]
    return Counts.from_leaves(plan.spine, leaves, np.array(list(known.values()), np.int64))


def table_of(plan: tt.Plan, rows: Rows) -> pa.Table:
    """Write a table out, a row a record."""
    codes = [leaf.split(">") for leaf, count in rows.items() for _ in range(count)]
    columns = zip(*codes, strict=True) if codes else [()] * len(plan.spine.attributes)
    return pa.table(
        {name: pa.array(column, pa.string()) for name, column in zip(plan.spine.attributes, columns, strict=True)}
    )


def leaves_of(tree: str) -> list[str]:
    attributes = [hierarchy.codes[-1].to_pylist() for hierarchy in spine(tree).attributes.values()]
    return [">".join(codes) for codes in product(*attributes)]


def moved(rows: Rows, gone: tuple[str, ...], come: tuple[str, ...]) -> dict[str, int]:
    """Exchange one unit's records for another's."""
    after = dict(rows)
    for leaf in gone:
        after[leaf] -= 1
    for leaf in come:
        after[leaf] = after.get(leaf, 0) + 1
    return {leaf: count for leaf, count in after.items() if count}


def every_neighbour(unit: tt.Unit, tree: str, may_be_dropped: bool = False) -> Iterator[tuple[Rows, Rows]]:
    """All the ways in which one unit can differ, on a table that has room for each.

    Under `replace` with one record each both sides have exactly one, unless it may be dropped; with more, a unit may
    have fewer, or none.
    """
    leaves = leaves_of(tree)
    most = unit.contributions
    table = dict.fromkeys(leaves, most)
    always_one = unit.neighbours == "replace" and most == 1 and not may_be_dropped
    units = [
        records
        for size in range(1 if always_one else 0, most + 1)
        for records in combinations_with_replacement(leaves, size)
        if _within_caps(unit, records)
    ]
    for gone in units:
        for come in units if unit.neighbours == "replace" else [()]:
            yield table, moved(table, gone, come)


def _within_caps(unit: tt.Unit, records: tuple[str, ...]) -> bool:
    """Whether no node has more of the records than the unit's caps allow; levels are called "place.digits2"."""
    return all(
        max(Counter(code[: int(level[-1])] for code in records).values(), default=0) <= cap
        for level, cap in unit.per_node.items()
    )


def exact_pairs() -> list[Pair]:
    """The pairs whose laws of release are computed in full, through the engine itself."""
    rho, pure = KNOWN_LOSSES["rho"], KNOWN_LOSSES["pure"]
    steep = {"split": {"place.digits1": 1, "place.digits2": 3}}
    return [
        Pair("to a sibling", {"A1": 2}, {"A1": 1, "A2": 1}),
        Pair("to another branch", {"A1": 2, "B1": 1}, {"A1": 1, "B1": 1, "B2": 1}),
        Pair("to another branch", {"A1": 2}, {"A1": 1, "B2": 1}, options=steep),
        Pair("to another branch", {"A1": 1, "A2": 1}, {"A1": 1, "B2": 1}, options={"repair": "euclidean"}),
        Pair("to another branch", {"A1": 1, "A2": 1}, {"A1": 1, "B2": 1}, options={"order": "descending"}),
        Pair("to another branch", {"A1": 2}, {"A1": 1, "B2": 1}, loss=rho),
        Pair("to another branch", {"A1": 2}, {"A1": 1, "B2": 1}, loss=pure),
        Pair("to a sibling", {"A1": 2}, {"A1": 1, "A2": 1}, loss=pure, options=steep),
        Pair("to another branch", {"A1": 2}, {"A1": 1, "B2": 1}, loss=EXACT),
        Pair("into an empty leaf", {"A": 2}, {"A": 1, "C": 1}, tree="three leaves"),
        Pair("into an empty leaf", {"A": 2}, {"A": 1, "C": 1}, tree="three leaves", loss=pure),
        Pair("to an only child", {"B1": 2}, {"B1": 1, "A1": 1}, tree="an only child"),
        Pair("down three levels", {"A1x": 2}, {"A1x": 1, "B1y": 1}, tree="three levels"),
        Pair("down three levels", {"A1x": 2}, {"A1x": 1, "B1y": 1}, tree="three levels", loss=pure),
        Pair("the only record", {"A1": 1}, {}, neighbours="add-remove"),
        Pair("one of two", {"A1": 1, "B1": 1}, {"A1": 1}, neighbours="add-remove"),
        Pair("one of two", {"A1": 1, "B1": 1}, {"A1": 1}, neighbours="add-remove", loss=pure),
        Pair("one of two", {"A": 1, "B": 1}, {"A": 1}, tree="three leaves", neighbours="add-remove", loss=rho),
        Pair("a dropped record", {"A1": 1}, {"?": 1}, options={"unknown": "drop"}),
    ]


def placements(most: int) -> list[tuple[str, Rows, Rows]]:
    """Where up to so many records of one unit lie, and where those of another that it is exchanged for."""
    if most == 1:
        return [("next door", {"A1": 1}, {"A2": 1}), ("elsewhere", {"A1": 1}, {"B1": 1})]
    spread = dict.fromkeys(("A1", "B1", "B2")[:most], 1)
    return [
        ("in one cell", {"A1": most}, {"B1": most}),
        ("in cells of one parent", {"A1": 1, "A2": most - 1}, {"B1": 1, "B2": most - 1}),
        ("spread", spread, {"A2": most}),
        ("fewer records", {"A1": 1}, {"B1": most}),
    ]


def grid(whole: bool) -> list[Pair]:
    """Pairs for every relation, contribution, placement, kind of loss and split: all of them, or a third.

    In the third every placement meets every loss and every split, except that Laplace noise for three records is
    divided evenly: where its share is small, it is so wide that the law takes seconds.
    """
    pairs = []
    relations: list[Neighbours] = ["replace", "add-remove"]
    for neighbours, most in product(relations, (1, 2, 3)):
        ways = product(enumerate(placements(most)), enumerate(GENEROUS_LOSSES.values()), enumerate(SPLITS.items()))
        for (i, (about, own, exchanged)), (j, loss), (k, (name, weights)) in ways:
            chosen = (-i - j) % 3 if most < 3 else (1 + i % 2, 2 - i % 2, 0)[j]
            if not whole and k != chosen:
                continue
            other: Rows = exchanged if neighbours == "replace" else {}
            options = split_of(weights, total_is_measured=neighbours == "add-remove" or most > 1)
            pairs.append(Pair(f"{about}, {name} split", own, other, "two by two", neighbours, most, loss, options))
    return pairs
