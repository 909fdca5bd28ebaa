"""Arrays for compiled functions: copied into one another, and of the kind that a kernel is compiled for already."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel_in_place

T = TypeVar("T", bound=np.generic)


def writable(values: NDArray[T]) -> NDArray[T]:
    """Return the same values, copied where nobody may write to them: a kernel would be compiled anew for such ones."""
    return values if values.flags.writeable else values.copy()


@kernel_in_place
def copy_into(out: NDArray[np.int64], values: NDArray[np.int64]) -> None:
    """Write values from the beginning of an array on.

    Numba compiles `out[:] = values` together with the words of an error about shapes, which takes seconds.
    """
    for i in range(len(values)):
        out[i] = values[i]
