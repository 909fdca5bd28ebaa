"""The numbers of the page of results, and the short tables of docs/estimates.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from experiments.estimates.figures import FEWEST, FIGURES
from experiments.estimates.measure import (
    BASELINE,
    DELTA,
    EPSILON,
    EXACT,
    FEW_CHILDREN,
    LOWER,
    SETTINGS,
    Setting,
    Study,
)
from experiments.estimates.node import LARGE, LOW, TRUE, Node
from experiments.estimates.reasons import reasons
from experiments.estimates.targets import CONFIDENCE, JUDGED, Judged, What, goals, judge, ratio
from experiments.estimates.variant import conclusion, on_tables
from experiments.kit.pages import machine, pictures, render
from experiments.kit.tables import number, percent, table
from treetop.release.errors import SIZES, size_label

COLUMNS = (
    ("invented leaves", "false_discoveries"),
    ("invented count", "false_mass"),
    ("lost leaves", "false_negatives"),
    ("lost count", "lost_mass"),
)
"""Of the tables of the leaves: a title and a metric."""


def page(studies: Sequence[Study], node: Node) -> str:
    """Return the page."""
    return render(
        "estimates/page.md",
        epsilon=f"{EPSILON:g}",
        delta=f"{DELTA:g}",
        confidence=f"{CONFIDENCE:.0%}",
        runs=_runs(studies),
        facts=_facts(studies),
        few=FEW_CHILDREN,
        summary=summary(studies),
        reasons="\n\n".join(reasons(studies)),
        leaves=_leaves(studies),
        figures=pictures(FIGURES),
        node=_node(node),
        closest=on_tables(studies),
        conclusion=conclusion(studies),
        fewest=FEWEST,
        bias=_bias(studies),
        machine=machine(),
        cost=_cost(studies),
        studies=studies,
        levels=_levels,
    )


def short_tables(studies: Sequence[Study]) -> dict[str, str]:
    """Return the tables of the page that explains the preferences, by their marks; none without real tables."""
    real = [one for one in studies if not one.title.startswith("made up")]
    return {"tables": short_table(real), "bias": short_bias(real)} if real else {}


def short_table(studies: Sequence[Study]) -> str:
    """Return what each preference does at the leaves, with exact accounting, beside the baseline."""
    rows = []
    for one in studies:
        for setting in (BASELINE, EXACT, Setting("fewer-lost", "exact"), LOWER):
            above = (ratio(one, setting, level, "mean_of_all").value for level in range(1, len(one.levels) - 1))
            changes = (ratio(one, setting, -1, "mean_of_all").value, fmean(above))
            rows.append(
                (
                    one.title,
                    setting.label if setting == BASELINE else setting.way,
                    *(percent(one.mean(setting, -1, metric)) for _, metric in COLUMNS[::2]),
                    number(one.mean(setting, -1, "mean_of_all")),
                    *("–" if value == 1 else f"{100 * (value - 1):+.0f} %".replace("-", "−") for value in changes),
                )
            )
    head = ("table", "", "invented", "lost", "mean error", "beside InfTDA", "above the leaves")
    return table(head, rows)


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
            *(f"{one.noise[way] / one.noise['paper']:.3f}" for way in ("zcdp", "exact")),
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
                    f"{at_leaf.found}: {at_leaf.verdict} (≤ {leaf})",
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
    rows = (
        (
            one.title,
            setting.label,
            number(one.mean(setting, -1, "mean_of_all")),
            *(str(ratio(one, setting, -1, metric)) for metric in ("mean_of_all", "largest")),
            *(percent(one.mean(setting, -1, metric)) for _, metric in COLUMNS),
        )
        for one in studies
        for setting in SETTINGS
    )
    head = ("table", "setting", "mean error", "over the baseline", "largest error, over the baseline")
    return table((*head, *(title for title, _ in COLUMNS)), rows)


def _node(node: Node) -> dict[str, object]:
    """Return what is told of the constructed node."""
    rows = (
        (
            name,
            ", ".join(map(str, pushed.shown)),
            *(f"{pushed.change:+.1f}", f"{pushed.error:.2f}", f"{pushed.change_of_any:+.1f}"),
            f"{pushed.error_of_any:.2f}",
        )
        for name, pushed in node.by_repair.items()
    )
    given = f"last measured {LOW}"
    head = ("repair", "of the measurements shown", f"large, {given}", f"all, {given}", "large, any noise")
    return {
        "true": ", ".join(map(str, TRUE.tolist())),
        "low": LOW,
        "large": LARGE,
        "draws": f"{node.draws:,}",
        "sigma": f"{node.sigma:.2f}",
        "table": table((*head, "all, any noise"), rows),
    }


def _bias(studies: Sequence[Study]) -> str:
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
    return table((*head, "least squares", "measurement, retained or not"), rows)


def short_bias(studies: Sequence[Study]) -> str:
    """Return the bias of measurements and of least squares at the level above the leaves, by true count."""
    rows = []
    for one in studies:
        level = one.selection[-2]
        cells = {
            size: " / ".join(_signed(off[size] / level.retained[size]) for off in (level.own_off, level.estimate_off))
            for size in _sizes(one)
        }
        rows.append((one.title, f"{one.noise['exact']:.1f}", *(cells.get(size, "-") for size in range(len(SIZES)))))
    head = ("measurement / least squares", "noise", *(f"true count {size_label(low, high)}" for low, high in SIZES))
    return table(head, rows)


def _sizes(study: Study) -> list[int]:
    """Return the classes of true counts of which enough nodes were retained to speak of a mean."""
    return [size for size, nodes in enumerate(study.selection[-2].retained) if nodes >= FEWEST]


def _signed(value: float) -> str:
    rounded = round(value, 1) + 0.0
    return f"{rounded:+.1f}".replace("-", "−") if rounded else "0.0"


def _cost(studies: Sequence[Study]) -> str:
    rows = []
    for one in studies:
        cost = one.cost
        memory = ("-", "-")
        if cost.memory is not None:
            memory = f"{cost.memory / 2**20:,.0f} MiB", f"{cost.memory / cost.slots:,.0f} bytes"
        each = f"{1e9 * cost.seconds / cost.slots:,.0f} ns"
        rows.append((one.title, f"{cost.slots:,}", f"{cost.descent:.2f} s", f"{cost.seconds:.2f} s", each, *memory))
    return table(("table", "measurements", "descent", "lower_error", "each", "memory", "each"), rows)


def _levels(study: Study) -> str:
    settings = [setting for setting in SETTINGS if setting != BASELINE]
    verdicts = {
        (setting, judged.level, judged.what == "largest"): judged.verdict
        for setting in JUDGED
        for judged in judge(study, setting)
        if not judged.what.startswith("invented")
    }
    marks = {None: "", "met": " ✓", "missed": " ✗", "not resolved": " ·"}
    rows = []
    for level in study.levels[1:]:
        name = f"{level.name} ({level.true_nodes:,} of {level.nodes:,})"
        for what, metric in (("mean", "mean_of_all"), ("largest", "largest")):
            cells = (
                f"{ratio(study, setting, level.level, metric)}"
                + marks[verdicts.get((setting, level.level, what == "largest"))]
                for setting in settings
            )
            rows.append((name, what, number(study.mean(BASELINE, level.level, metric)), *cells))
    head = ("level (nodes that occur, of all)", "error", "baseline", *(setting.label for setting in settings))
    return table(head, rows)
