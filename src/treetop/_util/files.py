"""Reading files that others made: a link to a device or a pipe has no end, and must not be read as a file."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class IrregularFile(OSError):
    """A device, a pipe, a socket or a folder that stands in the place of a file; or a file of an unexpected size."""


def refuse_irregular(path: Path) -> None:
    """Refuse a path that is not a regular file or a link to one, without opening it."""
    _refuse(path, path.stat())


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; never waits for the other end of a pipe."""
    refuse_irregular(path)  # some devices do something when they are opened
    file = os.fdopen(os.open(path, os.O_RDONLY | _WITHOUT_WAITING), "rb")
    try:
        _refuse(path, os.fstat(file.fileno()))  # it may have been replaced since
    except BaseException:
        file.close()
        raise
    return file


def read_regular(path: Path, largest: int) -> bytes:
    """Return the content of a regular file of at most so many bytes."""
    with open_regular(path) as file:
        return read_at_most(file, path, largest)


def read_at_most(file: BinaryIO, path: Path, largest: int) -> bytes:
    """Return all that a stream has, if that is at most so many bytes: a device may have no end."""
    data = file.read(largest + 1)
    if len(data) > largest:
        raise IrregularFile(f"{path} is larger than {largest >> 20} MB, more than such a file can be")
    return data


def _refuse(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise IrregularFile(f"{path} is not a regular file, nor a link to one")


# Where a path leads, whatever it holds: a ring of links or a zero byte is no reason to fail before it is opened.


def resolved(path: str | Path) -> Path:
    """Return the path without links and relative parts; links that go in a ring are left as they are."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return Path(path)
