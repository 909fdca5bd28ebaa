"""The audits of releases with public facts: which neighbours there are then, what moves between them, what is told.

Under invariants, neighbours are the tables that differ in one unit and agree on them; under public facts that the
private table is compared with, those that both agree with the facts; under facts that are kept unchecked, all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import combinations_with_replacement, product
from typing import Any

import treetop as tt
from treetop.domain.constraints import LISTED
from treetop.errors import TreetopError
from treetop.privacy import Neighbours

from .audits import Audit, _too_much, audit, the_same_measurements_give_the_same_release
from .engine import KEY, Engine, descents, shifts_between
from .neighbours import KNOWN_LOSSES, MERGED_PAIRS, PAIRS_OF_PLACES, Pair, Rows, counts_of, leaves_of, moved

Facts = Mapping[str, tt.Fact]
ENDS_OF_PAIRS = {"destination": 0, "origin": 1, "place": 0}
"""Which of the codes of a leaf, "destination>origin", is that of an attribute."""


def cell_of(table: str, leaf: str) -> tuple[str, ...]:
    """Return the cell of a table that a leaf is in, by the names of levels: "digits1" are the first digits."""
    codes = leaf.split(">")
    found = []
    for part in table.split(" * "):
        attribute, _, level = part.partition(".")
        found.append(codes[ENDS_OF_PAIRS[attribute]][: int(level[-1])])
    return tuple(found)


def table_of_cells(table: str, rows: Rows) -> Counter[tuple[str, ...]]:
    """Count a table by hand."""
    found: Counter[tuple[str, ...]] = Counter()
    for leaf, count in rows.items():
        if count:
            found[cell_of(table, leaf)] += count
    return found


def _keys(stated: Any) -> list[tuple[str, ...]]:
    return [key if isinstance(key, tuple) else (key,) for key in stated]


def is_possible(facts: Facts, leaf: str) -> bool:
    """Whether facts allow a leaf."""
    for table, fact in facts.items():
        cell = cell_of(table, leaf)
        if fact.impossible is not None and cell in _keys(fact.impossible):
            return False
        if fact.possible is not None and cell not in _keys(fact.possible):
            return False
    return True


def protected(facts: Facts, one: Rows, other: Rows) -> bool:
    """Whether two tables that differ in one unit are neighbours under facts."""
    for table, fact in facts.items():
        mine, theirs = table_of_cells(table, one), table_of_cells(table, other)
        if fact.unchecked:
            continue
        if (fact.invariant or fact.exact is not None) and mine != theirs:
            return False
        if any(getattr(fact, kind) is not None for kind in LISTED) and not all(
            is_possible({table: fact}, leaf) for rows in (one, other) for leaf, count in rows.items() if count
        ):
            return False
    return True


def neighbours_under(facts: Facts, unit: tt.Unit, tree: str, units: int = 1) -> Iterator[tuple[Rows, Rows]]:
    """All ways in which so many units can differ, together, of a table that has room for each, and keep the facts."""
    checked = {table: fact for table, fact in facts.items() if not fact.unchecked}
    leaves = [leaf for leaf in leaves_of(tree) if is_possible(checked, leaf)]
    most = unit.contributions * units
    table = dict.fromkeys(leaves, most)
    always_one = unit.neighbours == "replace" and unit.contributions == 1
    sizes = [most] if always_one else range(most + 1)
    records = [own for size in sizes for own in combinations_with_replacement(leaves, size)]
    for gone in records:
        for come in records if unit.neighbours == "replace" else [()]:
            other = moved(table, gone, come)
            if protected(facts, table, other):
                yield table, other


@audit
def the_measurements_of_neighbours_under_facts(
    tree: str, facts: Facts, neighbours: Neighbours, contributions: int, loss: dict[str, Any], **options: Any
) -> str | None:
    """Compare all that is measured, and all that is told, of every pair of neighbours under facts."""
    plan = Pair("", {}, {}, tree, neighbours, contributions, loss, {"facts": facts, **options}).plan()
    sample, seen, compared = None, set(), 0
    for one, other in neighbours_under(facts, plan.unit, tree):
        sample = Engine.of(plan, one) if sample is None else sample
        shifts = shifts_between(sample.with_rows(one), sample.with_rows(other))
        compared += 1
        distances = tuple(sorted(((shift.law, abs(shift.by)) for shift in shifts), key=repr))
        if distances not in seen and (wrong := _too_much(shifts, plan)):
            return f"{tree}, {neighbours}, m={contributions}: {dict(one)} and {dict(other)}: {wrong}"
        seen.add(distances)
    return None if compared > 1 else "there are no neighbours to compare"


@audit
def an_invariant_is_told_to_neighbours_that_keep_it(neighbours: Neighbours, contributions: int) -> str | None:
    """See that a plan under which one unit can change an invariant is refused: nobody would be protected."""
    facts = {"place.digits1": tt.Fact(invariant=True)}
    pair = Pair("", {}, {}, "two by two", neighbours, contributions, KNOWN_LOSSES["rho"], {"facts": facts})
    try:
        plan = pair.plan()
    except TreetopError:
        return None
    sample = Engine.of(plan, {"A1": 2, "B1": 2})
    for other in ({"A1": 1, "B1": 2}, {"A1": 2, "B1": 1}):
        shifts_between(sample, sample.with_rows(other))
    return None


@audit
def a_compared_fact_leaves_neighbours() -> str | None:
    """See that a table which agrees with compared facts has a neighbour that does: else nobody would be protected."""
    both = {"A": 2, "B": 2}
    cases: list[Facts] = [
        {STATES: tt.Fact(exact=both)},
        {STATES: tt.Fact(at_least=both, at_most=both)},
        {STATES: tt.Fact(at_least=both), "place.digits2": tt.Fact(at_most={"A1": 2, "A2": 0, "B1": 2, "B2": 0})},
    ]
    table = {"A1": 2, "B1": 2}
    for facts in cases:
        try:
            plan = Pair("", {}, {}, "two by two", "add-remove", 1, KNOWN_LOSSES["rho"], {"facts": facts}).plan()
        except TreetopError:
            continue
        others = [table | {leaf: table.get(leaf, 0) + more} for leaf in leaves_of("two by two") for more in (-1, 1)]
        neighbours = [other for other in others if min(other.values()) >= 0]
        if _is_accepted(plan, table) and not any(_is_accepted(plan, other) for other in neighbours):
            return f"{facts}: {table} is released, and every neighbour of it is refused"
    return None


def _is_accepted(plan: tt.Plan, rows: Rows) -> bool:
    try:
        _checked(plan, {leaf: count for leaf, count in rows.items() if count})
    except TreetopError:
        return False
    return True


@audit
def facts_that_are_not_compared_refuse_no_table(tree: str, facts: Facts, most: int = 2) -> str | None:
    """Release every small table under facts that it may contradict: whether there is a release tells of none."""
    plan = Pair("", {}, {}, tree, "replace", 2, KNOWN_LOSSES["rho"], {"facts": facts}).plan()
    leaves = leaves_of(tree)
    for numbers in product(range(most + 1), repeat=min(len(leaves), 4)):
        rows = {leaf: number for leaf, number in zip(leaves, numbers, strict=False) if number}
        try:
            tables = descents.run_descent(_checked(plan, rows), counts_of(plan, rows), KEY)
        except Exception as problem:  # whatever it is: it depends on the private table
            return f"{rows} is refused: {problem}"
        if tables.leaves.count.sum() < 0:
            return f"{rows} has a release with less than nothing"
    return None


def _checked(plan: tt.Plan, rows: Rows) -> Any:
    from treetop.measure.descent import descent_of
    from treetop.measure.facts import refuse_contradiction

    refuse_contradiction(plan.public_facts, counts_of(plan, rows))
    return descent_of(plan)


STATES = "place.digits1"
INVARIANT = {STATES: tt.Fact(invariant=True)}
PUBLIC = {STATES: tt.Fact(exact={"A": 3, "B": 1}, unchecked=True)}
ORIGINS = {"origin.digits1": tt.Fact(invariant=True)}
ENDS = {"destination.digits1": tt.Fact(invariant=True)}
INLAND = {"origin.digits1 * destination.digits1": tt.Fact(impossible=[("A", "B")])}
FERRY = {"origin.digits1 * destination.digits1": tt.Fact(impossible=[("A", "B")], unchecked=True)}
ROOMS = {STATES: tt.Fact(at_least={"A": 2}, at_most={"B": 3}, unchecked=True)}

UNDER_FACTS: list[tuple[str, Facts, Neighbours, int, dict[str, Any], dict[str, Any]]] = [
    *(("two by two", INVARIANT, "replace", most, loss, {}) for most in (1, 2, 3) for loss in KNOWN_LOSSES.values()),
    ("three levels", INVARIANT, "replace", 1, KNOWN_LOSSES["approximate"], {}),
    ("three levels", {"place.digits2": tt.Fact(invariant=True)}, "replace", 2, KNOWN_LOSSES["rho"], {}),
    ("an only child", INVARIANT, "replace", 2, KNOWN_LOSSES["rho"], {}),
    ("two by two", PUBLIC, "add-remove", 2, KNOWN_LOSSES["rho"], {}),
    ("two by two", PUBLIC, "replace", 2, KNOWN_LOSSES["pure"], {}),
    ("two by two", {STATES: tt.Fact(exact={"A": 2, "B": 2})}, "replace", 1, KNOWN_LOSSES["rho"], {}),
    ("two by two", ROOMS, "add-remove", 1, KNOWN_LOSSES["rho"], {}),
    (PAIRS_OF_PLACES, ORIGINS, "replace", 1, KNOWN_LOSSES["rho"], {"margins": "each"}),
    (PAIRS_OF_PLACES, ENDS, "replace", 2, KNOWN_LOSSES["rho"], {"margins": "none"}),
    (PAIRS_OF_PLACES, ENDS, "replace", 1, KNOWN_LOSSES["pure"], {"margins": "each"}),
    (PAIRS_OF_PLACES, ORIGINS | ENDS, "replace", 1, KNOWN_LOSSES["approximate"], {"margins": "each"}),
    (PAIRS_OF_PLACES, INLAND, "replace", 1, KNOWN_LOSSES["rho"], {"margins": "each"}),
    (PAIRS_OF_PLACES, FERRY, "add-remove", 2, KNOWN_LOSSES["rho"], {"margins": "none"}),
    (PAIRS_OF_PLACES, FERRY | ENDS, "replace", 1, KNOWN_LOSSES["rho"], {"margins": "each"}),
    (MERGED_PAIRS, ORIGINS, "replace", 1, KNOWN_LOSSES["rho"], {"margins": "each"}),
]
"""Plans with facts whose neighbours are all compared."""

FAR, APART = {"A1>B1": 9, "A2>A1": 2, "B1>A1": 3}, {"A1>A2": 5, "A2>A1": 4, "B1>B1": 7}


def _same(about: str, one: Rows, other: Rows, tree: str, facts: Facts, **options: Any) -> Pair:
    most = options.pop("contributions", 2)
    relation: Neighbours = options.pop("neighbours", "replace")
    return Pair(about, one, other, tree, relation, most, KNOWN_LOSSES["rho"], {"facts": facts, **options})


SAME_UNDER_FACTS = [
    _same("states agree", {"A1": 8, "B2": 3}, {"A2": 8, "B1": 3}, "two by two", INVARIANT),
    _same("states agree", {"A1": 8, "B2": 3}, {"A2": 8, "B1": 3}, "two by two", INVARIANT, resolve={"fdr": 0.5}),
    _same("kept whatever", {"A1": 9, "B1": 2}, {"B2": 30}, "two by two", PUBLIC),
    _same(
        "kept whatever", {"A1": 9, "B1": 2}, {}, "two by two", PUBLIC, resolve={"sigmas": 1}, neighbours="add-remove"
    ),
    _same("bounds", {"A1": 9, "B1": 2}, {"B2": 1}, "two by two", ROOMS, repair="euclidean", neighbours="add-remove"),
    _same("bounds", {"A1": 9, "B1": 2}, {"B2": 1}, "two by two", ROOMS, resolve={"fdr": 0.5}),
    _same("zeros", FAR | {"B1>A1": 0}, APART, PAIRS_OF_PLACES, INLAND, margins="none"),
    _same("zeros that are none", FAR, APART, PAIRS_OF_PLACES, FERRY, margins="none"),
    _same("zeros that are none", FAR, APART, PAIRS_OF_PLACES, FERRY, margins="each", resolve={"sigmas": 1}),
    _same("zeros that are none", FAR, APART, PAIRS_OF_PLACES, FERRY, margins="each", neighbours="add-remove"),
    _same(
        "exact beside the spine",
        FAR,
        APART,
        PAIRS_OF_PLACES,
        {"origin.digits1": tt.Fact(exact={"A": 5, "B": 4}, unchecked=True)},
        margins="each",
    ),
    _same(
        "exact in a merged step",
        FAR,
        APART,
        MERGED_PAIRS,
        {"origin.digits1": tt.Fact(exact={"A": 5, "B": 4}, unchecked=True)},
        margins="each",
    ),
]
"""Tables that facts do not tell apart: made to measure the same, they must give the same release."""

UNCHECKED: list[tuple[str, Facts]] = [("two by two", PUBLIC), ("two by two", ROOMS), (PAIRS_OF_PLACES, FERRY)]


@audit
def an_exact_level_is_its_fact(tree: str, facts: Facts, expected: Rows) -> str | None:
    """Release tables that have nothing in common: what facts decide is what they say, and depends on no record."""
    plan = Pair("", {}, {}, tree, "replace", 2, KNOWN_LOSSES["rho"], {"facts": facts}).plan()
    (table,) = facts
    depths = plan.spine.depths(1)
    for number, rows in enumerate(({}, {"A1": 50}, {"B1": 7, "B2": 1})):
        found = descents.run_descent(_checked(plan, rows), counts_of(plan, rows), KEY.derive("run", number)).leaves
        top = plan.spine.trees[0].ancestors(depths[0] - 1)[found.nodes[0]]
        codes = plan.spine.trees[0].codes[0].to_pylist()
        counts = {code: int(found.count[top == node].sum()) for node, code in enumerate(codes)}
        if counts != dict(expected):
            return f"{rows} gives {table} {counts}, where {dict(expected)} is public"
    return None


def audits_under_facts() -> dict[str, Audit]:
    """The audits of facts, for the faults that they are to find."""
    measured, same = the_measurements_of_neighbours_under_facts, the_same_measurements_give_the_same_release
    found: dict[str, Audit] = {
        f"facts, measurements {number}": partial(measured, *case[:5], **case[5])
        for number, case in enumerate(UNDER_FACTS)
        if number in (1, 4, 13, 17)
    }
    found |= {
        f"facts, same measurements {pair.about} {n}": partial(same, pair, 10) for n, pair in enumerate(SAME_UNDER_FACTS)
    }
    found["facts, add-remove"] = partial(an_invariant_is_told_to_neighbours_that_keep_it, "add-remove", 1)
    found["facts, neighbours"] = a_compared_fact_leaves_neighbours
    found["facts, exact"] = partial(an_exact_level_is_its_fact, "two by two", PUBLIC, {"A": 3, "B": 1})
    return found


def measured_tables(plan: tt.Plan) -> dict[str, str]:
    """Name the table that each part of a plan is which is measured, below the total."""
    found, names = {}, list(plan.spine.attributes)
    for part, _ in plan.workload.measured:
        beside = part.index - len(plan.spine.levels) - 1
        depths = plan.spine.depths(part.index) if beside < 0 else plan.margin_tables[beside].depths
        found[part.name] = " * ".join(f"{names[at]}.digits{depth}" for at, depth in enumerate(depths) if depth)
    return found


def distance(table: str, one: Rows, other: Rows) -> tuple[int, int]:
    """How far two tables lie apart in one table: summed, and squared and summed; by hand."""
    mine, theirs = table_of_cells(table, one), table_of_cells(table, other)
    changes = [mine[cell] - theirs[cell] for cell in mine.keys() | theirs.keys()]
    return sum(map(abs, changes)), sum(change**2 for change in changes)
