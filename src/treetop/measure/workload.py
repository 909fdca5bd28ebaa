"""Measuring a workload: charged first, with a key that is bound to decisions and data, each of its tables once.

It is the one way from a plan to noise. What a workload does not list cannot be measured, and the noise of a table is
always that of its own law.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from treetop.errors import PlanError
from treetop.intake.counts import Counts
from treetop.noise import Key, NoiseStream
from treetop.noise.gate import Charge, Gate, bind
from treetop.plan.workload import Measured, Part, Workload


@dataclass(eq=False)
class Measuring:
    """One run's noise, which is paid for."""

    workload: Workload
    """What may be measured."""
    key: Key
    """The key of all of it, bound to decisions and data."""
    done: set[str] = field(default_factory=set)
    """The tables that have been measured."""

    def noisy(self, part: Part, truth: NDArray[np.int64], key: Key | None = None) -> NDArray[np.int64]:
        """Return the true cells of a table plus noise; a subkey tells its noise apart from that of other tables."""
        if part not in self.workload.parts or not isinstance(part.how, Measured):
            raise PlanError(f"{part.name} is not measured by this plan: nobody paid for it")
        if part.name in self.done:
            raise PlanError(f"{part.name} is measured twice, and was paid for once")
        self.done.add(part.name)
        noise = np.empty(truth.size, np.int64)
        NoiseStream(part.how.law, key or self.key).fill(noise, 0)
        return truth + noise.reshape(truth.shape)

    def settled(self, workload: Workload) -> Measuring:
        """Go on with a workload that follows from what was measured by now, and which is paid for: it costs no more,
        and holds what was measured as it was."""
        kept = all(part in workload.parts for part in self.workload if part.name in self.done)
        if workload.spent > self.workload.spent or not kept:
            raise PlanError("what was measured led to a plan that nobody paid for")
        return Measuring(workload, self.key, self.done)


def run_key(secret: Key, plan_sha256: str, counts: Counts) -> Key:
    """Return the key of a run of a plan on counts, as a gate binds it: that of what is not charged, such as trials."""
    decided = bytes.fromhex(plan_sha256)
    return bind(secret, "run", decided, counts.digest_under(bind(secret, "counts", decided)))


@contextmanager
def measuring(
    workload: Workload, gate: Gate, charge: Charge | None, purpose: str, *bound: bytes
) -> Iterator[Measuring]:
    """Charge the cost of a workload, and give the way to its noise.

    `bound` are digests of what was decided and of the data. What fails in the block is `Unfinished`.
    """
    with gate.charged(charge, purpose, *bound) as key:
        yield Measuring(workload, key)
