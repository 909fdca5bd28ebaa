"""The audits of what is released beside the tree: histograms, group sizes, graphs, single questions and twins.

Each goes through the code that reads, bounds and counts small tables, takes the laws from which noise is really drawn,
and computes what a reader may learn; no chance is involved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import treetop as tt
from tests.everyday import measure_degrees, measure_sizes
from treetop import Counts, Graph, GroupUnit
from treetop.addons.lab.mechanisms.baselines import StabilityHistogram
from treetop.addons.lab.mechanisms.compared import PublicTree
from treetop.advice.coverage import twin_coverage
from treetop.advice.public import Prior
from treetop.advice.trials import try_out
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.graph_reader import Edges, Nodes
from treetop.errors import PlanError, PrivatePrior
from treetop.measure import questions, readers
from treetop.noise import Law, NoiseStream
from treetop.noise.gate import Gate
from treetop.plan.degree_unit import Form as DegreeForm
from treetop.plan.group_unit import Event, Form
from treetop.privacy import Neighbours

from . import dwellings, small_graphs
from .audits import Audit, audit
from .divergence import TOLERANCE, cut_off, excess, loss_of, masses
from .engine import KEY, Unexplained, laws_drawn_from, noise_is, words_read
from .files import exact_totals_of_neighbouring_files, the_existence_of_a_release
from .one_edge import edge_audits
from .one_record import record_audits
from .small_graphs import PLACES, SPINE, Pairs, all_graphs, cells, graph_of
from .unordered import pair_audits

LEAVES = ("A1", "A2", "B1", "B2")
Records = dict[str, int]


@audit
def the_law_of_histograms(
    neighbours: Neighbours, contributions: int, one: Records, other: Records, delta: Fraction = Fraction(1, 50)
) -> str | None:
    """Compute what a stability histogram publishes of two tables, with its own threshold, and compare the laws."""
    unit, loss = tt.Unit("person", contributions, neighbours), tt.Loss(epsilon=2, delta=delta)
    laws = [_law_of_histogram(unit, loss, rows) for rows in (one, other)]
    for here, there in (laws, laws[::-1]):
        found = excess(here, there, 2.0) + cut_off(here)
        if found > float(delta) * (1 + TOLERANCE):
            return f"delta is {found:.4g}, not {float(delta)}: {one} and {other}"
    return None


def _law_of_histogram(unit: tt.Unit, loss: tt.Loss, rows: Records) -> dict[tuple[int, ...], float]:
    """The law of what is published: one run on as many copies of the table as there are draws of noise that matter.

    A public attribute tells the copies apart; the mechanism treats every leaf on its own.
    """
    sample = StabilityHistogram(_copies(1), unit, loss)
    law = sample.levels[-1].law
    assert law is not None
    present = [leaf for leaf in LEAVES if rows.get(leaf)]
    reach = law.margin(Fraction(1, 10**6))
    grid = np.array(list(product(range(-reach, reach + 1), repeat=len(present))), np.int64)
    mechanism = StabilityHistogram(_copies(len(grid)), unit, loss)
    leaf = np.array([LEAVES.index(name) for name in present] * len(grid), np.int64)
    time = np.repeat(np.arange(len(grid)), len(present))
    table = Counts.from_leaves(mechanism.spine, [time, leaf], np.array([rows[LEAVES[at]] for at in leaf], np.int64))
    with laws_drawn_from() as drawn, noise_is(grid.ravel()):
        published = mechanism.run(table, KEY)
    leaves = np.zeros(len(grid) * len(LEAVES), np.int64)
    leaves[np.searchsorted(PublicTree.of(mechanism.spine).keys[0], published.keys[0])] = published.value
    weight = masses(drawn[0], reach)[grid + reach].prod(axis=1)
    outcomes: dict[tuple[int, ...], float] = defaultdict(float)
    for outcome, mass in zip(leaves.reshape(len(grid), -1).tolist(), weight.tolist(), strict=True):
        outcomes[tuple(outcome)] += mass
    return outcomes


def _copies(times: int) -> tt.Spine:
    time = tt.Hierarchy.flat([f"{i:07d}" for i in range(times)])
    return tt.Spine(["time", "leaf"], {"time": time, "leaf": tt.Hierarchy.flat(LEAVES)})


@audit
def the_loss_of_group_sizes(event: Event, form: Form, loss: tt.Loss, quantity: int = 1) -> str | None:
    """Compare, for every neighbour of some small tables of people, what group sizes are measured with."""
    made = dwellings.plan(event, form, loss, quantity)
    for people in dwellings.TABLES:
        before = dwellings.read(made, people)
        for other in dwellings.neighbours(people, event, quantity):
            spent = dwellings.loss_between(made, before, dwellings.read(made, other))
            if spent > loss.budget:
                return f"{event}, {form}: {people} and {other} cost {spent}, not {loss.budget}"
    return None


def _list_of_one() -> Iterator[tuple[Any, Any]]:
    """Graphs that differ in the list of person 0."""
    everyone, others = tuple(range(5)), ((1, 0), (2, 3), (4, 2))
    lists = [tuple((0, v) for v in chosen) for size in range(5) for chosen in combinations(range(1, 5), size)]
    yield from (((everyone, (*own, *others)), (everyone, others)) for own in lists)


def _one_edge() -> Iterator[tuple[Any, Any]]:
    everyone = tuple(range(3))
    for graph in combinations(permutations(everyone, 2), 3):
        yield from (((everyone, graph), (everyone, tuple(edge for edge in graph if edge != gone))) for gone in graph)


def _one_person() -> Iterator[tuple[Any, Any]]:
    """Graphs of people with at most three edges each, and the same without one of them."""
    for graph in (((0, 1), (0, 4), (1, 0)), ((0, 1), (0, 2), (0, 3), (2, 3)), ((1, 0), (4, 0), (0, 4), (1, 2))):
        for gone in (0, 1):
            rest: Pairs = tuple(edge for edge in graph if gone not in edge)
            yield (tuple(range(5)), graph), (tuple(node for node in range(5) if node != gone), rest)


NEIGHBOURING_GRAPHS: dict[str, tuple[Callable[[], Iterator[tuple[Any, Any]]], int]] = {
    "edge": (_one_edge, 1),
    "user-out": (_list_of_one, 2),
    "node": (_one_person, 3),
}


@audit
def the_loss_of_edges_between_groups(relation: Any, loss: tt.Loss) -> str | None:
    """Compare neighbouring graphs at every level of a release of edges between groups, as it counts them."""
    cells.cache_clear()  # of what was counted before a fault was made
    pairs, most = NEIGHBOURING_GRAPHS[relation]
    graph = Graph(pa.table({"id": ["0"]}), relation=relation, contributions=most if relation == "user-out" else None,
                  degree_bound=most if relation == "node" else None)  # fmt: skip
    plan = tt.Plan(SPINE, graph.unit("add-remove"), loss)
    for one, other in pairs():
        levels = zip(plan.levels, cells(*one, relation, most), cells(*other, relation, most), strict=True)
        spent = loss_of(
            (level.law, np.array([here.get(cell, 0) - there.get(cell, 0) for cell in {*here, *there}], np.int64))
            for level, here, there in levels
            if level.is_measured
        )
        if spent > loss.budget:
            return f"{relation}: {one} and {other} cost {spent}, not {loss.budget}"
    return None


def _graphs_and_neighbours(relation: str) -> Iterator[tuple[tuple[Nodes, Edges], tuple[Nodes, Edges]]]:
    names: dict[tuple[int, ...], Nodes] = {}
    everyone = tuple(range(4))
    for graph in all_graphs(4):
        if relation == "node":
            for gone in everyone:
                kept = tuple(node for node in everyone if node != gone)
                rest = tuple(edge for edge in graph if gone not in edge)
                yield graph_of(everyone, graph, names), graph_of(kept, rest, names)
        elif relation == "edge":
            for lost in graph:
                rest = tuple(edge for edge in graph if edge != lost)
                yield graph_of(everyone, graph, names), graph_of(everyone, rest, names)
        else:
            rest = tuple(edge for edge in graph if edge[0] != 0)
            yield (_directed(graph_of(everyone, graph, names)), _directed(graph_of(everyone, rest, names)))


def _directed(graph: tuple[Nodes, Edges]) -> tuple[Nodes, Edges]:
    return graph[0], Edges(graph[1].source, graph[1].target, directed=True)


@audit
def the_loss_of_degrees(relation: Any, form: DegreeForm, loss: tt.Loss, largest: int = 2) -> str | None:
    """Compare all small neighbouring graphs in the degrees that are measured and in what is taken as public."""
    plan = tt.degree_plan(relation, "add-remove", loss, largest, form, directed=relation == "user-out")
    for one, other in _graphs_and_neighbours(relation):
        with laws_drawn_from() as drawn:
            people = [measure_degrees(plan, *graph, testing_key=KEY.secret).people for graph in (one, other)]
        if people[0] != people[1]:
            return f"{relation}: the number of people is taken as public, and neighbours differ in it"
        if drawn[0] != drawn[1]:
            raise Unexplained("the noise depends on the private graph")
        change = readers.degree_cells(plan, *one, KEY) - readers.degree_cells(plan, *other, KEY)
        spent = loss_of([(drawn[0], change)])
        if spent > loss.budget:
            return f"{relation}, {form}: some neighbours cost {spent}, not {loss.budget}"
    return None


HOMES = ("h1,east,1,occupied", "h2,east,2,occupied", "h3,west,0,vacant", "h4,west,2,occupied")
MOVED = ("h1,east,0,vacant", "h2,east,2,occupied", "h3,west,1,occupied", "h4,west,2,occupied")
"""The one person of h1 has moved to h3."""


@audit
def the_number_of_selected_groups() -> str | None:
    """Release the sizes of occupied dwellings before and after one move: what is exact must be the same."""
    plan = tt.group_plan(
        tt.Hierarchy.flat(["east", "west"]), 3, GroupUnit("person", "move"), PURE,
        rows="groups", number=3, public="regions",
    )  # fmt: skip
    found = []
    for homes in (HOMES, MOVED):
        with TemporaryDirectory() as folder:
            path = Path(folder, "homes.csv")
            path.write_text("\n".join(["home,place,size,status", *homes, ""]), encoding="utf-8")
            try:
                release = tt.make_release(
                    plan, tt.Source(path, keep={"status": "occupied"}), tt.RunOptions(testing_key=KEY.secret)
                )
            except PlanError:
                return None  # nothing is told of either
        found.append(release.query(place="east"))
    if found[0] != found[1]:
        return f"{found[0]} dwellings of a region are told exactly before a move, and {found[1]} after it"
    return None


@audit
def the_loss_of_a_chosen_theta(form: DegreeForm, loss: tt.Loss, candidates: tuple[int, ...] = (1, 2)) -> str | None:
    """Compare all small neighbouring graphs in what theta is chosen by, and in the degrees of each that may be.

    What a reader sees of the candidates is made the same for both: then theta must be, and the noise that follows.
    """
    plan = tt.degree_plan("node", "add-remove", loss, candidates, form, directed=False)
    for one, other in _graphs_and_neighbours("node"):
        for theta in candidates:
            seen = [0 if candidate == theta else 10**6 for candidate in candidates]
            here, there = (_seen_as(plan, graph, seen) for graph in (one, other))
            if (here.theta, there.theta) != (theta, theta) or here.laws != there.laws:
                return f"theta is {here.theta} and {there.theta} where all that was measured speaks for {theta}"
            changes = zip(here.laws, here.truth, there.truth, strict=True)
            spent = loss_of((law, mine - its) for law, mine, its in changes)
            if spent > loss.budget:
                return f"choosing theta, {form}: some neighbours cost {spent}, not {loss.budget}"
    return None


class _Seen(NamedTuple):
    """A run in which theta was chosen: the law of every measurement, its true counts, and theta."""

    laws: list[Law]
    truth: list[NDArray[np.int64]]
    theta: int


def _seen_as(plan: tt.Plan, graph: tuple[Nodes, Edges], seen: list[int]) -> _Seen:
    """Run a plan with noise by which a reader sees these numbers of people who reach each candidate."""
    reaching, counts = readers.degree_cells_by_theta(plan, *graph, Gate(KEY).choice("order"))
    noise = [told - true for told, true in zip(seen, reaching, strict=True)]

    def fill(_: NoiseStream, out: NDArray[np.int64], slot: int) -> None:
        out[:] = noise.pop(0) if noise else 0

    with laws_drawn_from() as drawn, mock.patch.object(NoiseStream, "fill", fill):
        theta = measure_degrees(plan, *graph, testing_key=KEY.secret).plan.largest
    if len(drawn) != len(seen) + 1:
        return _Seen([], [], -1)
    return _Seen(drawn, [*(np.array([true]) for true in reaching), counts[theta]], theta)


@audit
def the_loss_of_degrees_by_region(relation: Any, form: DegreeForm, loss: tt.Loss, largest: int = 2) -> str | None:
    """Compare all small neighbouring graphs in the degrees of every region, as they are measured."""
    plan = tt.regional_degree_plan(PLACES, largest, relation, loss, directed=relation == "user-out", form=form)
    nodes = Nodes.read(small_graphs.people(tuple(range(4))), "id", ["town"])
    for (_, one), (_, other) in _graphs_and_neighbours(relation):
        sizes = [readers.regional_sizes(plan, nodes, edges, {"place": "town"}) for edges in (one, other)]
        spent = dwellings.loss_between(plan, *sizes)
        if spent > loss.budget:
            return f"{relation}, {form}: some neighbours cost {spent}, not {loss.budget}"
    return None


TOWNS = tt.Spine(["place.region", "place.town"], {"place": PLACES})
ASKED = ("place=A", "place=A1", "place=B", "place.town=B1")
"""Questions of which one record matches two."""


def _ask(neighbours: Neighbours, contributions: int, loss: tt.Loss, rows: Iterable[str]) -> tuple[Law, list[int]]:
    """Ask through the front door with no noise; returns the law of the noise and the true answers."""
    unit = tt.Unit("person", contributions, neighbours)
    plan = tt.Plan(TOWNS, unit, tt.Loss(rho=1))
    batch = questions.Batch(TOWNS, tuple(questions.parse(text, TOWNS) for text in ASKED), unit, loss)
    table = pa.table({"place": pa.array(list(rows), pa.string())})
    with laws_drawn_from() as drawn, noise_is(np.zeros(len(ASKED), np.int64)):
        found = questions.measure(batch, plan, table, before_measuring=lambda: None)
    (law,) = drawn
    return law, found


@audit
def the_loss_of_answers(neighbours: Neighbours, contributions: int, loss: tt.Loss) -> str | None:
    """Compare the answers to overlapping questions, for all that one unit can say."""
    towns = PLACES.codes[-1].to_pylist()
    own = [rows for size in range(contributions + 1) for rows in combinations(towns * contributions, size)]
    answers = {rows: _ask(neighbours, contributions, loss, ["A1", "B1", *rows]) for rows in set(own)}
    for (law, one), (other_law, other) in product(answers.values(), repeat=2):
        if law != other_law:
            raise Unexplained("the noise depends on the private table")
        if neighbours == "add-remove" and other != answers[()][1]:
            continue
        spent = loss_of([(law, np.array(one) - np.array(other))])
        if spent > loss.budget:
            return f"{neighbours}, {contributions} records each: {one} and {other} cost {spent}, not {loss.budget}"
    return None


def _streams(run: Callable[[], object]) -> set[bytes]:
    """The secrets of the streams that a run reads words from; a word that is read twice is no secret."""
    with words_read() as reads:
        run()
    words = [(secret, word + i) for secret, word, read in reads for i in range(len(read))]
    if len(set(words)) < len(words):
        raise Unexplained("a word of a stream was read twice")
    return {secret for secret, *_ in reads}


@audit
def other_data_get_other_noise() -> str | None:
    """Run group sizes, degrees, answers and a histogram on two tables with one key, and compare the streams."""
    sizes = dwellings.plan("join-leave", "direct", tt.Loss(epsilon=1))
    degrees = tt.degree_plan("edge", "add-remove", tt.Loss(epsilon=1), 2, "histogram", directed=False)
    histogram = StabilityHistogram(_copies(3), tt.Unit("person", neighbours="replace"), tt.Loss(epsilon=1, delta=0.01))
    plan = tt.Plan(TOWNS, tt.Unit("person", neighbours="replace"), tt.Loss(rho=1))
    batch = questions.Batch(TOWNS, tuple(questions.parse(text, TOWNS) for text in ASKED), plan.unit, tt.Loss(rho=1))
    secret = KEY.secret

    def answers(town: str) -> object:
        table = pa.table({"place": ["A1", town]})
        return questions.measure(batch, plan, table, before_measuring=lambda: None, testing_key=secret)

    def leaves(count: int) -> Counts:
        return Counts.from_leaves(histogram.spine, [np.arange(3), np.arange(3)], np.array([5, 5, count]))

    runs: dict[str, Callable[[int], object]] = {
        "group sizes": lambda i: measure_sizes(sizes, dwellings.read(sizes, dwellings.TABLES[i]), KEY),
        "degrees": lambda i: measure_degrees(
            degrees, *graph_of((0, 1, 2), ((0, 1), (1, 2))[: i + 1], {}), testing_key=secret
        ),
        "answers": lambda i: answers(("A1", "B1")[i]),
        "the histogram": lambda i: histogram.run(leaves(5 + i), KEY),
    }
    for name, run in runs.items():
        one, other = (_streams(partial(run, i)) for i in (0, 1))
        if not one or one & other:
            return f"{name} of two tables have the same noise" if one else f"{name} have no noise"
    return None


@audit
def the_private_table_is_no_twin(id: str | None) -> str | None:
    """Hand the records of the private table, in another order and with other ids, to everything that takes a twin."""
    plan = tt.Plan(TOWNS, tt.Unit("person", 2, "add-remove", id), tt.Loss(rho=1))
    towns = ["A1", "A2", "A1", "B1", "B1", "A1"]
    private = pa.table({"place": towns, "who": ["ann", "ann", "ann", "bo", "cy", "cy"]})
    again = pa.table({"place": towns[::-1], "who": ["1", "1", "2", "3", "3", "3"]})
    bound = ContributionCap.of(plan.unit, KEY)
    counts = tt.read_true_counts(plan, private)

    def read(**options: Any) -> Prior:
        return Prior.from_public_table(again, TOWNS, source="a copy", bound=bound, **options)

    prior = read()
    uses: dict[str, Callable[[], object]] = {
        "a prior": lambda: read(private=private),
        "trials": lambda: try_out(plan, prior, runs=1, private=counts),
        "coverage": lambda: twin_coverage(plan, prior, runs=1, private=counts),
    }
    for name, use in uses.items():
        with suppress(PrivatePrior):
            use()
            return f"{name} took the private table"
    return None


@audit
def margins_that_are_kept() -> str | None:
    """Release a table of three attributes beside two of its margins that cross, and compare what is called kept."""
    trees = {"a": tt.Hierarchy.flat(list("xyz")), "b": PLACES, "c": tt.Hierarchy.flat(list("xyz"))}
    coarse, fine = (f"b.{level}" for level in PLACES.levels)
    rows = {name: tree.codes[-1].take(pa.array(np.arange(300) % tree.sizes[-1])) for name, tree in trees.items()}
    spine, unit = tt.Spine([coarse, fine, "c", "a"], trees), tt.Unit("trip", neighbours="replace")
    plan = tt.Plan(spine, unit, PURE, margins=[f"{coarse} * c", "a * c", f"a * {coarse} * c"])
    for seed in range(5):
        release = tt.make_release(plan, pa.table(rows), tt.RunOptions(testing_key=bytes([seed]) * 32))
        for table in release.margins:
            if table.exact and not np.array_equal(table.sums(release.tree), table.count):
                return f"{table.margin.name} is called kept, and the leaves add up to something else"
    return None


PURE, RHO = tt.Loss(epsilon=1), tt.Loss(rho=Fraction(1, 2))


def beside_audits() -> dict[str, Audit]:
    """A few of each kind, cheapest first."""
    return {
        "other data": other_data_get_other_noise,
        "twins": partial(the_private_table_is_no_twin, None),
        "twins, bounded": partial(the_private_table_is_no_twin, "who"),
        "files": exact_totals_of_neighbouring_files,
        "files, blank lines": partial(exact_totals_of_neighbouring_files, "skip"),
        "existence": the_existence_of_a_release,
        "histogram": partial(the_law_of_histograms, "add-remove", 1, {"A1": 1}, {}),
        "histogram, replace": partial(the_law_of_histograms, "replace", 1, {"A1": 1, "B2": 2}, {"B2": 3}),
        "histogram, two records": partial(the_law_of_histograms, "add-remove", 2, {"A1": 1, "A2": 1}, {}),
        "histogram, one cell": partial(the_law_of_histograms, "add-remove", 2, {"A1": 2}, {}),
        "histogram, many": partial(the_law_of_histograms, "replace", 1, {"A1": 30, "B2": 30}, {"A1": 29, "B2": 31}),
        "groups, join": partial(the_loss_of_group_sizes, "join-leave", "direct", PURE),
        "groups, works": partial(the_loss_of_group_sizes, "join-leave", "cumulative", RHO, 2),
        "groups, move": partial(the_loss_of_group_sizes, "move", "direct", RHO),
        "groups, move, pure": partial(the_loss_of_group_sizes, "move", "cumulative", PURE),
        "groups, whole": partial(the_loss_of_group_sizes, "group", "cumulative", RHO),
        "groups, selected": the_number_of_selected_groups,
        "edges": partial(the_loss_of_edges_between_groups, "edge", PURE),
        "edges, lists": partial(the_loss_of_edges_between_groups, "user-out", RHO),
        "edges, people": partial(the_loss_of_edges_between_groups, "node", RHO),
        "degrees": partial(the_loss_of_degrees, "edge", "cumulative", RHO),
        "degrees, lists": partial(the_loss_of_degrees, "user-out", "cumulative", PURE),
        "degrees, people": partial(the_loss_of_degrees, "node", "histogram", RHO),
        "theta": partial(the_loss_of_a_chosen_theta, "cumulative", RHO),
        "theta, histogram": partial(the_loss_of_a_chosen_theta, "histogram", PURE),
        "degrees by region": partial(the_loss_of_degrees_by_region, "edge", "histogram", RHO),
        "degrees by region, lists": partial(the_loss_of_degrees_by_region, "user-out", "cumulative", PURE),
        "answers": partial(the_loss_of_answers, "add-remove", 2, PURE),
        "answers, replace": partial(the_loss_of_answers, "replace", 2, RHO),
        "kept margins": margins_that_are_kept,
        **record_audits(),
        **edge_audits(),
        **pair_audits(),
    }
