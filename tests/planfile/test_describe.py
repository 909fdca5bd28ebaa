"""A plan as it was run, written as TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treetop import Hierarchy, Loss, Plan, Spine, Split, Unit, read_plan
from treetop.plan.file import describe_plan
from treetop.plan.file.describe import key, value

Write = Callable[[str], Path]


def test_a_described_plan_reads_back_as_the_same_plan(write: Write, design: str) -> None:
    file = read_plan(write(design))
    again = read_plan(write(describe_plan(file)))
    assert again.plan.digest == file.plan.digest
    assert again.columns == file.columns


@pytest.mark.parametrize("accounting", ["exact", "zcdp"])
def test_how_a_loss_is_kept_is_written_where_it_could_be_kept_otherwise(
    write: Write, design: str, accounting: str
) -> None:
    file = read_plan(write(design.replace("delta = 1e-8", f'delta = 1e-8\naccounting = "{accounting}"')))
    assert file.plan.loss.accounting == file.plan.accounting == accounting
    described = describe_plan(file)
    assert tomllib.loads(described)["loss"]["accounting"] == accounting
    assert read_plan(write(described)).plan.digest == file.plan.digest


def test_a_plan_file_that_says_nothing_of_accounting_has_the_exact_one_where_it_can(write: Write, design: str) -> None:
    file = read_plan(write(design))
    assert (file.plan.loss.accounting, file.plan.accounting) == (None, "exact")
    assert tomllib.loads(describe_plan(file))["loss"]["accounting"] == "exact"
    several = read_plan(write(design.replace("contributions = 1", "contributions = 2")))
    assert several.plan.accounting == "zcdp"
    assert "accounting" not in describe_plan(several)


def test_hierarchies_stand_there_by_their_hash(write: Write, design: str) -> None:
    file = read_plan(write(design))
    described = tomllib.loads(describe_plan(file))
    digests = {name: section["hierarchy_sha256"] for name, section in described["attributes"].items()}
    assert digests == {name: entry["sha256"] for name, entry in file.plan.describe()["attributes"].items()}


def test_the_address_of_the_private_table_is_left_out(write: Write, design: str) -> None:
    file = read_plan(write(f'{design}\nsource = "postgresql://me:secret@host/db"\nquery = "select secret"'))
    assert "secret" not in describe_plan(file)


@pytest.mark.parametrize(
    "more",
    [
        {"split": Split({"total": Fraction(1, 3), "sex": Fraction(2, 3)})},
        {"split": {"total": 0.1, "sex": 7}, "repair": "euclidean", "order": "descending"},
        {"unknown": {"sex": "m"}},
        {"unknown": "drop", "title": 'Quotes ", \\ and\nlines\x7f'},
    ],
)
def test_everything_that_a_plan_decides_is_stated(write: Write, more: dict[str, object]) -> None:
    plan = Plan(
        spine=Spine(["sex"], {"sex": Hierarchy.flat(["f", "m"])}),
        unit=Unit("person", contributions=3, neighbours="add-remove", id="who", per_node={"sex": 2}),
        loss=Loss(rho=Fraction(1, 3), delta=1e-9),
        **more,  # type: ignore[arg-type]
    )
    text = describe_plan(plan).replace('levels = ["value"]', 'levels = ["value"]\nvalues = ["f", "m"]')
    assert read_plan(write(text)).plan.digest == plan.digest


@given(
    st.recursive(
        st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_any_value_survives_writing_and_reading(item: object) -> None:
    assert tomllib.loads(f"a = {value(item)}") == {"a": item}


@given(st.text(st.characters(codec="utf-8")))
def test_any_key_survives_writing_and_reading(name: str) -> None:
    assert tomllib.loads(f"[x.{key(name)}]\n{key(name)} = 1") == {"x": {name: {name: 1}}}


@given(st.decimals(min_value=0, allow_nan=False, allow_infinity=False, places=30))
def test_a_decimal_is_written_exactly(number: Decimal) -> None:
    read = tomllib.loads(f"a = {value(number)}", parse_float=Decimal)["a"]
    assert Fraction(read) == Fraction(number)
