"""The targets at epsilon 1, and whether each is met: table by table, with the chance of a few runs told apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

import treetop as tt
from experiments.kit.compared import Compared, Verdict, ratio_of
from experiments.kit.tables import number, percent
from experiments.margins.measure import ADVISED, BEFORE, DENSE, EACH, MANY_CODES, Depths, Study, Truth, Variant
from treetop.advice.trials import cell_sums

EPSILON = 1.0


@dataclass(frozen=True, eq=False)
class Judged:
    """One target on one table: a margin or a level."""

    study: Study
    variant: Variant
    depths: Depths
    goal: float
    """What its mean error over that of 0.2.0 should be at most."""

    @property
    def found(self) -> Compared:
        """Its mean error over that of 0.2.0, over as many runs as both have."""
        ours, theirs = (self.study.values(EPSILON, one, self.depths) for one in (self.variant, BEFORE))
        return ratio_of(ours, theirs[: len(ours)])

    @property
    def verdict(self) -> Verdict:
        """Whether it is as small as it should be."""
        return self.found.against(self.goal)

    @property
    def errors(self) -> tuple[float, float]:
        """The mean errors of 0.2.0 and of the variant."""
        return self.study.mean(EPSILON, BEFORE, self.depths), self.study.mean(EPSILON, self.variant, self.depths)

    def noise(self, depths: Depths) -> tuple[float, float]:
        """Return the noise of a table in 0.2.0 and in the variant; 0 where it is not measured."""
        before, after = (_noise(one.plan(self.study.table, EPSILON), depths) for one in (BEFORE, self.variant))
        return before, after


def _noise(plan: tt.Plan, depths: Depths) -> float:
    levels = [(plan.spine.depths(part.index), part) for part in plan.levels]
    margins = [(one.depths, part) for one, part in zip(plan.margin_tables, plan.margin_parts, strict=True)]
    found = (part for own, part in (*levels, *margins) if own == depths and part.is_measured)
    return next((part.law.standard_deviation for part in found), 0.0)


@dataclass(frozen=True)
class Target:
    """What was to be reached."""

    title: str
    judge: Callable[[Study], Iterator[Judged]] = field(repr=False)
    why: Callable[[Judged], str] = field(repr=False)
    """Says, computed, why it was not."""

    def judged(self, studies: Sequence[Study]) -> list[Judged]:
        """Hold all tables that it is about against it."""
        every = (one for study in studies for one in self.judge(study))
        return [one for one in every if one.study.found[EPSILON, one.variant]]


def _second(goal: float, only: str | None = None) -> Callable[[Study], Iterator[Judged]]:
    def judge(study: Study) -> Iterator[Judged]:
        finest = study.margins(study.second)[-1]
        if study.codes(finest) >= MANY_CODES and only in (None, study.table.name):
            yield Judged(study, EACH, finest, goal)

    return judge


def _first_finest(study: Study) -> Iterator[Judged]:
    yield Judged(study, EACH, study.margins(study.first)[-1], 1.0)


def _first_coarse(study: Study) -> Iterator[Judged]:
    yield from (Judged(study, EACH, depths, 2.0) for depths in study.margins(study.first)[:-1])


def _leaves(study: Study) -> Iterator[Judged]:
    yield Judged(study, EACH, study.leaves, 1.0)


def _advised(study: Study) -> Iterator[Judged]:
    if study.density >= DENSE:
        yield Judged(study, ADVISED, study.leaves, 1 / 1.4)


def _little_to_gain(one: Judged) -> str:
    own = one.noise(one.depths)[1] * math.sqrt(2 / math.pi)
    return f"a margin alone, with this share of the loss, is off by {number(own)}; 0.2.0 was by {number(one.errors[0])}"


def _told_already(one: Judged) -> str:
    study, spine = one.study, one.study.table.spine
    depths = [spine.depths(index) for index in range(len(spine.levels) + 1)]
    told = next(level for level in depths if level[study.first] == one.depths[study.first])
    nodes, codes = (np.count_nonzero(cell_sums(spine, *Truth(study.table).leaves, at)) for at in (told, one.depths))
    own = one.noise(one.depths)[1] / one.noise(told)[0]
    return (
        f"the tree of 0.2.0 has {nodes / codes:.1f} measured nodes a code that occurs, so that totals were nearly "
        f"measured already; the margin has {own:.2f} × the noise of one of them"
    )


def _more_noise(one: Judged) -> str:
    before, after = one.noise(one.study.table.spine.depths(1))
    return f"the first level has {after / before:.2f} × the noise, since margins have a part of the loss"


def _lost_above(one: Judged) -> str:
    study, last = one.study, len(one.study.table.spine.levels)
    above = study.table.spine.depths(last - 1)
    (leaf_before, leaf), (level_before, level) = one.noise(study.leaves), one.noise(above)
    lost = (percent(study.mean(EPSILON, variant, above, "lost_mass")) for variant in (BEFORE, one.variant))
    return (
        f"leaves have {leaf / leaf_before:.2f} × the noise of 0.2.0, the levels above {level / level_before:.2f} ×: of "
        f"the true count {' → '.join(lost)} is in nodes that are lost one level above the leaves already"
    )


def _leaf_noise(one: Judged) -> str:
    before, after = one.noise(one.study.leaves)
    middle = float(np.median(Truth(one.study.table).leaves[1]))
    return (
        f"leaves have {after / before:.2f} × the noise of 0.2.0, ± {number(after)}; half of those that occur have "
        f"{middle:g} or less, of which it tells little either way"
    )


TARGETS = (
    Target(
        f"totals of the second end at least 4 × better, where it has {MANY_CODES} codes or more",
        _second(1 / 4),
        _little_to_gain,
    ),
    Target("10 × on New York tracts", _second(1 / 10, "new-york"), _little_to_gain),
    Target("totals of the first end better at their finest level", _first_finest, _told_already),
    Target("and at worst twice as far off at coarser ones", _first_coarse, _more_noise),
    Target("leaf pairs no worse", _leaves, _lost_above),
    Target("advised plan with lower-error: leaf pairs at least 1.4 × better, on dense tables", _advised, _leaf_noise),
)
"""All beside 0.2.0, at epsilon 1; with the default settings, but for the last."""
