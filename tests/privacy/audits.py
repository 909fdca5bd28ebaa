"""The audits: each looks at the engine as it is and returns what is wrong with its privacy, or None.

They are run on the real code, where they must find nothing, and on deliberate faults, where one of them must find
something.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from typing import Any, ParamSpec
from unittest import mock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import treetop as tt
from treetop import Counts
from treetop.engine.engine import Threads
from treetop.measure.descent import descent_of
from treetop.noise import DiscreteGaussian, Law
from treetop.privacy import Neighbours

from .divergence import TOLERANCE, Shift, cut_off, excess, hockey_stick, largest_loss, largest_ratio, renyi
from .engine import KEY, Engine, Path, Unexplained, descents, many_releases, releases, shifts_between, words_read
from .events import epsilon_at_least
from .measured import Measured
from .neighbours import Pair, Rows, counts_of, every_neighbour, spine, table_of

DEEP = os.environ.get("TREETOP_AUDIT") == "deep"
"""Whether there are minutes to spend instead of seconds."""

ORDERS = (1.5, 2.0, 4.0, 8.0)
DELTAS = (0.02, 1e-4, 1e-8)


@dataclass(frozen=True)
class Finding:
    """Something that the guarantee does not allow."""

    audit: str
    about: str

    def __str__(self) -> str:
        return f"{self.audit}: {self.about}"


Audit = Callable[[], Finding | None]
P = ParamSpec("P")


def audit(look: Callable[P, str | None]) -> Callable[P, Finding | None]:
    """Make what is wrong a finding; what cannot be accounted for is wrong as well."""

    @wraps(look)
    def looked(*arguments: P.args, **options: P.kwargs) -> Finding | None:
        try:
            wrong = look(*arguments, **options)
        except Unexplained as problem:
            wrong = str(problem)
        return None if wrong is None else Finding(look.__name__.replace("_", " "), wrong)

    return looked


def claims(loss: tt.Loss) -> list[tuple[float, float]]:
    """The pairs of epsilon and delta that a loss promises."""
    if loss.delta is not None and loss.epsilon is not None:
        return [(float(loss.epsilon), float(loss.delta))]
    return [(loss.epsilon_at(delta), delta) for delta in DELTAS]


def _too_much(shifts: list[Shift], plan: tt.Plan) -> str | None:
    """Compare the joint law of all measurements under two tables with the loss."""
    loss = plan.loss
    if not shifts:
        return None
    if loss.definition == "pure":
        largest = largest_loss(shifts)
        return None if largest <= loss.budget else f"epsilon is {largest}, not {loss.budget}"
    for epsilon, delta in claims(loss):
        found = hockey_stick(shifts, epsilon)
        if found > delta * (1 + TOLERANCE):
            return f"delta is {found:.3g} at epsilon {epsilon:.4g}, not {delta:.3g}"
    for order in ORDERS:
        rho = renyi(shifts, order) / order
        if rho > float(plan.budget) * (1 + TOLERANCE):
            return f"rho is {rho:.6g} at order {order}, not {float(plan.budget):.6g}"
    return None


@audit
def the_law_of_all_measurements(
    tree: str, neighbours: Neighbours, contributions: int, loss: dict[str, Any], **options: Any
) -> str | None:
    """Compare, for every pair of neighbours, the measurements of the whole tree: all else is made from them."""
    pair = Pair("", {}, {}, tree, neighbours, contributions, loss, options)
    plan = pair.plan()
    engines: dict[tuple[tuple[str, int], ...], Engine] = {}
    seen: set[tuple[tuple[Law, int], ...]] = set()
    pairs = list(every_neighbour(plan.unit, tree, plan.unknown == "drop"))
    sample = Engine.of(plan, max((one for one, _ in pairs), key=lambda rows: sum(rows.values())))

    def engine(rows: Rows) -> Engine:
        key = tuple(rows.items())
        if key not in engines:
            engines[key] = sample.with_rows(rows)
        return engines[key]

    for one, other in pairs:
        shifts = shifts_between(engine(one), engine(other))
        distances = tuple(sorted(((s.law, abs(s.by)) for s in shifts), key=repr))
        if distances in seen:
            continue
        seen.add(distances)
        if wrong := _too_much(shifts, plan):
            return f"{pair}: {dict(one)} and {dict(other)}: {wrong}"
    return None


@audit
def the_law_of_releases(pair: Pair, tail: float = 1e-6, tie_words: int = 2) -> str | None:
    """Compute what is released from two tables, with the engine's own pruning and repairs, and compare the laws."""
    plan = pair.plan()
    engines = Engine.of(plan, pair.one), Engine.of(plan, pair.other)
    if wrong := _too_much(shifts_between(*engines), plan):
        return f"{pair}: measured: {wrong}"
    for ties in range(tie_words):
        laws = releases(engines, tail, KEY.derive("tie words", ties))
        if laws.difference is not None:
            return f"{pair}: more than the measurements was used: {laws.difference}"
        for one, other in ((laws.one, laws.other), (laws.other, laws.one)):
            if wrong := _too_different(one, other, plan.loss):
                return f"{pair}: {wrong}"
    return None


