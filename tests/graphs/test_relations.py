"""Neighbour relations of graphs: one registration adds another, and what lacks words is refused."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import treetop as tt
from treetop import Graph, register_relation
from treetop._util.choices import Choices
from treetop.counts.reading import read_counts
from treetop.errors import TreetopError, UnitError
from treetop.privacy import relation as relations
from treetop.privacy.relation import EDGE, Relation

NODES = pa.table({"id": ["a", "b", "c"], "town": ["n1", "n2", "s1"]})
EDGES = pa.table({"source": ["a", "a", "b", "c"], "target": ["b", "c", "a", "b"]})
PLACES = tt.Hierarchy.flat(["n1", "n2", "s1"], level="town")
COLUMNS = {"origin": "source.town", "destination": "target.town"}
TWO = Relation(
    "two-edges",
    entity="pair of friendships",
    hides="hides two friendships",
    protects="two edges",
    words='The neighbour relation is "two-edges": graphs that differ in two edges.',
    edges=lambda contributions, degree_bound: 2,
)


@pytest.fixture
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "RELATIONS", Choices("relation", *relations.RELATIONS.values()))
    register_relation(TWO)


@pytest.mark.usefixtures("_registered")
def test_a_relation_is_added_by_one_registration() -> None:
    graph = Graph(NODES, EDGES, "two-edges")
    unit = graph.unit("add-remove")
    assert unit.sensitivity("origin") == (2, 4) and unit.entity == "pair of friendships"
    plan = tt.Plan(tt.Spine.origin_first(origin=PLACES, destination=PLACES), unit, tt.Loss(rho=1))
    assert read_counts(graph.table(), plan.spine, COLUMNS).total == 4
    assert plan.graph is not None and plan.graph.sentences()[0] == TWO.words
    with pytest.raises(UnitError, match='"node" hides .*; "two-edges" hides two friendships'):
        Graph(NODES, EDGES, "three-edges")


@pytest.mark.parametrize(
    ("relation", "about"),
    [
        (replace(TWO, words=" "), "has no words for the card"),
        (replace(TWO, name="edge"), "there is already a relation 'edge'"),
        (replace(EDGE, name="edge-2"), "is about one 'friendship'; give it a name of its own"),
    ],
)
def test_a_relation_without_words_or_beside_its_twin_is_refused(relation: Relation, about: str) -> None:
    with pytest.raises(TreetopError, match=about):
        register_relation(relation)
