"""What `plan` says of a graph before it is read: when a table of edges is worth less than none, what theta costs."""

from __future__ import annotations

from fractions import Fraction

import treetop as tt
from treetop import Graph
from treetop.card import in_words
from treetop.card.distributions import statements_of
from treetop.card.statements import worse_than_none

PLACES = tt.Hierarchy.flat(["east", "west"])
SPINE = tt.Spine.origin_first(origin=PLACES, destination=PLACES)


def told(relation: str, bound: int | None) -> list[str]:
    graph = Graph("nowhere.csv", "nowhere.csv", relation, degree_bound=bound)
    plan = tt.Plan(SPINE, graph.unit("add-remove"), tt.Loss(rho=1), margins="none")
    return [note for note in in_words(statements_of(plan).notes(plan)) if "empty table" in note]


def test_a_table_of_edges_under_node_says_how_many_edges_make_it_worth_more_than_none() -> None:
    (note,) = told("node", 1_000)
    # Three levels share rho 1: each cell has the deviation 1,000·√(3/2), and there are four.
    assert "sums to about 4,899 over the 4 possible cells" in note and "a tenth of that, 490 edges" in note
    assert told("edge", None) == []


def test_where_the_number_of_edges_is_roughly_known_a_table_that_is_worse_than_none_is_warned_of() -> None:
    graph = Graph("nowhere.csv", "nowhere.csv", "node", degree_bound=1_000)
    plan = tt.Plan(SPINE, graph.unit("add-remove"), tt.Loss(rho=1), margins="none")
    (warning,) = in_words(worse_than_none(plan, 400))  # the noise sums to 4,899: it takes a tenth
    assert "with about 400 edges" in warning and "takes some 490" in warning
    assert worse_than_none(plan, 500) == worse_than_none(plan, None) == []
    of_edges = tt.Plan(SPINE, Graph("n.csv", "e.csv", "edge").unit("add-remove"), tt.Loss(rho=1), margins="none")
    assert worse_than_none(of_edges, 1) == []


def test_degrees_under_node_say_what_theta_costs_and_of_how_many_people_where_that_is_public() -> None:
    plan = tt.degree_plan("node", "add-remove", tt.Loss(rho=1), 100, population=10_000)
    margin = plan.levels[1].law.margin(Fraction(1, 20))
    (note,) = [note for note in in_words(statements_of(plan).notes(plan)) if "twice the noise" in note]
    assert f"within {margin:,} of the truth" in note and f"{100 * margin / 10_000:.2g} % of 10,000 people" in note
    edge = tt.degree_plan("edge", "add-remove", tt.Loss(rho=1), 100)
    assert not any("twice the noise" in note for note in in_words(statements_of(edge).notes(edge)))
