"""Plans with a joint fit: measured tables of a few attributes, and one table fitted to all of them."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.commands import printed, refused
from treetop.domain.constraints import Fact
from treetop.errors import PlanError, ReleaseError

PLACE = tt.Hierarchy.from_prefixes(["N1", "N2", "S1", "S2", "S3"], widths=[1], levels=["region", "town"])
TREES = {"place": PLACE, "age": tt.Hierarchy.flat(["0", "1", "2", "3"]), "sex": tt.Hierarchy.flat(["f", "m"])}
LOSS = tt.Loss(epsilon=1, delta=1e-8)
RECORDS = 6000


def unit(neighbours: Any = "replace") -> tt.Unit:
    return tt.Unit("visit", contributions=1, neighbours=neighbours)


def records() -> pa.Table:
    rng = np.random.default_rng(3)
    chances = rng.dirichlet(np.full(40, 0.4))
    codes = np.unravel_index(rng.choice(40, RECORDS, p=chances), (5, 4, 2))
    return pa.table(
        {name: tree.codes[-1].take(pa.array(own)) for (name, tree), own in zip(TREES.items(), codes, strict=True)}
    )


def plan(neighbours: Any = "replace", **more: Any) -> tt.Plan:
    return tt.joint_plan(TREES, unit(neighbours), more.pop("loss", LOSS), **more)


def made(own: tt.Plan | None = None, seed: int = 0) -> tt.Release:
    key = seed.to_bytes(32, "big")
    return tt.make_release(own or plan(), records(), tt.RunOptions(testing_key=key))


def true_counts(*levels: str) -> dict[tuple[str, ...], int]:
    table = records().append_column("region", pa.array([town[0] for town in records()["place"].to_pylist()]))
    names = [{"place.region": "region", "place.town": "place"}.get(level, level) for level in levels]
    rows = table.group_by(names).aggregate([([], "count_all")]).to_pylist()
    return {tuple(row[name] for name in names): row["count_all"] for row in rows}


def test_every_attribute_and_every_two_are_measured_by_default() -> None:
    own = plan()
    assert [margin.name for margin in own.margin_tables] == [
        "place.region", "place.town", "age", "sex",
        "place.region * age", "place.town * age", "place.region * sex", "place.town * sex", "age * sex",
    ]  # fmt: skip
    assert len({part.share for part in own.margin_parts}) == 1 and own.spent <= own.budget
    assert [part.is_measured for part in own.levels] == [False, False] and own.levels[0].is_exact
    assert plan("add-remove").levels[0].is_measured


def test_pairs_of_large_attributes_are_measured_at_coarser_levels() -> None:
    large = tt.Hierarchy.from_prefixes(
        [f"{a}{b}" for a in "abcdefgh" for b in range(100, 400)], widths=[1], levels=["region", "town"]
    )
    own = tt.joint_plan({"from": large, "to": large}, unit(), LOSS)
    assert [margin.name for margin in own.margin_tables][-1] == "from.region * to.town"
    with pytest.raises(PlanError, match="enumerates all cells"):
        tt.joint_plan({"from": large, "to": large, "sex": TREES["sex"]}, unit(), LOSS)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_release_adds_up_answers_and_passes_its_check(tmp_path: Path, neighbours: str) -> None:
    release = made(plan(neighbours))
    assert (release.total == RECORDS) or neighbours == "add-remove"
    for levels in combinations(["place.town", "age", "sex"], 2):
        table = release.table(levels)
        assert sum(table["count"].to_pylist()) == release.total
        true = true_counts(*levels)
        errors = [row["count"] - true.get(tuple(row[level] for level in levels), 0) for row in table.to_pylist()]
        assert np.abs(errors).mean() < 40
    release.save(tmp_path / "out")
    verdicts = tt.check(tmp_path / "out")
    assert [verdict.findings for verdict in verdicts if not verdict.verified and not verdict.caution] == []
    assert any("joint fit" in verdict.subject for verdict in verdicts)
    again = tt.Release.load(tmp_path / "out")
    assert again.table(["place.region", "age"]).equals(release.table(["place.region", "age"]))
    assert again.table().equals(release.table())
    assert 'order = "joint"\nmargins = "pairs"' in (tmp_path / "out" / "plan.toml").read_text()


def test_the_same_measurements_give_the_same_counts() -> None:
    assert made().table().equals(made().table())


def test_forged_counts_and_measurements_are_found(tmp_path: Path) -> None:
    made().save(tmp_path / "out")
    counts = pq.read_table(tmp_path / "out" / "counts.parquet")
    values = counts["count"].to_pylist()
    values[0], values[1] = values[0] + 1, values[1] - 1
    forged = counts.set_column(counts.column_names.index("count"), "count", pa.array(values))
    pq.write_table(forged, tmp_path / "out" / "counts.parquet")
    findings = [finding for verdict in tt.check(tmp_path / "out") for finding in verdict.findings]
    assert any("counts.parquet, row 1" in finding and "measurements give" in finding for finding in findings)
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    del card["plan"]["mechanism"]
    (tmp_path / "out" / "card.json").write_text(json.dumps(card))
    with pytest.raises(ReleaseError):
        tt.Release.load(tmp_path / "out")


@pytest.mark.parametrize(
    "own",
    [plan(), plan("add-remove"), plan(loss=tt.Loss(epsilon=2)), plan(loss=tt.Loss(epsilon=50, delta=1e-8))],
    ids=["total public", "total measured", "laplace", "little noise"],
)
def test_intervals_hold_the_truth_as_often_as_they_say(own: tt.Plan) -> None:
    asked = [("place.town",), ("age",), ("place.town", "age"), ("place.region", "sex"), ("place.town", "age", "sex")]
    held, outside, cells = dict.fromkeys(asked, 0), 0, dict.fromkeys(asked, 0)
    for seed in range(40):
        release = made(own, seed)
        for levels in asked:
            true = true_counts(*levels)
            for row in release.table(levels).to_pylist():
                count = true.get(tuple(row[level] for level in levels), 0)
                held[levels] += row["lower"] <= count <= row["upper"]
                outside += not row["lower"] <= row["count"] <= row["upper"]
                cells[levels] += 1
    assert all(held[levels] >= 0.92 * cells[levels] for levels in asked), (held, cells)
    assert outside <= 0.01 * sum(cells.values())


def test_intervals_are_narrower_than_those_of_one_measurement() -> None:
    release = made()
    table = next(one for one in release.margins if one.margin.name == "place.region")
    lower, upper = table.intervals(0.95)
    assert (upper - lower < 1.6 * table.law.margin(Fraction(1, 20))).all()


def plan_text() -> str:
    listed = {name: json.dumps(tree.codes[-1].to_pylist()) for name, tree in TREES.items()}
    text = "".join(f"[attributes.{name}]\nvalues = {codes}\n" for name, codes in listed.items())
    return text + (
        '[unit]\nentity = "visit"\ncontributions = 1\nneighbours = "replace"\n[loss]\nepsilon = 1\ndelta = 1e-8\n'
    )


def test_a_plan_file_has_no_order_with_three_attributes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(text := plan_text())
    own = tt.read_plan("plan.toml").plan
    assert own.mechanism.name == "joint" and own.margins == "pairs"
    assert "fitted" in printed("plan", "plan.toml")
    Path("plan.toml").write_text(text + '[spine]\norder = "joint"\n[release]\nresolve = { fdr = 0.05 }\n')
    assert "a joint fit has no order" in refused("plan", "plan.toml")[1]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("[release]\nresolve = { fdr = 0.05 }\n", "resolve"),
        ('[release]\nprefer = "lower-error"\n', "prefer or a repair"),
        ('[spine]\nmargins = "none"\n', "no margins"),
        ('[facts]\nsex = "sexes.csv"\n', "public facts"),
        ("[attributes.code]\n", "more than the 10,000,000 that it can list"),
    ],
)
def test_without_an_order_what_cannot_be_fitted_jointly_goes_level_by_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sexes.csv").write_text("sex,count\nf,3000\nm,3000\n")
    text = plan_text()
    if more.startswith("[attributes"):
        codes = json.dumps([f"{code:06}" for code in range(300_000)])
        more = f"[attributes.code]\nvalues = {codes}\n"
    Path("plan.toml").write_text(text + more)
    own = tt.read_plan("plan.toml").plan
    assert own.mechanism.name == "top-down"
    assert list(own.spine.splits)[:2] == ["sex.value", "age.value"]
    said = printed("plan", "plan.toml")
    assert "is not possible here: " in said and reason in said


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"margins": ["age", "sex"]}, "no table tells place.town apart"),
        ({"margins": "none"}, "no table tells"),
        ({"split": {"margins": 0.3}}, "margins"),
    ],
)
def test_what_a_joint_fit_cannot_do_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(tt.TreetopError, match=message):
        plan(**more)


@pytest.mark.parametrize(
    "more",
    [{"resolve": {"fdr": 0.05}}, {"prefer": "lower-error"}, {"facts": {"sex": Fact(exact={"f": 3000, "m": 3000})}}],
)
def test_fields_of_an_order_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(tt.TreetopError):
        tt.Plan(tt.Spine.bottom_up(TREES), unit(), LOSS, margins="pairs", mechanism=plan().mechanism, **more)


def test_the_verdict_tells_which_tables_will_be_readable() -> None:
    many, few = tt.outlook(plan(), 60_000), tt.outlook(plan(), 300)
    assert {row["state"] for row in many.rows} == {"readable"} and "What would help" not in str(many)
    states = {row["counts"]: row["state"] for row in few.rows}
    assert states["sex"] == "readable" and states["place town × age"] == "mostly noise"
    assert any("Spend more" in sentence for sentence in few.notes)
    assert any("Leave out the tables" in sentence for sentence in few.notes)


def test_expected_errors_are_those_of_the_combined_tables() -> None:
    own = plan()
    expected = {row["counts"]: row["noise"] for row in tt.outlook(own, 6000).rows}
    truth = true_counts("age", "sex")
    errors = []
    for seed in range(60):
        values = made(own, seed).tables.evidence.combined.value((0, 1, 1))  # type: ignore[union-attr]
        errors += [values[0, int(age), "fm".index(sex)] - count for (age, sex), count in truth.items()]
    assert np.std(errors) == pytest.approx(expected["age × sex"], rel=0.1)
    assert expected["age × sex"] < 0.85 * own.margin_parts[0].deviation


def test_targets_are_about_measured_tables() -> None:
    found = tt.loss_for(plan(), ["age * sex = 20", "place.town mean 30"])
    margins = {part.name: part.margin(Fraction(1, 20)) for part in found.plan.margin_parts}
    assert margins["margin age * sex"] <= 20 and margins["margin age"] > margins["margin age * sex"]
    with pytest.raises(PlanError, match="is not measured by this plan"):
        tt.loss_for(plan(), ["place.town * age * sex = 20"])


@pytest.mark.parametrize(("records", "noisy"), [(None, False), (100_000, False), (150, True)])
def test_the_number_of_records_decides_which_tables_of_two_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int | None, noisy: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    text = plan_text().replace('values = ["f", "m"]', 'values = ["a", "b", "c", "d", "e", "f", "g", "h"]')
    stated = "" if records is None else f"[data]\nrecords = {records}\n"
    Path("plan.toml").write_text(text + stated)
    names = [margin.name for margin in tt.read_plan("plan.toml").plan.margin_tables]
    assert names[:3] == ["place", "age", "sex"] and ("age * sex" in names) is not noisy
    said = printed("plan", "plan.toml").replace("\n", " ")
    reasons = {
        None: "does not say how many",
        100_000: "none would be mostly noise",
        150: "Not measured, as mostly noise",
    }
    assert reasons[records] in said
    Path("plan.toml").write_text(text + '[spine]\nmargins = "pairs"\n' + stated)
    assert "age * sex" in [margin.name for margin in tt.read_plan("plan.toml").plan.margin_tables]


def test_a_design_shares_the_loss_among_the_tables_that_matter(tmp_path: Path) -> None:
    found = tt.design(plan(), ["all 2-way"])
    measured = {part.name: part.share for part in found.plan.margin_parts}
    assert found.plan.mechanism.name == "joint" and all(" * " in name for name in measured)
    assert len(found.rows) == len(found.plan.margin_tables) == 5
    assert found["gain"] > 1.1
    made(found.plan).save(tmp_path / "out")
    assert [verdict.findings for verdict in tt.check(tmp_path / "out") if verdict.findings] == []
    assert tt.Release.load(tmp_path / "out").table(["age", "sex"]).equals(made(found.plan).table(["age", "sex"]))


def test_a_design_proposes_tables_of_several_attributes() -> None:
    found = tt.design(plan(), ["all 3-way", "pairs with region"])
    assert {margin.name for margin in found.plan.margin_tables} >= {
        "place.region * age * sex", "place.region * age", "place.region * sex"
    }  # fmt: skip
    (row,) = [row for row in found.rows if row["counts"].count("×") == 2]
    assert row["error_before"] is None and "a guess" in str(found)
    with pytest.raises(PlanError, match="no attribute or level 'town1'"):
        tt.design(plan(), ["pairs with town1"])
    with pytest.raises(PlanError, match="there are 3 attributes"):
        tt.design(plan(), ["all 4-way"])


def test_a_design_gives_no_weight_to_noise() -> None:
    found = tt.design(plan(), total=200)
    assert "place.town * age" not in {margin.name for margin in found.plan.margin_tables}
    assert "place.town" in {margin.name for margin in found.plan.margin_tables}
    assert "mostly noise with 200 records: place town × age" in str(found)


@pytest.mark.parametrize("order", ["", '[spine]\norder = "joint"\n'])
def test_a_design_is_filled_into_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(plan_text() + order)
    printed("plan", "plan.toml", "--advise", "--care", "all 3-way", "--write", "designed.toml")
    own = tt.read_plan("designed.toml").plan
    assert own.mechanism.name == "joint" and "place * age * sex" in [margin.name for margin in own.margin_tables]
