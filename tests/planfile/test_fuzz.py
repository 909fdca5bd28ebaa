"""The plan reader never raises anything but its own errors."""

from __future__ import annotations

import contextlib
import string
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treetop import read_plan
from treetop.errors import TreetopError
from treetop.plan import fields
from treetop.plan.fields.declarations import ATTRIBUTE
from treetop.plan.file.describe import key, value

KEYS = fields.names(ATTRIBUTE)
SECTIONS = {name: fields.names(name) for name in fields.sections(fields.RECORDS) if name != "graph"}
TOP = [*fields.names(""), *SECTIONS, "graph", "groups"]
FUZZ = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "comuni.csv").write_text("region,town\nN,n1\nN,n2\nS,s1\n")
        path = Path(folder) / "plan.toml"
        path.write_bytes(content)
        with contextlib.suppress(TreetopError):
            read_plan(path)


FIELDS = "comuni.csv region town origin destination destination-first origin.region replace add-remove uniform"
words = st.sampled_from([*FIELDS.split(), "drop", "trip", "?", "", "total", "1/3", "0/0", ".", "\0", "a" * 300])
scalars = st.one_of(
    words,
    words,
    st.integers(),
    st.integers(1, 3),
    st.booleans(),
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.decimals(allow_nan=False, allow_infinity=False),
)
numbers = st.sampled_from(["1e-8", "inf", "nan", "-0.0", "1e400", "2011-01-01", "07:32:00", "1e-120", "0x1F"])
values = st.one_of(
    scalars.map(lambda item: value(abs(item) if not isinstance(item, str | bool) else item)),
    numbers,
    st.lists(words, max_size=4).map(value),
    st.lists(scalars.filter(lambda item: isinstance(item, str | bool | int)), max_size=3).map(value),
    st.dictionaries(words, st.integers(0, 3) | words, max_size=3).map(value),
)
names = st.sampled_from([*TOP, *(name for keys in SECTIONS.values() for name in keys), *KEYS]) | st.text(max_size=5)


@st.composite
def sections(draw: st.DrawFn) -> str:
    """Valid TOML with the keys of a plan file and values of any kind."""
    lines = []
    attributes = [f"attributes.{name}" for name in ("origin", "destination", "sex")]
    for section in draw(st.permutations([*SECTIONS, *attributes])):
        if draw(st.booleans()) and section != "unit":
            continue
        known = KEYS if section.startswith("attributes") else SECTIONS[section]
        lines.append(f"[{section}]")
        chosen = draw(st.lists(st.sampled_from(known), unique=True, max_size=4))
        lines += [f"{name} = {draw(values)}" for name in chosen]
    return "\n".join(lines)


@FUZZ
@given(st.binary(max_size=200))
def test_random_bytes_are_refused_in_words(content: bytes) -> None:
    read(content)


@FUZZ
@given(st.text(string.ascii_lowercase + ' =[]{}".,#\n\t0123456789-\\', max_size=200))
def test_random_text_that_resembles_toml_is_refused_in_words(text: str) -> None:
    read(text.encode())


@FUZZ
@given(st.dictionaries(names, values, max_size=6))
def test_random_keys_with_random_values_are_refused_in_words(pairs: dict[str, Any]) -> None:
    read("\n".join(f"{key(name)} = {item}" for name, item in pairs.items()).encode("utf-8", "replace"))


@FUZZ
@given(sections())
def test_random_fields_in_the_right_sections_are_refused_in_words(text: str) -> None:
    read(text.encode())


VALID = """
title = "t"
[attributes.origin]
hierarchy = "comuni.csv"
levels = ["region", "town"]
[attributes.destination]
same_as = "origin"
[spine]
order = "origin-first"
[unit]
entity = "trip"
contributions = 1
neighbours = "replace"
[loss]
rho = 1
"""


@FUZZ
@given(st.data())
def test_a_valid_plan_with_one_field_changed_is_read_or_refused_in_words(data: st.DataObject) -> None:
    lines = VALID.splitlines()
    fields = [number for number, line in enumerate(lines) if " = " in line]
    for number in data.draw(st.lists(st.sampled_from(fields), min_size=1, max_size=3)):
        lines[number] = lines[number].split(" = ")[0] + " = " + data.draw(values)
    read("\n".join(lines).encode())
