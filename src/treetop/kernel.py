"""The one way in which Treetop compiles a function: no threads of its own, no interpreter lock, cached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` on its first call and keep the machine code on disk.

    Numba looks for a writable folder beside the package, then in the user's cache folder. Where neither can be
    written the code is compiled anew in each process: a folder that others can write is not used, because
    cached kernels are executable.
    """
    compiled: F
    try:
        compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # "no locator available": no writable cache folder
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled
