"""The progress bar of long commands: on a terminal only, on standard error."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from treetop._util.progress_bar import ProgressBar
from treetop._util.system import ENDING

# Ctrl-C: never lost, never in the middle of a step that must be whole, and no failure of work that is done.


@dataclass
class _Interrupts:
    """State of Ctrl-C in this process."""

    asked: int | None = None
    """The signal that came while it could still end the command."""
    finishing: bool = False
    """Whether it is too late to cancel: the result is being put in place, or is there."""


_state = _Interrupts()


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed before it was too late."""
    return _state.asked is not None


def interrupted_by() -> signal.Signals:
    """Return the signal that ended the command: Ctrl-C if none came from outside."""
    return signal.SIGINT if _state.asked is None else signal.Signals(_state.asked)


def check_interrupt() -> None:
    """Raise a `KeyboardInterrupt` that was lost on its way."""
    if _state.asked is not None and not _state.finishing:
        raise KeyboardInterrupt


def finish() -> None:
    """From here on the command ends as if there were no Ctrl-C: its result is in place and recorded."""
    check_interrupt()
    _state.finishing = True


@contextmanager
def watched(process: bool) -> Iterator[None]:
    """Watch for Ctrl-C while a command runs; with `process`, nothing but the end of the process comes after it."""
    _state.asked, _state.finishing = None, False
    before = {number: signal.getsignal(number) for number in ENDING}
    # A background job is not meant to hear of Ctrl-C, nor one under nohup of SIGHUP.
    heard = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    try:
        for number in heard:
            signal.signal(number, _handle)
    except ValueError:  # not in the main thread, where it would not arrive
        yield
        return
    try:
        yield
    finally:
        for number in heard:
            # The end of the interpreter joins threads and runs callbacks: none of this is a command to be interrupted.
            over = process and number == signal.SIGINT
            signal.signal(number, signal.SIG_IGN if over else before[number])


def _handle(number: int, frame: FrameType | None) -> None:
    if not _state.finishing:
        _state.asked = number
        raise KeyboardInterrupt


class Bar(ProgressBar):
    """A progress bar; a Ctrl-C that was lost in between ends it at its next call."""

    def __call__(self, stage: str, done: float) -> None:
        """Show that this much of a stage is done."""
        check_interrupt()
        super().__call__(stage, done)
