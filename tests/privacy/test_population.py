"""A delta of one in the number of units or more is a question; a reckless loss is warned of wherever it is stated."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.csv as csv
import pytest

import treetop as tt
from treetop import Graph, GroupUnit, read_plan
from treetop.card import RunInfo, describe_release, in_words
from treetop.cli import main
from treetop.errors import IncompletePlan, LossError, UnitError
from treetop.measure.questions import Batch, Question

SPINE = tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f", "m"])})
PLAN = """
[attributes.sex]
values = ["f", "m"]
[unit]
entity = "person"
contributions = 1
neighbours = "{neighbours}"
{population}
[loss]
epsilon = {epsilon}
delta = {delta}
{large}
"""


def people(number: int) -> pa.Table:
    return pa.table({"sex": ["f"] * number})


def plan_of(neighbours: Any = "add-remove", population: int | None = None, **loss: Any) -> tt.Plan:
    return tt.Plan(SPINE, tt.Unit("person", neighbours=neighbours, population=population), tt.Loss(**loss))


def test_a_declared_population_makes_a_large_delta_a_question() -> None:
    with pytest.raises(IncompletePlan, match=r"loss.delta is 0.1, at least one in 1,200, .* such as 1e-6; or say"):
        plan_of(population=1200, epsilon=1, delta=0.1)
    with pytest.raises(IncompletePlan):
        plan_of(population=1200, epsilon=1, delta=Fraction(1, 1200))
    with pytest.raises(IncompletePlan):
        plan_of(population=1200, rho=1, delta=Fraction(1, 1200))
    plan_of(population=1200, epsilon=1, delta=Fraction(1, 1201))
    plan_of(population=1200, epsilon=1)
    meant = plan_of(population=1200, epsilon=1, delta=0.1, large_delta=True)
    assert any(
        "The plan says that this is meant" in caveat
        for caveat in in_words(describe_release(meant, RunInfo()))["caveats"]
    )


def test_an_exact_total_makes_it_a_question_before_anything_is_spent() -> None:
    spent: list[str] = []
    plan = plan_of("replace", epsilon=1, delta=0.1)
    with pytest.raises(IncompletePlan, match="at least one in 10, the number of units"):
        tt.make_release(
            plan, people(10), tt.RunOptions(before_measuring=lambda: spent.append("spent"), testing_key=bytes(32))
        )
    assert spent == []
    tt.make_release(plan, people(9), tt.RunOptions(testing_key=bytes(32)))
    tt.make_release(
        plan_of("replace", epsilon=1, delta=0.1, large_delta=True), people(10), tt.RunOptions(testing_key=bytes(32))
    )


def test_a_total_that_is_hidden_is_not_told_by_a_refusal() -> None:
    plan = plan_of("add-remove", epsilon=1, delta=0.1)
    for number in (1, 9, 10, 1000):
        tt.make_release(plan, people(number), tt.RunOptions(testing_key=bytes(32)))


def test_the_number_of_groups_makes_it_a_question_where_groups_are_protected() -> None:
    regions = tt.Hierarchy.flat(["east", "west"])

    def of(event: Any, **more: Any) -> tt.Plan:
        loss = tt.Loss(epsilon=1, delta=0.01)
        return tt.group_plan(
            regions, 9, GroupUnit("household", event=event), loss, rows="histogram", number=100, **more
        )

    with pytest.raises(IncompletePlan, match="one in 100"):
        of("group")
    assert of("move").population is None
    with pytest.raises(IncompletePlan, match="one in 500"):
        of("move", population=500)


def test_a_plan_file_asks_and_takes_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.toml"
    asked = {"neighbours": "add-remove", "epsilon": 1, "delta": 0.1, "population": "population = 1200"}
    path.write_text(PLAN.format(**asked, large=""))
    with pytest.raises(SystemExit) as leaving:
        main(["plan", str(path)])
    assert leaving.value.code == 3
    assert "large_delta = true" in capsys.readouterr().err
    path.write_text(PLAN.format(**asked, large="large_delta = true"))
    plan = read_plan(path).plan
    assert (plan.population, plan.loss.large_delta) == (1200, True)
    csv.write_csv(people(40), tmp_path / "people.csv")
    main(
        ["release", str(path), str(tmp_path / "people.csv"), "--out", str(tmp_path / "out"), "--testing-key", "0" * 64]
    )
    assert [finding for verdict in tt.check(tmp_path / "out") for finding in verdict.findings] == []
    assert "population = 1200" in (tmp_path / "out" / "plan.toml").read_text(encoding="utf-8")
    again = tt.Release.load(tmp_path / "out").card["plan"]
    assert (again["unit"]["population"], again["loss"]["large_delta"]) == (1200, True)


def test_a_plan_that_says_nothing_of_it_keeps_its_digest() -> None:
    plan = plan_of(epsilon=1, delta=1e-8)
    assert "population" not in json.dumps(plan.describe()) and "large_delta" not in json.dumps(plan.describe())


@pytest.mark.parametrize("population", [0, -1, 1.5, True, "1200"])
def test_a_population_is_a_whole_number(population: Any) -> None:
    with pytest.raises(UnitError, match="population"):
        tt.Unit("person", neighbours="replace", population=population)


def test_a_large_delta_is_meant_of_a_delta() -> None:
    with pytest.raises(LossError, match="large_delta"):
        tt.Loss(epsilon=1, large_delta=True)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ({"epsilon": 1000, "delta": 0.1}, ["Epsilon 1000 is reckless", "Delta 0.1 is reckless"]),
        ({"epsilon": 21}, ["Epsilon 21 is reckless"]),
        ({"rho": 5}, ["Epsilon 23.2"]),
        ({"epsilon": 1, "delta": 0.001}, ["Delta 0.001 is reckless"]),
        ({"epsilon": 20, "delta": 1e-4}, []),
        ({"rho": 0.1}, []),
    ],
)
def test_reckless_losses_are_warned_of_in_plans_on_cards_and_in_ledgers(
    loss: dict[str, Any], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of(**loss)
    caveats = in_words(describe_release(plan, RunInfo()))["caveats"]
    assert [caveat for caveat in caveats if "reckless" in caveat] == caveats[: len(words)]
    main(["ledger", "create", str(tmp_path / "ledger"), *(f"--{name}={value}" for name, value in loss.items())])
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Warning: ")]
    (tmp_path / "plan.toml").write_text(
        PLAN.format(neighbours="add-remove", population="", epsilon=1, delta=0.1, large="").split("[loss]")[0]
        + "[loss]\n"
        + "\n".join(f"{name} = {value}" for name, value in loss.items())
    )
    main(["plan", str(tmp_path / "plan.toml")])
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Warning: ")]
    main(["plan", str(tmp_path / "plan.toml"), "--json"])
    listed = json.loads(capsys.readouterr().out)["warnings"]
    assert len(told) == len(shown) == len(listed) == len(words)
    for line, screen, warning, caveat, word in zip(told, shown, listed, caveats, words, strict=False):
        assert word in line and word in screen and word in warning and word in caveat


def test_one_leaf_under_replace_is_released_and_checks(tmp_path: Path) -> None:
    """Nothing is measured, so nothing is spent; the card says so, and it is true."""
    spine = tt.Spine(["sex"], {"sex": tt.Hierarchy.flat(["f"])})
    for number, loss in enumerate((tt.Loss(epsilon=1, delta=1e-8), tt.Loss(epsilon=1), tt.Loss(rho=1))):
        plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), loss)
        assert plan.spent == 0
        tt.make_release(plan, people(7), tt.RunOptions(testing_key=bytes(32))).save(tmp_path / str(number))
        assert [finding for one in tt.check(tmp_path / str(number)) for finding in one.findings] == []
    exact = replace(plan, loss=tt.Loss(epsilon=1, delta=1e-8, accounting="exact"))
    tt.make_release(exact, people(7), tt.RunOptions(testing_key=bytes(32))).save(tmp_path / "exact")
    assert [finding for one in tt.check(tmp_path / "exact") for finding in one.findings] == []


def friends(people: int) -> Graph:
    nodes = pa.table({"id": [str(person) for person in range(people)], "town": ["a"] * people})
    edges = pa.table({"source": ["0", "1"], "target": ["1", "2"]})
    return Graph(nodes, edges, relation="user-out", contributions=2)


@pytest.mark.parametrize(("people", "refused"), [(9, False), (10, True)])
def test_the_people_of_a_graph_are_public_where_lists_are_protected(people: int, refused: bool) -> None:
    graph, loss = friends(people), tt.Loss(epsilon=1, delta=0.1)
    towns = tt.Hierarchy.flat(["a", "b"])
    spine = tt.Spine.origin_first(origin=towns, destination=towns)
    columns = {"origin": "source.town", "destination": "target.town"}
    releases: list[Callable[[Callable[[], object]], object]] = [
        lambda charge: tt.make_release(
            tt.Plan(spine, graph.unit("add-remove"), loss),
            graph.table(),
            tt.RunOptions(columns=columns, before_measuring=charge, testing_key=bytes(32)),
        ),
        lambda charge: tt.make_release(
            tt.degree_plan("user-out", "add-remove", loss, 3, "histogram"),
            graph,
            tt.RunOptions(before_measuring=charge, testing_key=bytes(32)),
        ),
        lambda charge: tt.make_release(
            tt.regional_degree_plan(towns, 3, "user-out", loss),
            graph,
            tt.RunOptions(columns={"place": "town"}, before_measuring=charge, testing_key=bytes(32)),
        ),
    ]
    for release in releases:
        charged = Mock()
        if refused:
            with pytest.raises(IncompletePlan, match="at least one in 10, the number of .* which is public"):
                release(charged)
        else:
            release(charged)
        assert charged.call_count == (0 if refused else 1)


def test_a_question_asks_about_a_large_delta_as_well() -> None:
    towns = tt.Hierarchy.flat(["a", "b"], level="town")
    spine = tt.Spine(["town"], {"town": towns})
    unit = tt.Unit("trip", neighbours="add-remove", population=10)
    question = Question.of(spine, {"town": "a"})
    with pytest.raises(IncompletePlan, match="at least one in 10"):
        Batch(spine, (question,), unit, tt.Loss(epsilon=1, delta=0.1))
    Batch(spine, (question,), unit, tt.Loss(epsilon=1, delta=0.1, large_delta=True))
