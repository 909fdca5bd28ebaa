"""Task files: tasks for workers elsewhere, and their answers, as files of a staging folder.

The files hold true counts and no noise key: a number stands in the place of each key. The keys go to workers in a
`WorkerContext`, which is small and never a file. It also holds the seal: a key, made for one exchange, that signs every
file. A signature does not confirm a guessed content, as a plain hash would. Someone who can only write into the folder
cannot make a worker or the driver load another file: loading a pickle runs code.

Large arrays, which many tasks have in common, are files of their own, named by their signatures: each is written once.
"""

from __future__ import annotations

import errno
import hmac
import io
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree
from typing import Any

from treetop._util.distribution import DISTRIBUTION, VERSION
from treetop.engine.engine import Executor
from treetop.errors import EngineError
from treetop.noise import Key

_SIGNED = "sha256"
_SIGNATURE = 32
_NUMBER = 4
_LARGE = 1 << 16
"""Arrays with at least so many bytes are files of their own."""
_PATIENCE = 30.0
"""Seconds to wait for a file if driver and workers share a folder over a network."""

MISSING, FORBIDDEN, CHANGED = "missing", "forbidden", "changed"


@dataclass(frozen=True)
class WorkerContext:
    """Everything that a worker needs for a set of tasks: secret, small, and never on a disk."""

    folder: str
    seal: Key = field(repr=False)
    keys: tuple[Key, ...] = field(repr=False)
    """The keys of the tasks, by their numbers."""


@contextmanager
def exchange_dir(staging: Path) -> Iterator[Path]:
    """Make a folder for the files of some tasks; it is removed afterwards, even if a worker still writes."""
    folder = Path(tempfile.mkdtemp(prefix="exchange-", dir=staging))
    try:
        yield folder
    finally:
        gone = folder.with_name(f".gone-{folder.name}")
        with suppress(OSError):
            folder.rename(gone)  # an attempt that nobody waits for any more finds no place to write to
        rmtree(gone, ignore_errors=True)
        rmtree(folder, ignore_errors=True)


def pack(folder: Path, function: Callable[[Any], Any], tasks: Iterable[Any]) -> tuple[WorkerContext, int]:
    """Write tasks, each with its function, and return the context for workers and the number of tasks."""
    seal, number = Key.fresh(), 0
    numbers: dict[Key, int] = {}
    for task in tasks:
        _write(folder, _Content("task", number), _packed_call(function, task, numbers, _Arrays(folder, seal)), seal)
        number += 1
    return WorkerContext(str(folder), seal, tuple(numbers)), number


def work(context: WorkerContext, number: int) -> str:
    """Do a task, and write its result or exception.

    Return any other failure as a word without private data, and never raise an exception: the exceptions of a cluster's
    worker stand in its log and on its pages.
    """
    try:
        folder = Path(context.folder)
        packed = _read(folder, _Content("task", number), context.seal)
        _write(folder, _Content("answer", number), _answer(packed, context), context.seal)
    except FileNotFoundError:
        return MISSING
    except PermissionError:
        return FORBIDDEN
    except _Changed:
        return CHANGED
    except OSError as problem:
        return errno.errorcode.get(problem.errno or 0, "unknown")
    except Exception as problem:
        return type(problem).__name__
    return ""


def unpack(context: WorkerContext, number: int) -> Any:
    """Return the result of a task, or raise its exception; its file is deleted."""
    folder, content = Path(context.folder), _Content("answer", number)
    try:
        _wait_for(folder / content.name)
        done, answer = _Unpacker(io.BytesIO(_read(folder, content, context.seal)), context.keys).load()
    except _Changed:
        raise EngineError(explain(CHANGED, context.folder)) from None
    except FileNotFoundError:
        raise EngineError(
            f"a worker has written its answer into the staging folder {context.folder}, and it cannot be seen here: "
            "name a folder that driver and workers share (`staging`)"
        ) from None
    (folder / content.name).unlink(missing_ok=True)
    if not done:
        raise answer
    return answer


