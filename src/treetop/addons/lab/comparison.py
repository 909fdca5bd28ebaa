"""Run a mechanism on a table with known truth: its errors, time and memory, as a table and a summary."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from treetop._util.lazy import FrozenMap
from treetop._util.numbers import Number
from treetop.addons.lab.mechanisms.baselines import StabilityHistogram, VanillaGauss
from treetop.addons.lab.mechanisms.compared import ComparedMechanism, Estimate, paper_loss
from treetop.addons.lab.mechanisms.inftda import Planned
from treetop.addons.lab.mechanisms.registry import GROUP_MECHANISMS, PRACTICES, named
from treetop.counts.constraint_reader import read_facts
from treetop.counts.counts import Counts
from treetop.domain.constraints import Fact, PublicFacts
from treetop.domain.hierarchy import Hierarchy
from treetop.domain.marginal import Margins, margins_of
from treetop.domain.spine import Spine
from treetop.errors import PlanError
from treetop.noise import Key
from treetop.noise.sampler import sampler
from treetop.plan.group_plan import SIZE, spine_of_numbers
from treetop.plan.group_unit import GroupUnit
from treetop.plan.workload import Part, without_margins
from treetop.privacy import Loss, Split, Unit
from treetop.release.errors import SIZES, LevelErrors, errors_of, margin_errors_of

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """Yield a list that gets the most resident memory of the process above that at the start, if the system tells.

    The high-water mark is the whole process's, so nothing else may run in it meanwhile. Memory that the process holds
    on to without using it is given back first: reused, it would not show.
    """
    size: list[int] = []
    before = None
    with suppress(OSError, AttributeError, TypeError):  # only the GNU library has it
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):  # only Linux has it
        _RESET.write_text("5", encoding="ascii")  # the high-water mark is that of now
        before = _resident("VmRSS")
    yield size
    if before is not None:
        size.append(max(_resident("VmHWM") - before, 0))


def _resident(field: str) -> int:
    status = dict(line.split(":", 1) for line in _STATUS.read_text(encoding="utf-8").splitlines())
    return int(status[field].split()[0]) * 1024


# One run of one mechanism on a table whose truth is known: its errors, its time and its memory.

Accounting: TypeAlias = Literal["tight", "paper", "pure"]
"""Conversion of epsilon and delta to noise: the tight one, that of the papers, or without delta."""

CONFIDENCE = 0.95
"""Confidence of the bounds beside the errors."""


@dataclass(frozen=True, eq=False)
class Case:
    """A private table, and its protection."""

    spine: Spine
    unit: Unit
    counts: Counts
    truth: Counts | None = None
    """The true counts, if records were left out of the measured counts; else None."""
    split: Literal["uniform"] | Mapping[str, Number] | Split = "uniform"
    records_may_be_dropped: bool = False
    """Whether records with unknown codes may have been dropped; then the total is not public."""
    margins: Margins = "none"
    """The tables beside the spine to report errors of; mechanisms that keep margins measure these."""
    facts: PublicFacts | None = None
    """Public facts that the release must keep: only the mechanism of that name does."""


@dataclass(frozen=True)
class Setting:
    """A mechanism and the loss that it may cost."""

    mechanism: str
    epsilon: float
    delta: float | None = 1e-8
    """Delta; None for a pure loss."""
    accounting: Accounting = "tight"
    options: Mapping[str, Any] = field(default_factory=dict)
    """More arguments of the mechanism, such as the most leaves that it serves."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", FrozenMap(self.options))
        named(self.mechanism)  # now: a name that is unknown is a mistake
        if (self.delta is None) != (self.accounting == "pure"):
            raise PlanError("a loss without a delta is pure, and only that: give a delta, or the accounting pure")

        Loss(epsilon=self.epsilon, delta=self.delta)  # what is no loss at all is a mistake, and no refusal

    def make(self, case: Case) -> ComparedMechanism:
        """Make the mechanism, which reads no private data. Raises a `Refusal` if it cannot serve the case."""
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
        mechanism: ComparedMechanism = kind(case.spine, case.unit, loss, **more)
        return mechanism


