"""Compile functions with Numba: without the interpreter lock, and cached on disk if the cache folder is safe."""

from __future__ import annotations

import logging
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

from treetop._util.files import resolved

_SETTINGS: Any = numba.config
_HOW: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # nobody calls a kernel from C: without that door, compiling takes a sixth less
}
_INLINED: dict[str, Any] = {**_HOW, "inline": "always"}
_IN_PLACE: dict[str, Any] = {**_HOW, "_nrt": False}
F = TypeVar("F", bound=Callable[..., Any])


def kernel_in_place(function: F) -> F:
    """Compile a function that allocates no arrays and returns none, without reference counts.

    Each count is an atomic operation on shared memory. For small nodes they took longer than the repair.
    """
    return _compiled(function, _IN_PLACE)


def kernel_inlined(function: F) -> F:
    """Compile a function only as a part of the kernels that call it.

    A kernel that calls another is optimized together with it: each call on the way down to a kernel is one more time
    that it is compiled. Inlining is for functions that do little but call others, and for short ones with one caller.
    Long functions with everything inlined take longer to compile than their parts.
    """
    return _compiled(function, _INLINED)


def kernel(function: F) -> F:
    """Compile `function` on its first call and keep the machine code on disk.

    The cache folder is `NUMBA_CACHE_DIR`, or the first writable one of `__pycache__` beside the module and Numba's
    folder in the user's cache. If others can write to it, the folder is `treetop/kernels` in the user's cache; if that
    is not safe either, every process compiles anew. Cached kernels are executable: whoever can replace them can read
    the private table.
    """
    return _compiled(function, _HOW)


def _compiled(function: F, how: dict[str, Any]) -> F:
    compiled = _cached(function, how, _SETTINGS.CACHE_DIR) or _cached(function, how, _own_cache())
    if compiled is None:
        _warn()
        compiled = numba.njit(**how)(function)
    result: F = compiled
    return result


def _cached(function: Callable[..., Any], how: dict[str, Any], folder: str) -> Any:
    """Return a kernel cached in `folder` (if empty: in the folder that Numba chooses), or None if that is not safe."""
    before = _SETTINGS.CACHE_DIR
    try:
        _SETTINGS.CACHE_DIR = folder
        compiled: Any = numba.njit(cache=True, **how)(function)
    except RuntimeError:  # "no locator available": no writable cache folder
        return None
    finally:
        _SETTINGS.CACHE_DIR = before
    if _opening(compiled._cache.cache_path) is not None:
        return None
    if hasattr(compiled._cache, "_cache_file"):
        compiled._cache._cache_file = _ContentIndex(compiled)
    return compiled


def _own_cache() -> str:
    base = os.environ.get("XDG_CACHE_HOME")
    return str((Path(base) if base else Path("~/.cache").expanduser()) / "treetop" / "kernels")


@cache
def _warn() -> None:
    logging.getLogger("treetop").warning(
        "compiled code is not kept, because others can write to the folders for it, such as %s: every run compiles it "
        "again. Take that right away (chmod go-w), or name a folder of your own in NUMBA_CACHE_DIR",
        _own_cache(),
    )


@cache
def _opening(folder: str) -> Path | None:
    """Return a path by which a user other than this one and root could change or replace a cache, or None."""
    if not hasattr(os, "geteuid"):  # file modes do not say who may write
        return None
    place = resolved(folder)
    try:
        # In a sticky folder others cannot replace what is in it.
        above = [folder for folder in place.parents if not folder.stat().st_mode & stat.S_ISVTX]
        return _open_to_others(place, *place.iterdir()) or _open_to_others(*above)
    except OSError:  # gone, or unreadable
        return place


def _open_to_others(*paths: Path) -> Path | None:
    """Return the first of the paths that others can write to, or None."""
    for path in paths:
        about = path.lstat()
        if about.st_uid not in (0, os.geteuid()) or about.st_mode & stat.S_IWOTH:
            return path
        if about.st_mode & stat.S_IWGRP and about.st_gid != 0 and not _is_private_group(about.st_gid):
            return path
    return None


@cache
def _is_private_group(number: int) -> bool:
    import grp
    import pwd

    try:
        group, name = grp.getgrgid(number), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return group.gr_name == name and set(group.gr_mem) <= {name}


class _ContentIndex(IndexDataCacheFile):
    """Index of a kernel's compiled versions, valid while the code that they are compiled from is the same.

    Numba compares the modification time and size of the kernel's own file. It misses changes of the other kernels and
    constants that are compiled into this one, and recompiles when unrelated lines of the file change.
    """

    def __init__(self, compiled: Any) -> None:
        name = f"{compiled.__module__}.{compiled.__qualname__}.{sys.implementation.cache_tag}".replace("<locals>.", "")
        super().__init__(compiled._cache.cache_path, name, "")  # type: ignore[no-untyped-call]
        self._compiled = compiled

    def load(self, key: Any) -> Any:
        """Load a compiled version. Numba calls this before each compilation, when all kernels are defined."""
        self._source_stamp = fingerprint(self._compiled)
        return super().load(key)  # type: ignore[no-untyped-call]


def fingerprint(compiled: Any) -> str:
    """Return a digest of the bytecode of a kernel and of the kernels and constants it uses; comments do not count."""
    return sha256("\n".join(_described(compiled, set())).encode()).hexdigest()


def _described(value: Any, seen: set[int]) -> Iterator[str]:
    """Describe a global of a kernel: of a kernel its code and its own globals, of anything else its value."""
    if isinstance(value, Dispatcher):
        yield f"options {sorted(value.targetoptions.items())}"
        value = value.py_func
    if isinstance(value, FunctionType):
        yield f"function {value.__module__}.{value.__qualname__}"
        if id(value) not in seen:
            seen.add(id(value))
            yield from _described_function(value, seen)
    elif isinstance(value, tuple | list):
        yield f"{type(value).__qualname__} of {len(value)}"
        for item in value:
            yield from _described(item, seen)
    elif isinstance(value, np.ndarray):
        yield f"array {value.dtype} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, type | ModuleType):
        yield f"{value.__name__} {getattr(value, '_fields', '')}"
    else:
        yield getattr(value, "__qualname__", None) or repr(value)


def _described_function(function: FunctionType, seen: set[int]) -> Iterator[str]:
    names: dict[str, None] = {}
    for code in _codes(function.__code__):
        constants = [repr(one) for one in code.co_consts if not isinstance(one, CodeType) and one != function.__doc__]
        yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {constants}"
        names |= dict.fromkeys(code.co_names)
    reach = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, module in list(reach.items()):
        if isinstance(module, ModuleType) and module.__name__.startswith("treetop"):
            reach |= {f"{name}.{inner}": getattr(module, inner) for inner in names if hasattr(module, inner)}
    for word in re.findall(r"\w+", " ".join(map(str, function.__annotations__.values()))):
        if hasattr(annotated := function.__globals__.get(word), "_fields"):
            reach[word] = annotated  # a named tuple's fields are compiled into the kernel by position
    for name, value in reach.items():
        yield name
        yield from _described(value, seen)
    yield from _described(function.__defaults__ or (), seen)
    yield from _described([cell.cell_contents for cell in function.__closure__ or ()], seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
