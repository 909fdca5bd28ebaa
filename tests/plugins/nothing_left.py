"""No test leaves a process or a thread behind: the one that does is the one that fails."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from functools import wraps
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest

RUN = "TREETOP_TESTS_RUN"
"""In the environment of every process that comes from a run of the tests, whoever its parent is by now."""

LEFT = pytest.StashKey[list[str]]()

PATIENCE = float(os.environ.get("TREETOP_TESTS_PATIENCE", "5"))
"""The seconds that a thread, or a process whose parent is gone, has to end where it is about to."""


def children() -> dict[int, str]:
    """The processes that this one has started and not waited for, with their commands; none where /proc is not."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # there are none, which mostly spares reading about every thread
        return {}
    found = {}
    for task in Path("/proc/self/task").glob("*"):
        try:
            pids = [int(pid) for pid in (task / "children").read_text().split()]
        except OSError:  # the thread has ended
            continue
        found.update({pid: _command(pid) for pid in pids})
    return {pid: command for pid, command in found.items() if pid not in _own()}


def _own() -> set[int | None]:
    """This process, and the helper that Python starts with the first pool of processes and keeps until it ends."""
    return {os.getpid(), getattr(resource_tracker._resource_tracker, "_pid", None)}


def _command(pid: int | str) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "ended"
    return b" ".join(words).decode(errors="replace").strip() or "ended, and not waited for"


class Started:
    """The processes that `subprocess` started, since it was installed."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[Any]] = []

    def install(self) -> None:
        """Write down every process from here on."""
        start = subprocess.Popen.__init__

        @wraps(start)
        def started(process: subprocess.Popen[Any], *arguments: Any, **options: Any) -> None:
            start(process, *arguments, **options)
            self.processes.append(process)

        subprocess.Popen.__init__ = started  # type: ignore[assignment, method-assign]

    def end(self) -> None:
        """End those that still run, so that only the test that left them fails, and none that comes after it."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
            for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
                with suppress(OSError):
                    pipe.close()
        self.processes.clear()


STARTED = Started()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Generator[None]:
    """Fail a test that leaves a child process or a thread behind; what fixtures of several tests hold is theirs."""
    STARTED.processes.clear()
    processes, threads = set(children()), set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - threads:
        thread.join(PATIENCE)
    left = [str(thread) for thread in set(threading.enumerate()) - threads]
    left += [f"process {pid}: {command}" for pid, command in children().items() if pid not in processes]
    STARTED.end()
    if left:
        pytest.fail(f"the test left behind: {'; '.join(left)}", pytrace=False)


def survivors(run: str) -> list[str]:
    """The processes of a run of the tests that are still there, with the test that each was started by."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended, or is somebody else's
            continue
        if f"{RUN}={run}".encode() in words and int(process.name) not in _own():
            test = next((word.decode() for word in words if word.startswith(b"PYTEST_CURRENT_TEST=")), "no test")
            found.append(f"process {process.name}: {_command(process.name)} ({test})")
    return found


def pytest_configure(config: pytest.Config) -> None:
    STARTED.install()
    if not hasattr(config, "workerinput"):
        os.environ[RUN] = f"{os.getpid()}.{time.time_ns()}"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that leaves processes behind which no test could see: children of children."""
    if hasattr(session.config, "workerinput"):
        return
    patience = time.monotonic() + PATIENCE
    while (left := survivors(os.environ[RUN])) and time.monotonic() < patience:
        time.sleep(0.05)
    session.config.stash[LEFT] = left
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if left := config.stash.get(LEFT, []):
        terminalreporter.section("processes that the tests left behind", red=True)
        for process in left:
            terminalreporter.line(process)
