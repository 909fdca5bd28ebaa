"""What attributes may be called: never what a table of a release has beside them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop import GroupUnit, read_plan
from treetop.domain.spine import RESERVED
from treetop.errors import PlanError, PlanFileError, SpineError

SEX = tt.Hierarchy.flat(["f", "m"])
PLAN = """
[attributes.{one}]
values = ["f", "m"]
[attributes.{other}]
values = ["f", "m"]
[spine]
order = ["{one}", "{other}"]
[unit]
entity = "person"
contributions = 1
neighbours = "replace"
[loss]
rho = 1
"""


def test_every_column_that_stands_beside_attributes_is_reserved(tmp_path: Path) -> None:
    spine = tt.Spine(["sex", "age"], {"sex": SEX, "age": tt.Hierarchy.flat(["1", "2"])})
    plan = tt.Plan(spine, tt.Unit("person", neighbours="add-remove"), tt.Loss(rho=100), resolve={"sigmas": 2})
    table = pa.table({"sex": ["f", "m"] * 20, "age": ["1", "2"] * 20})
    release = tt.make_release(plan, table, tt.RunOptions(testing_key=bytes(32), keep_measurements=True))
    release.save(tmp_path / "out", nodes=True)
    found = {name for path in (tmp_path / "out").glob("*.parquet") for name in pq.read_schema(path).names}
    found |= set(release.estimates().column_names) | set(release.table("sex").column_names)
    of_evidence_alone = {"measured", "highest"}  # a table without attributes
    assert found - {"sex", "age"} - of_evidence_alone <= set(RESERVED)


@pytest.mark.parametrize("name", [*RESERVED, "Count", "VALUE", "", " ", "a\nb", "a\x1b[31m"])
def test_a_name_that_would_collide_is_refused_before_anything_is_spent(name: str, tmp_path: Path) -> None:
    with pytest.raises(SpineError, match="cannot be called"):
        tt.Spine([name], {name: SEX})


@pytest.mark.parametrize("name", [*RESERVED, "Count", "VALUE"])
def test_so_it_is_in_a_plan_file_in_capitals_as_well(name: str, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.format(one="sex", other=name))
    with pytest.raises(PlanFileError, match="cannot be called"):
        read_plan(tmp_path / "plan.toml")


def test_two_names_that_differ_in_capitals_only_are_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.format(one="sex", other="Sex"))
    with pytest.raises(PlanFileError, match="'sex' and 'Sex' differ only in capitals"):
        read_plan(tmp_path / "plan.toml")
    with pytest.raises(SpineError, match="'sex' and 'Sex' differ only in capitals"):
        tt.Spine(["sex", "Sex"], {"sex": SEX, "Sex": SEX})


@pytest.mark.parametrize("name", ["size", "group", "quantity", "Size", "GROUP"])
def test_a_place_is_not_called_as_a_column_of_group_sizes(name: str) -> None:
    with pytest.raises(PlanError, match="cannot be called"):
        tt.group_plan(SEX, 9, GroupUnit("person", event="move"), tt.Loss(rho=1), rows="histogram", number=5, place=name)
