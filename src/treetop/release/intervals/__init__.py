"""Noise intervals: how far the privacy noise may have moved every count of a release, zeros included.

They cover the noise and nothing else: not errors of the survey, nor records that a bound has left out.
"""

from treetop.release.intervals.boxes import Boxes
from treetop.release.intervals.nodes import Interval, LevelIntervals, node_intervals
from treetop.release.intervals.sums import box_intervals

__all__ = ["Boxes", "Interval", "LevelIntervals", "box_intervals", "node_intervals"]