def _too_different(one: dict[Path, float], other: dict[Path, float], loss: tt.Loss) -> str | None:
    """Compare two laws of releases with the loss."""
    missed = cut_off(one)
    if missed > 1e-3:
        raise Unexplained(f"{missed:.3g} of the probability was not followed")
    if loss.definition == "pure":
        # Both laws are of the same measurements, so that the ratio is bounded without what was cut off, too.
        epsilon = largest_ratio(one, other)
        return None if epsilon <= float(loss.budget) + TOLERANCE else f"epsilon is {epsilon:.6g}, not {loss.budget}"
    for epsilon, delta in claims(loss):
        found = excess(one, other, epsilon) + missed
        # A delta that is smaller than what was cut off is left to the law of all measurements.
        if missed < delta and found > delta * (1 + TOLERANCE):
            return f"delta is {found:.3g} at epsilon {epsilon:.4g}, not {delta:.3g}"
    return None


@audit
def the_same_measurements_give_the_same_release(pair: Pair, draws: int = 30) -> str | None:
    """Let two tables measure the same by chance, and compare the releases with all that they keep."""
    plan = pair.plan()
    for draw in range(draws):
        measured = Measured(plan, draw)
        one, other = measured.release(pair.one), measured.release(pair.other)
        for name in one:
            if one[name] != other[name]:
                return f"{pair}: {name} come from more than the measurements: {one[name]} and {other[name]}"
        known = set(measured.chosen.values()) | measured.public(pair.one)
        if not {row["value"] for row in one["the measurements"]} <= known:
            return f"{pair}: something is kept as a measurement that was not measured"
    return None


