"""The private side of a release of group sizes: how many groups of each size are in each region."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from treetop.basics.exact import whole
from treetop.domain.hierarchy import Hierarchy
from treetop.errors import DataError, PlanError

MOST_GROUPS = 1 << 34
MOST_CELLS = 1 << 27
CELL_BYTES = 80
"""About what a count takes in memory while group sizes are measured and repaired."""


@dataclass(frozen=True, eq=False, repr=False)
class GroupSizes:
    """Private: the number of groups by leaf region and size."""

    regions: Hierarchy
    """The public tree of regions."""
    number: NDArray[np.int64]
    """`number[r, s]` groups of size s are in leaf region r; the last size stands for all that are larger."""

    def __post_init__(self) -> None:
        leaves = self.regions.sizes[-1]
        if self.number.dtype != np.int64 or self.number.ndim != 2 or len(self.number) != leaves:
            raise DataError(f"group sizes are int64 with {leaves} rows, one a leaf region, and a column for each size")
        if self.number.shape[1] < 2:
            raise DataError("group sizes need columns for size 0 and at least one other")
        if self.number.min() < 0:
            raise DataError("a number of groups is negative: check that the number column holds counts")
        if self.number.sum(dtype=np.float64) > MOST_GROUPS:
            raise DataError(f"there are more than {MOST_GROUPS:,} groups: check that the number column holds counts")

    @staticmethod
    def from_rows(
        regions: Hierarchy, leaf: ArrayLike, size: ArrayLike, number: ArrayLike | None = None, *, largest: int
    ) -> GroupSizes:
        """Read rows of leaf region, size and number of groups; without numbers each row is one group.

        Leaf regions are codes, or numbers of leaves. Groups above the `largest` size are counted there, never dropped;
        groups without anybody in them have size 0.

        >>> places = Hierarchy.flat(["east", "west"])
        >>> GroupSizes.from_rows(places, ["east", "west", "east"], [1, 9, 0], [5, 1, 2], largest=3).number.tolist()
        [[2, 5, 0, 0], [0, 0, 0, 1]]
        """
        check_cells(regions, largest)
        rows, sizes = _leaves(regions, leaf), _whole(size, "size")
        counts = np.ones(len(rows), np.int64) if number is None else _whole(number, "number of groups")
        if not len(rows) == len(sizes) == len(counts):
            raise DataError(
                f"there are {len(rows)} leaf regions, {len(sizes)} sizes and {len(counts)} numbers: one a row"
            )
        for what, values in (("size", sizes), ("number of groups", counts)):
            if len(values) and values.min() < 0:
                raise DataError(f"row {int(values.argmin()) + 1} has the {what} {values.min()}: it cannot be negative")
        if counts.sum(dtype=np.float64) > MOST_GROUPS:
            raise DataError(f"there are more than {MOST_GROUPS:,} groups: check that the number column holds counts")
        table = np.zeros((regions.sizes[-1], largest + 1), np.int64)
        np.add.at(table, (rows, np.minimum(sizes, largest)), counts)
        return GroupSizes(regions, table)

    @property
    def largest(self) -> int:
        """The largest size, which stands for larger ones as well."""
        return int(self.number.shape[1]) - 1

    @cached_property
    def digest(self) -> bytes:
        """A hash of all numbers. It binds the noise to the data and never leaves the process."""
        digest = hashlib.blake2b(repr(self.number.shape).encode(), digest_size=32)
        digest.update(np.ascontiguousarray(self.number).data.cast("B"))
        return digest.digest()

    def __repr__(self) -> str:
        return "GroupSizes(private)"


def _leaves(regions: Hierarchy, leaf: ArrayLike) -> NDArray[np.int64]:
    given = np.asarray(leaf)
    if given.ndim != 1:
        raise DataError(f"leaf regions are one column, not an array of shape {given.shape}")
    if np.issubdtype(given.dtype, np.integer):
        if len(given) and not 0 <= given.min() <= given.max() < regions.sizes[-1]:
            raise DataError(f"leaf regions are numbered from 0 to {regions.sizes[-1] - 1}; some are not among them")
        return given.astype(np.int64)
    codes = [str(code) for code in given.tolist()]
    rows = regions.encode(pa.array(codes, pa.string()))
    if (rows < 0).any():
        raise DataError(
            f"{codes[int((rows < 0).argmax())]!r} is not a leaf region; the hierarchy must hold all of them"
        )
    return rows


def _whole(values: ArrayLike, what: str) -> NDArray[np.int64]:
    given = np.asarray(values)
    if given.ndim != 1 or not (np.issubdtype(given.dtype, np.integer) or given.size == 0):
        raise DataError(f"the column of the {what} holds {given.dtype}: give whole numbers, one a row")
    return given.astype(np.int64)


def check_cells(regions: Hierarchy, largest: int, by: str = "") -> int:
    """Return how many counts there are of every region and size; refuse more than a repair takes."""
    if whole(largest) is None:
        raise PlanError(f"largest is {largest!r}: give the largest size, a whole number, 1 or more")
    nodes = 1 + sum(regions.sizes)
    cells = nodes * (largest + 1)
    if cells > MOST_CELLS:
        raise PlanError(
            f"{nodes:,} regions with {largest + 1:,} sizes are {cells:,} counts, more than the {MOST_CELLS:,} that can "
            f"be repaired{by}, and about {CELL_BYTES * cells:,} bytes: lower largest"
        )
    return cells
