"""The table of deliberate faults, printed after the tests that made them."""

from __future__ import annotations

import pytest

from .faults import FAULT


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # From the tests' reports: they come here from whichever process ran the test.
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    found = [value for report in reports for name, value in getattr(report, "user_properties", []) if name == FAULT]
    if not found:
        return
    terminalreporter.section("deliberate faults and the audits that found them")
    for fault, audits in found:
        verdict = "caught" if audits else "NOT CAUGHT"
        terminalreporter.line(f"{verdict:>10}  {fault:<60} {'; '.join(audits)}")
