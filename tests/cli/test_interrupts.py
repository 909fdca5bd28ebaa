"""Ctrl-C at any moment: it is never lost, never charged for afterwards, and no failure once the work is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import Server
from treetop import Ledger

# The program does something when it enters a function; `sys.argv` is a command.
PROGRAM = """
import atexit, os, signal, sys
from importlib import import_module
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would have it ignored
def press(number=signal.SIGINT):
    os.kill(os.getpid(), number)
    for _ in range(1000):
        pass
def terminate():
    press(signal.SIGTERM)
def press_and_lose():
    try:
        press()
    except KeyboardInterrupt:
        pass
def press_and_break():
    press_and_lose()
    raise ValueError("generator already executing")
def before(name, act):
    module, function = name.split(":")
    original = getattr(import_module(module), function)
    def wrapped(*arguments, **options):
        act()
        return original(*arguments, **options)
    setattr(import_module(module), function, wrapped)
{act}
from treetop.cli import main
sys.argv = ["treetop", "release", "plan.toml", "trips.csv", "--out", "out", "--ledger", "ledger"]
main()
"""


Run = Callable[[str], tuple[int, str, list[str]]]


@pytest.fixture
def run(desk: Path, processes: Server) -> Run:
    """Run a release in which something acts: its exit code, what it says, and what the ledger shows."""

    def ended(act: str) -> tuple[int, str, list[str]]:
        done = processes.run(PROGRAM.replace("{act}", act), folder=desk)
        return done.returncode, done.stderr, [entry.state for entry in Ledger.open(desk / "ledger").entries()]

    return ended


LOST = [
    ("treetop.publishing.releasing:read_encoded", "press_and_lose", []),
    ("treetop.release.run:run_descent", "press_and_lose", ["reserved, outcome unknown"]),
    ("treetop.publishing.releasing:read_encoded", "press_and_break", []),
    ("treetop.release.run:run_descent", "press_and_break", ["reserved, outcome unknown"]),
]


@pytest.mark.parametrize(("where", "how", "spent"), LOST)
def test_a_ctrl_c_that_gets_lost_on_its_way_still_ends_the_command(
    where: str, how: str, spent: list[str], desk: Path, run: Run
) -> None:
    code, message, entries = run(f"before({where!r}, {how})")
    assert (code, entries) == (130, spent)
    assert message.endswith("treetop: interrupted\n")
    assert "Traceback" not in message
    assert ("the loss stays spent" in message) == bool(spent)
    assert not list(desk.glob("*out*")) and not list(desk.glob(".*"))


@pytest.mark.parametrize(
    ("how", "code", "last"),
    [("press", 130, "treetop: interrupted\n"), ("terminate", 143, "treetop: ended by SIGTERM\n")],
)
@pytest.mark.parametrize(
    ("where", "spent"),
    [
        ("treetop.publishing.releasing:read_encoded", []),
        ("treetop.ledger._log:_append", ["reserved, outcome unknown"]),
        ("treetop.ledger._book:Reservation", ["reserved, outcome unknown"]),
        ("treetop.release.run:run_descent", ["reserved, outcome unknown"]),
    ],
)
def test_a_command_that_is_ended_says_whether_the_loss_was_spent(
    how: str, code: int, last: str, where: str, spent: list[str], desk: Path, run: Run
) -> None:
    """Also between the ledger's commit and the return of what it recorded."""
    found, message, entries = run(f"before({where!r}, {how})")
    assert (found, entries) == (code, spent)
    assert message.endswith(last) and "Traceback" not in message
    assert ("the loss stays spent: entry" in message) == bool(spent)
    assert not list(desk.glob("*out*")) and not list(desk.glob(".*"))


def test_under_nohup_a_closed_terminal_does_not_end_a_command(run: Run) -> None:
    ignoring = "signal.signal(signal.SIGHUP, signal.SIG_IGN); "
    act = "before('treetop.publishing.releasing:read_encoded', lambda: press(signal.SIGHUP))"
    assert run(ignoring + act) == (0, "", ["complete"])


DONE = [
    "before('treetop.publishing.publish:release_summary', press)",
    "before('treetop.cli.release:render', press)",
    "atexit.register(press)",
]


@pytest.mark.parametrize("act", DONE)
def test_ctrl_c_after_the_release_is_recorded_is_no_failure(act: str, desk: Path, run: Run) -> None:
    code, message, entries = run(act)
    assert (code, message, entries) == (0, "", ["complete"])
    assert (desk / "out" / "card.json").is_file()


def test_a_background_job_does_not_hear_of_it(run: Run) -> None:
    ignoring = (
        "signal.signal(signal.SIGINT, signal.SIG_IGN); before('treetop.publishing.releasing:read_encoded', press)"
    )
    code, message, entries = run(ignoring)
    assert (code, message, entries) == (0, "", ["complete"])
