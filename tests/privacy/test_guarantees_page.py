"""The page of guarantees: every promise names tests that guard it, and they exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import is_long

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guarantees.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def promises() -> list[str]:
    promised = PAGE.read_text(encoding="utf-8").split("## What is promised\n")[1].split("\n## ")[0]
    return promised.split("\n### ")[1:]


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED.findall(PAGE.read_text(encoding="utf-8")))))
def test_every_named_test_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name.startswith("test_")
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_no_named_test_is_left_to_the_long_ones() -> None:
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert named and not [file for file, _ in named if is_long(ROOT / file)]


def test_noise_is_drawn_in_the_named_places_and_nowhere_else() -> None:
    (promise,) = (one for one in promises() if one.startswith("2. "))
    named = set(re.findall(r"`(treetop\.[\w.]+)`", promise))
    package = ROOT / "src" / "treetop"
    drawing = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for path in package.rglob("*.py")
        if re.search(r"\bNoiseStream\(", path.read_text(encoding="utf-8")) and path.parent.name != "noise"
    }
    for module in drawing:
        assert any(f"{module}.".startswith(f"{place}.") for place in named), f"{module} is not named in the promise"
    for place in named:
        assert any(f"{module}.".startswith(f"{place}.") for module in drawing), f"{place} draws no noise"


def test_there_are_promises_to_keep() -> None:
    assert len(promises()) >= 8


@pytest.mark.parametrize("promise", promises(), ids=lambda promise: promise.splitlines()[0])
def test_every_promise_has_a_guard(promise: str) -> None:
    assert NAMED.search(promise)


@pytest.mark.parametrize(
    "topic", ["How long it takes", "memory", "logs", "swapped", "total under `replace`", "hierarchies", "plots"]
)
def test_what_is_not_promised_is_said(topic: str) -> None:
    refused = PAGE.read_text(encoding="utf-8").split("## What is not promised\n")[1].split("\n## ")[0]
    assert topic in refused
