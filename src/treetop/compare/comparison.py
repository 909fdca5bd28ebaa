"""What a comparison found: a tidy table for programs, a summary for people, both for the steward only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from statistics import fmean
from typing import Any

import pyarrow as pa

from treetop.compare.mechanisms import PRACTICES
from treetop.compare.trial import Setting, Trial
from treetop.release.errors import SIZES, LevelErrors

FENCE = "for the steward only, not for release"
WARNING = (
    "Errors are computed from the private table, so these results are as private as the table is. Nothing here is a "
    "release: no noisy count was kept, and nothing was spent. To choose a mechanism by what it does to the private "
    "table is a use of private data that no budget counts: choose by a public table, or by last year's."
)

LIMITED = "The truth is the whole table: records beyond the limit of contributions count as errors."
"""What is to be said where a limit of contributions is enforced."""

WITHOUT_FACTS = (
    "The plan has public facts. Only the mechanism called facts keeps them; all others run on the plan without its "
    "facts, with an even split, and may contradict them."
)
"""What is to be said where the plan has facts."""

_TYPES = {"int": pa.int64(), "float": pa.float64(), "str": pa.string()}
_METRICS = [one for one in fields(LevelErrors) if one.name not in ("level", "name", "biases", "counts")]
_BIASES = [
    f"bias_{low}_up" if high is None else f"bias_{low}_{high}" if high > low else f"bias_{low}" for low, high in SIZES
]

SCHEMA = pa.schema(
    [
        ("mechanism", pa.string()),
        ("accounting", pa.string()),
        ("epsilon", pa.float64()),
        ("delta", pa.float64()),
        ("repeat", pa.int64()),
        ("level", pa.int64()),
        ("level_name", pa.string()),
        ("counts", pa.string()),
        *((one.name, pa.float64() if one.name == "nodes" else _TYPES[str(one.type)]) for one in _METRICS),
        *((name, pa.float64()) for name in _BIASES),
        ("noise", pa.float64()),
        ("bound", pa.int64()),
        ("violations", pa.int64()),
        ("leaves", pa.int64()),
        ("bytes", pa.int64()),
        ("seconds", pa.float64()),
        ("wall_seconds", pa.float64()),
        ("peak_bytes", pa.int64()),
    ],
    metadata={"treetop": FENCE},
)
"""One row per mechanism, accounting, epsilon, repeat and level, margins after the leaves; what a whole run has is
repeated at its levels.

