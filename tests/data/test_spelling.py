"""The spelling of ids: each is a unit of its own, unless the plan takes the difference away before it is hashed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import treetop as tt
from treetop import read_plan
from treetop.card import render
from treetop.card.distributions import statements_of
from treetop.card.rebuild import rebuild_plan
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.encode import cleaned, without_zeros
from treetop.counts.reading import read_counts
from treetop.domain.unit import IdClean
from treetop.errors import DataError, PlanFileError, UnitError
from treetop.noise import Key
from treetop.plan.file import describe_plan

SPINE = tt.Spine(["place"], {"place": tt.Hierarchy.flat(["a", "b"])})
KEY = Key(bytes(range(32)))
SPELLINGS = ["ann", "ann ", "\u00a0Ann", "ANN"]


def kept(ids: Sequence[str], *clean: IdClean, unknown: str = "error") -> int:
    table = pa.table({"who": ids, "place": ["a"] * len(ids)})
    return read_counts(table, SPINE, unknown=unknown, cap=ContributionCap("who", 1, KEY, clean)).total  # type: ignore[arg-type]


def unit(*clean: IdClean) -> tt.Unit:
    return tt.Unit("person", 2, "add-remove", "who", id_clean=clean)


def test_each_spelling_is_a_unit_of_its_own_unless_the_plan_says_otherwise() -> None:
    assert kept(SPELLINGS) == 4
    assert kept(SPELLINGS, "trim") == 3
    assert kept(SPELLINGS, "casefold") == 3
    assert kept(SPELLINGS, "trim", "casefold") == 1
    assert kept(["caf\u00e9", "cafe\u0301"]) == 2
    assert kept(["caf\u00e9", "cafe\u0301"], "nfc") == 1
    assert kept(["stra\u00dfe", "STRASSE"], "casefold") == 1
    assert kept(["7", "07"], "trim", "nfc", "casefold") == 2  # never: zeros are part of many ids


def test_ids_are_cleaned_one_by_one_in_any_order_and_twice_is_once() -> None:
    ids = pa.array([*SPELLINGS, None, "", " ", "\u1e9b\u0323", "I\u0307"])
    together = cleaned(ids, ["casefold", "nfc", "trim"])
    assert together.to_pylist() == [cleaned(ids[i : i + 1], ["trim", "nfc", "casefold"])[0].as_py() for i in range(9)]
    assert cleaned(together, ["trim", "nfc", "casefold"]).to_pylist() == together.to_pylist()
    assert cleaned(ids, []).to_pylist() == ids.to_pylist()
    assert without_zeros(pa.array(["007", "0", "00", "a0"])).to_pylist() == ["7", "0", "0", "a0"]


def test_an_id_of_blanks_alone_is_missing_once_it_is_trimmed() -> None:
    assert kept([" ", "ann"]) == 2
    with pytest.raises(DataError, match="row 1: the id is missing"):
        kept([" ", "ann"], "trim")
    assert kept([" ", "ann"], "trim", unknown="drop") == 1


def test_a_unit_lists_ways_once_in_one_order_and_refuses_others() -> None:
    assert unit("casefold", "trim", "trim").id_clean == ("trim", "casefold")
    with pytest.raises(UnitError, match="'lower'.*'trim', 'nfc', 'casefold'"):
        unit("lower")  # type: ignore[arg-type]
    with pytest.raises(UnitError, match="'trim'"):
        tt.Unit("person", 2, "add-remove", "who", id_clean="trims")  # type: ignore[arg-type]
    with pytest.raises(UnitError, match="there is no id"):
        tt.Unit("person", 2, "add-remove", id_clean=["trim"])


def plan(*clean: IdClean) -> tt.Plan:
    return tt.Plan(SPINE, unit(*clean), tt.Loss(rho=1), title="People")


def test_the_digest_and_the_card_know_of_it_only_where_it_is_given(tmp_path: Path) -> None:
    assert "id_clean" not in plan().describe()["unit"]
    assert plan().digest != plan("trim").digest
    exact, clean = (render(statements_of(one).unit(one)["bound"]) for one in (plan(), plan("trim", "nfc", "casefold")))
    assert "Ids that differ" not in exact
    assert "Ids that differ in blanks at the ends, Unicode form and case only are the same." in clean
    table = pa.table({"who": ["ann", "Ann"] * 3, "place": ["a", "b"] * 3})
    for one in (plan(), plan("casefold")):
        release = tt.make_release(one, table, tt.RunOptions(testing_key=bytes(32)))
        assert rebuild_plan(release.card, SPINE).digest == one.digest
    assert release.card["plan"]["unit"]["id_clean"] == ["casefold"]
    assert 'id_clean = ["casefold"]' in describe_plan(plan("casefold"))


def test_a_release_bounds_cleaned_ids() -> None:
    table = pa.table({"who": ["ann", "Ann", "ANN ", "bo"], "place": ["a"] * 4})
    exact = tt.Loss(rho=10**9)
    unlike = tt.Plan(SPINE, tt.Unit("person", 1, "add-remove", "who"), exact)
    alike = tt.Plan(SPINE, tt.Unit("person", 1, "add-remove", "who", id_clean=["trim", "casefold"]), exact)
    assert tt.make_release(unlike, table, tt.RunOptions(testing_key=bytes(32))).total == 4
    assert tt.make_release(alike, table, tt.RunOptions(testing_key=bytes(32))).total == 2


FILE = """
title = "People"
[attributes.place]
values = ["a", "b"]
[unit]
entity = "person"
contributions = 2
neighbours = "add-remove"
id = "who"
id_clean = ["casefold", "trim"]
[loss]
rho = 1
"""


def test_a_plan_file_may_say_it(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(FILE)
    assert read_plan(path).plan.unit.id_clean == ("trim", "casefold")
    path.write_text(FILE.replace('["casefold", "trim"]', '["lower"]'))
    with pytest.raises(UnitError, match=r"\[unit\].*'lower'"):
        read_plan(path)
    path.write_text(FILE.replace('["casefold", "trim"]', '"trim"'))
    with pytest.raises(PlanFileError, match="id_clean.*list of texts"):
        read_plan(path)
