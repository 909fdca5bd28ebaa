"""The page of results, written whole from what was measured, and the short table of docs/estimates.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from experiments.estimates.figures import FEWEST, FIGURES
from experiments.estimates.measure import BASELINE, DELTA, EPSILON, EXACT, LOWER, SETTINGS, Setting, Study
from experiments.estimates.node import Node
from experiments.estimates.reasons import reasons
from experiments.estimates.tables import FEW_CHILDREN
from experiments.estimates.targets import CONFIDENCE, JUDGED, Compared, Judged, What, goals, judge, ratio
from experiments.estimates.variant import variant
from experiments.false_discoveries.report import number, percent
from experiments.resolution.page import table
from treetop.evaluate.errors import SIZES, size_label

HEAD = """\
# Lower error at the same loss: what was measured

Written by `python -m experiments.estimates`; [the page on estimates](../estimates.md) explains what is compared. All at
ε = {epsilon:g}, δ = {delta:g}. One trip is protected, exchanged for any other; the loss is divided evenly over the
levels. {runs}.

The **baseline** is InfTDA as published: the least largest change, with the accounting of the paper. The others
differ in two ways. *Accounting*: `zcdp` is Treetop's default, `exact` is asked for with `accounting = "exact"`; they
need less noise for the same guarantee. *What is made of the measurements*: `fewer-invented` (the default),
`fewer-lost`, `euclidean` (a repair without a preference of its own), `lower-error`, and `closest`, which is tried here
only.

- *Mean error*: the mean of |released − true| over **all public nodes** of a level, present or not.
- *Largest error*: the largest of a level, averaged over runs.
- *Invented* (the false discovery rate, FDR): of the released leaves, or of the count in them, the share in leaves that
  are truly empty. *Lost* (the false negative rate, FNR): of the true leaves, or of the true count, the share in leaves
  that are released as zero.

