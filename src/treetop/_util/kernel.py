"""The one way in which Treetop compiles a function: no threads of its own, no interpreter lock, cached."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

from treetop._util.files import resolved

_SETTINGS: Any = numba.config
_HOW: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # nobody calls a kernel from C: without that door, compiling takes a sixth less
}
_IN_PLACE: dict[str, Any] = {**_HOW, "_nrt": False}
F = TypeVar("F", bound=Callable[..., Any])


def kernel_in_place(function: F) -> F:
    """Compile a function that makes no arrays and returns none: it works in memory that others hold.

    So it need not count who holds an array, or a part of one that it hands on. Each such count waits for all memory,
    and the counts of a small node took longer than its repair.
    """
    return _compiled(function, _IN_PLACE)


def kernel(function: F) -> F:
    """Compile `function` on its first call and keep the machine code on disk.

    Numba looks for a writable folder beside the package, then in the user's cache folder; `NUMBA_CACHE_DIR` comes
    first. Where others can write to the one that it finds, it gets one in the user's own cache; and where that is not
    safe either, the code is compiled anew in each process: cached kernels are executable, and whoever can exchange them
    can read the private table.
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
    """Return a kernel that is kept in a folder, or where Numba likes; None where there is none that is safe."""
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
        # Numba looks only at a kernel's own file, but what it takes from other modules is compiled into it.
        compiled._cache._cache_file._source_stamp = _stamp()
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
    """Return where somebody but this user and the administrator could change a cache, or exchange it for another."""
    if not hasattr(os, "geteuid"):  # where modes do not say who may write
        return None
    place = resolved(folder)
    try:
        return _open_to_others(place, *place.iterdir()) or _open_above(place)
    except OSError:  # it is gone, or may not be looked at
        return place


def _open_above(place: Path) -> Path | None:
    """Return a folder above in which others could put another one in its place; where it is sticky they cannot."""
    above = [folder for folder in place.parents if not folder.stat().st_mode & stat.S_ISVTX]
    return _open_to_others(*above)


def _open_to_others(*paths: Path) -> Path | None:
    """Return the first of these that others can write to."""
    for path in paths:
        about = path.lstat()
        if about.st_uid not in (0, os.geteuid()) or about.st_mode & stat.S_IWOTH:
            return path
        if about.st_mode & stat.S_IWGRP and about.st_gid != 0 and not _is_private_group(about.st_gid):
            return path
    return None


@cache
def _is_private_group(number: int) -> bool:
    """Whether a group is the user's own, as many systems make one for each user."""
    import grp
    import pwd

    try:
        group, name = grp.getgrgid(number), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return group.gr_name == name and set(group.gr_mem) <= {name}


@cache
def _stamp() -> tuple[tuple[str, int, int], ...]:
    """Return the state of every module that has kernels, and of those beside it in a folder of their own."""
    package = Path(__file__).parents[1]
    with_kernels = {path for path in package.rglob("*.py") if b"@kernel" in path.read_bytes()}
    folders = {path.parent for path in with_kernels} - {package}
    files = sorted(with_kernels.union(*(folder.glob("*.py") for folder in folders)))
    return tuple((str(path.relative_to(package)), (about := path.stat()).st_mtime_ns, about.st_size) for path in files)
