"""Real tables with many attributes, and their margins: discharges by diagnosis, and the people of census blocks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.real.conftest import Command

KEYS = [bytes([key] * 32) for key in range(3)]
LOSS = tt.Loss(epsilon=1.0, delta=1e-10)
AGES = ("Under 1", "1-17", "18-24", *(f"{age}-{age + 4}" for age in range(25, 75, 5)), "75 and over")
RACES = ("white", "black", "hisp", "aian", "asian", "nhpi", "other", "two")
LEVELS = ["chapter", "sub_chapter", "three_digit", "code"]
ICD9 = "health_icd9/icd9cm_hierarchy.parquet"
VERMONT = "health_icd9/vermont_discharges_1000.parquet"


def needed(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"the table is not here: {path} does not exist")
    return path


@dataclass(frozen=True)
class Case:
    """A table of counts, with its spine."""

    spine: tt.Spine
    table: pa.Table

    def plan(self, margins: Any) -> tt.Plan:
        return tt.Plan(self.spine, tt.Unit("person", contributions=1, neighbours="replace"), LOSS, margins=margins)

    def release(self, margins: Any, key: bytes = KEYS[0]) -> tt.Release:
        return tt.make_release(self.plan(margins), self.table, tt.RunOptions(count="n", testing_key=key))

    def true(self, level: str) -> dict[str, int]:
        """Return the true totals of a level of an attribute."""
        (found,) = self.spine.level(level).parts
        name = list(self.spine.attributes)[found.attribute]
        tree = self.spine.trees[found.attribute]
        node = tree.ancestors(found.depth)[tree.encode(self.table[name].combine_chunks())]
        sums = np.bincount(node, self.table["n"].to_numpy(), tree.sizes[found.depth]).astype(int)
        return dict(zip(tree.codes[found.depth].to_pylist(), sums.tolist(), strict=True))

    def off(self, release: tt.Release, level: str) -> list[int]:
        """Return how far the released totals of a level are from the true ones."""
        rows = release.table(level).to_pylist()
        released = {row[level]: row["count"] for row in rows}
        return [abs(released.get(code, 0) - count) for code, count in self.true(level).items()]


@pytest.fixture(scope="module")
def discharges(data: Path) -> Case:
    """People who left hospital: what they had above all, their age and sex, and whether they died."""
    rows = pq.read_table(needed(data / VERMONT))
    tree = tt.Hierarchy.from_table(needed(data / ICD9), levels=LEVELS)
    spine = tt.Spine(
        [
            "diagnosis.chapter",
            "age",
            "diagnosis.sub_chapter",
            "diagnosis.three_digit",
            "sex",
            "diagnosis.code",
            "death",
        ],
        {
            "diagnosis": tree,
            "age": tt.Hierarchy.flat(AGES),
            "sex": tt.Hierarchy.flat(["female", "male"]),
            "death": tt.Hierarchy.flat(["false", "true"]),
        },
    )
    names = {"DX1": "diagnosis", "age_group": "age", "sex": "sex", "death": "death"}
    columns = {new: rows[old].cast(pa.string()) for old, new in names.items()}
    return Case(spine, pa.table({**columns, "n": np.ones(rows.num_rows, np.int64)}))


@pytest.fixture(scope="module")
def people(data: Path) -> Case:
    """The people of Hawaii by census block, race, and whether they may vote."""
    rows = pq.read_table(needed(data / "census_us_block_hi_ri" / "hi_block_2010.parquet"))
    parts = []
    for race in RACES:
        adults, all_ages = rows[f"vap_{race}"].combine_chunks(), rows[f"pop_{race}"].combine_chunks()
        for age, count in (("adult", adults), ("minor", pc.subtract(all_ages, adults))):
            told = {"race": pa.repeat(race, len(count)), "age": pa.repeat(age, len(count)), "n": count.cast(pa.int64())}
            parts.append(pa.table({"block": rows["block"].cast(pa.string()), **told}))
    table = pa.concat_tables(parts)
    levels = ["county", "tract", "block_group", "block"]
    tree = tt.Hierarchy.from_prefixes(rows["block"].to_pylist(), widths=[5, 11, 12], levels=levels)
    attributes = {"block": tree, "age": tt.Hierarchy.flat(["adult", "minor"]), "race": tt.Hierarchy.flat(RACES)}
    order = [*(f"block.{level}" for level in levels), "age", "race"]
    return Case(tt.Spine(order, attributes), table.filter(pc.greater(table["n"], 0)).combine_chunks())


@pytest.fixture(scope="module")
def tracts(data: Path) -> Case:
    """The people of the United States in 2000 by tract and sex."""
    rows = pq.read_table(needed(data / "census_us2000_household_size" / "people_tract.parquet"))
    parts = [
        pa.table({"place": rows["tract"], "sex": pa.repeat(sex, len(rows)), "n": rows[sex].cast(pa.int64())})
        for sex in ("female", "male")
    ]
    levels = ["state", "county", "tract"]
    tree = tt.Hierarchy.from_prefixes(rows["tract"].to_pylist(), widths=[2, 5], levels=levels)
    spine = tt.Spine(
        [*(f"place.{level}" for level in levels), "sex"], {"place": tree, "sex": tt.Hierarchy.flat(["female", "male"])}
    )
    return Case(spine, pa.concat_tables(parts).combine_chunks())


def noise_of(plan: tt.Plan, margin: str) -> float:
    (row,) = [row for row in plan.accuracy().margins if row.name == f"margin {margin}"]
    return row.noise


@pytest.mark.parametrize("key", KEYS, ids=["0", "1", "2"])
def test_deaths_are_within_three_standard_deviations_of_the_noise_of_their_margin(discharges: Case, key: bytes) -> None:
    deaths = discharges.true("death")["true"]
    assert deaths == 31
    released = discharges.release("each", key)
    noise = noise_of(discharges.plan("each"), "death")
    assert abs(released.query(death="true") - deaths) <= 3 * noise
    assert abs(discharges.release("none", key).query(death="true") - deaths) > 3 * noise


def test_the_margins_of_a_deep_tree_are_what_the_leaves_add_up_to(
    discharges: Case, treetop: Command, tmp_path: Path
) -> None:
    released = discharges.release("each")
    assert released.total == 1_000
    assert discharges.spine.attributes["diagnosis"].sizes == (19, 150, 1_234, 17_561)
    released.save(tmp_path / "release")
    report = treetop("check", tmp_path / "release", "--json").json()
    assert report["verified"]
    assert any("margins are what the leaves add up to" in check["subject"] for check in report["checks"])


def test_many_diagnoses_of_one_patient_are_bounded_and_their_margins_kept(data: Path) -> None:
    rows = pq.read_table(needed(data / VERMONT))
    listed = pa.concat_tables(
        pa.table({"visit": rows["visit_id"].cast(pa.string()), "sex": rows["sex"], "diagnosis": rows[f"DX{position}"]})
        for position in range(1, 21)
    )
    listed = listed.filter(pc.is_valid(listed["diagnosis"]))
    assert listed.num_rows == 10_407
    tree = tt.Hierarchy.from_table(needed(data / ICD9), levels=LEVELS)
    splits = [f"diagnosis.{level}" for level in LEVELS[:3]]
    spine = tt.Spine(
        [*splits, "sex"], {"diagnosis": tree.select(LEVELS[:3]), "sex": tt.Hierarchy.flat(["female", "male"])}
    )
    unit = tt.Unit("patient", contributions=5, neighbours="add-remove", id="visit")
    plan = tt.Plan(spine, unit, LOSS, margins="each")
    coarse = tree.codes[2].take(pa.array(tree.ancestors(2)[tree.encode(listed["diagnosis"].combine_chunks())]))
    released = tt.make_release(plan, listed.set_column(2, "diagnosis", coarse), tt.RunOptions(testing_key=KEYS[0]))
    each = listed.group_by(["visit", "sex"]).aggregate([("diagnosis", "count")])
    kept = pc.min_element_wise(each["diagnosis_count"], 5)
    women = pc.sum(kept.filter(pc.equal(each["sex"], "female"))).as_py()
    assert abs(released.query(sex="female") - women) <= 3 * noise_of(plan, "sex")


def test_inspect_drafts_the_discharges(data: Path, treetop: Command, tmp_path: Path) -> None:
    draft = tmp_path / "draft.toml"
    told = treetop(
        "inspect", needed(data / VERMONT), "--hierarchy", needed(data / ICD9), "--out", draft, "--json"
    ).json()
    assert [one["column"] for one in told["attributes"]] == ["DX1", "age_group", "sex", "death", "DRG"]
    text = draft.read_text(encoding="utf-8")
    assert f"levels = {LEVELS}".replace("'", '"') in text
    assert "# unknown" not in text  # all principal diagnoses are known; other columns are not used
    assert '# hierarchy = "DRG.csv"' in text  # numbers below 1,000 are diagnoses too, by chance


def test_totals_of_what_is_refined_last_are_as_good_as_their_margin(people: Case) -> None:
    released, without = people.release("each"), people.release("none")
    noise = noise_of(people.plan("each"), "race")
    assert released.total == sum(people.true("race").values())
    assert max(people.off(released, "race")) <= 4 * noise
    assert np.mean(people.off(released, "race")) * 4 <= np.mean(people.off(without, "race"))
    assert max(people.off(released, "age")) <= 4 * noise


def test_men_and_women_of_a_country_are_as_good_as_their_margin(tracts: Case) -> None:
    assert tracts.true("sex") == {"female": 143_368_343, "male": 138_053_563}
    released = tracts.release("each")
    assert released.total == 281_421_906
    assert max(tracts.off(released, "sex")) <= 4 * noise_of(tracts.plan("each"), "sex")