All settings of one run see the same random words, so that a ratio is not about who had the better luck. ± is one
standard error of a ratio. A target is *met* or *missed* where the {confidence:.0%} interval (by Student's law) lies
on one side of it, and *not resolved* otherwise. Keys are derived from the name of the run, so the same version gives
everybody the same numbers. With so many levels, a few of the {confidence:.0%} intervals will miss.

**For the steward only.** All of it needs the true counts. These tables are public, so they can be shown.
"""

TARGETS = """\
At exact accounting: the mean error at least 15 % lower than the baseline's at every level above the leaves, and 12 %
at the leaves; where no node has more than {few} children, 25 % and 15 %. The largest error no worse at any level. With
fewer-invented, no more invented leaves. The same is asked of the default accounting, for which it was not promised.

A cell says at how many levels a target was met, missed or not resolved; at the leaves, the ratio.
"""

LEVELS = "Ratios to the baseline, ± a standard error; ✓ a target met, ✗ missed, · not resolved."

COLUMNS = (
    ("invented leaves", "false_discoveries"),
    ("invented count", "false_mass"),
    ("lost leaves", "false_negatives"),
    ("lost count", "lost_mass"),
)
"""Of the tables of the leaves: a title and a metric."""


def page(studies: Sequence[Study], node: Node) -> str:
    """Return the page."""
    head = HEAD.format(epsilon=EPSILON, delta=DELTA, confidence=CONFIDENCE, runs=_runs(studies))
    parts = [head, "## The tables and their noise", _facts(studies)]
    parts += ["## Targets", TARGETS.format(few=FEW_CHILDREN), summary(studies), "## Where targets are missed, and why"]
    parts += [*reasons(studies), "## The leaves, by setting", _leaves(studies), "## Figures", *_figures()]
    parts += ["## Closest among those of least largest change", *variant(studies, node)]
    parts += ["## What pruning does to unbiasedness", *_bias(studies), "## Time and memory", *_cost(studies)]
    parts += ["## Level by level", LEVELS]
    parts += [f"### {one.title}\n\n{_levels(one)}" for one in studies]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def insert(studies: Sequence[Study], about: Path) -> None:
    """Put the short tables between the marks of the page that explains the preferences; needs the real tables."""
    real = [one for one in studies if not one.title.startswith("made up")]
    if not real:
        return
    text = about.read_text(encoding="utf-8")
    for name, body in (("tables", short_table(real)), ("bias", short_bias(real))):
        start, stop = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        head, found, rest = text.partition(start)
        _, closed, tail = rest.partition(stop)
        if not found or not closed:
            raise ValueError(f"{about} has no marks {start.strip()} and {stop.strip()} for a table")
        text = f"{head}{start}\n{body}\n\n{stop}{tail}"
    about.write_text(text, encoding="utf-8")


def short_table(studies: Sequence[Study]) -> str:
    """Return what each preference does at the leaves, with exact accounting, beside the baseline."""
    settings = (BASELINE, EXACT, Setting("fewer-lost", "exact"), LOWER)
    rows = [
        (
            one.title,
            setting.label if setting == BASELINE else setting.way,
            *(percent(one.values(setting, -1, metric).mean()) for _, metric in COLUMNS[::2]),
            number(one.values(setting, -1, "mean_of_all").mean()),
            _percent_change(ratio(one, setting, -1, "mean_of_all").value),
            _percent_change(float(np.mean([r.value for r in _above_leaves(one, setting)]))),
        )
        for one in studies
        for setting in settings
    ]
    head = ("table", "", "invented", "lost", "mean error", "beside InfTDA", "above the leaves")
    return table(head, rows)


def _above_leaves(study: Study, setting: Setting) -> Iterator[Compared]:
    for level in range(1, len(study.levels) - 1):
        yield ratio(study, setting, level, "mean_of_all")


def _percent_change(value: float) -> str:
    return "–" if value == 1 else f"{100 * (value - 1):+.0f} %".replace("-", "−")


def _runs(studies: Sequence[Study]) -> str:
    numbers = {one.name: len(one.runs[BASELINE]) for one in studies}
    said = (
        f"{runs} runs of {', '.join(one.title for one in studies if numbers[one.name] == runs)}"
        for runs in dict.fromkeys(numbers.values())
    )
    return "; ".join(said)


def _facts(studies: Sequence[Study]) -> str:
    rows = (
        (
            one.title,
            number(one.total),
            f"{one.levels[-1].true_nodes:,} of {one.levels[-1].nodes:,}",
            str(len(one.levels) - 1),
            str(one.widest),
            *(f"{one.noise[way]:.2f}" for way in ("paper", "zcdp", "exact")),
            f"{one.noise['zcdp'] / one.noise['paper']:.3f}",
            f"{one.noise['exact'] / one.noise['paper']:.3f}",
        )
        for one in studies
    )
    head = ("table", "trips", "leaves that occur", "levels", "most children", "σ, paper", "σ, zcdp", "σ, exact")
    return table((*head, "zcdp over paper", "exact over paper"), rows)


def summary(studies: Sequence[Study]) -> str:
    """Return the verdicts, a row a table and setting."""
    rows = []
    for setting in JUDGED:
        for one in studies:
            found = list(judge(one, setting))
            inner, leaf = goals(one)
            at_leaf = next(judged for judged in found if judged.what == "leaf")
            rows.append(
                (
                    setting.label,
                    one.title,
                    f"{_tally(found, 'mean')} (≤ {inner})",
                    f"{at_leaf.found.value:.3f} ± {at_leaf.found.error:.3f}: {at_leaf.verdict} (≤ {leaf})",
                    _tally(found, "largest"),
                    " · ".join(judged.verdict for judged in found if judged.what.startswith("invented")) or "-",
                )
            )
    head = ("setting", "table", "mean error, levels above the leaves", "mean error, leaves", "largest error, levels")
    return table((*head, "invented leaves · count"), rows)


def _tally(found: Iterable[Judged], what: What) -> str:
    verdicts = [judged.verdict for judged in found if judged.what == what]
    counted = {verdict: verdicts.count(verdict) for verdict in ("met", "missed", "not resolved")}
    if len(verdicts) in counted.values():
        return f"all {len(verdicts)} {verdicts[0]}"
    return ", ".join(f"{number} {verdict}" for verdict, number in counted.items() if number)


def _leaves(studies: Sequence[Study]) -> str:
    rows = [
        (
            one.title,
            setting.label,
            number(one.values(setting, -1, "mean_of_all").mean()),
            _ratio(ratio(one, setting, -1, "mean_of_all")),
            _ratio(ratio(one, setting, -1, "largest")),
            *(percent(one.values(setting, -1, metric).mean()) for _, metric in COLUMNS),
        )
        for one in studies
        for setting in SETTINGS
    ]
    head = ("table", "setting", "mean error", "over the baseline", "largest error, over the baseline")
    return table((*head, *(title for title, _ in COLUMNS)), rows)


def _figures() -> Iterator[str]:
    for file, caption in FIGURES.items():
        yield f"![{caption}](../images/{file})\n\n{caption}"


def _bias(studies: Sequence[Study]) -> Iterator[str]:
    yield (
        "Retained nodes of the level above the leaves, at exact accounting: how far their estimates are off on "
        "average, by true count. The measurement of a retained node is too high, because being high is why it was "
        "retained; those of its children were drawn after that, and their sum is right on average. Least squares lie "
        "between, or above where the nodes further up were retained by luck as well. All measured nodes together, "
        "retained or not, are right on average (last column): it is the choice that makes the bias, not the noise. "
        f"Sums of many children vary much; of fewer than {FEWEST} nodes in all runs nothing is said."
    )
    rows = []
    for one in studies:
        level = one.selection[-2]
        for size in _sizes(one):
            nodes = level.retained[size]
            parts = (level.own_off, level.children_off, level.subtree_off, level.estimate_off)
            rows.append(
                (
                    one.title,
                    size_label(*SIZES[size]),
                    f"{nodes / level.runs:,.0f} of {level.measured[size] / level.runs:,.0f}",
                    *(_signed(part[size] / nodes) for part in parts),
                    _signed(level.measured_off[size] / level.measured[size]),
                )
            )
    head = ("table", "true count", "retained, a run", "own measurement", "sum of children", "own subtree")
    yield table((*head, "least squares", "measurement, retained or not"), rows)


def short_bias(studies: Sequence[Study]) -> str:
    """Return the bias of measurements and of least squares at the level above the leaves, by true count."""
    rows = []
    for one in studies:
        level = one.selection[-2]
        cells = {
            size: f"{_signed(level.own_off[size] / level.retained[size])} / "
            f"{_signed(level.estimate_off[size] / level.retained[size])}"
            for size in _sizes(one)
        }
        noise = f"{one.noise['exact']:.1f}"
        rows.append((one.title, noise, *(cells.get(size, "-") for size in range(len(SIZES)))))
    head = ("measurement / least squares", "noise", *(f"true count {size_label(low, high)}" for low, high in SIZES))
    return table(head, rows)


def _sizes(study: Study) -> list[int]:
    """Return the classes of true counts of which enough nodes were retained to speak of a mean."""
    return [size for size, nodes in enumerate(study.selection[-2].retained) if nodes >= FEWEST]


def _signed(value: float) -> str:
    rounded = round(value, 1) + 0.0
    return f"{rounded:+.1f}".replace("-", "−") if rounded else "0.0"


def _cost(studies: Sequence[Study]) -> Iterator[str]:
    yield (
        "Estimating again after a descent: `lower_error`, at exact accounting; medians of processor seconds on one "
        f"thread ({os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}). Memory is "
        "the most in addition to what the descent has left behind, its measurements included."
    )
    rows = []
    for one in studies:
        cost = one.cost
        memory = "-" if cost.memory is None else f"{cost.memory / 2**20:,.0f} MiB"
        per_slot = "-" if cost.memory is None else f"{cost.memory / cost.slots:,.0f} bytes"
        rows.append(
            (
                one.title,
                f"{cost.slots:,}",
                f"{cost.descent:.2f} s",
                f"{cost.seconds:.2f} s",
                f"{1e9 * cost.seconds / cost.slots:,.0f} ns",
                memory,
                per_slot,
            )
        )
    yield table(("table", "measurements", "descent", "lower_error", "each", "memory", "each"), rows)


def _levels(study: Study) -> str:
    settings = [setting for setting in SETTINGS if setting != BASELINE]
    verdicts = {
        (setting, judged.level, judged.what == "largest"): judged.verdict
        for setting in JUDGED
        for judged in judge(study, setting)
        if not judged.what.startswith("invented")
    }
    marks = {"met": " ✓", "missed": " ✗", "not resolved": " ·"}
    rows = []
    for level in study.levels[1:]:
        for metric, largest in (("mean_of_all", False), ("largest", True)):
            cells = []
            for setting in settings:
                verdict = verdicts.get((setting, level.level, largest))
                cells.append(_ratio(ratio(study, setting, level.level, metric)) + (marks[verdict] if verdict else ""))
            base = number(study.values(BASELINE, level.level, metric).mean())
            name = f"{level.name} ({level.true_nodes:,} of {level.nodes:,})"
            rows.append((name, "largest" if largest else "mean", base, *cells))
    head = ("level (nodes that occur, of all)", "error", "baseline", *(setting.label for setting in settings))
    return table(head, rows)


def _ratio(found: Compared) -> str:
    return f"{found.value:.3f} ± {found.error:.3f}"
