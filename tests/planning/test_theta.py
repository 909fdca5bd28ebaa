"""Advice on theta, from public degrees: what each costs in noise, against whom it would cut off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from tests.commands import said
from treetop.advice import try_out
from treetop.errors import DataError, PlanError, PrivatePrior

PLAN = """
[graph]
counts = "degrees"
nodes = "nodes.csv"
edges = "edges.csv"
relation = "{relation}"
largest = {largest}

[unit]
neighbours = "add-remove"

[loss]
epsilon = 1
delta = 1e-8
"""


def plan_file(folder: Path, largest: object = 20, relation: str = "node") -> Path:
    (folder / "nodes.csv").write_text("id\na\nb\n", encoding="utf-8")
    (folder / "edges.csv").write_text("source,target\na,b\n", encoding="utf-8")
    path = folder / "plan.toml"
    path.write_text(PLAN.format(relation=relation, largest=largest), encoding="utf-8")
    return path


def public(folder: Path, people: int = 20_000) -> str:
    """Most have some thirty edges, and one in a thousand two hundred."""
    file = folder / "public.csv"
    file.write_text(f"degree,people\n10,{people // 2}\n30,{people // 2 - 20}\n200,20\n", encoding="utf-8")
    return str(file)


def test_each_theta_has_its_noise_and_whom_it_cuts_off_and_the_least_sum_is_the_best(tmp_path: Path) -> None:
    found = try_out(tt.read_plan(plan_file(tmp_path)), public(tmp_path))
    rows = {row["theta"]: row for row in found.rows}
    assert [rows[theta]["above"] for theta in (5, 20, 50, 200)] == [20_000, 10_000, 20, 0]
    assert 9.5 < rows[100]["noise"] / rows[10]["noise"] < 10.5
    assert found["best"] == 50 and min(found.column("together")) == rows[50]["together"]
    assert found["stated"] == [20]


def test_the_advice_is_for_as_many_people_as_there_are(tmp_path: Path) -> None:
    file = tt.read_plan(plan_file(tmp_path))
    many, few = (try_out(file, public(tmp_path), total=people) for people in (10**7, 200))
    assert many["best"] == 200 and few["best"] == 10
    assert many.rows[0]["noise"] == few.rows[0]["noise"]


def test_a_release_tells_nothing_of_degrees_that_it_does_not_tell_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ends = [pa.array(map(str, rng.integers(100, size=600))) for _ in "ab"]
    graph = tt.Graph(
        pa.table({"id": list(map(str, range(100)))}),
        pa.table({"source": ends[0], "target": ends[1]}),
        "edge",
        policies=tt.Policies(self_loops="drop", repeated="drop"),
    )
    plan = tt.degree_plan("edge", "add-remove", tt.Loss(rho=10), 12, policies=graph.policies)
    tt.make_release(plan, graph, tt.RunOptions(allow_dropped=True, testing_key=bytes(32))).save(tmp_path / "other")
    found = try_out(tt.read_plan(plan_file(tmp_path)), str(tmp_path / "other"))
    assert found["known"] == 12 and max(found.column("theta")) < 12
    assert "nothing is known of a larger one" in str(found)


def test_the_command_shows_it_and_refuses_the_private_tables(tmp_path: Path) -> None:
    path = plan_file(tmp_path, [10, 50, 200])
    done = said(["plan", path, "--twin", public(tmp_path), "--twin-source", "elsewhere"])
    assert done.code == 0 and "Which largest degree" in done.out and "as in elsewhere" in done.out
    told = said(["plan", path, "--twin", public(tmp_path), "--total", "20000", "--json"])
    assert told.json()["theta"]["best"] == 50
    with pytest.raises(PrivatePrior):
        try_out(tt.read_plan(path), str(tmp_path / "edges.csv"))


def test_what_is_no_table_of_degrees_is_refused(tmp_path: Path) -> None:
    file = tt.read_plan(plan_file(tmp_path))
    for name, text in (
        ("columns", "a,b\n1,2\n"),
        ("text", "degree,people\nx,2\n"),
        ("below", "degree,people\n-1,2\n"),
        ("none", "degree,people\n1,0\n"),
    ):
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=f"{name}.csv"):
            try_out(file, str(tmp_path / f"{name}.csv"))


def test_under_other_relations_there_is_nothing_to_weigh(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match='under "node" only'):
        try_out(tt.read_plan(plan_file(tmp_path, relation="edge")), public(tmp_path))