def _statistics(plan: tt.Plan, leaves: NDArray[np.int64], shifts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """What an outsider would look at: every leaf, the total, and the sums that best tell the two tables apart."""
    return np.column_stack([leaves, leaves.sum(axis=1), *(leaves @ shift for shift in shifts)])


def _telling_sums(plan: tt.Plan, one: NDArray[np.int64], other: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """For each level, and for all of them, the weights of the leaves that follow the change of their ancestors."""
    change = other - one
    weights = [change]
    place = np.indices([tree.sizes[-1] for tree in plan.spine.trees]).reshape(len(plan.spine.trees), -1)
    for level in plan.spine.levels:
        depths = plan.spine.depths(level.index)
        ancestors = [
            tree.ancestors(depth - 1)[place[i]]
            for i, (tree, depth) in enumerate(zip(plan.spine.trees, depths, strict=True))
            if depth
        ]
        _, node = np.unique(np.stack(ancestors), axis=1, return_inverse=True)
        weights.append(np.bincount(node.ravel(), weights=change).astype(np.int64)[node.ravel()])
    return [*weights, np.sum(weights, axis=0)]


@audit
def events_in_many_descents(pair: Pair, runs: int = 300_000) -> str | None:
    """Run the engine many times on two tables, and look for an event that is too telling."""
    plan = pair.plan()
    counts = [counts_of(plan, rows) for rows in (pair.one, pair.other)]
    if plan.levels[0].is_measured:
        runs //= 10  # totals are drawn one by one
    samples = [many_releases(plan, c, runs, KEY.derive("table", i)) for i, c in enumerate(counts)]
    return _judge(pair, plan, samples)


@audit
def events_in_many_releases(pair: Pair, runs: int = 150) -> str | None:
    """Do the same through the front door: tables in, releases out, fresh keys."""
    plan = pair.plan()
    samples = []
    for rows in (pair.one, pair.other):
        table = table_of(plan, rows)
        sizes = tuple(tree.sizes[-1] for tree in plan.spine.trees)
        leaves = np.zeros((runs, math.prod(sizes)), np.int64)
        for run in range(runs):
            release = tt.make_release(plan, table, tt.RunOptions(threads=1, allow_dropped=True))
            leaves[run, np.ravel_multi_index(tuple(release.nodes), sizes)] = release.count
        samples.append(leaves)
    return _judge(pair, plan, samples)


def _judge(pair: Pair, plan: tt.Plan, samples: list[NDArray[np.int64]]) -> str | None:
    sums = _telling_sums(plan, *(_dense(plan, rows) for rows in (pair.one, pair.other)))
    one, other = (_statistics(plan, leaves, sums) for leaves in samples)
    promised = claims(plan.loss) if plan.loss.definition != "pure" else [(float(plan.loss.budget), 0.0)]
    for epsilon, delta in promised:
        proven, event = epsilon_at_least(one, other, delta)
        if proven > epsilon:
            return f"{pair}: epsilon is above {proven:.3g} at delta {delta:.3g}, not {epsilon:.4g}: {event}"
    return None


def _dense(plan: tt.Plan, rows: Rows) -> NDArray[np.int64]:
    exact = np.zeros(plan.spine.leaves, np.int64)
    sizes = tuple(tree.sizes[-1] for tree in plan.spine.trees)
    codes = [tree.codes[-1].to_pylist() for tree in plan.spine.attributes.values()]
    for leaf, count in rows.items():
        parts = leaf.split(">")
        if all(part in codes[i] for i, part in enumerate(parts)):
            exact[np.ravel_multi_index([codes[i].index(part) for i, part in enumerate(parts)], sizes)] = count
    return exact


@contextmanager
def small_trees_are_cut_too() -> Iterator[None]:
    """Let a tree of hundreds of leaves have a trunk and subtrees, as one of millions has."""
    with (
        mock.patch("treetop.measure.blocks.CELLS", 30),
        mock.patch.object(descents, "LARGEST_TRUNK", 40),
        mock.patch.object(descents, "CHUNK", 64),
    ):
        yield


def many_places(margins: str = "none", facts: Mapping[str, Any] | None = None) -> tuple[tt.Plan, Counts]:
    """A plan whose leaves lie below the trunk, in several subtrees, and a table with many records everywhere."""
    town = tt.Hierarchy.from_prefixes([f"{a}{b:02d}" for a in range(8) for b in range(20)], widths=[1])
    towns = tt.Spine.destination_first(origin=tt.Hierarchy.flat(list("abcd")), destination=town)
    unit, loss = tt.Unit("trip", neighbours="add-remove"), tt.Loss(rho=Fraction(1, 8))
    plan = tt.Plan(towns, unit, loss, margins=margins, facts=facts or {})
    every = np.indices([tree.sizes[-1] for tree in towns.trees]).reshape(2, -1)
    return plan, Counts.from_leaves(towns, list(every), np.full(every.shape[1], 10_000))


@audit
def every_word_serves_once(threads: int = 1, chunk: int = 64) -> str | None:
    """See that a run reads no word of noise twice, and one for each child that is measured."""
    public = {str(region): 4 * 20 * 10_000 for region in range(8)}
    regions = {"destination.digits1": tt.Fact(exact=public, unchecked=True)}
    for margins in ("none", "each"):
        for facts in ({}, regions):
            plan, counts = many_places(margins, facts)
            if found := _words_read_twice(plan, counts, threads, chunk):
                return found
    return None


def _words_read_twice(plan: tt.Plan, counts: Counts, threads: int, chunk: int) -> str | None:
    with small_trees_are_cut_too(), words_read() as reads:
        descents.run_descent(descent_of(plan), counts, KEY, Threads(threads), chunk=chunk)
    times = Counter((secret, word + i) for secret, word, words in reads for i in range(len(words)))
    most, reused = max((n, key) for key, n in times.items())
    if most > 1:
        return f"word {reused[1]} of a stream was read {most} times"
    # Nothing is pruned where every count is large, and what facts decide is not measured.
    measured = sum(part.nodes for part in plan.workload if not part.is_exact)
    return None if len(times) == measured else f"{len(times)} words were read for {measured} measurements"


@audit
def every_leaf_is_counted_under_its_own_node() -> str | None:
    """Release counts that differ by far more than the noise, cut into tasks, and see that each is where it belongs."""
    town = tt.Hierarchy.from_prefixes([f"{a}{b}" for a in range(4) for b in range(5)], widths=[1])
    towns = tt.Spine.destination_first(origin=town, destination=town)
    every = np.indices([tree.sizes[-1] for tree in towns.trees]).reshape(2, -1)
    true = 10_000 * np.random.default_rng(1).integers(1, 100, every.shape[1])
    counts = Counts.from_leaves(towns, list(every), true)
    options: list[Any] = ["none", "each", [towns.splits[1]], [towns.splits[-1]]]
    for margins in options:
        plan = tt.Plan(towns, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1), margins=margins)
        with small_trees_are_cut_too():
            leaves = descents.run_descent(descent_of(plan), counts, KEY, chunk=64).leaves
        found = np.zeros_like(true)
        found[np.ravel_multi_index(tuple(leaves.nodes), tuple(tree.sizes[-1] for tree in towns.trees))] = leaves.count
        if (off := np.abs(found - true).max()) >= 1_000:
            return f"with margins {margins}, a leaf of tens of thousands is off by {off}"
    return None


@audit
def another_table_gets_other_noise() -> str | None:
    """Release two tables with one key: were the noise the same, their difference would be exact."""
    zones = [f"{i:04d}" for i in range(2_000)]
    flat = tt.Spine(["zone"], {"zone": tt.Hierarchy.flat(zones)})
    plan = tt.Plan(flat, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=Fraction(1, 200)))
    errors = []
    for change in (0, 1):
        rows = dict.fromkeys(zones, 1_000)
        rows[zones[0]] -= change
        rows[zones[1]] += change
        table = pa.table({"zone": list(rows), "n": list(rows.values())})
        release = tt.make_release(plan, table, tt.RunOptions(count="n", testing_key=KEY.secret))
        errors.append(release.count - np.array(list(rows.values())))
        if not errors[-1].any():
            return "there is no noise"
    correlation = float(np.corrcoef(*errors)[0, 1])
    # Six standard deviations of the correlation of independent noise.
    return None if abs(correlation) < 6 / 2_000**0.5 else f"the noise of two tables has correlation {correlation:.3f}"


