"""A release: the public result of running a plan once. It holds counts and a card, answers, and can be saved."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from treetop._util.dtypes import Ints
from treetop._util.files import resolved
from treetop._util.lazy import deferring
from treetop.card.rebuild import rebuild_unit
from treetop.domain.constraints import PublicFacts
from treetop.domain.marginal import MARGIN
from treetop.domain.spine import Spine
from treetop.errors import ReleaseError
from treetop.ledger import Reservation
from treetop.measure.measure import Evidence, Remainders
from treetop.release.estimates.estimate_table import estimates_table, margin_estimates_table
from treetop.release.estimates.reestimate import estimated_again
from treetop.release.folder import NODES, PLACES, check_place, drafted, load, read_table, save, unresolved_table
from treetop.release.intervals.cells import MeasuredCells
from treetop.release.intervals.nodes import LevelIntervals
from treetop.release.intervals.table_evidence import MeasuredTables
from treetop.release.margins import MarginTable
from treetop.release.measurements import KeptMeasurements, Measurements
from treetop.release.selection import Queries, level_index
from treetop.release.shards import NO_MEASUREMENTS, Shards
from treetop.release.tree import ReleasedTree


@deferring("nodes", "count", "evidence")
@dataclass(frozen=True, eq=False, repr=False)
class Release(Queries):
    """Released counts: the leaves above zero, from which every coarser count is a sum, in memory or in a folder."""

    spine: Spine
    nodes: NDArray[np.int32] = field(repr=False)
    """For each attribute (row) and leaf (column), the attribute's node; leaves are in spine order."""
    count: Ints = field(repr=False)
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
    public: Ints | None = field(default=None, repr=False)
    """The public number of groups, or people, of every leaf region that is kept; None if none is."""
    reservation: Reservation | None = field(default=None, repr=False)
    """The charge in a ledger, until a folder is recorded; None if no ledger was charged."""
    stored: Shards | None = field(default=None, repr=False)
    """The leaves shard by shard, if they stay in a folder until all are asked for."""

    @property
    def whole(self) -> Release:  # type: ignore[override]
        """The release itself."""
        return self

    @staticmethod
    def load(folder: str | Path) -> Release:
        """Read a release folder, refusing one that was damaged since it was written; `treetop check` verifies all.

        Of a folder in parts, the leaves are read when they are asked for, and compared with the card then.
        """
        return load(Path(folder), Release)

    def save(self, folder: str | Path, force: bool = False, nodes: bool = False, part: int | None = None) -> None:
        """Write the release folder, whole or not at all.

        An existing folder is refused unless `force`, which replaces it once the new one is complete. With `nodes`,
        every level is written out beside the leaves. More than four million leaves are written in parts of about a
        million, or more than `part` in parts of about that many. The ledger that was charged for the release, if one
        was, records the first folder.
        """
        card_sha256 = save(self, Path(folder), force=force, nodes=nodes, part=part)
        if self.reservation is not None and not self.reservation.is_complete:
            self.reservation.complete(card_sha256)

    @property
    def confidence(self) -> float | None:
        """Confidence of the intervals; None if they are off."""
        off = self.card.get("plan", {}).get("confidence", True) is None
        none = self.shards.evidence is None and self.all_measured is None
        return None if none or off else float(self.card["accuracy"]["confidence"])

    @cached_property
    def pairs(self) -> tuple[int, int] | None:
        """The two ends of edges without direction that are released as unordered pairs; None of other counts."""
        undirected = self.card.get("plan", {}).get("graph", {}).get("directed") is False
        return None if self.facts is None or not undirected else self.facts.ordered

    @property
    def selective(self) -> bool:
        """Whether nodes were named by a test; their intervals account for that selection."""
        return self.left is not None

    @cached_property
    def shards(self) -> Shards:
        """The leaves shard by shard; a release in memory has one shard."""
        return self.in_memory if self.stored is None else self.stored

    @property
    def in_memory(self) -> Shards:
        """All leaves as one shard."""
        apart = self.cells or self.tables
        return Shards.in_memory(self.tree, apart or (None if self.evidence is None else self.measured))

    @cached_property
    def tables(self) -> MeasuredTables | None:
        """The measured tables of a joint fit; None for other releases."""
        if not self.margins or self.margins[0].evidence is None or self.all_measured is None:
            return None
        return MeasuredTables(self.tree, self.margins[0].evidence, self.all_measured)

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

    def unresolved(self) -> pa.Table:
        """Return the remainders at coarser nodes: level, the node's codes (null if not refined) and count."""
        return unresolved_table(self)

    @property
    def measurements(self) -> Measurements:
        """The kept measurements, node by node."""
        return self.shards.measurements

    @property
    def intervals(self) -> tuple[LevelIntervals, ...]:
        """The noise intervals of the released nodes, from the total down, at the confidence of the plan."""
        return self.intervals_at(self.confidence or 0.95)

    def intervals_at(self, confidence: float) -> tuple[LevelIntervals, ...]:
        """Return the noise intervals of the released nodes at any confidence, from the total down."""
        return self.shards.intervals(confidence)

    def estimates(self, level: str | None = None) -> pa.Table:
        """Return the least-squares estimates of all measured nodes of a level (leaves when None), in spine order.

        Those of a margin are named with that word: `estimates("margin origin.state")` has a row for every cell. There
        is one column for each attribute that is refined by then, `estimate`, which may be negative, `sd`, its standard
        deviation, and `count`, the released one, 0 if it is not released. It needs all measurements
        (`keep_measurements`), and costs no privacy. Estimates keep within public facts.
        """
        if level is not None and level.startswith(MARGIN):
            return margin_estimates_table(self, level)
        return estimates_table(self, level_index(self.spine, level))

    def reestimated(self) -> Release:
        """Return a release of the same measurements with counts of lower error; nothing is spent.

        It needs all measurements (`keep_measurements`). Its card says which release they come from.
        """
        return estimated_again(self)


def reestimate(folder: str | Path, out: str | Path, *, force: bool = False) -> Release:
    """Write the release of `Release.reestimated` to a new folder, with the levels and coordinates of the old one."""
    old, new = Path(folder), Path(out)
    if resolved(new) == resolved(old):
        raise ReleaseError(f"{new} is the release itself, and is never replaced by another: name a new folder")
    check_place(new, force)
    again = Release.load(old).reestimated()
    places = {path.stem: read_table(path) for path in sorted((old / PLACES).glob("*.parquet"))}
    with drafted(again, new, force=force, nodes=(old / NODES).is_file(), places=places) as draft:
        draft.place()
    return again
