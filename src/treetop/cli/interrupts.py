"""Ctrl-C: never lost, never in the middle of a step that must be whole, and no failure of work that is done.

Python raises `KeyboardInterrupt` wherever the program happens to be. In a callback from C, as when kernels are loaded,
it is printed and forgotten; while a generator is being closed it may come out as another error. So that it came is also
noted here, and looked at where work goes on, before a loss is charged, and when the command ends.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class _Interrupts:
    """What is known about Ctrl-C in this process."""

    asked: bool = False
    """Whether it was pressed while that could still end the command."""
    finishing: bool = False
    """Whether it is too late: the result is being put in place, or is there."""


_state = _Interrupts()


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed before it was too late."""
    return _state.asked


def check_interrupt() -> None:
    """Raise a `KeyboardInterrupt` that was lost on its way."""
    if _state.asked and not _state.finishing:
        raise KeyboardInterrupt


def finish() -> None:
    """From here on the command ends as if there were no Ctrl-C: what is done is done, and recorded."""
    check_interrupt()
    _state.finishing = True


@contextmanager
def watched(process: bool) -> Iterator[None]:
    """Watch for Ctrl-C while a command runs; with `process`, nothing but the end of the process comes after it."""
    _state.asked = _state.finishing = False
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # a background job is not meant to hear of it
        yield
        return
    try:
        signal.signal(signal.SIGINT, _handle)
    except ValueError:  # not in the main thread, where it would not arrive
        yield
        return
    try:
        yield
    finally:
        # The end of the interpreter joins threads and runs callbacks: none of this is a command to be interrupted.
        signal.signal(signal.SIGINT, signal.SIG_IGN if process else before)


def _handle(number: int, frame: FrameType | None) -> None:
    if not _state.finishing:
        _state.asked = True
        raise KeyboardInterrupt
