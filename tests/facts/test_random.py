"""Any plan with any facts is refused before it is charged, or its release keeps them, adds up and is in order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from .random_cases import case_of, verdict

FOUND = {
    1: "a bound of a child that measured too little to be named, under margins",
    46: "a bound of an only child that measured too little to be named",
    70: "an exact total of nobody, and facts of some that the table was not compared with",
    10359: "a margin of two attributes that refines a table of two which is known",
}
"""What random cases have found, and was mended."""


@pytest.mark.parametrize("number", FOUND)
def test_what_was_found_once_stays_mended(number: int, tmp_path: Path) -> None:
    assert verdict(case_of(number), tmp_path) in ("released", "refused")


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_facts_are_refused_before_a_charge_or_kept(first: int, tmp_path: Path) -> None:
    found = Counter(verdict(case_of(100 + n), tmp_path if n % 5 == 0 else None) for n in range(first, first + 20))
    assert found["released"] >= 5  # a generator of refusals would try nothing
