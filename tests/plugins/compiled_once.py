"""Every kernel is compiled by one process of a run: where another one needs it, that one waits and takes it over.

Compiling all of them takes minutes of a core, and every worker comes to most of them. The product does without: there,
two processes that compile the same at the same time are rare, and lose nothing but time.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

LOCKS = "TREETOP_TESTS_LOCKS"
"""The folder of the locks, in the environment of every worker."""

FOLDER = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Be the only process that has to do with a name."""
    path = Path(os.environ[LOCKS], sha256(name.encode()).hexdigest())
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install() -> None:
    """Let kernels be compiled, or taken from the cache, by one process at a time.

    A kernel compiles those that it calls while it has its own lock: as none calls itself by way of others, nobody waits
    in a circle. Threads of one process wait for each other first, as they do in Numba.
    """
    kernels: Any = Dispatcher
    compile_one = kernels.compile

    @wraps(compile_one)
    def compiled(kernel: Any, signature: Any) -> Any:
        with global_compiler_lock:
            if tuple(signature) in kernel.overloads:
                return compile_one(kernel, signature)
            with alone(f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"):
                return compile_one(kernel, signature)

    kernels.compile = compiled


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[FOLDER] = tempfile.TemporaryDirectory(prefix="treetop-tests-")
        os.environ[LOCKS] = config.stash[FOLDER].name
    install()


def pytest_unconfigure(config: pytest.Config) -> None:
    if FOLDER in config.stash:
        config.stash[FOLDER].cleanup()
