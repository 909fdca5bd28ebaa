"""The audit of repeats: one key gives one release of every kind, and a folder gets one verdict however often."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

import treetop as tt
from treetop import Graph
from treetop.measure import questions
from treetop.measure.vectors import repaired

from . import dwellings
from .audits import Audit, audit
from .engine import KEY
from .small_graphs import PLACES

TOWNS = tt.Spine(["place.region", "place.town"], {"place": PLACES})
TIMES = 4
"""How often a release is made and checked: ties that are broken at random seldom agree so often."""


def _graph(relation: Any, people: int) -> Graph:
    """A graph in which as many people have each degree, from 1 to 5: measurements with little noise have many ties."""
    names, towns = [str(node) for node in range(people)], PLACES.codes[-1].to_pylist()
    nodes = pa.table({"id": names, "town": [towns[node % 3] for node in range(people)]})
    pairs = [(node, (node + step) % people) for node in range(people) for step in range(1, 2 + node % 5)]
    edges = pa.table({end: [names[pair[side]] for pair in pairs] for side, end in enumerate(("source", "target"))})
    bounds: dict[str, Any] = {"edge": {}, "user-out": {"contributions": 7}, "node": {"degree_bound": 12}}
    return Graph(nodes, edges, relation, **bounds[relation])


def releases() -> Iterator[tuple[str, Callable[[], tt.Release]]]:
    """Every kind of release, each under the same key."""
    for relation, form in product(("edge", "user-out", "node"), ("cumulative", "histogram")):
        plan = tt.degree_plan(relation, "add-remove", tt.Loss(epsilon=6), 7, form)  # type: ignore[arg-type]
        graph = _graph(relation, 60)
        yield (
            f"degrees, {relation}, {form}",
            lambda plan=plan, graph=graph: tt.make_release(plan, graph, tt.RunOptions(testing_key=KEY.secret)),  # type: ignore[misc]
        )
    regional, graph = tt.regional_degree_plan(PLACES, 4, "edge", tt.Loss(epsilon=1)), _graph("edge", 40)
    yield (
        "degrees by region",
        lambda: tt.make_release(regional, graph, tt.RunOptions(columns={"place": "town"}, testing_key=KEY.secret)),
    )
    sizes = dwellings.plan("join-leave", "direct", tt.Loss(epsilon=1))
    read = dwellings.read(sizes, dwellings.TABLES[0])
    yield "group sizes", lambda: tt.make_release(sizes, read, tt.RunOptions(testing_key=KEY.secret))
    table = pa.table({"place": np.random.default_rng(1).choice(PLACES.codes[-1].to_pylist(), 60).tolist()})
    for options in (
        {"repair": "chebyshev"},
        {"repair": "euclidean", "order": "descending"},
        {"repair": "least-squares"},
        {"resolve": {"fdr": 0.05}},
    ):
        tree = tt.Plan(TOWNS, tt.Unit("person", neighbours="add-remove"), tt.Loss(epsilon=1), **options)
        yield str(options), lambda tree=tree: tt.make_release(tree, table, tt.RunOptions(testing_key=KEY.secret))  # type: ignore[misc]


@audit
def one_key_gives_one_release_and_one_verdict() -> str | None:
    """Make every kind of release several times with one key, and check each folder several times."""
    for what, make in releases():
        made = [make() for _ in range(TIMES)]
        if any(not one.table().equals(made[0].table()) for one in made):
            return f"{what}: the same measurements give different counts"
        with TemporaryDirectory() as place:
            folder = Path(place, "out")
            made[0].save(folder)
            for _ in range(TIMES):
                if found := [finding for verdict in tt.check(folder) for finding in verdict.findings]:
                    return f"{what}: its own check says: {found[0]}"
    return None


@audit
def measurements_with_ties_give_one_table_of_degrees() -> str | None:
    """Repair measurements of degrees several times, some of them equal where only one can be lowered."""
    for relation, measured in (("edge", [116, 0, 1, 0, -3]), ("user-out", [60, 60, 60, 0])):
        plan = tt.degree_plan(relation, "add-remove", tt.Loss(epsilon=1), 4, "histogram")
        numbers = {tuple(repaired(plan, np.array(measured), 120).tolist()) for _ in range(4 * TIMES)}
        if len(numbers) > 1:
            return f"{relation}: {measured} are repaired to {sorted(numbers)}"
    return None


@audit
def one_key_gives_one_batch_of_answers() -> str | None:
    """Ask the same questions twice with one key, of records with a limit of contributions."""
    unit = tt.Unit("person", 1, "add-remove", id="person")
    plan = tt.Plan(TOWNS, unit, tt.Loss(epsilon=1))
    table = pa.table({"place": PLACES.codes[-1].to_pylist() * 9, "person": [str(i % 7) for i in range(27)]})
    batch = questions.Batch(TOWNS, (questions.parse("place=A", TOWNS),), unit, tt.Loss(epsilon=1))
    answers = [
        list(questions.measure(batch, plan, table, before_measuring=lambda: None, testing_key=KEY.secret))
        for _ in range(TIMES)
    ]
    return None if all(one == answers[0] for one in answers) else f"the answers differ: {answers}"


def repeat_audits() -> dict[str, Audit]:
    """All of them."""
    return {
        "repeats of repairs": measurements_with_ties_give_one_table_of_degrees,
        "repeats of releases": one_key_gives_one_release_and_one_verdict,
        "repeats of answers": one_key_gives_one_batch_of_answers,
    }
