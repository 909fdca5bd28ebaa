"""The audit of private files: what lies in a staging folder is gone when its run is over, however that ended."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .audits import Audit, audit

stagings: Any = import_module("treetop.engine.staging")


@audit
def no_private_file_outlives_its_run() -> str | None:
    """Let a worker go on after its run, leave folders as a killed run does, and look at what the next run leaves."""
    with TemporaryDirectory() as place:
        where = Path(place)
        with stagings.staging(where) as folder:
            if folder.stat().st_mode & 0o077:
                return "others may enter a staging folder"
        _work_on(folder)
        if folder.exists():
            return "a worker made a folder again that was swept"
        left = where / f"{folder.name}-left"
        (left / "merged0").mkdir(parents=True)
        with stagings.staging(where):
            if left.exists():
                return "a folder that was left without a lock is not swept"
        if list(where.iterdir()):
            return "a run leaves private files"
    return None


def _work_on(folder: Path) -> None:
    with suppress(OSError), stagings.drafted(folder / "merged0") as draft:
        (draft / "word0.npy").write_bytes(b"private")


def machine_audits() -> dict[str, Audit]:
    """All of them."""
    return {"private files": no_private_file_outlives_its_run}
