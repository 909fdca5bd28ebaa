"""A staging folder: private scratch space, for counts that are not to be in memory, and for work that is handed on.

What lies in it is as private as the table: true counts. So it belongs to its owner alone, its name is random, and it is
gone afterwards; what a killed process left goes with the next that uses the same place.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree

from treetop.errors import EngineError

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # not on this system: what a killed process leaves stays until somebody deletes it
    LOCKS = False
else:
    LOCKS = True

_PREFIX = ".treetop-staging-"
_LOCK = "lock"


@contextmanager
def staging(place: str | Path | None = None) -> Iterator[Path]:
    """Make a private folder in a place, by default that for temporary files; it is gone afterwards."""
    where = Path(tempfile.gettempdir() if place is None else place)
    try:
        _sweep(where)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=where))  # which nobody else can enter
        lock = _locked(folder)
    except OSError as problem:
        raise EngineError(f"{where}: cannot be used for staging: {problem.strerror or problem}") from problem
    try:
        with full_disks_told(where):
            yield folder
    finally:
        _delete(folder)
        if lock is not None:
            os.close(lock)


@contextmanager
def full_disks_told(where: Path) -> Iterator[None]:
    """Say in one sentence that a disk is full."""
    try:
        yield
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise EngineError(
            f"the disk of the staging folder {where} is full: name one with more room (--staging, or staging=…). About "
            "40 bytes a record are needed, or a few times the table as a Parquet file"
        ) from problem


def _locked(folder: Path) -> int | None:
    """Lock a folder for as long as the process lives; None where that is not possible."""
    if not LOCKS:
        return None
    lock = os.open(folder / f".{_LOCK}", os.O_CREAT | os.O_RDWR, 0o600)
    flock(lock, LOCK_EX | LOCK_NB)
    (folder / f".{_LOCK}").rename(folder / _LOCK)  # nobody who sweeps sees it before it is held
    return lock


def _sweep(where: Path) -> None:
    """Delete what processes left that are no more: nobody holds their locks. No clock is asked, here or there."""
    if not LOCKS:
        return
    for left in where.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody else's, or in use
            lock = os.open(left / _LOCK, os.O_RDWR)
            try:
                flock(lock, LOCK_EX | LOCK_NB)
                _delete(left)
            finally:
                os.close(lock)


def _delete(folder: Path) -> None:
    """Delete a folder, its lock last: if this is broken off, the next one who sweeps still knows it by that."""
    with suppress(OSError):
        for one in folder.iterdir():
            if one.is_dir() and not one.is_symlink():
                rmtree(one, ignore_errors=True)
            elif one.name != _LOCK:
                one.unlink(missing_ok=True)
    rmtree(folder, ignore_errors=True)


@contextmanager
def drafted(folder: Path) -> Iterator[Path]:
    """Write a folder whole, or not at all; where it is there already, it is left: whoever repeats work has the same."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder.parent))
    try:
        yield draft
        try:
            draft.rename(folder)
        except OSError:
            if not folder.exists():
                raise
    finally:
        rmtree(draft, ignore_errors=True)
