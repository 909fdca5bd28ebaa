"""What reaches the terminal: no password, no escape sequence, whatever is given where."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import said

PLAN = """
title = "Trips{0}"

[attributes.place]
column = "place"
values = ["a{0}", "b"]

[spine]
order = ["place"]

[unit]
entity = "trip"
contributions = 1
neighbours = "replace"

[loss]
epsilon = 1.0
delta = 1e-6
"""
DRIVING = "\\u001b[31m\\u001b]0;owned\\u0007\\u009b2J\\u202e"  # as TOML writes it


def run(*words: str) -> tuple[int, str]:
    done = said(words)
    return done.code, done.out + done.err


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "{url}"],
        ["check", "{url}"],
        ["check", "{folder}", "--truth", "{url}"],
        ["query", "{url}", "x=1"],
        ["query", "{folder}", "{url}"],
        ["estimate", "{url}"],
        ["export", "{url}", "--to", "od", "--out", "x"],
        ["export", "{folder}", "--to", "{url}", "--out", "x"],
        ["export", "{folder}", "--to", "od", "--out", "{url}"],
        ["ledger", "show", "{url}"],
        ["ledger", "create", "{url}", "--epsilon", "1"],
        ["release", "{url}", "x.csv", "--out", "out"],
        ["release", "{plan}", "{url}", "--out", "out"],
        ["release", "{plan}", "x.csv", "--out", "{url}"],
        ["release", "{plan}", "x.csv", "--out", "out", "--ledger", "{url}", "--dataset", "d"],
        ["compare", "{url}", "x.csv"],
        ["compare", "{plan}", "{url}"],
        ["ask", "{url}", "x.csv"],
        ["inspect", "x.csv", "--hierarchy", "{url}"],
        ["inspect", "x.csv", "--count", "{url}"],
        ["inspect", "x.csv", "--out", "{url}"],
        ["inspect", "{url}"],
        ["{url}"],
        ["plan", "{plan}", "--{url}"],
    ],
)
@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hunter2@127.0.0.1:1/db",
        " postgresql://ann:hunter2@127.0.0.1:1/db",
        "host=127.0.0.1 port=1 user=ann password=hunter2",
    ],
)
def test_a_password_given_in_the_wrong_place_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(PLAN.format(""))
    Path("x.csv").write_text("place\na\nb\n")
    code, output = run(*(word.format(url=url, plan="plan.toml", folder="none") for word in words))
    assert "hunter2" not in output
    assert code in (0, 2)  # a text with a password is the name of a file, too


def test_what_a_plan_and_a_file_name_hold_does_not_drive_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "pl\x1b[2Jan.toml"
    Path(name).write_text(PLAN.format(DRIVING))
    named = PLAN.format("").replace("[attributes.place]", f'[attributes."place{DRIVING}"]')
    Path("named.toml").write_text(named)
    Path("x.csv").write_text("place,\x1b[31mn\na\x1b]0;owned\x07,1\n")
    Path("y.csv").write_text('place\n"a\x1b[31m\x1b]0;owned\x07\x9b2J\u202e"\nb\n')
    key = ["--testing-key", "11" * 32]
    calls = [
        (0, ["plan", name]),
        (0, ["plan", name, "--json"]),
        (2, ["plan", "no\x1b[2J"]),
        (2, ["plan", "named.toml"]),
        (0, ["inspect", "x.csv"]),
        (2, ["release", name, "x.csv", "--out", "out", *key]),
        (0, ["release", name, "y.csv", "--out", "o\x1b[2J", *key]),
        (0, ["check", "o\x1b[2J"]),
        (0, ["query", "o\x1b[2J", "--by", "place"]),
        (0, ["query", "o\x1b[2J", "--by", "place", "--json"]),
        (2, ["query", "o\x1b[2J", "\x1b[2J"]),
    ]
    for expected, words in calls:
        code, output = run(*words)
        assert code == expected, (words, output)
        assert not set(output) & set("\x1b\x07\x9b\u202e\r"), (words, output)


def test_on_a_terminal_colours_are_those_of_treetop_alone(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.format(DRIVING))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "treetop", "plan", "plan.toml"]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, cwd=tmp_path, stdout=theirs, stderr=theirs, env=environment) as plan:
        os.close(theirs)
        shown = b""
        while part := _read(ours):
            shown += part
        assert plan.wait() == 0
    os.close(ours)
    text = shown.decode()
    assert "\x1b[1m" in text  # a heading is bold
    for sequence in ("\x1b[31m", "\x1b]0", "\x07", "\x9b", "\u202e"):
        assert sequence not in text
    assert "Trips\\u001b[31m\\u001b]0;owned\\u0007\\u009b2J\\u202e" in text


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""


def test_what_is_piped_is_utf8_whatever_the_system_would_write(trips: Path) -> None:
    env = os.environ | {"PYTHONIOENCODING": "cp1252"}  # as on Windows, where a pipe has no sign for a line
    command = [sys.executable, "-m", "treetop", "plan", "plan.toml"]
    done = subprocess.run(command, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "─────" in done.stdout.decode("utf-8")
