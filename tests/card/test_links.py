"""Links to devices, pipes and themselves in the place of files of a release folder: one message, at once.

Without the guard, the first of these tests would read /dev/zero into memory, or wait for a pipe for ever.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import treetop as tt
from tests.commands import said
from tests.forging import card_of
from treetop.errors import ReleaseError

from . import folders
from .test_forged_tables import tables


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder in one file, and one in parts."""
    root = tmp_path_factory.mktemp("made")
    return {kind: folders.make(kind, root / kind) for kind in ("places", "parts")}


PLACES: dict[str, Callable[[Path], None]] = {
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a pipe": os.mkfifo,
    "itself": lambda path: path.symlink_to(path),
    "a folder": lambda path: path.mkdir(),
}


@pytest.mark.skipif(not Path("/dev/zero").exists() or not hasattr(os, "mkfifo"), reason="there are no such files here")
@pytest.mark.parametrize("put", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("kind", ["places", "parts"])
def test_what_is_no_file_is_found_at_once(
    kind: str, put: Callable[[Path], None], made: dict[str, Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(made[kind], tmp_path / "out"))
    card = card_of(folder)
    others = [file["path"] for file in card["files"] if not file["path"].endswith(".parquet")]
    for name in ("card.json", "card.html", *others, *tables(folder)):
        path = folder / name
        content = path.read_bytes()
        path.unlink()
        put(path)
        try:
            assert name == "card.json" or any(verdict.findings for verdict in tt.check(folder)), name
            if name != "card.html" and not name.startswith("nodes"):  # which a load does not read
                with pytest.raises(ReleaseError):
                    tt.Release.load(folder).table()
            for command in ("check", "query", "estimate") if name in ("plan.toml", "card.json") else ():
                assert said((command, folder)).code in (1, 2)
        finally:
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
            path.write_bytes(content)
    assert not any(verdict.findings for verdict in tt.check(folder))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there are no such files here")
def test_a_command_line_that_names_a_device_as_a_file_of_text_is_refused(trips: Path) -> None:
    for words in (("plan", "/dev/zero"), ("ask", "plan.toml", "--ledger", "ledger", "--file", "/dev/zero")):
        told = said(words)
        assert told.code == 2 and "larger than" in told.err, told
