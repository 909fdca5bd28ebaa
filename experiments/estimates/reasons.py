"""Why targets are missed, in numbers: what less noise alone can bring, and what of an error no estimate can take back.

And whether the closest of all repairs of least largest change helps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from experiments.estimates.measure import BASELINE, CLOSEST, DEFAULT, EUCLIDEAN, EXACT, LOWER, Setting, Study
from experiments.estimates.targets import JUDGED, Judged, judge, ratio
from experiments.kit.pages import render
from experiments.kit.tables import percent
from experiments.kit.verdicts import verdict

FEW_OCCUR = 0.1
"""Up to this share of the measured leaves being there, a table counts as one of few."""
KEPT = 0.001
"""A level counts as untouched by pruning while less than this share of the true count is in nodes that are gone."""
TARGETS = {
    "mean": "mean error at level {}",
    "leaf": "mean error at the leaves",
    "largest": "largest error at level {}",
    "invented": "invented leaves",
    "invented count": "invented count",
}
"""How what is judged is called."""


def reasons(studies: Sequence[Study]) -> dict[str, object]:
    """Return which targets were missed at which levels, and why, for the places of the page."""
    return {
        "misses": list(_misses(studies)),
        "noise": {way: min(one.noise[way] / one.noise["paper"] for one in studies) for way in ("zcdp", "exact")},
        "kept": KEPT,
        "unpruned": {one.accounting: _span(_ratios(studies, one, pruned=False)) for one in (DEFAULT, EXACT)},
        "reach": {one.accounting: in_reach(_ratios(studies, one, pruned=False)) for one in (DEFAULT, EXACT)},
        "shares": [_lost(one, BASELINE) + _invented(one, BASELINE) for one in studies],
        "parts": [row for one in studies for row in _parts(one)],
        "pruned": _pruned(studies),
        "few_occur": FEW_OCCUR,
        "threshold": _threshold(studies),
        "not_lowest": list(_not_the_lowest(studies)),
        "largest": list(_largest(studies)),
    }


def _misses(studies: Sequence[Study]) -> Iterator[tuple[str, ...]]:
    for setting in JUDGED:
        for study in studies:
            found = list(judge(study, setting))
            cells = [_listed(found, verdict) for verdict in ("missed", "not resolved")]
            if any(cells):
                yield (setting.label, study.title, *(cell or "-" for cell in cells))


def _listed(found: Sequence[Judged], verdict: str) -> str:
    """Say at which levels a verdict fell, by target; levels are numbered from the root."""
    levels = {what: [one.level for one in found if (one.what, one.verdict) == (what, verdict)] for what in TARGETS}
    return "; ".join(TARGETS[what].format(_ranges(some)) for what, some in levels.items() if some)


def _ranges(levels: Sequence[int]) -> str:
    parts: list[list[int]] = []
    for level in levels:
        if parts and parts[-1][-1] == level - 1:
            parts[-1].append(level)
        else:
            parts.append([level])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}–{part[-1]}" for part in parts)


def _ratios(studies: Sequence[Study], setting: Setting, pruned: bool) -> list[float]:
    """Return the ratios of the mean error at the levels above the leaves at which much, or hardly anything, is gone."""
    return [
        ratio(one, setting, level.level, "mean_of_all").value
        for one in studies
        for level in one.selection[:-1]
        if (level.unmeasured >= KEPT * one.total) == pruned
    ]


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.2f}–{max(values):.2f}" if values else "-"


def _lost(study: Study, setting: Setting) -> float:
    """Return the share of the leaves' absolute errors that is in lost leaves."""
    return float((study.values(setting, -1, "lost_mass") * study.total / _sum(study, setting)).mean())


def _invented(study: Study, setting: Setting) -> float:
    return float((study.values(setting, -1, "false_mass") * study.total / _sum(study, setting)).mean())


def _sum(study: Study, setting: Setting, level: int = -1) -> NDArray[np.float64]:
    return study.values(setting, level, "mean_of_all") * study.levels[level].nodes


def _gone(study: Study, level: int = -1) -> float:
    """Return what cannot be taken back, as a share of the absolute errors of lower-error at a level."""
    return 2 * study.selection[level].unmeasured / float(_sum(study, LOWER, level).mean())


def _parts(study: Study) -> Iterator[tuple[str, ...]]:
    for setting in (BASELINE, EXACT, LOWER):
        lost, invented = _lost(study, setting), _invented(study, setting)
        gone = percent(_gone(study)) if setting == LOWER else "-"
        yield study.title, setting.label, percent(lost), percent(invented), percent(1 - lost - invented), gone


