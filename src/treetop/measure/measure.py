"""Measuring: true counts are read here and added to noise that is already drawn.

The one exception is a total that is public because all neighbours have the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from treetop._util.kernel import kernel_in_place
from treetop._util.numbers import NO_BOUND
from treetop.counts.counts import Counts
from treetop.domain.constraints import PublicFacts
from treetop.errors import PlanError
from treetop.noise import Key, Law, NoiseStream
from treetop.noise.gate import Charge, Gate, bind
from treetop.plan.workload import Exact, How, Measured, Part, Workload


def measure_total(counts: Counts, how: How, key: Key, facts: PublicFacts | None = None) -> int:
    """Return the total: measured and clamped to the facts, or exact, from the facts or else from the counts."""
    least, most = (0, NO_BOUND) if facts is None else facts.of_total
    if isinstance(how, Exact):
        return min(max(counts.total, least), most)  # the same for all neighbours, and so is what facts make of it
    if not isinstance(how, Measured):
        raise PlanError("a total that follows from other tables is not measured from the top down")
    noise = np.empty(1, np.int64)
    NoiseStream(how.law, key).fill(noise, 0)
    return min(max(counts.total + int(noise[0]), least), most)


@kernel_in_place
def add_counts(
    noise: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    rank: int,
    keys: NDArray[np.uint64],
    shift: int,
    mask: np.uint64,
    before: NDArray[np.int64],
    at: int,
    end: int,
) -> int:
    """Turn the noise of children rank, rank + 1, … of one node into measurements.

    The node's leaves lie between `at` and `end`. The range of each child's leaves is written down for the next level,
    unless the children are leaves and the arrays are empty. Returns the start of the leaves of the next child.
    """
    tracked = len(start) > 0
    start[:] = 0
    stop[:] = 0
    while at < end:
        child = np.int64((keys[at] >> np.uint64(shift)) & mask) - rank
        if child >= len(noise):
            break
        after = _run_end(keys, shift, at, end) if tracked else at + 1  # a leaf is one key
        noise[child] += before[after] - before[at]
        if tracked:
            start[child] = at
            stop[child] = after
        at = after
    return at


@kernel_in_place
def _run_end(keys: NDArray[np.uint64], shift: int, start: int, stop: int) -> int:
    """Return the end of the leaves under the same child as `start`, by galloping search."""
    path = keys[start] >> np.uint64(shift)
    low, high, stride = start, start + 1, 1
    while high < stop and keys[high] >> np.uint64(shift) == path:
        low = high
        stride *= 2
        high = min(high + stride, stop)
    while high - low > 1:
        middle = (low + high) // 2
        if keys[middle] >> np.uint64(shift) == path:
            low = middle
        else:
            high = middle
    return high


# Measuring a workload: charged first, with a key that is bound to decisions and data, each of its tables once.


@dataclass(eq=False)
class Measuring:
    """The noise of one run, which is paid for."""

    workload: Workload
    """Everything that may be measured."""
    key: Key
    """Key of all noise, bound to the decisions and the data."""
    done: set[str] = field(default_factory=set)

    def noisy(self, part: Part, truth: NDArray[np.int64], key: Key | None = None) -> NDArray[np.int64]:
        """Return the true cells of a table plus noise; a subkey gives each table its own noise."""
        if part not in self.workload.parts or not isinstance(part.how, Measured):
            raise PlanError(f"{part.name} is not measured by this plan: nobody paid for it")
        if part.name in self.done:
            raise PlanError(f"{part.name} is measured twice, and was paid for once")
        self.done.add(part.name)
        noise = np.empty(truth.size, np.int64)
        NoiseStream(part.how.law, key or self.key).fill(noise, 0)
        return truth + noise.reshape(truth.shape)

    def settled(self, workload: Workload) -> Measuring:
        """Continue with a workload that follows from the measurements so far.

        It is already paid for: it costs no more, and contains the finished measurements unchanged.
        """
        kept = all(part in workload.parts for part in self.workload if part.name in self.done)
        if workload.spent > self.workload.spent or not kept:
            raise PlanError("what was measured led to a plan that nobody paid for")
        return Measuring(workload, self.key, self.done)


def run_key(secret: Key, plan_sha256: str, counts: Counts) -> Key:
    """Return the key of a run that is not charged, such as a trial, bound to plan and counts as by a gate."""
    decided = bytes.fromhex(plan_sha256)
    return bind(secret, "run", decided, counts.digest_under(bind(secret, "counts", decided)))


@contextmanager
def measuring(
    workload: Workload, gate: Gate, charge: Charge | None, purpose: str, *bound: bytes
) -> Iterator[Measuring]:
    """Charge the cost of a workload, and yield access to its noise.

    `bound` are digests of the decisions and of the data. An error in the block is raised as `Unfinished`.
    """
    with gate.charged(charge, purpose, *bound) as key:
        yield Measuring(workload, key)


# Evidence: the measurements of a descent, kept for intervals and better estimates. All of it is noisy, hence public.

Ints = NDArray[np.int64]

NOTHING = -(2**62)
"""Marks a missing measurement: below every possible one."""


@dataclass(frozen=True, eq=False)
class LevelEvidence:
    """The measurements of one level, in spine order."""

    measured: Ints = field(repr=False)
    """Of every retained node; `NOTHING` for an only child, which has its parent's count unmeasured."""
    highest: Ints = field(repr=False)
    """For every retained node of the level above, the highest measurement among its children that were not retained;
    `NOTHING` if all were retained, or for an only child."""
    slots: Ints = field(repr=False)
    """Every measurement, of all public children of retained nodes with several children; empty unless requested."""

    @staticmethod
    def join(parts: Sequence[LevelEvidence]) -> LevelEvidence:
        """Join evidence of adjacent ranges in spine order."""
        if len(parts) == 1:
            return parts[0]
        return LevelEvidence(
            measured=_joined([part.measured for part in parts]),
            highest=_joined([part.highest for part in parts]),
            slots=_joined([part.slots for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class Evidence:
    """The measurements of a descent that were kept."""

    total: int | None
    """Measurement of the total; None if the total is public."""
    levels: tuple[LevelEvidence, ...] = field(repr=False)
    """The levels below the root."""
    laws: tuple[Law | None, ...]
    """The noise of the total and of every level; None if it is not measured."""


@dataclass(frozen=True, eq=False)
class Remainders:
    """Counts left at nodes because none of their children could be named; by level, then in spine order."""

    level: NDArray[np.int32] = field(repr=False)
    """Level of each such node, by its position in the spine."""
    nodes: NDArray[np.int32] = field(repr=False)
    """For each attribute (row) and such node (column), the attribute's node; 0 while it is not refined."""
    count: Ints = field(repr=False)
    """Count left at the node, above zero."""

    @staticmethod
    def join(parts: Sequence[Remainders], attributes: int) -> Remainders:
        """Join remainders of adjacent parts of the tree, each in spine order."""
        if not parts:
            return Remainders(np.empty(0, np.int32), np.empty((attributes, 0), np.int32), np.empty(0, np.int64))
        level = np.concatenate([part.level for part in parts])
        nodes = np.concatenate([part.nodes for part in parts], axis=1)
        return Remainders(level, nodes, _joined([part.count for part in parts]))[np.argsort(level, kind="stable")]

    def __len__(self) -> int:
        return len(self.count)

    def __getitem__(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Remainders:
        return Remainders(self.level[chosen], self.nodes[:, chosen], self.count[chosen])


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate([np.empty(0, np.int64), *parts])
