"""What workers are told to do in tests: in a file of its own, which takes a worker no time to import."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from pathlib import Path

from treetop.engine.staging import drafted
from treetop.errors import DataError


def dies_once(marker: Path) -> int:
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 7


def always_dies(_: object) -> None:
    os._exit(3)


def refuses(_: object) -> None:
    raise DataError("row 3: a code is missing")


def finds_no_room(marker: Path) -> None:
    marker.with_name(f"{time.time_ns()}").touch()
    raise OSError(errno.ENOSPC, "No space left on device")


def double(number: int) -> int:
    sys.stdout.write("whatever a library says\n")
    sys.stdout.flush()
    return 2 * number


def whose(_: object) -> int:
    return os.getpid()


def sleeps(where: tuple[Path, Path]) -> None:
    """Write to the staging folder again and again, as tasks do, and say who does so."""
    folder, told = where
    for number in range(100_000):
        with drafted(folder / f"run{number}") as draft:
            (draft / "word0.npy").write_bytes(b"private")
        if number == 3:
            told.with_suffix(".draft").write_text(str(os.getpid()))
            told.with_suffix(".draft").rename(told)
        time.sleep(0.001)
