"""The table of deliberate faults, printed after the tests that made them."""

from __future__ import annotations

import pytest

from .faults import FOUND_BY


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not FOUND_BY:
        return
    terminalreporter.section("deliberate faults and the audits that found them")
    for fault, audits in FOUND_BY.items():
        verdict = "caught" if audits else "NOT CAUGHT"
        terminalreporter.line(f"{verdict:>10}  {fault:<50} {'; '.join(audits)}")
