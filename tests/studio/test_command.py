"""The command: it says what it lacks, prints one link, and ends with Ctrl-C as it should."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.studio.visitor import Visitor
from treetop import cli
from treetop.addons.studio import serve


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
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


def test_a_browser_is_opened_by_a_file_that_nobody_else_can_read(tmp_path: Path) -> None:
    opener = tmp_path / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$0" "$@" > {tmp_path}/argv.part\nmv {tmp_path}/argv.part {tmp_path}/argv\n'
    )
    opener.chmod(0o755)
    (tmp_path / "folder").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "treetop", "studio", str(tmp_path / "folder"), "--open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "PATH": f"{opener.parent}:{os.environ['PATH']}"},
    )
    assert process.stdout is not None
    link = [process.stdout.readline() for _ in range(5)][2].strip()
    token = link.partition("token=")[2]
    while not (tmp_path / "argv").exists() and process.poll() is None:
        time.sleep(0.02)
    argv = (tmp_path / "argv").read_text()
    assert token and token not in argv
    page = Path(urlsplit(argv.splitlines()[1]).path)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (page, page.parent)] == [0o600, 0o700]
    assert unescape(page.read_text()).count(link) == 2
    visitor = Visitor(tmp_path, link)
    entered = visitor.ask("GET", link.removeprefix(f"http://{visitor.host}"), Sec_Fetch_Site="cross-site")
    # A strict cookie is not sent along redirects that began in another place: a page of ours leads on.
    assert entered.status == 200 and 'http-equiv="refresh"' in entered.text and "set-cookie" in entered.headers
    assert not page.exists() and not page.parent.exists()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)


def test_the_file_that_opens_a_browser_is_removed_at_the_end_if_it_was_not_used(tmp_path: Path) -> None:
    found: list[Path] = []

    def launch(address: str) -> None:
        found.append(Path(urlsplit(address).path))
        assert found[0].is_file()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        serve(tmp_path, launch=launch)
    assert found and not found[0].parent.exists()