@dataclass(frozen=True)
class Trial:
    """The result of one run. Private: errors are computed from the truth."""

    setting: Setting
    repeat: int
    errors: tuple[LevelErrors, ...]
    margins: tuple[LevelErrors, ...]
    """The errors of every margin of the case, measured by the mechanism or summed from its leaves."""
    noise: tuple[float, ...]
    """The standard deviation of one measurement at the total and at every level; 0 if nothing is measured."""
    margin_noise: tuple[float | None, ...]
    """The same of every margin; None if it is only summed."""
    bounds: tuple[int | None, ...]
    """Bounds of all errors of a level with 95 % confidence; None if the mechanism promises none."""
    violations: int
    leaves: int
    bytes: int
    seconds: float
    wall_seconds: float
    """Wall-clock time: more than `seconds` if the process waits, less if a mechanism has threads."""
    peak_bytes: int | None
    """Most memory of the run in bytes, its result included; None if the system cannot report it."""


def run_trial(case: Case, setting: Setting, repeat: int, key: Key) -> Trial:
    """Run a mechanism once and compare its estimate with the truth.

    The clock runs for `run` only, on one thread. Public preparation that is the same for every run is done before:
    compiled kernels, the plan, the exact tables of the noise.
    """
    _warm(setting.mechanism, setting.accounting == "pure")
    mechanism = setting.make(case)
    for level in (*mechanism.levels, *_margin_parts(mechanism)):
        if level.is_measured:
            sampler(level.law)
    case.counts.digest  # noqa: B018  (found once for a table, and kept)
    with peak_memory() as peak:
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
        peak_bytes=peak[0] if peak else None,
    )


def estimate_errors(estimate: Estimate, truth: Counts) -> tuple[LevelErrors, ...]:
    """Compare an estimate with the truth; levels that were published by themselves are compared as published."""
    spine = estimate.spine
    if estimate.levels is None:
        return errors_of(spine, estimate.keys, estimate.value, truth)
    # The path of a node with all finer ranks zero is that of its first leaf: its value goes there, and is summed back.
    return tuple(errors_of(spine, level.keys, level.value, truth)[index] for index, level in enumerate(estimate.levels))


def _bounds(mechanism: ComparedMechanism, records: int) -> tuple[int | None, ...]:
    if isinstance(mechanism, Planned) and mechanism.bounded:
        return tuple(level.bound for level in mechanism.plan.accuracy(CONFIDENCE).levels)
    if isinstance(mechanism, VanillaGauss | StabilityHistogram):
        return mechanism.bounds(1 - Fraction(str(CONFIDENCE)), records)
    return (None,) * len(mechanism.levels)


def _margin_parts(mechanism: ComparedMechanism) -> tuple[Part, ...]:
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
    return Case(spine, GroupUnit("person", event="join-leave", form="cumulative", largest=3), counts)


# What a comparison found: a tidy table for programs, a summary for people, both for the steward only.

FENCE = "for the steward only, not for release"
WARNING = (
    "Errors are computed from the private table, so these results are as private as the table is. Nothing here is a "
    "release: no noisy count was kept, and nothing was spent. To choose a mechanism by what it does to the private "
    "table is a use of private data that no budget counts: choose by a public table, or by last year's."
)

LIMITED = "The truth is the whole table: records beyond the limit of contributions count as errors."

WITHOUT_FACTS = (
    "The plan has public facts. Only the mechanism called facts keeps them; all others run on the plan without its "
    "facts, with an even split, and may contradict them."
)

_TYPES = {"int": pa.int64(), "float": pa.float64(), "str": pa.string()}
_METRICS = [one for one in fields(LevelErrors) if one.name not in ("level", "name", "biases", "counts")]
_BIASES = [
    f"bias_{low}_up" if high is None else f"bias_{low}_{high}" if high > low else f"bias_{low}" for low, high in SIZES
]

_COLUMNS = {
    pa.string(): ("mechanism", "accounting"),
    pa.float64(): ("epsilon", "delta"),
    pa.int64(): ("repeat", "level"),
}
SCHEMA = pa.schema(
    [
        *((name, kind) for kind, names in _COLUMNS.items() for name in names),
        *((name, pa.string()) for name in ("level_name", "counts")),
        *((one.name, pa.float64() if one.name == "nodes" else _TYPES[str(one.type)]) for one in _METRICS),
        *((name, pa.float64()) for name in (*_BIASES, "noise")),
        *((name, pa.int64()) for name in ("bound", "violations", "leaves", "bytes")),
        *((name, pa.float64()) for name in ("seconds", "wall_seconds")),
        ("peak_bytes", pa.int64()),
    ],
    metadata={"treetop": FENCE},
)
"""One row per mechanism, accounting, epsilon, repeat and level, margins after the leaves; values of a whole run are
repeated at its levels.

The metrics are those of `LevelErrors`, by name; `nodes` is real, since public trees may have more than 2^63.
"""


