"""One run of one mechanism on a table whose truth is known: its errors, its time and its memory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np

from treetop.basics.exact import Number
from treetop.basics.frozen import FrozenMap
from treetop.compare.mechanisms import (
    GROUP_MECHANISMS,
    Estimate,
    Mechanism,
    Planned,
    StabilityHistogram,
    VanillaGauss,
    named,
    paper_loss,
)
from treetop.compare.peak import Peak
from treetop.domain.fact import Fact
from treetop.domain.facts import PublicFacts
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.margin import Margins, margins_of
from treetop.domain.spine import Spine
from treetop.errors import PlanError
from treetop.intake.counts import Counts
from treetop.intake.facts import read_facts
from treetop.noise import Key
from treetop.noise.sampler import sampler
from treetop.plan.groups.planned import SIZE, spine_of_numbers
from treetop.plan.groups.table_unit import GroupTableUnit
from treetop.plan.groups.unit import GroupUnit
from treetop.plan.levels import without_margins
from treetop.plan.workload import Part
from treetop.privacy import Loss, Split, Unit
from treetop.release.errors import LevelErrors, errors_of
from treetop.release.margin_errors import margin_errors_of

Accounting: TypeAlias = Literal["tight", "paper", "pure"]
"""How epsilon and delta become noise: by the tight conversion, by that of the papers, or without a delta at all."""

CONFIDENCE = 0.95
"""How sure the bounds are that stand beside the errors."""


@dataclass(frozen=True, eq=False)
class Case:
    """A private table, and what of it is protected."""

    spine: Spine
    """The public order of refinement."""
    unit: Unit
    """What is protected."""
    counts: Counts
    """What the mechanisms measure."""
    truth: Counts | None = None
    """What they are compared with, where records were left out of the counts; the counts themselves when None."""
    split: Literal["uniform"] | Mapping[str, Number] | Split = "uniform"
    """How mechanisms that measure several levels divide the loss."""
    records_may_be_dropped: bool = False
    """Whether records with unknown codes may have been dropped; then the total is not public."""
    margins: Margins = "none"
    """The tables beside the spine whose errors are told; mechanisms that keep margins measure these."""
    facts: PublicFacts | None = None
    """What is public and must stay true: only the mechanism of that name keeps it."""


@dataclass(frozen=True)
class Setting:
    """A mechanism and the loss that it may cost."""

    mechanism: str
    """Its name."""
    epsilon: float
    """Epsilon."""
    delta: float | None = 1e-8
    """Delta; None for a pure loss."""
    accounting: Accounting = "tight"
    """How noise is found from them."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """More arguments of the mechanism, such as the most leaves that it serves."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", FrozenMap(self.options))
        named(self.mechanism)  # now: a name that is unknown is a mistake
        if (self.delta is None) != (self.accounting == "pure"):
            raise PlanError("a loss without a delta is pure, and only that: give a delta, or the accounting pure")

        Loss(epsilon=self.epsilon, delta=self.delta)  # what is no loss at all is a mistake, and no refusal

    def make(self, case: Case) -> Mechanism:
        """Make the mechanism, which looks at nothing private. Raises a `Refusal` where it cannot serve the case."""
        kind: Any = named(self.mechanism)
        known = {part.name for part in fields(kind)} if is_dataclass(kind) else set()
        # A split under facts names what these leave to measure, and others measure more.
        split = case.split if case.facts is None or "facts" in known else "uniform"
        given = {
            "split": split if "margins" in known else without_margins(split),
            "records_may_be_dropped": case.records_may_be_dropped,
            "margins": case.margins,
            "facts": case.facts,
        }
        more = {name: value for name, value in given.items() if name in known} | dict(self.options)
        loss = Loss(epsilon=self.epsilon, delta=self.delta)
        if self.accounting == "paper" and self.delta is not None:
            if kind is StabilityHistogram:  # it spends epsilon and delta as they are; what the paper has is a threshold
                more = {"threshold": "paper", **more}
            else:
                loss = paper_loss(self.epsilon, self.delta)
        mechanism: Mechanism = kind(case.spine, case.unit, loss, **more)
        return mechanism


@dataclass(frozen=True)
class Trial:
    """What one run came to. Private: errors tell of the truth."""

    setting: Setting
    """What was run."""
    repeat: int
    """Which of the runs with this setting, from 0."""
    errors: tuple[LevelErrors, ...]
    """The errors at the total and at every level."""
    margins: tuple[LevelErrors, ...]
    """The errors of every margin of the case, measured by the mechanism or summed from its leaves."""
    noise: tuple[float, ...]
    """The standard deviation of one measurement at the total and at every level; 0 where nothing is measured."""
    margin_noise: tuple[float | None, ...]
    """The same of every margin; None where it is only summed."""
    bounds: tuple[int | None, ...]
    """What all errors of a level should be within with 95 % confidence; None where nothing is promised."""
    violations: int
    """How many nodes are released as something else than the sum of their children."""
    leaves: int
    """How many leaves the release has, that is, which are not zero."""
    bytes: int
    """The size of its leaves and values in memory."""
    seconds: float
    """The time of a processor that the run took."""
    wall_seconds: float
    """The time that passed: more than `seconds` where others are waiting, less where a mechanism has threads."""
    peak_bytes: int | None
    """The most memory that the run took, its result included; None where the system cannot tell."""


