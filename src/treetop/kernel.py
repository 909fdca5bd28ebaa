"""The one way in which Treetop compiles a function: no threads of its own, no interpreter lock, cached."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` on its first call and keep the machine code on disk.

    Numba looks for a writable folder beside the package, then in the user's cache folder. Where neither can be
    written the code is compiled anew in each process: a folder that others can write is not used, because
    cached kernels are executable.
    """
    compiled: Any
    try:
        compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # "no locator available": no writable cache folder
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    if hasattr(compiled, "_cache") and hasattr(compiled._cache, "_cache_file"):
        # Numba looks only at a kernel's own file, but what it takes from other modules is compiled into it.
        compiled._cache._cache_file._source_stamp = _stamp()
    result: F = compiled
    return result


@cache
def _stamp() -> tuple[tuple[str, int, int], ...]:
    """Return the state of every module that has kernels, and of those beside it in a folder of their own."""
    package = Path(__file__).parent
    with_kernels = {path for path in package.rglob("*.py") if b"@kernel" in path.read_bytes()}
    folders = {path.parent for path in with_kernels} - {package}
    files = sorted(with_kernels.union(*(folder.glob("*.py") for folder in folders)))
    return tuple((str(path.relative_to(package)), (stat := path.stat()).st_mtime_ns, stat.st_size) for path in files)
