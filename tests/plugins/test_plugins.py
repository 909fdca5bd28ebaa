"""What holds of every test: its noise is the same in every run, and it leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLUGINS = ["-p", "tests.plugins.fixed_noise", "-p", "tests.plugins.nothing_left"]

Run = subprocess.CompletedProcess[str]


def run(folder: Path, program: str, *options: str) -> Run:
    """Run the tests of a file of its own, as a run of its own."""
    path = folder / "test_these.py"
    path.write_text(program, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("TREETOP_", "PYTEST_"))}
    environment |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "TREETOP_TESTS_PATIENCE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-s", "--rootdir", str(folder), "-p", "no:cacheprovider"]
    command += [*PLUGINS, *options, str(path)]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=240
    )


DRAWS = """
import subprocess, sys
import pytest
from treetop.noise import Key

def say(name, key):
    print(f"<{name} {key.secret.hex()}>")

@pytest.fixture(scope="module")
def shared():
    return Key.fresh()

def test_one(shared):
    say("shared", shared)
    say("one", Key.fresh())
    say("next", Key.fresh())
    child = [sys.executable, "-c", "from treetop.noise import Key; print(Key.fresh().secret.hex())"]
    for _ in range(2):
        print(f"<child {subprocess.run(child, check=True, capture_output=True, text=True).stdout.strip()}>")

def test_other(shared):
    say("seen", shared)
    say("other", Key.fresh())

@pytest.mark.fresh_noise(1e-9)
def test_fresh(shared):
    say("seen", shared)
    say("fresh", Key.fresh())
    child = [sys.executable, "-c", "from treetop.noise import Key; print(Key.fresh().secret.hex())"]
    print(f"<fresh_child {subprocess.run(child, check=True, capture_output=True, text=True).stdout.strip()}>")
"""


def test_noise_follows_the_name_of_the_test_and_not_the_run_or_the_order(tmp_path: Path) -> None:
    runs = [run(tmp_path, DRAWS), run(tmp_path, DRAWS, "-k", "other or fresh")]
    assert [one.returncode for one in runs] == [0, 0], runs[0].stdout + runs[1].stdout
    first, second = (dict(re.findall(r"<(\w+) (.*)>", one.stdout)) for one in runs)
    assert first["shared"] == first["seen"] == second["seen"]
    assert first["other"] == second["other"]
    assert first["fresh"] != second["fresh"] and first["fresh_child"] != second["fresh_child"]
    assert len({first[name] for name in ("shared", "one", "next", "other", "fresh", "fresh_child")}) == 6
    alone = dict(re.findall(r"<(\w+) (.*)>", run(tmp_path, DRAWS, "-k", "one").stdout))
    assert alone == {name: first[name] for name in ("shared", "one", "next", "child")}


def test_rates_of_failing_by_chance_that_are_too_high_together_are_refused(tmp_path: Path) -> None:
    program = "import pytest\n@pytest.mark.fresh_noise(6e-7)\n@pytest.mark.parametrize('n', [1, 2])\n"
    done = run(tmp_path, program + "def test_chance(n): pass\n")
    assert done.returncode != 0
    assert "tests with fresh noise fail by chance in 1.2e-06 of all runs, above 1e-06" in done.stdout + done.stderr


LEAVES = """
import subprocess, sys, threading, time
import pytest

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
kept = []

def test_a_process():
    kept.append(subprocess.Popen(SLEEP))

def test_nothing():
    assert kept.pop().returncode == -9  # it was ended with the test that left it

def test_an_ended_process():
    kept.append(subprocess.Popen([sys.executable, "-c", ""]))

def test_a_process_that_a_fixture_ends(process):
    assert process.poll() is None

@pytest.fixture
def process():
    with subprocess.Popen(SLEEP) as process:
        yield process
        process.kill()

def test_a_thread():
    threading.Thread(target=threading.Event().wait, daemon=True).start()
"""


def test_a_test_that_leaves_something_behind_fails(tmp_path: Path) -> None:
    done = run(tmp_path, LEAVES, "-rE", "--tb=short", "-W", "error")
    assert done.returncode == 1
    assert re.findall(r"^ERROR \S+::(\w+)", done.stdout, re.MULTILINE) == [
        "test_a_process",
        "test_an_ended_process",
        "test_a_thread",
    ], done.stdout
    assert "the test left behind: process" in done.stdout and "Thread" in done.stdout
    assert "5 passed" in done.stdout


FORKS = """
import subprocess, sys
process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
process.returncode = 0  # as if it had been waited for
print(process.pid)
"""


def test_a_run_that_leaves_the_child_of_a_child_behind_fails(tmp_path: Path) -> None:
    program = f"""
import subprocess, sys
def test_a_daemon():
    with open("pid", "w") as pid:
        subprocess.run([sys.executable, "-c", {FORKS!r}], check=True, stdout=pid)
"""
    done = run(tmp_path, program)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert (done.returncode, "1 passed" in done.stdout) == (1, True)
    assert "processes that the tests left behind" in done.stdout
    assert "test_these.py::test_a_daemon (call)" in done.stdout
