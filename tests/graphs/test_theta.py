"""Theta that is chosen privately: by a public rule, from counts that pay for themselves, and told on the card."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import treetop as tt
from tests.commands import said
from treetop.card import in_words
from treetop.card.html import bind, render
from treetop.errors import PlanError, TreetopError
from treetop.measure.measure import Measuring
from treetop.noise import Key
from treetop.plan.degrees import DegreeHistogram

KEY = bytes(range(32))
LOSS = tt.Loss(rho=1)


def network(people: int = 400, seed: int = 3) -> tt.Graph:
    """Some are popular: most have few edges, and one in twenty has many."""
    rng = np.random.default_rng(seed)
    wanted = rng.choice(people, people * 5, p=_popular(people, rng))
    pairs = {(int(a), int(b)) for a, b in zip(rng.integers(people, size=people * 5), wanted, strict=True) if a != b}
    source, target = zip(*sorted(pairs), strict=True)
    ids = [str(one) for one in range(people)]
    return tt.Graph(
        pa.table({"id": ids}), pa.table({"source": list(map(str, source)), "target": list(map(str, target))}), "node"
    )


def _popular(people: int, rng: np.random.Generator) -> Any:
    weight = np.where(rng.random(people) < 0.05, 10.0, 1.0)
    return weight / weight.sum()


def plan(largest: Any = (5, 10, 40), loss: tt.Loss = LOSS, **more: Any) -> tt.Plan:
    return tt.degree_plan("node", "add-remove", loss, largest, **more)


def test_the_rule_takes_the_least_sum_of_people_who_reach_theta_and_noise_and_the_smaller_of_equals() -> None:
    made = plan()
    rule = DegreeHistogram.of(made)
    widths = rule.widths(made)
    assert rule.choice is not None and widths == sorted(widths)
    narrow, middle, wide = widths
    assert rule.settled(made, [1000, 0, 0]).largest == 10
    assert rule.settled(made, [1000, 1000, 0]).largest == 40
    assert rule.settled(made, [middle - narrow, 0, 0]).largest == 5
    # A count below zero is noise: it speaks for a candidate no more than zero does.
    assert rule.settled(made, [0, -1000, -wide]).largest == 5


@pytest.mark.parametrize("loss", [tt.Loss(rho=1), tt.Loss(epsilon=1), tt.Loss(epsilon=1, delta=1e-8)])
@pytest.mark.parametrize("form", ["histogram", "cumulative"])
def test_choosing_and_measuring_cost_the_loss_together_whichever_is_chosen(loss: tt.Loss, form: Any) -> None:
    made = plan(loss=loss, form=form, choosing=0.3)
    rule = DegreeHistogram.of(made)
    assert made.spent == made.budget
    assert [part.share for part in rule.choice_parts(made)] == [Fraction(1, 10)] * 3
    for settled in (rule.settled(made, [0, 0, 0]), rule.settled(made, [10**6, 10**6, 0])):
        assert settled.spent == made.spent and rule.choice_parts(settled) == rule.choice_parts(made)
        # The noise is that of a plan with this theta and the rest of the loss.
        fixed = plan(settled.largest, loss=loss, form=form)
        assert rule.law(settled).standard_deviation > rule.law(fixed).standard_deviation


def test_a_release_tells_how_theta_was_chosen_and_check_chooses_it_again(tmp_path: Path) -> None:
    ledger = tmp_path / "l.ledger"
    tt.Ledger.create(ledger, loss=tt.Loss(rho=2), datasets=("network",))
    release = tt.make_release(plan(title="Degrees"), network(), tt.RunOptions(ledger=ledger, dataset="network"))
    release.save(tmp_path / "degrees")
    card = release.card
    (chosen,) = [row for row in card["choice"] if row["chosen"]]
    assert chosen["theta"] == card["plan"]["degrees"]["largest"] == len(release.spine.trees[0].codes[-1]) - 1
    assert [row["reaching"] for row in card["choice"]] == card["plan"]["degrees"]["choice"]["measured"]
    assert sum(Fraction(row["cost"]["exact"]) for row in card["choice"]) == Fraction(1, 5)
    assert "is chosen among 5, 10, 40" in in_words(card["mechanism"]["name"])
    assert card["composition"]["charged"]["exact"] == "1"
    assert all(not verdict.findings for verdict in tt.check(tmp_path / "degrees"))
    page = (tmp_path / "degrees" / "card.html").read_text(encoding="utf-8")
    assert "candidate for the largest degree" in page


def test_a_card_with_another_theta_or_other_measurements_is_found(tmp_path: Path) -> None:
    release = tt.make_release(plan(), network(), tt.RunOptions(testing_key=KEY))
    release.save(tmp_path / "degrees")
    file = tmp_path / "degrees" / "card.json"
    card = json.loads(file.read_text(encoding="utf-8"))
    told = card["plan"]["degrees"]
    others = [10**6 if theta == told["largest"] else 0 for theta in told["choice"]["candidates"]]
    told["choice"]["measured"] = others
    for row, people in zip(card["choice"], others, strict=True):
        row["reaching"] = people
    _rewrite(file, card)
    found = [finding for verdict in tt.check(tmp_path / "degrees") for finding in verdict.findings]
    assert any("by the measurements of its candidates it would be" in one for one in found)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(("form", "degree"), [("histogram", "in"), ("cumulative", "out"), ("histogram", "total")])
def test_every_kind_of_degrees_under_node_takes_candidates(
    neighbours: Any, form: Any, degree: Any, tmp_path: Path
) -> None:
    made = tt.degree_plan("node", neighbours, tt.Loss(epsilon=1), [4, 8], form, degree=degree)
    release = tt.make_release(made, network(60), tt.RunOptions(testing_key=KEY))
    assert release.card["plan"]["degrees"]["largest"] in (4, 8)
    if neighbours == "replace":
        assert release.total == 60  # which is public
    release.save(tmp_path / "degrees")
    assert all(not verdict.findings for verdict in tt.check(tmp_path / "degrees"))


def test_which_edges_are_counted_is_compared_in_the_plan_of_a_folder(tmp_path: Path) -> None:
    tt.make_release(plan(8, degree="in"), network(60), tt.RunOptions(testing_key=KEY)).save(tmp_path / "degrees")
    toml = tmp_path / "degrees" / "plan.toml"
    toml.write_text(toml.read_text(encoding="utf-8").replace('degree = "in"', 'degree = "out"'), encoding="utf-8")
    file = tmp_path / "degrees" / "card.json"
    _rewrite(file, json.loads(file.read_text(encoding="utf-8")))
    found = [finding for verdict in tt.check(tmp_path / "degrees") for finding in verdict.findings]
    assert any("graph.degree is 'out'" in one for one in found), found


def _rewrite(file: Path, card: dict[str, Any]) -> None:
    """Write a card with every hash put right, as who forges it would."""
    import hashlib

    card["plan_sha256"] = hashlib.sha256(json.dumps(card["plan"], sort_keys=True).encode()).hexdigest()
    toml = file.parent / "plan.toml"
    toml.write_text(bind(toml.read_text(encoding="utf-8"), card), encoding="utf-8")
    for one in card["files"]:
        data = (file.parent / one["path"]).read_bytes()
        one["bytes"], one["sha256"] = len(data), hashlib.sha256(data).hexdigest()
    file.write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    (file.parent / "card.html").write_text(render(card, digest), encoding="utf-8")


def test_a_plan_file_gives_a_list_and_what_is_written_of_it_is_the_same_plan_again(tmp_path: Path) -> None:
    graph = network()
    for name, table in (("nodes", graph.nodes), ("edges", graph.edges)):
        pa.csv.write_csv(table, tmp_path / f"{name}.csv")
    text = """