The metrics are those of `LevelErrors`, by name; `nodes` is real, since public trees may have more than 2^63.
"""


@dataclass(frozen=True)
class Refused:
    """A setting that could not be served."""

    setting: Setting
    """What was asked for."""
    reason: str
    """Why it could not be done, and what could be."""


@dataclass(frozen=True)
class Comparison:
    """The results of a comparison. Private: errors tell of the truth."""

    trials: tuple[Trial, ...]
    """Every run, in the order of the settings."""
    refused: tuple[Refused, ...] = ()
    """What could not be served, and why."""
    limited: bool = False
    """Whether a limit of contributions left records out, which then count as errors."""
    facts: bool = False
    """Whether the plan has public facts, which most mechanisms cannot keep."""

    @property
    def notes(self) -> list[str]:
        """What is to be said beside the results."""
        practised = any(trial.setting.mechanism in PRACTICES for trial in self.trials)
        return [LIMITED] * self.limited + [WITHOUT_FACTS] * self.facts + [NO_GUARANTEE] * practised

    def table(self) -> pa.Table:
        """Return all results as one tidy Arrow table."""
        return pa.Table.from_pylist([row for trial in self.trials for row in _rows(trial)], schema=SCHEMA)

    def refusals(self) -> pa.Table:
        """Return what could not be served as a table."""
        rows = [{**_setting(one.setting), "reason": one.reason} for one in self.refused]
        return pa.Table.from_pylist(rows, schema=pa.schema([*list(SCHEMA)[:4], ("reason", pa.string())]))

    def by_setting(self) -> dict[Setting, list[Trial]]:
        """Return the runs of each setting."""
        found: dict[Setting, list[Trial]] = {}
        for trial in self.trials:
            found.setdefault(trial.setting, []).append(trial)
        return found

    def summary(self, title: str) -> str:
        """Return the results in Markdown: a table for every accounting and epsilon, and what was refused."""
        lines = [f"# {title}", "", f"**{FENCE[:1].upper()}{FENCE[1:]}.** {WARNING}", ""]
        for (accounting, epsilon, delta), members in self.groups().items():
            at = "" if delta is None else f", delta {delta:g}"
            lines += [f"## Epsilon {epsilon:g}{at}, {accounting} accounting", "", *_summary_table(members), ""]
            lines += [*_errors_table(members), ""]
            lines += [*_bounds_table(members), ""]
        if self.trials:
            lines += [*NOTES, "", *(line for note in self.notes for line in (note, ""))]
        if self.refused:
            lines += ["## Not run", ""]
            for one in self.refused:
                lines.append(
                    f"- {one.setting.mechanism}, epsilon {one.setting.epsilon:g}, {one.setting.accounting} accounting: "
                    f"{one.reason}"
                )
            lines.append("")
        return "\n".join(lines)

    def summary_tables(self) -> list[list[str]]:
        """Return the tables of the summary alone, as lines of Markdown: one for every accounting and epsilon."""
        return [_summary_table(members) for members in self.groups().values()]

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


def _summary_table(members: Sequence[Sequence[Trial]]) -> list[str]:
    head = [
        *("mechanism", "runs", "largest error, first level", "at the leaves", "mean error at the leaves", "invented"),
        *("lost", "not sums", "below zero", "leaves", "seconds", "memory"),
    ]
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for trials in members:
        cells = (
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
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _errors_table(members: Sequence[Sequence[Trial]]) -> list[str]:
    """The mean errors of every level and margin: a row per table, a column per mechanism."""
    head = ["mean error of", "nodes", *(trials[0].setting.mechanism for trials in members)]
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for title, nodes, *errors in mean_errors(members):
        lines.append(f"| {' | '.join((title, f'{nodes:,}', *map(number, errors)))} |")
    return lines


def _bounds_table(members: Sequence[Sequence[Trial]]) -> list[str]:
    """The largest error of every level in any run, and what it should be within: a row per level."""
    head = ["largest error, of at most", "nodes", *(trials[0].setting.mechanism for trials in members)]
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    for at, level in enumerate(members[0][0].errors):
        cells = (_within(max(trial.errors[at].largest for trial in some), some[0].bounds[at]) for some in members)
        lines.append(f"| {' | '.join((level.counts, f'{level.nodes:,}', *cells))} |")
    return lines


def _within(largest: float, bound: int | None) -> str:
    """Say an error and its bound, where one is promised.

    >>> _within(12, 1500), _within(12, None)
    ('12 of 1,500', '12')
    """
    return number(largest) if bound is None else f"{number(largest)} of {bound:,}"


def mean_errors(members: Sequence[Sequence[Trial]]) -> Iterator[tuple[str, int, *tuple[float, ...]]]:
    """Yield, for every level and then every margin, what it counts, its public nodes and each setting's mean error.

    The mean is over the nodes that are not zero in truth or in the release, and over the runs.
    """
    tables = [[trial.errors + trial.margins for trial in trials] for trials in members]
    for at, table in enumerate(tables[0][0]):
        means = (fmean(run[at].mean for run in runs) for runs in tables)
        yield table.counts, table.nodes, *means


def spread(values: Iterable[float], say: Callable[[float], str]) -> str:
    """Say a mean, and between which values it lies where they look different."""
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
    """Say a share."""
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
    return {
        "mechanism": setting.mechanism,
        "accounting": setting.accounting,
        "epsilon": setting.epsilon,
        "delta": setting.delta,
    }


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
