"""Releases under a testing key are, file by file, those that were written down in digests.json."""

from __future__ import annotations

import json
import os

import pytest

from tests.golden import record

KNOWN: dict[str, record.Digests] = json.loads(record.DIGESTS.read_text(encoding="utf-8"))
MAKE = dict(record.cases())
DEEP = os.environ.get("TREETOP_AUDIT") == "deep"


@pytest.mark.parametrize("name", KNOWN)
def test_a_release_is_what_it_was(name: str) -> None:
    if name not in MAKE:
        pytest.skip("the real tables are not here")
    if name.startswith("real: ") and not DEEP:
        pytest.skip("real tables are compared with TREETOP_AUDIT=deep")
    assert MAKE[name]() == KNOWN[name], "if this is meant: python -m tests.golden.record, and say so in the changelog"


def test_every_case_is_written_down() -> None:
    assert [name for name in MAKE if name not in KNOWN] == []
