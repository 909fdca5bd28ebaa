"""Deliberate faults: each must be found by an audit that finds nothing in the real code.

The table of what was found by which audit is printed after the tests. With TREETOP_AUDIT=deep every audit looks at
every fault; otherwise the first that finds something ends the search.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from treetop.errors import TreetopError

from .audits import DEEP, Audit, Finding, quick_audits
from .faults import FAULT, FAULTS, Fault

AUDITS = quick_audits()


@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_finds_nothing_in_the_real_code(name: str) -> None:
    assert AUDITS[name]() is None


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_is_found(
    fault: Fault, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    found: list[str] = []
    record_property(FAULT, (str(fault), found))  # the list is read when the test is over
    fault.make(monkeypatch)
    for name, look in AUDITS.items():
        if _look(look):
            found.append(name)
            if not DEEP:
                break
    assert found, f"no audit found that there was {fault}"


def _look(look: Audit) -> Finding | None:
    try:
        return look()
    except TreetopError:
        return None  # a plan that refuses to be made protects this case, but says nothing of the others
