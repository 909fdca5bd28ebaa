"""The command: it says what it lacks, prints one link, and ends with Ctrl-C as it should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.studio.visitor import Visitor
from treetop import cli


def test_without_its_packages_it_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("treetop.cli.studio.find_spec", lambda name: None)
    with pytest.raises(SystemExit) as left:
        cli.main(["studio", str(tmp_path)])
    assert left.value.code == 2 and "pip install 'treetop-dp[studio]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"), [(["missing"], "is not a folder"), ([".", "--plan", "../x.toml"], "is not below")]
)
def test_a_place_that_cannot_be_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        cli.main(["studio", *arguments])
    assert left.value.code == 2 and said in capsys.readouterr().err


def test_it_prints_a_link_serves_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "treetop", "studio", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(5)]
    visitor = Visitor(tmp_path, lines[2].strip())
    assert visitor.enter().status == 303 and visitor.see("table").status == 200
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=20)[0]
    assert process.returncode == 0 and rest == "" and lines[4] == "Ctrl-C ends it.\n"
