"""The place of a release folder: checked and claimed before anything is spent, and taken in one step."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from platform import node
from shutil import disk_usage, rmtree

from treetop.errors import ReleaseError
from treetop.release.folder._tables import CARD, HIERARCHIES

_ROOM = 1 << 20  # less free space than this holds no release
_LONGEST = f"{HIERARCHIES}/{'0' * 64}.parquet"  # the longest name in a release folder
_DRAFT = ".treetop-draft-"
_OWNER = "owner"
_ON_WINDOWS = os.name == "nt"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def check_place(folder: Path, force: bool) -> None:
    """Refuse a place if the folder cannot be written there, before any loss is spent."""
    with writing(folder):
        check_name(folder, force)
    parent = folder.absolute().parent
    if disk_usage(parent).free < _ROOM:
        raise ReleaseError(f"{folder}: cannot be written: the disk of {parent} is full")


def check_name(folder: Path, force: bool) -> None:
    """Refuse a place that is taken or cannot be written to; `check_place` checks free space too."""
    parent = folder.absolute().parent
    if not folder.name or folder.name == "..":
        raise ReleaseError(f"{folder} is not the name of a new folder: name one, such as {folder / 'release'}")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ReleaseError(f"{folder} exists already and is not a folder: choose another name")
    if folder.exists() and not force:
        raise ReleaseError(f"{folder} exists already: choose another folder, or replace it with `force=True`")
    if folder.exists() and not (folder / CARD).is_file() and any(folder.iterdir()):
        raise ReleaseError(f"{folder} is not a release folder (it has no {CARD}), and is never replaced by one")
    if not parent.is_dir():
        raise ReleaseError(f"{parent} is not a folder: create it first")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise ReleaseError(f"{folder}: cannot be written: {parent} is read-only")
    with suppress(FileNotFoundError):
        (folder / _LONGEST).lstat()  # a name that is too long is found here


def take_place(draft: Path, folder: Path, force: bool) -> None:
    """Move a complete folder to its place; a folder that `force` replaces is then in the draft's place."""
    with writing(folder):
        check_name(folder, force)
        if folder.exists():
            exchange(draft, folder)
        else:
            draft.rename(folder)
        sync(folder.absolute().parent)


@contextmanager
def claimed(folder: Path, force: bool) -> Iterator[Path]:
    """Keep a place for this process, so that no loss is spent in vain; yield a folder beside it to write in."""
    check_place(folder, force)
    with scratch(folder) as beside:
        with writing(folder):
            check_name(folder, force)  # another process may have finished in between
            trial = beside / "release" / _LONGEST
            trial.parent.mkdir(parents=True)
            trial.touch()
            rmtree(beside / "release")
        yield beside


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Make a temporary folder beside a place, and remove it afterwards; its owner alone may write to the place.

    Such folders of killed processes are removed as well.
    """
    with writing(folder):
        _sweep(folder.absolute().parent)
        beside, lock = _claim(folder)
    try:
        yield beside
    finally:
        rmtree(beside, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _claim(folder: Path) -> tuple[Path, int | None]:
    """Make the one folder in which to write for a place, and lock it; refuse if another process has it."""
    beside = _beside(folder)
    while True:
        try:
            beside.mkdir(mode=0o700)
            new = True
        except FileExistsError:
            new = False
        try:
            lock = _lock(beside)
        except FileNotFoundError:  # it was swept before it was locked
            continue
        except BlockingIOError:
            raise _taken(folder, beside) from None
        if lock is None:
            if not new:
                raise _taken(folder, beside)
            break
        if _is_at(lock, beside):
            break
        os.close(lock)
    try:
        if not new and _owner(beside) not in (None, node()):
            raise _taken(folder, beside)
        try:
            for left in beside.iterdir():
                if left.is_dir() and not left.is_symlink():
                    rmtree(left)
                else:
                    left.unlink()
            (beside / _OWNER).write_text(node(), encoding="utf-8")
        except BaseException:  # a full disk, for instance
            rmtree(beside, ignore_errors=True)
            raise
    except BaseException:
        if lock is not None:
            os.close(lock)
        raise
    return beside, lock


def _beside(folder: Path) -> Path:
    """Return the path of the draft of a place: one per name, and not too long unless the name itself is."""
    shown = folder.name
    while len(os.fsencode(shown)) > 100:
        shown = shown[:-1]
    digest = sha256(os.fsencode(folder.name)).hexdigest()[:12]
    return folder.absolute().parent / f".{shown}{_DRAFT}{digest}"


def _sweep(parent: Path) -> None:
    """Remove the folders of killed processes of this machine; a living process holds a lock."""
    for left in parent.glob(f".*{_DRAFT}*"):
        with suppress(OSError):
            lock = _lock(left)
            if lock is not None:
                if _is_at(lock, left) and _owner(left) in (None, node()):
                    rmtree(left, ignore_errors=True)
                os.close(lock)


def _owner(beside: Path) -> str | None:
    """Return the machine whose process made a folder; locks of another one may not be seen from here."""
    try:
        return (beside / _OWNER).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _taken(folder: Path, beside: Path) -> ReleaseError:
    return ReleaseError(
        f"{folder}: another process is writing there now: wait until it has finished, or choose another name; if there "
        f"is none, on any machine, remove {beside}"
    )


def _lock(folder: Path) -> int | None:
    """Lock a folder for as long as this process lives; None if the system has no such locks.

    `BlockingIOError` says that another one has it.
    """
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        os.close(handle)
        if isinstance(problem, BlockingIOError):
            raise
        return None
    return handle


def _is_at(handle: int, path: Path) -> bool:
    """Whether the opened file still stands at the path, rather than one that another process has swept away."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def exchange(one: Path, other: Path) -> None:
    """Put each of two folders in the place of the other: in one step if the system can, and never losing one."""
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
    """Turn errors of the system into a message."""
    try:
        yield
    except OSError as problem:
        raise ReleaseError(f"{folder}: cannot be written: {problem.strerror or problem}") from problem


def sync(path: Path) -> None:
    """Flush a file or a folder to disk; on Windows files only, which a handle that may write flushes."""
    if _ON_WINDOWS and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if _ON_WINDOWS else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _in_one_step(one: Path, other: Path) -> bool:
    """Exchange by Linux's renameat2; False if there is no such call, or the file system lacks it."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    failed = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_RENAME_EXCHANGE))
    return not failed
