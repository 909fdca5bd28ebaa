"""The joint fit of a release: whole counts from its margins and its complete levels together.

It reads noisy values and public structure only, so it costs no privacy. The release itself does not change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from treetop.domain.marginal import depths_named, margin_at
from treetop.domain.spine import Spine
from treetop.errors import QueryError, ReleaseError, SpineError
from treetop.fit import Depths, Grid, JointFit, NoisyTable, join
from treetop.fit import joint_fit as fit_tables
from treetop.noise import Law
from treetop.release.estimates.reestimate import all_measurements
from treetop.release.margins import codes_of
from treetop.release.release import Release

MOST_CELLS = 10_000_000
"""Most cells of a fit."""


@dataclass(frozen=True, eq=False)
class JointTables:
    """Tables of a joint fit, by name."""

    spine: Spine
    fit: JointFit = field(repr=False)

    def table(self, name: str) -> pa.Table:
        """Return the public cells of a table such as "place.state * sex": codes, count and estimate.

        `count` is whole and non-negative, and adds up over all tables of the fit. `estimate` is least squares over all
        measured tables: unbiased, maybe negative, and null if this one is no sum of a single measured table.
        """
        depths = self._depths(name)
        margin = margin_at(self.spine, depths)
        codes = codes_of(self.spine, margin, np.arange(margin.nodes))
        columns = {attribute: codes[attribute] for attribute in self.spine.attributes if attribute in codes}
        columns["count"] = pa.array(self.fit.table(depths).ravel())
        told = self.fit.combined.tells(depths)
        estimate = self.fit.combined.value(depths).ravel() if told else np.full(margin.nodes, np.nan)
        columns["estimate"] = pa.array(estimate, mask=np.full(margin.nodes, not told))
        return pa.table(columns)

    def standard_deviation(self, name: str, cell: int) -> float:
        """Return the exact standard deviation of an estimate, by its row in `table`."""
        depths = self._depths(name)
        place = np.unravel_index(cell, self.fit.combined.grid.sizes(depths))
        return math.sqrt(self.fit.combined.cell_variance(depths, [int(code) for code in place]))

    def _depths(self, name: str) -> Depths:
        try:
            depths = depths_named(self.spine, name)
        except SpineError as problem:
            raise QueryError(str(problem)) from problem
        if any(own > most for own, most in zip(depths, self.fit.trunk, strict=True)):
            raise QueryError(f"{name!r} is finer than the tables that the joint fit was made of")
        return depths


def joint_fit(release: Release) -> JointTables:
    """Fit whole counts to all margins of a release, and to all levels of its spine with every node measured.

    Levels in which the descent left out nodes are not used: which nodes it left out depends on the noise. The release
    must have kept its measurements, and must have no public facts.
    """
    if release.facts is not None:
        raise ReleaseError("a joint fit would leave the public facts of this release behind: none is made")
    measurements, spine = all_measurements(release), release.spine
    grid = Grid(spine.trees)
    total, law = release.measured.root, measurements.laws[0]
    tables = [NoisyTable(grid.root, np.full((1,) * len(spine.trees), float(total)), _variance(law))]
    for table in release.margins:
        depths = table.margin.depths
        tables.append(NoisyTable(depths, table.measured.reshape(grid.sizes(depths)), _variance(table.law)))
    for level, seen, own in zip(spine.levels, measurements.levels, measurements.laws[1:], strict=True):
        depths = spine.depths(level.index)
        if seen is not None and own is not None and len(seen) == grid.cells(depths):
            value = np.zeros(grid.sizes(depths))
            value[tuple(seen.nodes)] = seen.value
            tables.append(NoisyTable(depths, value, _variance(own)))
    cells = grid.cells(join([table.depths for table in tables]))
    if cells > MOST_CELLS:
        raise ReleaseError(f"a joint fit enumerates at most {MOST_CELLS:,} cells, and these tables have {cells:,}")
    return JointTables(spine, fit_tables(grid, tables))


def _variance(law: Law | None) -> float:
    return 0.0 if law is None else law.standard_deviation**2