def _pruned(studies: Sequence[Study]) -> dict[str, object]:
    free, held = (_span(_ratios(studies, LOWER, pruned)) for pruned in (False, True))
    most = max(_gone(one, level) for one in studies for level in range(-len(one.selection), 0))
    deepest = max(studies, key=_gone)
    off = float(deepest.selection[-2].own_off[0] / max(deepest.selection[-2].retained[0], 1))
    at = {"deepest": deepest.title, "gone": _gone(deepest), "off": off, "sigmas": off / deepest.noise["exact"]}
    return {"free": free, "held": held, "most": most, **at}


def _threshold(studies: Sequence[Study]) -> dict[str, object]:
    euclid = {one.title: ratio(one, EXACT, -1, "mean_of_all", EUCLIDEAN) for one in studies}
    again = {one.title: ratio(one, LOWER, -1, "mean_of_all", EXACT) for one in studies}
    few, many = (
        _span([again[one.title].value for one in studies if (_occurring(one) < FEW_OCCUR) == low])
        for low in (True, False)
    )
    rows = [
        (one.title, percent(_occurring(one)), str(euclid[one.title]), str(again[one.title]))
        for one in sorted(studies, key=_occurring)
    ]
    better = "; ".join(title for title, found in euclid.items() if found.against(0.99) == "met") or "none"
    worse = "; ".join(title for title, found in euclid.items() if found.against(1.01) == "missed") or "none"
    return {"few": few, "many": many, "better": better, "worse": worse, "rows": rows}


def _occurring(study: Study) -> float:
    """Return the share of the measured leaves that are truly above zero."""
    measured = study.selection[-1].measured
    return float(measured[1:].sum() / measured.sum())


def _not_the_lowest(studies: Sequence[Study]) -> Iterator[str]:
    """Say where the simpler euclidean repair has the lower mean error."""
    for one in studies:
        for level in range(1, len(one.levels)):
            beside = ratio(one, EUCLIDEAN, level, "mean_of_all", LOWER)
            if beside.against(1.0) == "met":
                lost = [percent(one.mean(way, level, "lost_mass")) for way in (EUCLIDEAN, LOWER)]
                name = f"{one.levels[level].name} of {one.title}"
                yield f"{name}: {beside.value:.2f} of it, lost count {lost[0]} against {lost[1]}"


def _largest(studies: Sequence[Study]) -> Iterator[str]:
    for setting in JUDGED:
        places = [(one, level) for one in studies for level in range(1, len(one.levels))]
        study, level = max(places, key=lambda place: ratio(place[0], setting, place[1], "largest").value)
        found, name = ratio(study, setting, level, "largest"), study.levels[level].name
        yield f"{setting.label} {found.value:.2f} ± {found.error:.2f} ({name} of {study.title})"


def closest_on_tables(studies: Sequence[Study]) -> Iterator[tuple[str, ...]]:
    """Yield what the variant does to each table."""
    for one in studies:
        places = ((-2, "mean_of_all"), (-1, "mean_of_all"), (-1, "largest"))
        found = (str(ratio(one, CLOSEST, *place, EXACT)) for place in places)
        invented = (percent(one.mean(way, -1, "false_discoveries")) for way in (CLOSEST, EXACT, EUCLIDEAN))
        yield one.title, *found, *invented


@verdict("estimates.in_reach")
def in_reach(ratios: Sequence[float]) -> dict[float, str]:
    """Say of the goals above the leaves whether less noise alone reaches them, where next to nothing is pruned."""
    if not ratios:
        return dict.fromkeys(GOALS, "not tried")
    return {
        goal: "in reach" if max(ratios) <= goal else "out of reach" if min(ratios) > goal else "in reach of some levels"
        for goal in GOALS
    }


GOALS = (0.85, 0.75)
"""What the mean error above the leaves should be at most, beside the baseline's: for all tables, and for those with few
children."""


@verdict("estimates.conclusion")
def conclusion(studies: Sequence[Study]) -> str:
    """Say whether it helps: where its mean error at the leaves is lower, and it invents no more."""
    verdicts = [ratio(one, CLOSEST, -1, "mean_of_all", EXACT).against(1.0) for one in studies]
    invented = [[one.mean(way, -1, "false_discoveries") for way in (CLOSEST, EXACT)] for one in studies]
    return render(
        "estimates/conclusion.md",
        all=len(studies),
        lower=verdicts.count("met"),
        higher=verdicts.count("missed"),
        more=sum(ours > theirs + 0.001 for ours, theirs in invented),
        like=max(abs(ratio(one, CLOSEST, -1, "mean_of_all", EUCLIDEAN).value - 1) for one in studies),
    )
