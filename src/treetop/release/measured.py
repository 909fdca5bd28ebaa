"""The measurements beside the released counts: intervals and estimates come from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from treetop._util.dtypes import Flags
from treetop.domain.constraints import PublicFacts
from treetop.measure.measure import NOTHING, Evidence
from treetop.plan.resolution import HighMeasurements, number_of_tests
from treetop.release.intervals.nodes import LevelIntervals, named_risks, node_intervals, risk_of
from treetop.release.measurements import Measurements, descended
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
            if self.facts is not None:  # narrowed by public facts, they hold no less often
                narrowed = []
                for index, own in enumerate(found):
                    known = self.facts.around(self.tree.spine.depths(index), self.tree.at(index).nodes)
                    bounds = {"lower": np.clip(own.lower, *known), "upper": np.clip(own.upper, *known)}
                    narrowed.append(replace(own, **bounds))
                found = tuple(narrowed)
            self._intervals[confidence] = found
        return self._intervals[confidence]


# Which released nodes survive a test over all nodes that could have been released: they stand out from the noise. A
# count that the noise invented is released like any other. If a plan does not leave such counts unresolved, a reader
# can still learn which ones to believe: by the same test, with the same statistics (`treetop.plan.resolution`), over
# the measurements that the release keeps. It reads nothing private, and costs nothing.

RATE = Fraction(1, 20)
"""Of the nodes that survive at a level, the share that may be truly empty, in expectation."""


def surviving(measured: KeptMeasurements, index: int, rate: Fraction = RATE) -> Flags:
    """Return which released nodes of a level survive the test of all measured nodes of the level."""
    descent = measured.descent
    survives = _surviving(descent, index, rate)
    if descent is measured:
        return survives
    # Released counts were made from the measurements later: a node survives if its measured node does.
    released, tested = measured.tree.at(index).nodes, descent.tree.at(index).nodes[:, survives]
    _, number = np.unique(np.concatenate([tested, released], axis=1), axis=1, return_inverse=True)
    number = number.ravel()
    return np.isin(number[tested.shape[1] :], number[: tested.shape[1]])


def _surviving(descent: KeptMeasurements, index: int, rate: Fraction) -> Flags:
    tree, laws = descent.tree, descent.evidence.laws
    # The measurement of each released node, or of its nearest ancestor with the same leaves, and its level.
    seen, level = np.full(len(tree.at(0)), descent.root, np.int64), np.zeros(len(tree.at(0)), np.int64)
    for at in range(1, index + 1):
        parent, own = tree.parents(at), descent.evidence.levels[at - 1].measured
        seen, level = np.where(own == NOTHING, seen[parent], own), np.where(own == NOTHING, level[parent], at)
    measured = [at for at in range(1, index + 1) if laws[at] is not None]
    survives = np.asarray([laws[at] is None for at in range(index + 1)], np.bool_)[level]  # public counts have no noise
    if not measured:
        return survives
    tests = sum(int(number_of_tests(tree.spine.levels, at, tree.at(at - 1).nodes)[index]) for at in measured)
    law = laws[measured[-1]]
    assert law is not None
    high = HighMeasurements(law, tests, rate)
    noisy = [(at, other) for at in np.unique(level).tolist() if (other := laws[at]) is not None]
    for at, other in noisy:
        high.add(seen[level == at], other)
    for at, other in noisy:
        survives |= (level == at) & (seen >= high.threshold(other))
    return survives
