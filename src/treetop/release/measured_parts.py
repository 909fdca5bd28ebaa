"""What was measured of a release in parts: for intervals, only those parts are read that matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treetop.release.intervals.boxes import Boxes
from treetop.release.intervals.nodes import LevelIntervals
from treetop.release.intervals.sums import box_intervals_by_parts
from treetop.release.measurements import Measurements
from treetop.release.parts import Parts

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MeasuredParts:
    """The measurements of a release in parts, as far as they were kept."""

    parts: Parts
    """The release."""

    @property
    def measurements(self) -> Measurements:
        """The measurements, node by node."""
        return self.parts.measured.measurements

    def of_boxes(self, boxes: Boxes, confidence: float) -> tuple[Ints, Ints]:
        """Return the lower and upper bounds of the true counts of boxes."""
        return box_intervals_by_parts(self.parts, boxes, confidence)

    def of_level(self, index: int, confidence: float) -> Iterator[LevelIntervals]:
        """Yield the intervals of the nodes of a level, part by part; those of the top at once."""
        if index <= self.parts.top.level:
            yield self.parts.measured.intervals(confidence)[index]
            return
        for part in self.parts:
            yield part.measured.intervals(confidence)[index]

    def intervals(self, confidence: float) -> tuple[LevelIntervals, ...]:
        """Return the noise intervals of all released nodes, from the total down."""
        top = self.parts.measured.intervals(confidence)
        below: list[list[LevelIntervals]] = [[] for _ in range(len(self.parts.spine.levels) - self.parts.top.level)]
        for part in self.parts:
            for own, found in zip(below, part.measured.intervals(confidence)[len(top) :], strict=True):
                own.append(found)
        return (*top, *map(_joined, below))


def _joined(parts: list[LevelIntervals]) -> LevelIntervals:
    lower, upper, absent = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("lower", "upper", "absent")
    )
    return LevelIntervals(lower, upper, absent)
