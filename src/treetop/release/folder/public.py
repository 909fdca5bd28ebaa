"""public.parquet: how many groups, or people, each leaf region has, where that is public and kept by the release."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.domain.spine import Spine
from treetop.errors import ReleaseError
from treetop.release.stored import read_table, whole_numbers

PUBLIC = "public.parquet"


def public_table(spine: Spine, numbers: NDArray[np.int64]) -> pa.Table:
    """Return one row per leaf region: its code, and its number."""
    place = list(spine.attributes)[-1]
    return pa.table({place: spine.attributes[place].codes[-1], "number": pa.array(numbers)})


def read_public(path: Path, spine: Spine) -> NDArray[np.int64]:
    """Read what `public_table` wrote; refuse regions that are not those of the hierarchy, or numbers that are none."""
    table, place = read_table(path), list(spine.attributes)[-1]
    codes = spine.attributes[place].codes[-1]
    if table.column(place).to_pylist() != codes.to_pylist():
        raise ReleaseError(f"{path}: the regions are not those of the hierarchy")
    numbers = whole_numbers(table, "number")
    if numbers.min() < 0:
        raise ReleaseError(f"{path}: a number is negative")
    return numbers
