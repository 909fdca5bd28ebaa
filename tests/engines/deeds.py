"""What workers are told to do in tests: in a file of its own, which takes a worker no time to import."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from pathlib import Path

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