@dataclass(frozen=True)
class Refused:
    """A setting that could not be served."""

    setting: Setting
    reason: str


@dataclass(frozen=True)
class Comparison:
    """The results of a comparison. Private: errors are computed from the truth."""

    trials: tuple[Trial, ...]
    refused: tuple[Refused, ...] = ()
    limited: bool = False
    """Whether a limit of contributions left records out, which then count as errors."""
    facts: bool = False

    @property
    def notes(self) -> list[str]:
        """Return the notes beside the results."""
        practised = any(trial.setting.mechanism in PRACTICES for trial in self.trials)
        return [LIMITED] * self.limited + [WITHOUT_FACTS] * self.facts + [NO_GUARANTEE] * practised

    def table(self) -> pa.Table:
        """Return all results as one tidy Arrow table."""
        return pa.Table.from_pylist([row for trial in self.trials for row in _rows(trial)], schema=SCHEMA)

    def refusals(self) -> pa.Table:
        """Return the refused settings as a table."""
        rows = [{**_setting(one.setting), "reason": one.reason} for one in self.refused]
        return pa.Table.from_pylist(rows, schema=pa.schema([*list(SCHEMA)[:4], ("reason", pa.string())]))

    def by_setting(self) -> dict[Setting, list[Trial]]:
        """Return the runs of each setting."""
        found: dict[Setting, list[Trial]] = {}
        for trial in self.trials:
            found.setdefault(trial.setting, []).append(trial)
        return found

    def summary(self, title: str) -> str:
        """Return the results in Markdown: a table for every accounting and epsilon, and the refused settings."""
        lines = [f"# {title}", "", f"**{FENCE[:1].upper()}{FENCE[1:]}.** {WARNING}", ""]
        for (accounting, epsilon, delta), members in self.groups().items():
            at = "" if delta is None else f", delta {delta:g}"
            lines += [f"## Epsilon {epsilon:g}{at}, {accounting} accounting", ""]
            for make in (summary_table, _errors_table, _bounds_table):
                lines += [*make(members), ""]
        if self.trials:
            lines += [*NOTES, "", *(line for note in self.notes for line in (note, ""))]
        if self.refused:
            lines += ["## Not run", ""]
            for one in self.refused:
                at = f"{one.setting.mechanism}, epsilon {one.setting.epsilon:g}, {one.setting.accounting} accounting"
                lines.append(f"- {at}: {one.reason}")
            lines.append("")
        return "\n".join(lines)

    def groups(self) -> dict[tuple[str, float, float | None], list[list[Trial]]]:
        """Return the runs of each setting, by accounting, epsilon and delta."""
        groups: dict[tuple[str, float, float | None], list[list[Trial]]] = {}
        for setting, trials in self.by_setting().items():
            groups.setdefault((setting.accounting, setting.epsilon, setting.delta), []).append(trials)
        return groups


NO_GUARANTEE = (
    "Suppression and rounding protect nobody, at any epsilon: they are here to show what today's practice costs in "
    "accuracy. A suppressed count is often found by subtracting its siblings from their total."
)
NOTES = (
    "Means over the runs, with the least and the largest in brackets where they differ. *Invented*: of the released "
    "leaves, the share that are truly zero; *lost*: of the true leaves, the share released as zero or less; "
    "*not sums*: nodes that differ from the sum of their children; *below zero*: leaves. Seconds are of one processor, "
    "for the run alone; memory is the most that a run took beyond the table. *Of at most*: what no error of the level "
    "exceeds but in 5 of 100 runs, by Theorem 1 and Proposition 1 of the InfTDA paper with exact quantiles; where none "
    "is told, none is promised.",
)


def summary_table(members: Sequence[Sequence[Trial]]) -> list[str]:
    """Return a table of runs at one loss, as lines of Markdown: a row per setting."""
    head = [
        *("mechanism", "runs", "largest error, first level", "at the leaves", "mean error at the leaves", "invented"),
        *("lost", "not sums", "below zero", "leaves", "seconds", "memory"),
    ]
    rows = [
        (
            trials[0].setting.mechanism,
            str(len(trials)),
            spread((trial.errors[1].largest for trial in trials), number),
            spread((trial.errors[-1].largest for trial in trials), number),
            spread((trial.errors[-1].mean for trial in trials), number),
            spread((trial.errors[-1].false_discoveries for trial in trials), percent),
            spread((trial.errors[-1].false_negatives for trial in trials), percent),
            spread((trial.violations for trial in trials), number),
            spread((trial.errors[-1].negative for trial in trials), number),
            spread((trial.leaves for trial in trials), number),
            spread((trial.seconds for trial in trials), seconds),
            _memory([trial.peak_bytes for trial in trials]),
        )
        for trials in members
    ]
    return _markdown(head, rows)


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}", *(f"| {' | '.join(row)} |" for row in rows)]


