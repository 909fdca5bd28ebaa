"""The intervals of named nodes, where a release names only what its measurements show to be there.

Such nodes were chosen because they measured high, and many of them measured too high. An interval that holds for a node
that is chosen in advance holds for them less often. Benjamini and Yekutieli (2005) widen it the more, the fewer are
chosen: of m nodes of a level that were tested R are named, and each has the interval of its own measurement at a risk
of α·R/m. Then, of the named nodes of a level, an expected share of at most α is outside of theirs (the false coverage
rate). The risk is never more than α, so that the interval of a node that was chosen in advance holds as well.

The upper bounds of the nodes above do not cut it: one of them that fails would fail for all that is named below it.

An only child has the measurement of its parent, but is one of the tests of its own level (`treetop.plan.resolution`).
How many tests there are follows from the public tree and from what is released, so that anybody can compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from treetop.noise import Law
from treetop.plan.resolution import number_of_tests
from treetop.release.tree import ReleasedTree

Ints = NDArray[np.int64]


def named_risks(tree: ReleasedTree, risk: Fraction) -> list[Fraction]:
    """Return the risk of a named node's interval, at the total and at every level; all of it where all are named."""
    levels = tree.spine.levels
    tests = sum(
        (number_of_tests(levels, level.index, tree.at(level.index - 1).nodes) for level in levels),
        start=np.zeros(len(levels) + 1, np.int64),
    )
    named = [tree.size(index) for index in range(len(levels) + 1)]
    return [
        risk * Fraction(chosen, number) if 0 < chosen < number else risk
        for chosen, number in zip(named, tests.tolist(), strict=True)
    ]


def named_margins(laws: Sequence[Law | None], level: Ints, risk: Fraction) -> Ints:
    """Return how far measurements of some levels may be off, at a risk."""
    margins = np.zeros(len(level), np.int64)
    for index in np.unique(level).tolist():
        law = laws[index]
        margins[level == index] = 0 if law is None else law.margin(risk)
    return margins
