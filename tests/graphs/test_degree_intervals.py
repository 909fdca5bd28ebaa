"""Intervals of what follows from degrees: means, quantiles and shares above a degree, and all of it under "node"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import treetop as tt
from tests.pictures import colours_in
from treetop import Graph
from treetop.errors import QueryError
from treetop.measure import readers
from treetop.noise.gate import Gate
from treetop.release.derived import DegreeTables, draw_degrees
from treetop.release.intervals import cells

PEOPLE = pa.table({"id": range(90), "place": ["east", "west", "west"] * 30})
PAIRS = [(i, (i + k + 1) % 90) for i in range(90) for k in range(i % 7)]
EDGES = pa.table({"source": [one for one, _ in PAIRS], "target": [other for _, other in PAIRS]})
LARGEST, RUNS, SURE = 8, 100, 0.8
SHARES = (0.25, 0.5, 0.9)


def derived(number: NDArray[np.int64]) -> list[float]:
    """The mean, three quantiles and the share above 3, of the number of people of each degree."""
    below = number.cumsum()
    quantiles = [float(np.argmax(below >= share * below[-1] - 1e-9)) for share in SHARES]
    return [float(number @ np.arange(len(number)) / below[-1]), *quantiles, 1 - float(below[3] / below[-1])]


def bounds(tables: DegreeTables) -> list[tuple[float, float]]:
    """Return both ends of the mean of counted degrees, which the table leaves open above, and of what it tells."""
    assert tables.release.whole.cells is not None
    low, high = tables.release.whole.cells.means(1, np.zeros(1, np.int64), SURE)
    found = [
        *tables.quantiles(shares=SHARES, confidence=SURE).to_pylist(),
        *tables.share_above(3, confidence=SURE).to_pylist(),
    ]
    ends = [(row["lower"], np.inf if row["upper"] is None else row["upper"]) for row in found]
    return [(float(low[0]), float(high[0])), *ends]


def misses(plan: tt.Plan, graph: Graph) -> NDArray[np.bool_]:
    """Whether each derived interval misses what is true after edges were left out, run by run (row)."""
    nodes = graph.read_nodes([])
    edges = graph.read_edges(nodes)
    found = []
    for seed in range(RUNS):
        secret = seed.to_bytes(32, "big")
        release = tt.make_release(plan, graph, tt.RunOptions(testing_key=secret))
        truth = derived(
            readers.degree_histogram(plan, readers.bounded_degrees(plan, nodes, edges, Gate(secret).choice("order")))
        )
        ends = bounds(DegreeTables(release))
        found.append([not low - 1e-9 <= true <= high + 1e-9 for true, (low, high) in zip(truth, ends, strict=True)])
    return np.array(found)


@pytest.mark.parametrize("form", ["histogram", "cumulative"])
@pytest.mark.parametrize(("relation", "degree"), [("edge", "total"), ("node", "total"), ("node", "in")])
def test_intervals_of_means_quantiles_and_shares_hold_as_often_as_they_say(
    relation: Any, degree: Any, form: Any
) -> None:
    """Of 100 at 80 %, 20 % may miss, with a standard deviation of 4 %: four of those are allowed."""
    graph = Graph(PEOPLE, EDGES, relation, degree_bound=90 if relation == "node" else None)
    plan = tt.degree_plan(relation, "add-remove", tt.Loss(rho=2), LARGEST, form, degree=degree)
    assert misses(plan, graph).mean(axis=0).max() < 0.2 + 4 * 0.04


def test_intervals_without_the_noise_of_the_number_of_people_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault: under "node" the number of people is taken as it was measured, and all noise as that of one draw."""

    ranges = cells.MeasuredCells.ranges

    def careless(self: cells.MeasuredCells, index: int, first: Any, last: Any, place: Any, confidence: float) -> Any:
        if (first > 0).any() or (last < self.degrees).any():
            return ranges(self, index, first, last, place, confidence)
        ends = self._ends(self._measured(index))
        return ends.below[-1, place], ends.below[-1, place]

    monkeypatch.setattr(cells.MeasuredCells, "ranges", careless)
    monkeypatch.setattr(cells, "sum_margin", lambda law, number, risk: law.quantile(1 - risk))
    plan = tt.degree_plan("node", "add-remove", tt.Loss(rho=2), LARGEST)
    missed = misses(plan, Graph(PEOPLE, EDGES, "node", degree_bound=90)).mean(axis=0)
    assert missed[0] > 0.2 + 4 * 0.04


def test_derived_tables_have_intervals_by_place_and_a_picture(tmp_path: Path) -> None:
    plan = tt.regional_degree_plan(tt.Hierarchy.flat(["east", "west"]), LARGEST, "edge", tt.Loss(rho=1))
    release = tt.make_release(plan, Graph(PEOPLE, EDGES, "edge"), tt.RunOptions(testing_key=bytes(32)))
    tables = DegreeTables.of(release)
    for table in (
        tables.table("mean-degree", "place"),
        tables.table("quantiles", "place"),
        tables.table("share-above", "place", above=2),
    ):
        assert all(row["upper"] is None or row["lower"] <= row["upper"] for row in table.to_pylist())
        assert set(table["place"].to_pylist()) == {"east", "west"}
    wide, narrow = (tables.mean_degree(confidence=sure).to_pylist()[0] for sure in (0.99, 0.5))
    assert wide["lower"] <= narrow["lower"] <= narrow["mean_degree"] and wide["upper"] is narrow["upper"] is None
    draw_degrees(tables, tmp_path / "degrees.png", "place")
    assert len(colours_in(tmp_path / "degrees.png")) > 10


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        ({"what": "share-above"}, "give above"),
        ({"what": "quantiles", "above": 3}, "give above"),
        ({"what": "share-above", "above": LARGEST}, "told apart from"),
        ({"what": "mean-degree", "confidence": 0.9}, "has no intervals"),
    ],
)
def test_what_cannot_be_derived_is_refused(arguments: dict[str, Any], about: str) -> None:
    plan = tt.degree_plan("edge", "add-remove", tt.Loss(rho=1), LARGEST, confidence=None)
    release = tt.make_release(plan, Graph(PEOPLE, EDGES, "edge"), tt.RunOptions(testing_key=bytes(32)))
    with pytest.raises(QueryError, match=about):
        DegreeTables(release).table(**arguments)