def run_trial(case: Case, setting: Setting, repeat: int, key: Key) -> Trial:
    """Run a mechanism once and compare what it gives with the truth.

    The clock runs for `Mechanism.run` only, on one thread. All that is public and the same for every run is made
    before: compiled kernels, the plan, the exact tables of the noise.
    """
    _warm(setting.mechanism, setting.accounting == "pure")
    mechanism = setting.make(case)
    for level in (*mechanism.levels, *_margin_parts(mechanism)):
        if level.is_measured:
            sampler(level.law)
    case.counts.digest  # noqa: B018  (found once for a table, and kept)
    with Peak() as peak:
        passed, used = time.perf_counter(), time.process_time()
        estimate = mechanism.run(case.counts, key, threads=1)
        used, passed = time.process_time() - used, time.perf_counter() - passed
    truth = case.counts if case.truth is None else case.truth
    beside = margins_of(case.spine, case.margins)
    return Trial(
        setting=setting,
        repeat=repeat,
        errors=estimate_errors(estimate, truth),
        margins=margin_errors_of(case.spine, beside, estimate.keys, estimate.value, truth),
        noise=tuple(level.deviation for level in mechanism.levels),
        margin_noise=tuple(part.deviation for part in _margin_parts(mechanism)) or (None,) * len(beside),
        bounds=_bounds(mechanism, case.counts.total),
        violations=estimate.violations(),
        leaves=len(estimate),
        bytes=sum(word.nbytes for word in estimate.keys) + estimate.value.nbytes,
        seconds=used,
        wall_seconds=passed,
        peak_bytes=peak.size,
    )


def estimate_errors(estimate: Estimate, truth: Counts) -> tuple[LevelErrors, ...]:
    """Compare an estimate with the truth; where levels were published by themselves, each as it was published."""
    spine = estimate.spine
    if estimate.levels is None:
        return errors_of(spine, estimate.keys, estimate.value, truth)
    # The path of a node with all finer ranks zero is that of its first leaf: its value goes there, and is summed back.
    return tuple(errors_of(spine, level.keys, level.value, truth)[index] for index, level in enumerate(estimate.levels))


def _bounds(mechanism: Mechanism, records: int) -> tuple[int | None, ...]:
    if isinstance(mechanism, Planned) and mechanism.bounded:
        return tuple(level.bound for level in mechanism.plan.accuracy(CONFIDENCE).levels)
    if isinstance(mechanism, VanillaGauss | StabilityHistogram):
        return mechanism.bounds(1 - Fraction(str(CONFIDENCE)), records)
    return (None,) * len(mechanism.levels)


def _margin_parts(mechanism: Mechanism) -> tuple[Part, ...]:
    """Return the margins that the mechanism measures."""
    return mechanism.plan.margin_parts if isinstance(mechanism, Planned) else ()


@cache
def _warm(mechanism: str, pure: bool) -> None:
    """Run a mechanism on a few made-up counts, so that no timed run compiles or imports anything."""
    case = _few_groups() if mechanism in GROUP_MECHANISMS else _few_trips()
    setting = Setting(mechanism, 10.0, None, "pure") if pure else Setting(mechanism, 10.0)
    setting.make(case).run(case.counts, Key(bytes(32)))


_PLACE = Hierarchy.from_prefixes(["AX", "AY", "BX", "BY", "BZ"], widths=[1], levels=["state", "county"])


def _few_trips() -> Case:
    spine = Spine.destination_first(origin=_PLACE, destination=_PLACE)
    ends = np.arange(5).repeat(5), np.tile(np.arange(5), 5)
    counts = Counts.from_leaves(spine, ends, np.full(25, 40, np.int64))
    stated = {
        "destination.state": {"A": 400, "B": 600},
        "destination.state * origin.state": Fact(at_most={("A", "A"): 900}),
        "destination.county * origin.county": Fact(impossible=[("AX", "BZ")]),
    }
    facts = read_facts(spine, stated)
    return Case(spine, Unit("trip", contributions=1, neighbours="replace"), counts, margins="each", facts=facts)


def _few_groups() -> Case:
    spine = spine_of_numbers(SIZE, 3, _PLACE)
    cells = np.arange(4).repeat(5), np.tile(np.arange(5), 4)
    counts = Counts.from_leaves(spine, cells, np.full(20, 40, np.int64))
    return Case(spine, GroupTableUnit(GroupUnit("person", event="join-leave"), "cumulative", 3), counts)
