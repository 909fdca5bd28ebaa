"""Deliberate faults: each must be found by an audit that finds nothing in the real code.

The table of what was found by which audit is printed after the tests. With TREETOP_AUDIT=deep every audit looks at
every fault; otherwise the first that finds something ends the search.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .audits import DEEP, Audit, Finding
from .beside import beside_audits
from .cases import quick_audits
from .doors import door_audits
from .faults import FAULT, FAULTS, Fault
from .faults_beside import FAULTS_BESIDE
from .faults_doors import FAULTS_AT_DOORS
from .faults_joint import FAULTS_OF_JOINT_FITS
from .faults_known import FAULTS_OF_FACTS
from .faults_ledgers import FAULTS_OF_LEDGERS
from .faults_machine import FAULTS_OF_FILES
from .faults_repeats import FAULTS_OF_REPEATS
from .joint import joint_audits
from .known import audits_under_facts
from .ledgers import ledger_audits
from .machine import machine_audits
from .repeats import repeat_audits

OF_THE_TREE, BESIDE, DOORS, LEDGERS = quick_audits(), beside_audits(), door_audits(), ledger_audits()
UNDER_FACTS, REPEATS, FILES, JOINT = audits_under_facts(), repeat_audits(), machine_audits(), joint_audits()
AUDITS = OF_THE_TREE | BESIDE | DOORS | LEDGERS | UNDER_FACTS | REPEATS | FILES | JOINT
ALL_FAULTS = [*FAULTS, *FAULTS_BESIDE, *FAULTS_AT_DOORS, *FAULTS_OF_LEDGERS, *FAULTS_OF_FACTS]
ALL_FAULTS += [*FAULTS_OF_REPEATS, *FAULTS_OF_FILES, *FAULTS_OF_JOINT_FITS]


@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_finds_nothing_in_the_real_code(name: str) -> None:
    assert AUDITS[name]() is None


def test_no_two_audits_or_faults_have_one_name() -> None:
    assert len(AUDITS) == sum(map(len, (OF_THE_TREE, BESIDE, DOORS, LEDGERS, UNDER_FACTS, REPEATS, FILES, JOINT)))
    assert len({str(fault) for fault in ALL_FAULTS}) == len(ALL_FAULTS)


@pytest.mark.parametrize("fault", ALL_FAULTS, ids=str)
def test_a_fault_is_found(
    fault: Fault, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    found: list[str] = []
    record_property(FAULT, (str(fault), found))  # the list is read when the test is over
    fault.make(monkeypatch)
    for name in sorted(AUDITS, key=lambda name: not name.startswith(fault.first)):
        if _look(AUDITS[name]):
            found.append(name)
            if not DEEP:
                break
    assert found, f"no audit found that there was {fault}"


def _look(look: Audit) -> Finding | None:
    try:
        return look()
    except Exception:
        return None  # a plan that is refused, or a run that breaks, releases nothing; it says nothing of other cases
