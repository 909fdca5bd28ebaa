"""The numbers of the page of results, and the short table of docs/estimates.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from experiments.estimates.figures import FEWEST, FIGURES
from experiments.estimates.measure import BASELINE, DELTA, EPSILON, EXACT, FEW_CHILDREN, LOWER, SETTINGS, Setting, Study
from experiments.estimates.node import LARGE, LOW, TRUE, Node
from experiments.estimates.reasons import closest_on_tables, conclusion, reasons
from experiments.estimates.targets import JUDGED, Judged, What, goals, judge, ratio
from experiments.kit.compared import CONFIDENCE
from experiments.kit.pages import machine, pictures, render
from experiments.kit.tables import number, percent, table
from treetop.release.errors import SIZES, size_label

Row = tuple[str, ...]


def page(studies: Sequence[Study], node: Node) -> str:
    """Return the page."""
    return render(
        "estimates/page.md",
        epsilon=EPSILON,
        delta=DELTA,
        confidence=f"{CONFIDENCE:.0%}",
        runs=_runs(studies),
        few=FEW_CHILDREN,
        summary=[row for setting in JUDGED for one in studies for row in [_summary(one, setting)]],
        **reasons(studies),
        leaves=[_leaves(one, setting) for one in studies for setting in SETTINGS],
        figures=pictures(FIGURES),
        truth=TRUE.tolist(),
        low=LOW,
        large=LARGE,
        node=node,
        closest=list(closest_on_tables(studies)),
        conclusion=conclusion(studies),
        fewest=FEWEST,
        bias=[row for one in studies for row in _bias(one)],
        machine=machine(),
        cost=list(map(_cost, studies)),
        studies=studies,
        settings=[setting.label for setting in SETTINGS[1:]],
        levels=_levels,
    )


def short_table(studies: Sequence[Study]) -> dict[str, str]:
    """Return the table of the page that explains the preferences, by its mark; none without real tables."""
    real = [one for one in studies if not one.title.startswith("made up")]
    if not real:
        return {}
    head = ("table", "", "invented", "lost", "error beside InfTDA")
    ways = (BASELINE, EXACT, Setting("fewer-lost", "exact"), LOWER)
    return {"tables": table(head, [_short(one, setting) for one in real for setting in ways])}


def _short(one: Study, setting: Setting) -> Row:
    """Return what a preference does at the leaves, with exact accounting, beside the baseline."""
    value = ratio(one, setting, -1, "mean_of_all").value
    return (
        one.title,
        setting.label if setting == BASELINE else setting.way,
        *(percent(one.mean(setting, -1, metric)) for metric in ("false_discoveries", "false_negatives")),
        "–" if value == 1 else f"{100 * (value - 1):+.0f} %".replace("-", "−"),
    )


def _runs(studies: Sequence[Study]) -> str:
    titles: dict[int, list[str]] = {}
    for one in studies:
        titles.setdefault(len(one.runs[BASELINE]), []).append(one.title)
    return "; ".join(f"{runs} runs of {', '.join(some)}" for runs, some in titles.items())


def _summary(one: Study, setting: Setting) -> Row:
    """Return the verdicts of a table and setting."""
    found = list(judge(one, setting))
    inner, leaf = goals(one)
    at_leaf = next(judged for judged in found if judged.what == "leaf")
    return (
        setting.label,
        one.title,
        f"{_tally(found, 'mean')} (≤ {inner})",
        f"{at_leaf.found}: {at_leaf.verdict} (≤ {leaf})",
        _tally(found, "largest"),
        " · ".join(judged.verdict for judged in found if judged.what.startswith("invented")) or "-",
    )


def _tally(found: Iterable[Judged], what: What) -> str:
    verdicts = [judged.verdict for judged in found if judged.what == what]
    counted = {verdict: verdicts.count(verdict) for verdict in ("met", "missed", "not resolved")}
    if len(verdicts) in counted.values():
        return f"all {len(verdicts)} {verdicts[0]}"
    return ", ".join(f"{times} {verdict}" for verdict, times in counted.items() if times)


def _leaves(one: Study, setting: Setting) -> Row:
    shares = ("false_discoveries", "false_mass", "false_negatives", "lost_mass")
    return (
        one.title,
        setting.label,
        number(one.mean(setting, -1, "mean_of_all")),
        *(str(ratio(one, setting, -1, metric)) for metric in ("mean_of_all", "largest")),
        *(percent(one.mean(setting, -1, metric)) for metric in shares),
    )


def _bias(one: Study) -> Iterator[Row]:
    level = one.selection[-2]
    for size in _sizes(one):
        nodes = level.retained[size]
        parts = (level.own_off, level.children_off, level.subtree_off, level.estimate_off)
        yield (
            one.title,
            size_label(*SIZES[size]),
            f"{nodes / level.runs:,.0f} of {level.measured[size] / level.runs:,.0f}",
            *(_signed(part[size] / nodes) for part in parts),
            _signed(level.measured_off[size] / level.measured[size]),
        )


def _sizes(study: Study) -> list[int]:
    """Return the classes of true counts of which enough nodes were retained to speak of a mean."""
    return [size for size, nodes in enumerate(study.selection[-2].retained) if nodes >= FEWEST]


def _signed(value: float) -> str:
    rounded = round(value, 1) + 0.0
    return f"{rounded:+.1f}".replace("-", "−") if rounded else "0.0"


def _cost(one: Study) -> Row:
    cost, memory = one.cost, ("-", "-")
    if cost.memory is not None:
        memory = f"{cost.memory / 2**20:,.0f} MiB", f"{cost.memory / cost.slots:,.0f} bytes"
    each = f"{1e9 * cost.seconds / cost.slots:,.0f} ns"
    return one.title, f"{cost.slots:,}", f"{cost.descent:.2f} s", f"{cost.seconds:.2f} s", each, *memory


def _levels(study: Study) -> list[Row]:
    """Return every level of a table: the ratios to the baseline, with marks for the verdicts."""
    marks = {"met": " ✓", "missed": " ✗", "not resolved": " ·"}
    verdicts = {
        (setting, judged.level, judged.what == "largest"): marks[judged.verdict]
        for setting in JUDGED
        for judged in judge(study, setting)
        if not judged.what.startswith("invented")
    }
    rows = []
    for level in study.levels[1:]:
        name, at = f"{level.name} ({level.true_nodes:,} of {level.nodes:,})", level.level
        for what, metric in (("mean", "mean_of_all"), ("largest", "largest")):
            cells = (
                f"{ratio(study, setting, at, metric)}{verdicts.get((setting, at, what == 'largest'), '')}"
                for setting in SETTINGS[1:]
            )
            rows.append((name, what, number(study.mean(BASELINE, at, metric)), *cells))
    return rows
