"""Deliberate faults of private files: folders that are made again, swept by their locks alone, or open to others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from .faults import Fault, Patch

stagings: Any = import_module("treetop.engine.staging")


def a_swept_folder_that_a_worker_makes_again(patch: Patch) -> None:
    original = stagings.drafted

    @contextmanager
    def drafted(folder: Path) -> Iterator[Path]:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with original(folder) as draft:
            yield draft

    patch.setattr(stagings, "drafted", drafted)


def folders_without_a_lock_left_alone(patch: Patch) -> None:
    original, sweeps = stagings._lock, stagings._sweep

    def only_locked(folder: Path) -> int | None:
        return original(folder) if (folder / stagings._LOCK).exists() else None

    def sweep(where: Path) -> None:
        with patch.context() as own:
            own.setattr(stagings, "_lock", only_locked)
            sweeps(where)

    patch.setattr(stagings, "_sweep", sweep)


def a_staging_folder_that_others_may_enter(patch: Patch) -> None:
    original = stagings._claim

    def claim(where: Path) -> Any:
        folder, lock = original(where)
        folder.chmod(0o755)
        return folder, lock

    patch.setattr(stagings, "_claim", claim)


FAULTS_OF_FILES = [
    Fault(make, "private files")
    for make in (
        a_swept_folder_that_a_worker_makes_again,
        folders_without_a_lock_left_alone,
        a_staging_folder_that_others_may_enter,
    )
]
