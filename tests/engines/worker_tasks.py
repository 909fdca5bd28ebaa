"""What workers of tests are asked to do: they import this module, and nothing of pytest with it."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

PRIVATE = "street-of-the-whistling-heron-17b"
"""A code that is private, and in no file by chance."""


@dataclass(frozen=True)
class Dying:
    """Does what a function does; but the first attempt of all ends its process, in the middle."""

    function: Callable[[Any], Any]
    marker: str
    """The file that says that the first attempt was."""
    while_writing: bool = False
    """Whether it ends when its answer is written, and not yet in place."""

    def __call__(self, task: Any) -> Any:
        answer = self.function(task)
        if _is_first(self.marker):
            if not self.while_writing:
                os._exit(1)
            Path.replace = _exit  # type: ignore[assignment, method-assign]
        return answer


def _exit(*_: Any) -> None:
    os._exit(1)


@dataclass(frozen=True)
class Slow:
    """Does what a function does, some time later."""

    function: Callable[[Any], Any]
    seconds: float

    def __call__(self, task: Any) -> Any:
        time.sleep(self.seconds)
        return self.function(task)


@dataclass(frozen=True)
class Noted:
    """Does what a function does, some time after it has noted in a folder that it has begun, and which process does."""

    function: Callable[[Any], Any]
    folder: str
    seconds: float

    def __call__(self, task: Any) -> Any:
        (Path(self.folder) / str(os.getpid())).touch()
        time.sleep(self.seconds)
        return self.function(task)


@dataclass(frozen=True)
class Together:
    """Does what a function does; but the first attempt of all waits until there is another of the same task."""

    function: Callable[[Any], Any]
    folder: str
    """Where each attempt of that task notes its process."""

    def __call__(self, task: Any) -> Any:
        notes, own = Path(self.folder), sha256(pickle.dumps(task)).hexdigest()
        if _is_first(str(notes / "first")):
            (notes / "task").write_text(own)
        while not (notes / "task").exists() or not (chosen := (notes / "task").read_text()):
            time.sleep(0.01)
        if own == chosen:
            (notes / f"attempt-{os.getpid()}").touch()
            end = time.monotonic() + 120
            while len(list(notes.glob("attempt-*"))) < 2 and time.monotonic() < end:
                time.sleep(0.02)
        return self.function(task)


def clock(_: Any) -> float:
    return time.time()


def _is_first(marker: str) -> bool:
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def echo(task: Any) -> Any:
    return task


def process(_: Any) -> int:
    return os.getpid()


def private_error(task: str) -> None:
    raise ValueError(f"{task} is unknown")


class Unsendable(Exception):
    """Goes into no pickle."""

    def __reduce__(self) -> Any:
        raise TypeError(f"{self} cannot be sent")


def unsendable_error(task: str) -> None:
    raise Unsendable(task)


def die(_: Any) -> None:
    os._exit(1)
