"""The most memory that a piece of work takes, where the system can tell: on Linux."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


class Peak:
    """Measures the most resident memory of the process above what it had when the work began.

    The high-water mark is the whole process's, so nothing else may run in it meanwhile. Memory that the process holds
    on to without using it is given back first: reused, it would not show.
    """

    size: int | None = None
    """In bytes, after the work; None where the system cannot tell."""

    def __enter__(self) -> Peak:
        with suppress(OSError, AttributeError, TypeError):  # only the GNU library has it
            ctypes.CDLL(None).malloc_trim(0)
        self._before = _read("VmRSS") if _reset() else None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        most = _read("VmHWM")
        if self._before is not None and most is not None:
            self.size = max(most - self._before, 0)


def _reset() -> bool:
    """Set the high-water mark to what is resident now."""
    try:
        _RESET.write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def _read(field: str) -> int | None:
    try:
        lines = _STATUS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return None
