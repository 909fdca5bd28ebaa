"""A staging folder: private scratch space, for counts that are not to be in memory, and for work that is handed on.

Its content is as private as the table: true counts. So it belongs to its owner alone, its name is random, and it is
gone afterwards; what a killed process left goes with the next that uses the same place. Only `staging` makes such a
folder: a worker fails if its folder is gone, and does not make it again.
"""

from __future__ import annotations

import errno
import os
import stat
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
        folder, lock = _claim(where)
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
            f"the disk of the staging folder {where} is full: name one with more room (`staging`). About "
            "40 bytes a record are needed, or a few times the table as a Parquet file"
        ) from problem


def allocate(file: int, size: int) -> None:
    """Take room on disk for a file written as memory, if the system can; `OSError` if there is none."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)


def _claim(where: Path) -> tuple[Path, int | None]:
    """Make a folder that nobody else can enter, and lock it for as long as the process lives."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=where))
        if not LOCKS:
            return folder, None
        try:
            lock = _lock(folder)
        except (FileNotFoundError, BlockingIOError):  # somebody swept it before it was locked
            continue
        except OSError:
            rmtree(folder, ignore_errors=True)
            raise
        if lock is not None:
            return folder, lock


def _lock(folder: Path) -> int | None:
    """Lock a folder, or raise `BlockingIOError` if another process has it; None if it is gone by now.

    The file of the lock is made if there is none: a folder without one was left half made or half deleted, and whoever
    locks it first has it.
    """
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    try:
        flock(lock, LOCK_EX | LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.lstat(folder / _LOCK)):
            return lock
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(lock)
        raise
    os.close(lock)
    return None


def _sweep(where: Path) -> None:
    """Delete this user's folders of processes that have ended: nobody holds their locks. No clock is asked."""
    if not LOCKS:
        return
    for left in where.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # in use, or gone
            about = left.lstat()  # never through a link
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
                continue
            lock = _lock(left)
            if lock is not None:
                try:
                    _delete(left)
                finally:
                    os.close(lock)


def _delete(folder: Path) -> None:
    """Delete a folder, its lock last; under another name, where a worker that lives on does not find it."""
    with suppress(OSError):
        folder = folder.rename(folder.with_name(f"{folder.name}-gone"))
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                rmtree(path, ignore_errors=True)
            elif path.name != _LOCK:
                path.unlink(missing_ok=True)
    rmtree(folder, ignore_errors=True)


@contextmanager
def drafted(folder: Path) -> Iterator[Path]:
    """Write a folder whole or not at all, beside its place; one that is there is left: repeated work gives the same."""
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
