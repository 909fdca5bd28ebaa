"""A release: the public result of running a plan once. It holds counts and a card, answers, and can be saved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import pyarrow as pa

from treetop._util.files import resolved
from treetop.domain.marginal import MARGIN
from treetop.errors import ReleaseError
from treetop.release.contents import Contents
from treetop.release.estimates.reestimate import estimated_again
from treetop.release.estimates.table import estimates_table, margin_estimates_table
from treetop.release.folder import NODES, PLACES, check_place, drafted, load, save
from treetop.release.folder.tables import unresolved_table
from treetop.release.intervals.nodes import Interval, LevelIntervals
from treetop.release.measurements import Measurements
from treetop.release.selection import Selection, level_index, shown
from treetop.release.stored import read_table


@dataclass(frozen=True, eq=False, repr=False)
class Release(Contents):
    """Released counts: the leaves above zero, from which every coarser count is a sum."""

    @staticmethod
    def of(contents: Contents) -> Release:
        """Make a release from its contents."""
        return Release(**{one.name: contents.__dict__[one.name] for one in fields(Contents)})

    @staticmethod
    def load(folder: str | Path) -> Release:
        """Read a release folder, refusing one that was damaged since it was written; `treetop check` verifies all.

        Of a folder in parts, the leaves are read when they are asked for, and compared with the card then.
        """
        return Release.of(load(Path(folder)))

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

    def where(self, **codes: str) -> Selection:
        """Select by a combination of codes, each of any level; a selection answers the same questions.

        `where(origin="Veneto").by("destination.province")`; if a code stands at several levels, name the level:
        `where(**{"destination.province": "Milano"})`.
        """
        return Selection(self).where(**codes)

    def query(self, **codes: str) -> int:
        """Return the count of a combination of codes, each of any level; attributes left out are summed over.

        `query(origin="Veneto", destination="Milano")`; an ambiguous code is named as in `where`.
        """
        return Selection(self).query(**codes)

    def interval(self, confidence: float | None = None, /, **codes: str) -> Interval:
        """Return the noise interval of `query(**codes)`, at the confidence of the plan or at another.

        The count may be that of one node or of any combination of codes, released or not.
        """
        return Selection(self).interval(confidence, **codes)

    def by(
        self, *levels: str, intervals: bool = True, confidence: float | None = None, names: bool = False
    ) -> pa.Table:
        """Return sums over any choice of `attribute.level`, one row per combination above zero.

        `release.by("origin.region")` leaves the destination out; the columns are named as asked. A short name,
        `"region"`, stands for that level of every attribute which has one. Rows are in the order in which the codes
        were listed. Remainders at one of the levels are in no row, unless a margin has counted such rows: then these
        are its own counts. If the release has intervals, each row has `lower` and `upper`, at the confidence of the
        plan or at another; not in tables of more than 100,000 rows. With `names`, the names of codes stand beside them,
        if the release has any.
        """
        return Selection(self).by(*levels, intervals=intervals, confidence=confidence, names=names)

    def table(self, level: str | None = None) -> pa.Table:
        """Return the nodes above zero at a level of the spine (the leaves when None), in spine order.

        There is one column for each attribute that is refined by then, named after it, and `count`; with intervals
        `lower` and `upper` as well. Remainders above the level are in no row.
        """
        return Selection(self).table(level)

    def batches(self, level: str | None = None) -> Iterator[pa.Table]:
        """Yield the rows of `table`, some at a time: of a release in parts, one part after the other."""
        return Selection(self).batches(level)

    def records(self) -> pa.Table:
        """Return synthetic records, one row per unit of count, with dictionary-coded columns.

        Remainders belong to no leaf, and have no records.
        """
        return Selection(self).records()

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

    def __repr__(self) -> str:
        return repr(Selection(self))

    def _repr_html_(self) -> str:
        return shown(Selection(self))


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
