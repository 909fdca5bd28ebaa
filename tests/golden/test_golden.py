"""Releases under a testing key have the digests in tables.json and cards.json."""

from __future__ import annotations

import json

import pytest

from tests.golden import record

TABLES: dict[str, record.Digests] = json.loads(record.TABLES.read_text(encoding="utf-8"))
CARDS: dict[str, str] = json.loads(record.CARDS.read_text(encoding="utf-8"))
MAKE = dict(record.cases())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if record.is_real(name) else ()) for name in TABLES]
)
def test_a_release_has_its_recorded_digests(name: str) -> None:
    if name not in MAKE:
        pytest.skip("the real tables are not here")
    tables, cards = record.split({name: MAKE[name]()})
    assert tables[name] == TABLES[name], "numbers or plans changed. If meant: python -m tests.golden.record"
    assert cards.get(name) == CARDS.get(name), "only the card changed. If meant: python -m tests.golden.record"


def test_every_case_is_recorded() -> None:
    assert [name for name in MAKE if name not in TABLES] == []
