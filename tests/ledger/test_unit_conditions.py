"""What neighbours must agree on is part of the unit: releases with other conditions are never added up."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import treetop as tt
from treetop.card import in_words
from treetop.cli import cli as main
from treetop.ledger import OtherUnit

PLACE = tt.Hierarchy.from_prefixes(["A1", "A2", "B1"], widths=[1], levels=["state", "town"])
SPINE = tt.Spine(["place.state", "place.town"], {"place": PLACE})
PUPIL = tt.Unit("pupil", neighbours="replace")
TABLE = pa.table({"place": ["A1", "A1", "A2", "B1"], "work": ["A1", "B1", "B1", "B1"]})
LOSS = tt.Loss(epsilon=1)
INVARIANT = tt.Fact(invariant=True)
STATES = {"A": 3, "B": 1}


def plan(facts: dict[str, Any] | None = None, unit: tt.Unit = PUPIL, **more: Any) -> tt.Plan:
    return tt.Plan(SPINE, unit, LOSS, margins="none", facts=facts or {}, **more)


@pytest.fixture
def ledger(tmp_path: Path) -> tt.Ledger:
    return tt.Ledger.create(tmp_path / "ledger", loss=tt.Loss(epsilon=9), datasets=("pupils",))


@pytest.fixture
def charge(ledger: tt.Ledger) -> Callable[..., tt.Release]:
    def run(made: tt.Plan, **more: Any) -> tt.Release:
        return tt.make_release(made, TABLE, tt.RunOptions(ledger=ledger, dataset="pupils", **more))

    return run


Charge = Callable[..., tt.Release]

OTHER = {
    "an invariant beside none": (plan(), plan({"place.state": INVARIANT})),
    "a fact that is compared beside none": (plan(), plan({"place.state": STATES})),
    "an invariant beside a fact": (plan({"place.state": INVARIANT}), plan({"place.state": STATES})),
    "facts about other tables": (
        plan({"place.town": tt.Fact(at_most={"A1": 5})}),
        plan({"place.state": tt.Fact(at_most={"A": 5})}),
    ),
    "other numbers": tuple(plan({"place.state": tt.Fact(at_most={"A": most})}) for most in (5, 6)),
    "other bounds": (
        plan({"place.state": tt.Fact(at_most={"A": 3})}),
        plan({"place.state": tt.Fact(at_least={"A": 3})}),
    ),
    "one invariant more": (
        plan({"place.state": INVARIANT}),
        plan({"place.state": INVARIANT, "place.town": tt.Fact(at_most={"A1": 5})}),
    ),
    "an exact total beside one that is measured": (
        plan(), plan(unit=tt.Unit("pupil", neighbours="replace", may_be_missing=True))
    ),
    "declared beside enforced": (
        plan(unit=tt.Unit("pupil", 2, "replace")),
        plan(unit=tt.Unit("pupil", 2, "replace", id="work")),
    ),
    "a declared cap beside none": (
        plan(unit=tt.Unit("pupil", 2, "replace")),
        plan(unit=tt.Unit("pupil", 2, "replace", per_node={"place.town": 1})),
    ),
}  # fmt: skip


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", OTHER)
def test_releases_with_other_conditions_are_not_added_up(
    ledger: tt.Ledger, charge: Charge, name: str, turned: bool
) -> None:
    first, second = OTHER[name][::-1] if turned else OTHER[name]
    charge(first)
    before = ledger.spent("pupils")
    with pytest.raises(OtherUnit) as refused:
        charge(second)
    assert ledger.spent("pupils") == before and len(ledger.entries()) == 1
    message, (entry,) = str(refused.value), ledger.entries()
    assert entry.unit in message and "under different conditions, do not add" in message
    assert "under the same conditions" in message and "under another name" in message


def test_releases_with_the_same_conditions_add_up_and_every_card_states_them(ledger: tt.Ledger, charge: Charge) -> None:
    facts = {"place.state": INVARIANT, "place.town": tt.Fact(at_most={"A1": 5})}
    charge(plan(facts, title="The first"))
    card = charge(plan(dict(reversed(facts.items())), title="The second")).card
    assert len(card["composition"]["earlier"]) == 1
    when = (
        "only if neighbours agree with the public facts about place town and neighbours have the same counts by place "
        "state"
    )
    assert in_words(card["composition"]["sentence"]).endswith(f"This sum, like every loss in it, holds {when}.")
    assert f"replace, {when} (fingerprint " in (ledger.balance("pupils").unit or "")
    assert "only if" not in in_words(tt.make_release(plan(), TABLE).card["composition"]["sentence"])
    alone = in_words(tt.make_release(plan(facts), TABLE).card["composition"]["sentence"])
    assert alone.endswith(f"The sum then holds {when}, and on the conditions of those releases.")


def test_unchecked_facts_are_no_condition(charge: Charge) -> None:
    charge(plan())
    charge(plan({"place.state": tt.Fact(exact=STATES, unchecked=True)}))


def test_an_attribute_of_the_same_name_may_be_another_column(charge: Charge) -> None:
    made = plan({"place.state": INVARIANT})
    charge(made)
    charge(made, columns={"place": "place"})
    with pytest.raises(OtherUnit):
        charge(made, columns={"place": "work"})


def test_another_hierarchy_or_other_codes_are_another_condition(tmp_path: Path, ledger: tt.Ledger) -> None:
    path = tmp_path / "pupils.csv"
    path.write_text("place\nA1\nA2\nB1\n", encoding="utf-8")
    made, source = plan({"place.state": INVARIANT}), tt.Source(path)
    tt.make_release(made, source, tt.RunOptions(ledger=ledger, dataset="pupils"))
    recoded = replace(source, prepare=tt.Prepare(replace={"place": {"A1": "B1"}}))
    with pytest.raises(OtherUnit):
        tt.make_release(made, recoded, tt.RunOptions(ledger=ledger, dataset="pupils"))
    turned = tt.Hierarchy.from_table(
        pa.table({"state": ["A", "B", "B"], "town": ["A1", "A2", "B1"]}), ["state", "town"]
    )
    other = tt.Plan(
        tt.Spine(["place.state", "place.town"], {"place": turned}), PUPIL, LOSS, margins="none",
        facts={"place.state": INVARIANT},
    )  # fmt: skip
    with pytest.raises(OtherUnit):
        tt.make_release(other, source, tt.RunOptions(ledger=ledger, dataset="pupils"))
    tt.make_release(made, source, tt.RunOptions(ledger=ledger, dataset="pupils"))


def test_show_says_what_all_releases_of_a_data_set_protect(ledger: tt.Ledger, charge: Charge) -> None:
    charge(plan({"place.state": INVARIANT}))
    unit = ledger.balance("pupils").unit
    assert unit is not None and "only if neighbours have the same counts by place state" in unit
    told = CliRunner().invoke(main, ["ledger", "show", str(ledger.path)]).output
    assert f"All releases of pupils protect: {unit}" in told.splitlines()
    report = json.loads(CliRunner().invoke(main, ["ledger", "show", str(ledger.path), "--json"]).output)
    assert report["datasets"][0]["unit"] == report["entries"][0]["unit"] == unit


def friends(directed: bool, degrees: bool) -> tuple[tt.Plan, Any]:
    nodes = pa.table({"id": ["1", "2", "3"], "town": ["A1", "A2", "B1"]})
    graph = tt.Graph(nodes, pa.table({"source": ["1", "2"], "target": ["2", "1"]}), "edge", directed=directed,
                     policies=tt.Policies(repeated="drop"))  # fmt: skip
    if degrees:
        return tt.degree_plan("edge", "add-remove", LOSS, 3, directed=directed, policies=graph.policies), graph
    spine = tt.Spine.origin_first(origin=PLACE, destination=PLACE)
    return tt.Plan(spine, graph.unit("add-remove"), LOSS, margins="none"), graph.table()


@pytest.mark.parametrize("kinds", [(False, False), (True, True), (False, True)])
def test_edges_with_and_without_direction_are_not_added_up(ledger: tt.Ledger, kinds: tuple[bool, bool]) -> None:
    def charge(directed: bool, degrees: bool) -> None:
        made, table = friends(directed, degrees)
        columns = None if degrees else {"origin": "source.town", "destination": "target.town"}
        tt.make_release(made, table, tt.RunOptions(ledger=ledger, dataset="pupils", columns=columns))

    charge(True, kinds[0])
    with pytest.raises(OtherUnit, match="friendship, directed edges, .*this one 'friendship, undirected edges, "):
        charge(False, kinds[1])
    charge(True, not kinds[0])  # of tables and of degrees, an edge is the same one
    assert len(ledger.entries()) == 2


def test_repeated_edges_that_are_kept_are_edges_of_their_own(ledger: tt.Ledger) -> None:
    for repeated in ("keep", "drop"):
        made = tt.degree_plan("edge", "add-remove", LOSS, 3, policies=tt.Policies(repeated=repeated))
        nodes, edges = pa.table({"id": ["1", "2"]}), pa.table({"source": ["1", "1"], "target": ["2", "2"]})
        graph = tt.Graph(nodes, edges, "edge", policies=tt.Policies(repeated=repeated))
        if repeated == "keep":
            tt.make_release(made, graph, tt.RunOptions(ledger=ledger, dataset="pupils"))
            continue
        with pytest.raises(OtherUnit, match="'friendship, directed edges, repeated, .*'friendship, directed edges, at"):
            tt.make_release(made, graph, tt.RunOptions(ledger=ledger, dataset="pupils", allow_dropped=True))


FILE = """
[attributes.place]
hierarchy = "places.csv"
levels = ["state", "town"]

