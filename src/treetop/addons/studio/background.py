"""Work that takes long: it goes on in the background while a page shows how long it has run, and can be stopped."""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from treetop.errors import TreetopError

T = TypeVar("T")
_here = threading.local()
"""The piece of work that a thread does."""


def report_share(share: float, done: str = "of the table are read") -> None:
    """Note which share is done by the work of this thread, if it is any, and of what."""
    if (work := getattr(_here, "work", None)) is not None:
        work.share, work.of = share, done


class Stopped(TreetopError):
    """Work that somebody has stopped."""


class Work(Generic[T]):
    """One piece of work in a thread of its own."""

    def __init__(self, what: str, act: Callable[[], T]) -> None:
        self.what = what
        self.result: T | None = None
        self.problem: BaseException | None = None
        self.stopped = False
        self.share = 0.0
        """Which share is done; 0 or 1 while nothing is known."""
        self.of = ""
        """What it is a share of, and what was done with it."""
        self._act = act
        self._start = time.monotonic()
        self._done = threading.Event()
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="studio-work", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        _here.work = self
        try:
            self.result = self._act()
        except BaseException as problem:
            self.problem = Stopped("This was stopped, and nothing was changed by it") if self.stopped else problem
        finally:
            with self._guard:
                self._done.set()

    @property
    def seconds(self) -> int:
        """How long it has run."""
        return int(time.monotonic() - self._start)

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._done.is_set()

    async def wait(self, seconds: float) -> bool:
        """Wait for its end, at most so long; return whether it has ended."""
        end = time.monotonic() + seconds
        while not self.done and time.monotonic() < end:
            await asyncio.sleep(0.005)
        return self.done

    def stop(self) -> None:
        """End it as Ctrl-C ends a command: between two steps of the interpreter."""
        with self._guard:
            if not self.done and not self.stopped:
                self.stopped = True
                interrupt = ctypes.py_object(KeyboardInterrupt)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident or 0), interrupt)

    def join(self, seconds: float) -> None:
        """Wait for its thread."""
        self._thread.join(seconds)

    def value(self) -> T:
        """Return its result, or raise what stopped it."""
        if self.problem is not None:
            raise self.problem
        return self.result  # type: ignore[return-value]
