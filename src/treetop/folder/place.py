"""The place of a release folder: checked before anything is spent, and taken in one step."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from shutil import disk_usage, rmtree

from treetop.errors import ReleaseError
from treetop.folder.read import CARD

_ROOM = 1 << 20  # less free space than this holds no release
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def check_place(folder: Path, force: bool) -> None:
    """Refuse a place where the folder cannot be written, before anything is spent."""
    check_name(folder, force)
    parent = folder.absolute().parent
    if disk_usage(parent).free < _ROOM:
        raise ReleaseError(f"{folder}: cannot be written: the disk of {parent} is full")


def check_name(folder: Path, force: bool) -> None:
    """Refuse a place that is taken or cannot be written to; how much room there is has then been asked before."""
    parent = folder.absolute().parent
    if not folder.name or folder.name == "..":
        raise ReleaseError(f"{folder} is not the name of a new folder: name one, such as {folder / 'release'}")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ReleaseError(f"{folder} exists already and is not a folder: choose another name")
    if folder.exists() and not force:
        raise ReleaseError(f"{folder} exists already: choose another folder, or replace it with --force (force=True)")
    if folder.exists() and not (folder / CARD).is_file() and any(folder.iterdir()):
        raise ReleaseError(f"{folder} is not a release folder (it has no {CARD}), and is never replaced by one")
    if not parent.is_dir():
        raise ReleaseError(f"{parent} is not a folder: create it first")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise ReleaseError(f"{folder}: cannot be written: {parent} is read-only")


def take_place(draft: Path, folder: Path, force: bool) -> None:
    """Move a complete folder to its place; what `force` replaces is then where the draft was."""
    with writing(folder):
        check_name(folder, force)
        if folder.exists():
            exchange(draft, folder)
        else:
            draft.rename(folder)
        sync(folder.absolute().parent)


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Make a folder beside a place, which is gone afterwards; so is what a killed process left of such a one."""
    parent, prefix = folder.absolute().parent, f".{folder.name}.treetop-draft-"
    with writing(folder):
        for left in parent.glob(f"{escape(prefix)}*"):
            lock = _lock(left)
            if lock is not None:
                rmtree(left, ignore_errors=True)
                os.close(lock)
        made = tempfile.TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True)
    with made:
        lock = _lock(Path(made.name))
        try:
            yield Path(made.name)
        finally:
            if lock is not None:
                os.close(lock)


def _lock(folder: Path) -> int | None:
    """Lock a folder for as long as this process lives; None if another one has it, or the system has no such locks."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def exchange(one: Path, other: Path) -> None:
    """Put each of two folders in the place of the other: in one step where the system can, and never losing one."""
    if not _in_one_step(one, other):
        aside = one.with_name(one.name + "-aside")
        other.rename(aside)
        try:
            one.rename(other)
        except BaseException:
            aside.rename(other)
            raise
        aside.rename(one)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn what the system says into a message."""
    try:
        yield
    except OSError as problem:
        raise ReleaseError(f"{folder}: cannot be written: {problem.strerror or problem}") from problem


def sync(path: Path) -> None:
    """Flush a file or a folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _in_one_step(one: Path, other: Path) -> bool:
    """Exchange by Linux's renameat2; False where there is no such call, or the file system lacks it."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    failed = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_RENAME_EXCHANGE))
    return not failed
