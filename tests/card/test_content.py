"""The card says what the plan decides, exactly, and nothing private."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import treetop as tt
from treetop._util.numbers import plain
from treetop.card import RunInfo, describe_release, in_words
from treetop.card.statements import loss_summary
from treetop.errors import ReleaseError
from treetop.privacy import epsilon_from_rho


def card_of(plan: tt.Plan, **facts: Any) -> dict[str, Any]:
    """Return a card in words."""
    card: dict[str, Any] = in_words(describe_release(plan, RunInfo(**facts)))
    return card


def test_every_exact_number_stands_beside_the_float_nearest_to_it(plan: tt.Plan) -> None:
    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if set(value) == {"exact", "value"} and value["exact"] is not None:
                assert float(Fraction(value["exact"])) == value["value"]
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    card = card_of(plan)
    walk(card)
    tables = [*card["levels"], *card.get("margins", [])]
    assert sum(Fraction(table["cost"]["exact"]) for table in tables) == plan.spent


def test_the_loss_is_stated_with_its_conversion(plan: tt.Plan) -> None:
    loss = card_of(plan)["loss"]
    if plan.loss.definition == "pure":
        assert (loss["rho"], loss["delta"], loss["conversion"]) == (None, None, None)
        assert Fraction(loss["epsilon"]["exact"]) == plan.spent
    else:
        assert Fraction(loss["rho"]["exact"]) == plan.spent
        assert "Proposition 12" in loss["conversion"]
        assert loss.get("accounting", "zcdp") == plan.accounting
        assert loss["delta_is_stated"] == (plan.loss.delta is not None)
        if plan.accounting == "exact":
            return
        least = epsilon_from_rho(plan.spent, Fraction(loss["delta"]["exact"]))
        assert loss["epsilon"]["value"] == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("plan", ["exact accounting"], indirect=True)
def test_exact_accounting_is_named_with_what_it_comes_to_beside_other_releases(plan: tt.Plan) -> None:
    card = card_of(plan)
    beside = epsilon_from_rho(plan.spent, 1e-8)
    assert card["loss"]["epsilon"] == {"exact": "1", "value": 1.0}
    assert "exact accounting" in card["guarantee"] and "for this release alone" in card["guarantee"]
    alone, together, several = card["meaning"][:3]
    assert (alone["epsilon"], together["epsilon"]) == (1.0, beside)
    assert several["epsilon"] == epsilon_from_rho(25 * plan.spent, 1e-8)
    assert loss_summary(plan)["epsilon"] == 1.0 and loss_summary(plan)["epsilon_by_rho"] == beside
    (told,) = (caveat for caveat in card["caveats"] if "exact accounting" in caveat)
    assert f"counts as rho {plain(plan.spent)}" in told and beside > 1


def test_levels_carry_sensitivity_noise_and_accuracy(plan: tt.Plan) -> None:
    accuracy = plan.accuracy(0.95).levels
    for stated, level, expected in zip(card_of(plan)["levels"], plan.levels, accuracy, strict=True):
        assert (stated["name"], stated["nodes"], stated["bound"]) == (level.name, level.nodes, expected.bound)
        if not level.is_measured:
            assert (stated["noise"], stated["sensitivity"], stated["margin"]) == (None, None, None)
            continue
        change = plan.unit.sensitivity(level.name)
        assert stated["sensitivity"] == {"l1": change.l1, "l2_squared": change.l2_squared}
        assert stated["noise"]["sigma"] == level.law.standard_deviation
        assert stated["margin"] == expected.margin


TRIED = {"twin": [{"level": 1, "name": "place.region", "covered": 19, "nodes": 20}], "runs": 5}


def test_intervals_are_explained_with_their_nominal_coverage_and_what_a_twin_gave(plans: dict[str, tt.Plan]) -> None:
    plan = plans["exact total"]
    accuracy = card_of(plan)["accuracy"]
    assert "lower and upper" in accuracy["interval"]
    assert accuracy["coverage"].keys() == {"nominal", "sentence"}
    assert accuracy["coverage"]["nominal"] == 0.95
    assert "not tried" in accuracy["coverage"]["sentence"]
    tried = card_of(plan, coverage=TRIED)["accuracy"]["coverage"]
    assert (tried["twin"], tried["runs"]) == (TRIED["twin"], 5)
    assert "95.0 % of 20 counts that were measured" in tried["sentence"]
    card = describe_release(plan, RunInfo(coverage=TRIED))
    assert describe_release(plan, RunInfo.of_card(card)) == card


def test_a_plan_without_intervals_says_nothing_of_them(plans: dict[str, tt.Plan]) -> None:
    base = plans["exact total"]
    plan = tt.Plan(base.spine, base.unit, base.loss, confidence=None, margins="none")
    assert card_of(plan)["accuracy"].keys() == {"confidence", "margin", "bound"}


def test_a_coverage_that_no_twin_can_give_does_not_fit_the_schema(plans: dict[str, tt.Plan]) -> None:
    with pytest.raises(tt.TreetopError, match="covered"):
        card_of(plans["pure"], coverage={"twin": [{**TRIED["twin"][0], "covered": -1}], "runs": 5})  # type: ignore[index]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("exact total", "by changing the values (place, sex) of one row, that of one trip"),
        ("pure", "by adding or removing the one row of one person"),
        ("rho", "by exchanging the rows of one household, at most 3, for at most 3 others"),
        ("rho and delta", "by adding or removing all the rows, at most 2, of one person"),
    ],
)
def test_neighbours_are_described_in_terms_of_the_table(kind: str, words: str, plans: dict[str, tt.Plan]) -> None:
    assert words in card_of(plans[kind])["unit"]["neighbouring_tables"]


def test_the_exact_total_is_named_as_unprotected_only_where_it_is_exact(plan: tt.Plan) -> None:
    card = card_of(plan)
    exact = plan.levels[0].is_exact
    assert any("total number of records" in thing for thing in card["exact"]) == exact
    assert any("The total is exact" in caveat for caveat in card["caveats"]) == exact


def test_a_declared_limit_is_called_declared_and_an_enforced_one_enforced(plans: dict[str, tt.Plan]) -> None:
    declared = card_of(plans["pure"])
    assert declared["unit"]["bound"].startswith("Declared, not enforced")
    assert any("declared, not enforced" in caveat for caveat in declared["caveats"])
    base = plans["pure"]
    by_id = tt.Plan(base.spine, tt.Unit("person", neighbours="add-remove", id="who"), base.loss, margins="none")
    enforced = card_of(by_id)
    assert enforced["unit"]["bound"].startswith("Enforced")
    assert not any("declared, not enforced" in caveat for caveat in enforced["caveats"])


def test_a_person_with_several_units_sees_the_loss_that_adds_up_for_them(plans: dict[str, tt.Plan]) -> None:
    plan = plans["exact total"]
    rows = {row["records"]: row for row in card_of(plan)["meaning"]}
    assert rows[1]["epsilon"] == 1
    assert rows[10]["rho"] == float(100 * plan.spent)
    assert rows[10]["epsilon"] == epsilon_from_rho(100 * plan.spent, Fraction(1, 10**8))


def test_a_testing_key_is_stated_loud_and_clear(plans: dict[str, tt.Plan]) -> None:
    card = card_of(plans["exact total"], private=False)
    assert card["private"] is False
    assert card["guarantee"] == "None."
    assert card["caveats"][0].startswith("Not private")
    assert "testing key" in card["mechanism"]["randomness"]


def test_the_card_does_not_depend_on_the_private_table(plans: dict[str, tt.Plan]) -> None:
    plan = plans["rho"]
    known = pa.table({"place": ["n1"] * 50, "sex": ["f"] * 50})
    dropped = pa.table({"place": ["n1"] * 50 + ["?"] * 900, "sex": ["f"] * 950})
    one, other = (
        tt.make_release(plan, known).card,
        tt.make_release(plan, dropped, tt.RunOptions(allow_dropped=True)).card,
    )
    for card in (one, other):
        del card["id"], card["time"]
    assert json.dumps(one) == json.dumps(other)


def test_two_releases_have_different_names(plans: dict[str, tt.Plan]) -> None:
    assert card_of(plans["pure"])["id"] != card_of(plans["pure"])["id"]


def test_a_unit_has_its_article() -> None:
    spine = tt.Spine(["place"], {"place": tt.Hierarchy.flat(["a", "b"])})
    plan = tt.Plan(spine, tt.Unit("employee", neighbours="replace"), tt.Loss(epsilon=1))
    caveats = json.dumps(card_of(plan)["caveats"])
    assert "whether an employee is in the data" in caveats and " a employee" not in caveats


def test_a_sentence_with_values_that_it_cannot_have_is_one_error() -> None:
    nested: dict[str, Any] = {"id": "caveat.others"}
    for _ in range(400):  # as deep as a card that json can still read
        nested = {"id": "paragraph", "with": {"sentences": [nested]}}
    with pytest.raises(ReleaseError, match="nested too deeply"):
        in_words(nested)
    policies = {"self_loops": "error", "repeated": "error", "unknown": "error"}
    graph = {"relation": "node", "directed": True, **policies}
    with pytest.raises(ReleaseError, match=r"'graph\.edges' cannot be said with .*degree bound"):
        in_words({"id": "graph.edges", "with": {"graph": graph, "number": 0}})