@audit
def the_spread_of_released_counts() -> str | None:
    """See that what is released is as noisy as the loss demands, by the formula rather than by the plan."""
    places = 1 << 17
    flat = tt.Spine(["zone"], {"zone": tt.Hierarchy.flat([f"{i:06d}" for i in range(places)])})
    plan = tt.Plan(flat, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=Fraction(1, 200_000)))
    counts = Counts.from_leaves(flat, [np.arange(places)], np.full(places, 100_000))
    errors = descents.run_descent(descent_of(plan), counts, KEY).leaves.count - 100_000
    sigma = DiscreteGaussian(Fraction(2, 2) / Fraction(1, 200_000)).standard_deviation  # Δ² = 2 over 2·rho
    ratio = float(errors.std()) / sigma
    # 1.5 % is 7.7 standard deviations of the spread of so many draws; repairs move a count by one, 0.2 % of sigma.
    return None if abs(ratio - 1) < 0.015 else f"the spread is {ratio:.3f} times what it must be"


PERSON: dict[str, Any] = {"entity": "person", "contributions": 2, "neighbours": "add-remove", "id": "person"}


def _people(records_of_ann: int) -> pa.Table:
    """Three people with one record each, and Ann with as many as she likes."""
    people = ["bob", "cy", "di", *["ann"] * records_of_ann]
    return pa.table({"place": ["A1", "A2", "B1", *(["B1", "B2"] * records_of_ann)[:records_of_ann]], "person": people})


@audit
def contributions_are_bounded(records: int = 40) -> str | None:
    """Give one person many records although two are allowed, and see how many are counted."""
    plan = tt.Plan(spine("two by two"), tt.Unit(**PERSON), tt.Loss(rho=10**6))
    total = tt.make_release(plan, _people(records), tt.RunOptions(testing_key=KEY.secret)).total
    return None if total == 5 else f"of a person with {records} records {total - 3} were counted, not 2"


@audit
def distinct_records_count_once(records: int = 40) -> str | None:
    """Give one person many records in one leaf, which count as one, and see how many are counted, and what they pay."""
    plan = tt.Plan(spine("two by two"), tt.Unit(**PERSON | {"distinct": True}), tt.Loss(rho=10**6))
    table = pa.table({"place": ["A1", "A2", *["B1"] * records], "person": ["bob", "cy", *["ann"] * records]})
    total = tt.make_release(plan, table, tt.RunOptions(testing_key=KEY.secret)).total
    if total != 3:
        return f"of a person with {records} records in one leaf {total - 2} were counted, not 1"
    for level in plan.levels[1:]:
        moved = 1 if level.index == len(plan.spine.levels) else 2
        if plan.unit.sensitivity(level.name).l2_squared < 2 * moved:
            return f"her records move counts of {level.name} by {moved} in a node, which nobody pays for"
    return None


@audit
def events_when_a_busy_person_leaves(runs: int = 150) -> str | None:
    """Look through the front door for someone with far more records than are allowed."""
    plan = tt.Plan(spine("two by two"), tt.Unit(**PERSON), tt.Loss(epsilon=1))
    samples = []
    for table in (_people(40), _people(0)):
        leaves = np.zeros((runs, plan.spine.leaves), np.int64)
        for run in range(runs):
            release = tt.make_release(plan, table, tt.RunOptions(threads=1, allow_dropped=True))
            leaves[run, release.nodes[0]] = release.count
        samples.append(np.column_stack([leaves, leaves.sum(axis=1), leaves[:, 2:].sum(axis=1)]))
    proven, event = epsilon_at_least(samples[0], samples[1], 0.0)
    return None if proven <= 1 else f"epsilon is above {proven:.3g}, not 1: {event}"