def explain(word: str, folder: str) -> str:
    """Explain a worker's error word, with a remedy."""
    if word == MISSING:
        return (
            f"a worker does not see the staging folder {folder}: name one that driver and workers share, at the same "
            "path (`staging`)"
        )
    if word == FORBIDDEN:
        return (
            f"a worker may not read or write in the staging folder {folder}, which is its owner's alone: let the "
            "workers run as the same user as the driver"
        )
    if word == CHANGED:
        return f"a file in the staging folder {folder} is not the one that was put there: find out who can write to it"
    if word in ("ENOSPC", "EDQUOT"):
        return f"the disk of the staging folder {folder} is full: name one with more room (`staging`)"
    return f"a worker cannot use the staging folder {folder}: {word}"


def count_bytes(context: WorkerContext) -> int:
    """Return how large a context is when it is sent."""
    return len(pickle.dumps(context, protocol=pickle.HIGHEST_PROTOCOL))


@dataclass(frozen=True)
class _Content:
    """The content of a file: it is signed too, so that no file can stand for another."""

    kind: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.number}"

    def signature(self, data: bytes, seal: Key) -> bytes:
        return _signature(self.name, data, seal)


def _signature(name: str, data: bytes | bytearray | memoryview, seal: Key) -> bytes:
    signed = hmac.new(seal.secret, name.encode() + b"\0", _SIGNED)
    signed.update(data)
    return signed.digest()


class _Changed(Exception):
    """A file without a valid signature."""


class _Packer(pickle.Pickler):
    """Pickles with the number of a key in the place of each key."""

    def __init__(self, out: io.BytesIO, numbers: dict[Key, int], aside: _Arrays | None = None) -> None:
        """Take the numbers of keys: new ones are added if arrays are put aside, in a task."""
        super().__init__(out, protocol=5, buffer_callback=None if aside is None else aside.put)
        self._numbers, self._may_add = numbers, aside is not None

    def persistent_id(self, thing: Any) -> int | None:
        if not isinstance(thing, Key):
            return None
        if not self._may_add and thing not in self._numbers:
            raise pickle.PicklingError("an answer holds a key of its own")
        return self._numbers.setdefault(thing, len(self._numbers))


class _Unpacker(pickle.Unpickler):
    """Puts the keys back in their places, and the arrays that were put aside."""

    def __init__(self, data: io.BytesIO, keys: tuple[Key, ...], arrays: Iterable[bytearray] = ()) -> None:
        super().__init__(data, buffers=arrays)
        self._keys = keys

    def persistent_load(self, number: Any) -> Key:
        key: Key = self._keys[number]
        return key


class _Arrays:
    """The large arrays of one task, in the order in which they are met."""

    def __init__(self, folder: Path, seal: Key) -> None:
        self._folder, self._seal = folder, seal
        self.signatures: list[bytes] = []

    def put(self, array: pickle.PickleBuffer) -> bool:
        """Put an array aside, unless another task has; return whether it is small, and stays where it is."""
        data = array.raw()
        if data.nbytes < _LARGE:
            return True
        signature = _signature("array", data, self._seal)
        if not (self._folder / signature.hex()).exists():
            _store(self._folder, signature.hex(), data)
        self.signatures.append(signature)
        return False

    def take(self, signatures: bytes) -> Iterator[bytearray]:
        """Yield the arrays with these signatures; they can be written to, as those in memory can."""
        for start in range(0, len(signatures), _SIGNATURE):
            signature = signatures[start : start + _SIGNATURE]
            data = bytearray((self._folder / signature.hex()).read_bytes())
            if not hmac.compare_digest(signature, _signature("array", data, self._seal)):
                raise _Changed
            yield data