[unit]
entity = "pupil"
contributions = 1
neighbours = "replace"

[loss]
epsilon = 1

[spine]
margins = "none"

[data]
source = "pupils.csv"
"""


def test_questions_carry_the_conditions_of_their_plan(tmp_path: Path, ledger: tt.Ledger) -> None:
    (tmp_path / "places.csv").write_text("state,town\nA,A1\nA,A2\nB,B1\n", encoding="utf-8")
    (tmp_path / "pupils.csv").write_text("place\nA1\nA2\nB1\n", encoding="utf-8")
    plain, told = tmp_path / "plain.toml", tmp_path / "told.toml"
    plain.write_text(FILE, encoding="utf-8")
    told.write_text(FILE + '\n[facts]\n"place.state" = { invariant = true }\n', encoding="utf-8")
    tt.publish(told, options=tt.RunOptions(ledger=ledger, dataset="pupils"), out=tmp_path / "release")
    with pytest.raises(OtherUnit, match="only if neighbours have the same counts by place state"):
        tt.ask(plain, questions=["place.town=A1"], ledger=ledger, dataset="pupils")
    assert len(ledger.entries()) == 1
    tt.ask(told, questions=["place.town=A1"], ledger=ledger, dataset="pupils")
    first, second = ledger.entries()
    assert first.unit == second.unit
    said = CliRunner().invoke(
        main, ["ask", str(told), "--where", "place.town=A2", "--ledger", str(ledger.path), "--dataset", "pupils"]
    )
    assert "releases only if neighbours have the same counts by place state." in said.output
