"""Shares of a fixed sum: how far money, or seats, go astray when they are dealt out by released counts.

The task of Ko, Ziani and Fioretto, "Optimal Allocation of Privacy Budget on Hierarchical Data Release", with shares in
proportion to counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treetop.choose.error_laws import Floats
from treetop.choose.prior import Prior
from treetop.choose.simulate import Ints, Nodes, public_twin, try_out
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import PlanError
from treetop.intake.counts import Counts, layout, pack
from treetop.plan.plan import PurePlan
from treetop.release.errors import merge, starts


@dataclass(frozen=True)
class Shares:
    """Every node of a coarser level has the same sum, which is dealt out to those of a finer level inside it."""

    level: str
    """By whose counts the sum is dealt out."""
    inside: str = TOTAL
    """Where each sum is dealt out; the total for one sum in all."""

    def __str__(self) -> str:
        return f"shares of {self.level} in {self.inside}"


def share_errors(
    plan: PurePlan, prior: Prior, shares: Shares, *, runs: int, threads: int | None = None, seed: int = 0
) -> Floats:
    """Return, for each trial on the prior's table, the sum of squared errors of all shares, a whole sum being 1.

    Where an area is released empty, nothing is dealt out; one that is empty in the table has no shares.
    """
    coarse, fine = (_depth(plan.spine, name) for name in (shares.inside, shares.level))
    if coarse >= fine:
        raise PlanError(f"{shares.level} is not refined after {shares.inside}: its nodes do not lie in one each")
    twin = public_twin(prior)

    def look(nodes: Nodes, count: Ints) -> float:
        return _astray(plan.spine, twin, nodes, count, coarse, fine)

    return np.array(list(try_out(plan, prior, look, runs=runs, threads=threads, seed=seed)))


def _astray(spine: Spine, twin: Counts, nodes: Nodes, count: Ints, coarse: int, fine: int) -> float:
    both = merge(pack(spine, nodes), count, twin)
    if not len(both.true):
        return 0.0
    begin = [np.arange(len(both.true)) == 0, *(starts(both.keys, digit) for digit in layout(spine))]
    first = np.flatnonzero(begin[fine])
    area = (np.cumsum(begin[coarse]) - 1)[first]
    counts = [np.add.reduceat(values.astype(np.float64), first) for values in (both.released, both.true)]
    wholes = [np.bincount(area, own)[area] for own in counts]
    released, true = (own / np.maximum(whole, 1) for own, whole in zip(counts, wholes, strict=True))
    return float((np.where(wholes[1] > 0, released - true, 0.0) ** 2).sum())


def _depth(spine: Spine, name: str) -> int:
    return 0 if name == TOTAL else spine.level(name).index
