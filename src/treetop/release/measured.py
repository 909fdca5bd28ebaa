"""The measurements beside the released counts: intervals and estimates come from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from treetop.domain.constraints import PublicFacts
from treetop.measure.measure import Evidence
from treetop.release.estimates.align import descended
from treetop.release.intervals.nodes import LevelIntervals, named_risks, node_intervals, risk_of
from treetop.release.measurements import Measurements
from treetop.release.tree import ReleasedTree


@dataclass(frozen=True, eq=False)
class KeptMeasurements:
    """The kept measurements of a release, and the released tree that they are about."""

    tree: ReleasedTree
    evidence: Evidence
    apart: Measurements | None = None
    """All measurements, if the released nodes are not those of the descent but were made from it later."""
    selective: bool = False
    """Whether intervals account for the choice of nodes by their measurements."""
    facts: PublicFacts | None = None
    down_to: int | None = None
    """The last level in `tree`, if that is not the leaves."""
    _intervals: dict[float, tuple[LevelIntervals, ...]] = field(default_factory=dict, init=False, repr=False)

    @property
    def root(self) -> int:
        """The measured or the public total."""
        return self.tree.total if self.evidence.total is None else self.evidence.total

    @cached_property
    def measurements(self) -> Measurements:
        """The measurements, node by node."""
        return Measurements.of(self.tree, self.evidence, self.down_to) if self.apart is None else self.apart

    @cached_property
    def descent(self) -> KeptMeasurements:
        """The source of the intervals of sums: the tree as it was measured."""
        return self if self.apart is None else KeptMeasurements(*descended(self.tree, self.apart))

    def named_margin(self, index: int, confidence: float) -> int | None:
        """Return the noise quantile of the measurements that named a level's nodes: its own or the last above."""
        level = max((at for at in range(index + 1) if self.evidence.laws[at] is not None), default=0)
        risk = named_risks(self.tree, risk_of(confidence))[index]
        return None if (law := self.evidence.laws[level]) is None else law.margin(risk)

    def intervals(self, confidence: float) -> tuple[LevelIntervals, ...]:
        """Return the noise intervals of the released nodes, from the total down."""
        if confidence not in self._intervals:
            self._intervals.clear()  # one set of them is as large as the tree
            found = node_intervals(self.tree, self.evidence, confidence, self.selective, self.down_to)
            self._intervals[confidence] = found if self.facts is None else tuple(self._within_facts(found))
        return self._intervals[confidence]

    def _within_facts(self, found: Sequence[LevelIntervals]) -> Iterator[LevelIntervals]:
        """Yield intervals narrowed by public facts; they hold no less often."""
        assert self.facts is not None
        for index, own in enumerate(found):
            known = self.facts.around(self.tree.spine.depths(index), self.tree.at(index).nodes)
            yield replace(own, lower=np.clip(own.lower, *known), upper=np.clip(own.upper, *known))
