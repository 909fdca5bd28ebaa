"""Signals that wait: Ctrl-C, or a request to end, never comes in the middle of a step that must be whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def held_signals() -> Iterator[None]:
    """Hold back the handlers of signals that end a program, until the block is over; then call them.

    Python calls handlers in the main thread only: in another one there is nothing to hold back. A signal that has no
    handler of Python is left as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Callable[[int, FrameType | None], object]] = {}
    try:
        for number in ENDING:
            if callable(handler := signal.getsignal(number)):
                handlers[number] = handler
                signal.signal(number, lambda *signalled: came.append(signalled))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in came:
            handlers[number](number, frame)
