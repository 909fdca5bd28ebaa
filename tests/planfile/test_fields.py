"""A field is declared once: whatever reads, writes, hashes, describes or drafts plan files takes it from there."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tools import reference
from treetop import draft_plan, inspect_table
from treetop.cli import main
from treetop.errors import IncompletePlan, PlanFileError
from treetop.plan import fields
from treetop.plan.fields._field import choice
from treetop.plan.file import _reader as reader
from treetop.plan.file import describe_plan, plan_schema, read_plan
from treetop.plan.plan import Plan

Write = Callable[[str], Path]
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/*.toml"))

AUDIENCE = fields.Field(
    "release",
    "audience",
    choice(("everyone", "staff")),
    "Who reads the release",
    default="everyone",
    since="9.9",
    question="Who reads it?",
    sketch='"staff"',
    at="plan.audience",
    digest="audience",
)


@dataclass(frozen=True, eq=False)
class ReadPlan(Plan):
    """A plan with one attribute more."""

    audience: str = "everyone"


def test_one_declaration_is_enough(write: Write, design: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reader, "Plan", ReadPlan)
    table = tmp_path / "trips.csv"
    table.write_text("home,work\nNA1,SA1\n")
    plain, before = read_plan(write(design)).plan, (draft_plan(inspect_table(table)), plan_schema(), reference.tables())
    for_staff = write(f'{design}\n[release]\naudience = "staff"\n')
    with fields.declared(AUDIENCE):
        file = read_plan(for_staff)
        assert isinstance(file.plan, ReadPlan) and file.plan.audience == "staff"
        assert tomllib.loads(describe_plan(file))["release"] == {"audience": "staff"}
        assert file.plan.describe() == {**plain.describe(), "audience": "staff"}
        assert file.plan.digest != plain.digest
        assert plan_schema()["properties"]["release"]["properties"]["audience"]["enum"] == ["everyone", "staff"]
        assert '| `audience` | `"everyone"` | 9.9 | Who reads the release |' in reference.tables()
        section = draft_plan(inspect_table(table)).split("\n[release]\n")[1].split("\n[")[0]
        assert '\n# Who reads it?\n# audience = "staff"\n' in section
        with pytest.raises(PlanFileError, match="did you mean 'audience'"):
            read_plan(write(for_staff.read_text().replace("audience", "audiance")))
        # Where it is left out, everything is as it was.
        same = read_plan(write(design)).plan
        assert same.digest == plain.digest
        assert "audience" not in describe_plan(same)
    with pytest.raises(PlanFileError, match="audience is not a field"):
        read_plan(write(f'{design}\n[release]\naudience = "staff"\n'))
    assert (draft_plan(inspect_table(table)), plan_schema(), reference.tables()) == before


def test_a_field_that_must_be_answered_is_asked_for(write: Write, design: str) -> None:
    asked = fields.Field(
        "unit", "shoes", choice(("on", "off")), "On or off", question="On or off?", asked=lambda _: True
    )
    with fields.declared(asked), pytest.raises(IncompletePlan, match=r"unit\.shoes: On or off\?"):
        read_plan(write(design))


def test_a_field_needs_its_words_and_a_name_of_its_own() -> None:
    with pytest.raises(ValueError, match="no words"):
        fields.Field("unit", "shoes", choice(("on", "off")), "")
    with pytest.raises(ValueError, match="no words"):
        fields.Field("unit", "shoes", choice(("on", "off")), "On or off", asked=lambda _: True)
    with pytest.raises(ValueError, match="declared already"), fields.declared(fields.find("unit", "entity")):
        pass


def test_the_tables_of_the_reference_are_the_declarations() -> None:
    text = reference.PAGE.read_text(encoding="utf-8")
    assert reference.page(text) == text, "run `python -m tools.reference`"


@cache
def reference_validator() -> Any:
    """Another implementation of JSON Schema, with ours: whether that is a schema is looked at once."""
    jsonschema.Draft202012Validator.check_schema(plan_schema())
    return jsonschema.Draft202012Validator(plan_schema())


def as_json(text: str) -> Any:
    return tomllib.loads(text)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_examples_and_the_plans_of_their_releases_fit_the_schema(path: Path) -> None:
    reference_validator().validate(as_json(path.read_text(encoding="utf-8")))
    reference_validator().validate(as_json(describe_plan(read_plan(path))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("contributions = 1", "contributions = 0"),
        ('neighbours = "replace"', 'neighbours = "replce"'),
        ("epsilon =", "epsilom ="),
        ("epsilon = 1.0", 'epsilon = "1"'),
        ('split = "uniform"', "split = { total = true }"),
        ('column = "home"', "column = 3"),
        ("[data]", "[data]\nfields = { home = 'x' }"),
        ("[data]", "[data]\nkeep = { year = [] }"),
        ("[data]", "[graph.clean.town]\nleast = 'x'\n[data]"),
        ("[data]", "[groups]\nrows = 'people'\n[data]"),
    ],
)
def test_what_is_refused_by_itself_does_not_fit_the_schema(design: str, old: str, new: str) -> None:
    reference_validator().validate(as_json(design))
    assert old in design
    with pytest.raises(jsonschema.ValidationError):
        reference_validator().validate(as_json(design.replace(old, new)))


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["plan", "--schema"])
    assert json.loads(capsys.readouterr().out) == plan_schema()
