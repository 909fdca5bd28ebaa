"""The schema that ships with the package, and our validator, which agrees with the reference one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treetop as tt
from tests.forging import card_of, places, put
from treetop.card import RunInfo, describe_release, validate
from treetop.card.schema import FINISHED, findings, schema
from treetop.errors import ReleaseError

REFERENCE = jsonschema.Draft202012Validator(schema())


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_our_validator_knows_every_keyword_that_the_schema_uses() -> None:
    known = {"$schema", "$id", "$defs", "$ref", "title", "description", "type", "required", "properties"}
    known |= {"additionalProperties", "items", "enum", "const", "pattern", "minimum"}

    def walk(rules: dict[str, Any]) -> None:
        assert set(rules) <= known
        inner = [*rules.get("properties", {}).values(), *rules.get("$defs", {}).values()]
        inner += [rules[name] for name in ("items", "additionalProperties") if isinstance(rules.get(name), dict)]
        for one in inner:
            walk(one)

    walk(schema())


def test_a_card_of_every_kind_of_plan_fits(plan: tt.Plan, tmp_path: Path) -> None:
    nobody = pa.table({name: pa.array([], pa.string()) for name in plan.spine.attributes})
    tt.make_release(plan, nobody).save(tmp_path / "out")
    card = card_of(tmp_path / "out")
    validate(card)
    REFERENCE.validate(card)


def test_a_draft_lacks_only_what_a_written_release_knows(plan: tt.Plan) -> None:
    card = describe_release(plan, info=RunInfo())
    assert list(findings(card)) == [f"card lacks {name!r}" for name in FINISHED]


@pytest.mark.parametrize("name", [name for name in schema()["required"] if name not in FINISHED])
def test_a_missing_field_is_refused_by_its_name(name: str, plans: dict[str, tt.Plan]) -> None:
    card = describe_release(plans["pure"], RunInfo())
    del card[name]
    with pytest.raises(ReleaseError, match=f"lacks '{name}'"):
        validate(card, draft=True)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(-3, 3)
    | st.sampled_from(["", "1", "1/2", "1/0", "x", "0" * 64, "replace", "zcdp", "counts.parquet"])
)
KEYS = st.sampled_from(["exact", "value", "a"])
NESTED = st.lists(SCALARS, max_size=3) | st.dictionaries(KEYS, SCALARS)
json_values = SCALARS | NESTED | st.lists(NESTED, max_size=3) | st.dictionaries(KEYS, NESTED)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_our_validator_agrees_with_the_reference_on_any_change(pristine: Path, data: st.DataObject) -> None:
    card = card_of(pristine)
    for _ in range(data.draw(st.integers(1, 2))):
        card = put(card, data.draw(st.sampled_from(places(card))), data.draw(json_values))
        if not isinstance(card, dict):
            break
    assert bool(list(findings(card))) != REFERENCE.is_valid(card)


@settings(max_examples=100, deadline=None)
@given(json_values)
def test_our_validator_agrees_with_the_reference_on_anything(value: Any) -> None:
    assert bool(list(findings(value))) != REFERENCE.is_valid(value)