[graph]
counts = "degrees"
nodes = "nodes.csv"
edges = "edges.csv"
relation = "node"
largest = [40, 5, 10]
choosing = 0.25

[unit]
neighbours = "add-remove"

[loss]
rho = 1
"""
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    file = tt.read_plan(tmp_path / "plan.toml")
    made = tt.publish(file, out=tmp_path / "out")
    assert all(not verdict.findings for verdict in tt.check(tmp_path / "out"))
    assert made.release.card["plan"]["degrees"]["choice"]["share"] == "1/4"
    truth = said(["check", tmp_path / "out", "--truth", tmp_path / "edges.csv", "--plan", tmp_path / "plan.toml"])
    assert truth.code == 0 and "degree" in truth.out  # the errors are of the theta that was chosen
    again = (tmp_path / "out" / "plan.toml").read_text(encoding="utf-8")
    assert "largest = [5, 10, 40]" in again
    named = again.replace('counts = "degrees"', 'counts = "degrees"\nnodes = "nodes.csv"\nedges = "edges.csv"')
    (tmp_path / "again.toml").write_text(named, encoding="utf-8")
    assert tt.read_plan(tmp_path / "again.toml").plan.digest == file.plan.digest


def test_with_many_people_and_little_noise_the_choice_is_near_the_degrees_that_there_are() -> None:
    found = tt.make_release(plan((5, 10, 20, 40, 500), tt.Loss(rho=50)), network(2_000), tt.RunOptions(testing_key=KEY))
    theta = found.card["plan"]["degrees"]["largest"]
    assert 20 <= theta <= 40  # 500 needs ten times the noise of 40, and hardly anyone has so many


@pytest.mark.parametrize(
    ("largest", "more", "said"),
    [
        ([10], {}, "2 to 32 different candidates"),
        ([10, 10], {}, "2 to 32 different candidates"),
        ([0, 10], {}, "whole numbers"),
        (["10", 20], {}, "whole numbers"),
        ([10, 20], {"choosing": 1}, "less than 1"),
        (10, {"choosing": 0.2}, "give a list"),
    ],
)
def test_candidates_that_cannot_be_are_refused(largest: Any, more: Any, said: str) -> None:
    with pytest.raises(TreetopError, match=said):
        plan(largest, **more)


def test_only_under_node_and_only_of_the_whole_graph_theta_is_chosen() -> None:
    with pytest.raises(PlanError, match='under "node" only'):
        tt.degree_plan("edge", "add-remove", LOSS, [10, 20])
    with pytest.raises(PlanError, match="one largest degree"):
        tt.regional_degree_plan(tt.Hierarchy.flat(["a", "b"]), [10, 20], "edge", LOSS)  # type: ignore[arg-type]


def test_what_was_measured_cannot_lead_to_more_than_was_paid_for() -> None:
    dear, cheap = plan(loss=tt.Loss(rho=2)), plan()
    with pytest.raises(PlanError, match="nobody paid for"):
        Measuring(cheap.workload, Key(KEY)).settled(DegreeHistogram.of(dear).settled(dear, [0, 0, 0]).workload)


def test_before_it_is_chosen_the_plan_tells_the_noise_of_every_candidate() -> None:
    from treetop.card.distributions import statements_of

    told = " ".join(in_words(statements_of(plan()).notes(plan())))
    for theta, law in zip((5, 10, 40), DegreeHistogram.of(plan()).candidate_laws(plan()), strict=True):
        assert f"{law.margin(Fraction(1, 20)):,} with {theta}" in told
