"""Fields of a plan file changed in its text: what it says is what was asked, and all that was not asked for stays."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treetop.errors import PlanFileError
from treetop.plan.file.edit import Difference, changed, differences, parsed, without_section

TEXT = """\
# Above all.
title = "a = [b]"  # a remark with "quotes" and = signs

[attributes."two words"]
column = "x#y"  # not a comment in the value
levels = [
    "region",  # kept inside a list
    "[town]",
]
note = \"\"\"
[unit]
entity = "no field, but text"
\"\"\"

# About the unit.
[unit]
# entity = "trip"
# entity = somebody asked who that is
neighbours = "replace"  # or "add-remove"

[data]
source = "a.csv"
[data.pad]
home = 5

# At the end.
"""

SECTIONS = [(), ("attributes", "two words"), ("unit",), ("data",), ("new",), ("new", "in.ner")]
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=8), st.lists(st.text(max_size=3)))


@given(st.lists(st.tuples(st.sampled_from(SECTIONS), st.sampled_from(["entity", "a b", "z", "column"]), VALUES)))
def test_it_says_what_was_asked_and_nothing_else_has_changed(asked: list[tuple[tuple[str, ...], str, Any]]) -> None:
    changes = {(section, name): value for section, name, value in asked}
    after = changed(TEXT, changes)
    expected, told = parsed(TEXT), tomllib.loads(after, parse_float=Decimal)
    for (section, name), value in changes.items():
        inner = expected
        for part in section:
            inner = inner.setdefault(part, {})
        inner.pop(name, None)
        if value is not None:
            inner[name] = value
    assert _without_empty(told) == _without_empty(expected)
    for line in ("# Above all.", "# About the unit.", "# At the end.", "# entity = somebody asked who that is"):
        assert line in after


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    found = {name: _without_empty(one) if isinstance(one, dict) else one for name, one in values.items()}
    return {name: one for name, one in found.items() if one != {}}


def test_an_open_question_gives_way_to_its_answer_and_a_remark_stays() -> None:
    after = changed(TEXT, {(("unit",), "entity"): "person", (("unit",), "neighbours"): "add-remove"})
    assert '# About the unit.\n[unit]\nentity = "person"\n# entity = somebody' in after
    assert 'neighbours = "add-remove"  # or "add-remove"' in after
    after = changed(TEXT, {((), "title"): "b", (("data",), "pad"): {"work": 3}})
    assert 'title = "b"  # a remark with "quotes" and = signs' in after
    assert "[data.pad]" not in after and "pad = { work = 3 }" in after


def test_a_section_goes_with_all_that_it_says_and_not_with_what_is_said_about_the_next() -> None:
    after = without_section(TEXT, ("attributes", "two words"))
    assert "two words" not in after and "# About the unit.\n[unit]" in after and parsed(after)["data"]["pad"]


@pytest.mark.parametrize(
    "text", ["unit = { entity = 'a' }", "unit.entity = 'a'", "[[unit]]\nentity = 'a'", "'unit'.entity = 'a'"]
)
def test_what_is_written_in_another_way_is_left_alone(text: str) -> None:
    with pytest.raises(PlanFileError, match="editor"):
        changed(text, {(("unit",), "entity"): "b"})


def test_broken_files_are_refused_with_their_name() -> None:
    with pytest.raises(PlanFileError, match="plan.toml: this is not valid TOML"):
        changed("[unit", {}, "plan.toml")


def test_differences_are_by_field_and_comments_are_none() -> None:
    before = "# a\n[loss]\nepsilon = 1.0\n[loss.split]\na = 1\n[unit]\nentity = 'a'\n"
    after = "[unit]\nentity = 'a' # b\n[loss]\nepsilon = 0.5\nsplit = { a = 2 }\nnew = [1]\n"
    assert differences(before, after) == [
        Difference("loss.epsilon", "1", "0.5"),
        Difference("loss.split.a", "1", "2"),
        Difference("loss.new", None, "[1]"),
    ]
    assert differences(before, before) == []