def _packed_call(function: Callable[[Any], Any], task: Any, numbers: dict[Key, int], arrays: _Arrays) -> bytes:
    """Return a call as it is sent: how many arrays it has aside, their signatures, and all else."""
    out = io.BytesIO()
    try:
        _Packer(out, numbers, arrays).dump((function, task))
    except (pickle.PicklingError, AttributeError, TypeError) as problem:
        raise EngineError(
            f"this plan cannot be sent to other processes ({problem}): what is registered or defined by your own code "
            "must be in a module, and not inside a function"
        ) from problem
    return len(arrays.signatures).to_bytes(_NUMBER, "little") + b"".join(arrays.signatures) + out.getvalue()


def _answer(packed: bytes, context: WorkerContext) -> bytes:
    """Do a task, and return its result or exception as it is sent back."""
    answer: tuple[bool, Any]
    try:
        function, task = _unpacked_call(packed, context)
        answer = True, function(task)
    except _Changed:
        raise
    except Exception as problem:  # told to the driver, who raises it
        answer = False, problem
    try:
        data = _packed_answer(answer, context.keys)
        if not answer[0]:
            _Unpacker(io.BytesIO(data), context.keys).load()  # not every exception comes out of a pickle again
    except Exception as problem:
        error = answer[1] if not answer[0] else problem
        data = _packed_answer((False, EngineError(f"a worker failed with {type(error).__name__}")), context.keys)
    return data


def _unpacked_call(packed: bytes, context: WorkerContext) -> tuple[Callable[[Any], Any], Any]:
    end = _NUMBER + _SIGNATURE * int.from_bytes(packed[:_NUMBER], "little")
    arrays = _Arrays(Path(context.folder), context.seal).take(packed[_NUMBER:end])
    try:
        function, task = _Unpacker(io.BytesIO(packed[end:]), context.keys, arrays).load()
    except (ImportError, AttributeError) as problem:
        raise EngineError(
            f"a worker lacks something that the plan uses ({problem}): what is registered or defined by your own code "
            "must be in a module that is installed on every worker"
        ) from None
    return function, task


def _packed_answer(answer: tuple[bool, Any], keys: tuple[Key, ...]) -> bytes:
    out = io.BytesIO()
    _Packer(out, {key: number for number, key in enumerate(keys)}).dump(answer)
    return out.getvalue()


def _write(folder: Path, content: _Content, data: bytes, seal: Key) -> None:
    _store(folder, content.name, content.signature(data, seal), data)


def _store(folder: Path, name: str, *parts: bytes | memoryview) -> None:
    """Write a file whole or not at all; a repeated task writes the same content."""
    handle, draft = tempfile.mkstemp(prefix=f".draft-{name}-", dir=folder)  # which only its owner can read
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
        Path(draft).replace(folder / name)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _read(folder: Path, content: _Content, seal: Key) -> bytes:
    with (folder / content.name).open("rb") as file:
        signature, data = file.read(_SIGNATURE), file.read()
    if not hmac.compare_digest(signature, content.signature(data, seal)):
        raise _Changed
    return data


def _wait_for(path: Path) -> None:
    """Wait until another process's file is seen here: a listing makes the system look at the folder again."""
    end = time.monotonic() + _PATIENCE
    while not path.exists() and path.parent.exists() and time.monotonic() < end:
        time.sleep(0.05)
        list(path.parent.iterdir())


# Versions: driver and workers must have the same, since results may depend on them.


def versions() -> dict[str, str]:
    """Return the installed versions."""
    installed = {name: version(name) for name in ("numpy", "numba")}
    return {"Python": f"{sys.version_info.major}.{sys.version_info.minor}", DISTRIBUTION: VERSION, **installed}


def versions_there(_: int) -> dict[str, str]:
    """Return the versions of the machine that runs the task."""
    return versions()


def prove(executor: Executor) -> None:
    """Run a few small tasks, and refuse workers that have other versions."""
    here = versions()
    for there in executor.map(versions_there, range(2)):
        compare(here, there)


def compare(here: Mapping[str, str], there: Mapping[str, str]) -> None:
    """Refuse workers with other versions than the driver has."""
    for name, version_here in here.items():
        if there.get(name) != version_here:
            raise EngineError(
                f"workers have {name} {there.get(name)}, and the driver {version_here}: install the same on both"
            )