def _errors_table(members: Sequence[Sequence[Trial]]) -> list[str]:
    """The mean errors of every level and margin: a row per table, a column per mechanism."""
    head = ["mean error of", "nodes", *(trials[0].setting.mechanism for trials in members)]
    rows = ((title, f"{nodes:,}", *map(number, errors)) for title, nodes, *errors in mean_errors(members))
    return _markdown(head, rows)


def _bounds_table(members: Sequence[Sequence[Trial]]) -> list[str]:
    """The largest error of every level in any run, and its bound: a row per level."""
    head = ["largest error, of at most", "nodes", *(trials[0].setting.mechanism for trials in members)]
    rows = []
    for at, level in enumerate(members[0][0].errors):
        cells = (_within(max(trial.errors[at].largest for trial in some), some[0].bounds[at]) for some in members)
        rows.append((level.counts, f"{level.nodes:,}", *cells))
    return _markdown(head, rows)


def _within(largest: float, bound: int | None) -> str:
    """Say an error and its bound, where one is promised.

    >>> _within(12, 1500), _within(12, None)
    ('12 of 1,500', '12')
    """
    return number(largest) if bound is None else f"{number(largest)} of {bound:,}"


def mean_errors(members: Sequence[Sequence[Trial]]) -> Iterator[tuple[str, int, *tuple[float, ...]]]:
    """Yield, for every level and then every margin, its title, its public nodes and each setting's mean error.

    The mean is over the nodes that are not zero in truth or in the release, and over the runs.
    """
    tables = [[trial.errors + trial.margins for trial in trials] for trials in members]
    for at, table in enumerate(tables[0][0]):
        means = (fmean(run[at].mean for run in runs) for runs in tables)
        yield table.counts, table.nodes, *means


def spread(values: Iterable[float], say: Callable[[float], str]) -> str:
    """Format a mean, and the range of the values if it looks different."""
    found = list(values)
    low, high = say(min(found)), say(max(found))
    return say(fmean(found)) if low == high else f"{say(fmean(found))} ({low}–{high})"


def number(value: float) -> str:
    """Say a count or an error.

    >>> number(1234.5), number(12.345), number(0.0)
    ('1,234', '12.3', '0')
    """
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"


def percent(value: float) -> str:
    """Format a share."""
    return f"{100 * value:.1f} %"


def seconds(value: float) -> str:
    """Say a time.

    >>> seconds(0.00123), seconds(0.5), seconds(75.3)
    ('1.2 ms', '500 ms', '75 s')
    """
    if value < 0.01:
        return f"{1e3 * value:.1f} ms"
    if value < 1:
        return f"{1e3 * value:.0f} ms"
    return f"{value:.1f} s" if value < 10 else f"{value:,.0f} s"


def _memory(sizes: Sequence[int | None]) -> str:
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return "-"
    return f"{max(known) / 2**20:,.0f} MB" if max(known) >= 2**20 else "under 1 MB"


def _setting(setting: Setting) -> dict[str, Any]:
    return {name: getattr(setting, name) for name in ("mechanism", "accounting", "epsilon", "delta")}


def _rows(trial: Trial) -> Iterable[dict[str, Any]]:
    whole = {name: getattr(trial, name) for name in ("violations", "leaves", "bytes", "seconds", "wall_seconds")}
    whole |= {"peak_bytes": trial.peak_bytes, "repeat": trial.repeat}
    tables = zip(trial.errors, trial.noise, trial.bounds, strict=True)
    beside = ((errors, noise, None) for errors, noise in zip(trial.margins, trial.margin_noise, strict=True))
    for errors, noise, bound in (*tables, *beside):
        metrics = {one.name: getattr(errors, one.name) for one in _METRICS}
        biases = {name: bias.bias for name, bias in zip(_BIASES, errors.biases, strict=True)}
        place = {"level": errors.level, "level_name": errors.name, "counts": errors.counts}
        place |= {"noise": noise, "bound": bound}
        yield {**_setting(trial.setting), **whole, **place, **metrics, **biases}
