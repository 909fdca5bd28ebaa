"""The contents of a release: the leaves, remainders at coarser nodes, the card and the measurements."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop._util.lazy import deferring
from treetop.card.rebuild import rebuild_unit
from treetop.domain.constraints import PublicFacts
from treetop.domain.spine import Spine
from treetop.errors import ReleaseError
from treetop.ledger import Reservation
from treetop.measure.measure import Evidence, Remainders
from treetop.release.intervals.cells import MeasuredCells
from treetop.release.margins import MarginTable
from treetop.release.measured import KeptMeasurements
from treetop.release.measurements import Measurements
from treetop.release.shards import NO_MEASUREMENTS, OneShard, Shards
from treetop.release.tree import ReleasedTree


@deferring("nodes", "count", "evidence")
@dataclass(frozen=True, eq=False)
class Contents:
    """The contents of a release, in memory or in its folder."""

    spine: Spine
    nodes: NDArray[np.int32] = field(repr=False)
    """For each attribute (row) and leaf (column), the attribute's node; leaves are in spine order."""
    count: NDArray[np.int64] = field(repr=False)
    """The released count of each leaf, above zero. A leaf that is not here is a released zero."""
    card: dict[str, Any] = field(repr=False)
    plan_toml: str | None = field(default=None, repr=False)
    evidence: Evidence | None = field(default=None, repr=False)
    """Kept measurements, for intervals; None if the plan has intervals off."""
    left: Remainders | None = field(default=None, repr=False)
    """Counts left at coarser nodes; None if the plan names every count to the leaves."""
    all_measured: Measurements | None = field(default=None, repr=False)
    """All measurements, if they are more than those under released nodes or not from the top down."""

    margins: tuple[MarginTable, ...] = field(default=(), repr=False)
    """The kept tables that were measured beside the spine."""
    facts: PublicFacts | None = field(default=None, repr=False)
    """Public facts that the release keeps; None if there are none."""
    public: NDArray[np.int64] | None = field(default=None, repr=False)
    """The public number of groups, or people, of every leaf region that is kept; None if none is."""
    reservation: Reservation | None = field(default=None, repr=False)
    """The charge in a ledger, until a folder is recorded; None if no ledger was charged."""
    stored: Shards | None = field(default=None, repr=False)
    """The leaves shard by shard, if they stay in a folder until all are asked for."""

    @property
    def total(self) -> int:
        """The sum of all counts, unresolved ones included."""
        return self.shards.top.tree.total

    @property
    def leaves(self) -> int:
        """How many leaves are above zero."""
        return self.shards.leaves

    @property
    def unresolved_total(self) -> int:
        """How much of the total is not resolved down to the leaves."""
        return 0 if self.left is None else int(self.left.count.sum())

    @property
    def confidence(self) -> float | None:
        """Confidence of the intervals; None if they are off."""
        off = self.card.get("plan", {}).get("confidence", True) is None
        none = self.shards.evidence is None and self.all_measured is None
        return None if none or off else float(self.card["accuracy"]["confidence"])

    @property
    def selective(self) -> bool:
        """Whether nodes were named by a test; their intervals account for that selection."""
        return self.left is not None

    @cached_property
    def shards(self) -> Shards:
        """The leaves shard by shard; a release in memory has one shard."""
        return self.in_memory if self.stored is None else self.stored

    @property
    def in_memory(self) -> OneShard:
        """All leaves as one shard."""
        known = self.cells or (None if self.evidence is None else self.measured)
        return OneShard.of(self.tree, known, self.facts)

    @cached_property
    def tree(self) -> ReleasedTree:
        """The released nodes of every level."""
        return ReleasedTree(self.spine, self.nodes, self.count, self.left)

    @cached_property
    def measured(self) -> KeptMeasurements:
        """The kept measurements beside the released tree."""
        if self.evidence is None:
            raise ReleaseError(NO_MEASUREMENTS)
        return KeptMeasurements(self.tree, self.evidence, self.all_measured, self.selective, self.facts)

    @cached_property
    def cells(self) -> MeasuredCells | None:
        """The kept measurements of group sizes or degrees; None for other counts."""
        plan = self.card.get("plan", {})
        told = plan.get("degrees") or plan.get("groups")
        if told is None or self.all_measured is None:
            return None
        people = self.tree.total if rebuild_unit(self.card).total_is_exact(False) else None
        kept = self.public is not None
        return MeasuredCells(self.tree, self.all_measured, told["form"] == "cumulative", people, kept)
