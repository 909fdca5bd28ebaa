"""`[release] resolve` in a plan file: read exactly, written back, and refused in one message that names it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from treetop import read_plan
from treetop.errors import TreetopError
from treetop.plan.file import describe_plan
from treetop.plan.resolution import Resolution

Write = Callable[[str], Path]


def with_resolve(design: str, text: str) -> str:
    return f"{design}\n[release]\nresolve = {text}\n"


@pytest.mark.parametrize(
    ("text", "resolution"),
    [
        ("{ fdr = 0.05 }", Resolution(fdr=Fraction(1, 20))),
        ('{ fdr = "1/3" }', Resolution(fdr=Fraction(1, 3))),
        ("{ sigmas = 3 }", Resolution(sigmas=Fraction(3))),
        ("{ sigmas = 2.5 }", Resolution(sigmas=Fraction(5, 2))),
    ],
)
def test_a_resolution_is_read_exactly_and_written_back(
    text: str, resolution: Resolution, write: Write, design: str
) -> None:
    file = read_plan(write(with_resolve(design, text)))
    assert file.plan.resolve == resolution
    described = describe_plan(file)
    again = read_plan(write(described))
    assert again.plan.resolve == resolution
    assert again.plan.digest == file.plan.digest
    assert describe_plan(again) == described


def test_full_is_the_default_and_is_not_written(write: Write, design: str) -> None:
    default = read_plan(write(design)).plan
    full = read_plan(write(with_resolve(design, '"full"')))
    assert full.plan.resolve == default.resolve == "full"
    assert full.plan.digest == default.digest
    assert "resolve" not in tomllib.loads(describe_plan(full)).get("release", {})


def test_another_resolution_is_another_plan(write: Write, design: str) -> None:
    texts = ('"full"', "{ fdr = 0.05 }", "{ fdr = 0.01 }", "{ sigmas = 3 }")
    assert len({read_plan(write(with_resolve(design, text))).plan.digest for text in texts}) == len(texts)


@pytest.mark.parametrize(
    "text",
    [
        "{ fdr = 2 }",
        "{ fdr = 1 }",
        "{ fdr = 0 }",
        "{ fdr = -0.1 }",
        "{ fdr = nan }",
        '{ fdr = "some" }',
        "{ fdr = 0.05, sigmas = 3 }",
        "{ sigmas = 0 }",
        "{ sigmas = -3 }",
        "{ sigmas = inf }",
        "{ sigma = 3 }",
        "{}",
        '"some"',
        "0.05",
        "true",
        "[0.05]",
    ],
)
def test_what_is_no_resolution_is_refused_in_one_message_that_names_it(text: str, write: Write, design: str) -> None:
    with pytest.raises(TreetopError) as refused:
        read_plan(write(with_resolve(design, text)))
    message = str(refused.value)
    assert "plan.toml: [release" in message and "resolve" in message
    assert "[loss]" not in message and "[unit]" not in message
    assert "\n" not in message
    assert "Decimal" not in message
