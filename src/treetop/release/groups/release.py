"""A release of group sizes: how many groups of each size every region has, at every level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop.basics.nearest import nearest
from treetop.errors import QueryError
from treetop.noise.gate import WARNING
from treetop.plan.groups.plan import GroupPlan
from treetop.privacy import TOTAL


@dataclass(frozen=True, eq=False, repr=False)
class GroupRelease:
    """The public result of one run of a plan for group sizes."""

    plan: GroupPlan
    """What was run."""
    counts: NDArray[np.int64]
    """The number of groups by region and size, for the regions of all levels from the root down."""
    private: bool = True
    """False where somebody knows the key of the noise: such a release protects nobody."""

    @property
    def warning(self) -> str | None:
        """What must be said of a release that is not private; None for one that is."""
        return None if self.private else WARNING

    def level(self, name: str) -> NDArray[np.int64]:
        """Return the number of groups by region and size, for the regions of one level."""
        names = [level.name for level in self.plan.levels]
        if name not in names:
            raise QueryError(f"{name!r} is not a level{nearest(name, names)}; there are: {', '.join(names)}")
        return self.counts[self.plan.tree.levels[names.index(name)]]

    def table(self, name: str) -> pa.Table:
        """Return the counts of one level that are not zero, as a table of region, size and groups."""
        counts = self.level(name)
        region, size = np.nonzero(counts)
        regions = self.plan.regions
        codes = pa.array([TOTAL]) if name == TOTAL else regions.codes[regions.levels.index(name)]
        columns = {"region": codes.take(pa.array(region)), "size": size, "groups": counts[region, size]}
        return pa.table(columns).replace_schema_metadata(None if self.private else {"warning": WARNING})

    @property
    def violations(self) -> int:
        """How many counts of regions with parts are not the sum of their parts: none after an exact repair."""
        tree = self.plan.tree
        inner = tree.inner >= 0
        starts = tree.child[:-1][inner]
        sums = np.add.reduceat(self.counts[1:], starts - 1, axis=0)
        return int(np.count_nonzero(sums != self.counts[inner]))

    def __repr__(self) -> str:
        mark = "" if self.private else ", NOT PRIVATE"
        return f"GroupRelease({self.plan.name}, {self.plan.regions}, sizes 0 to {self.plan.largest:,}{mark})"
