"""Step 4: how accurate. Epsilon and the error that one can accept move each other; a made-up twin shows both."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treetop._util.numbers import plain
from treetop.addons.studio.background import report_share
from treetop.addons.studio.forms import Done, Form
from treetop.addons.studio.made_up import MOST, MadeUpRelease, MadeUpRow, release_made_up
from treetop.addons.studio.plan_state import PlanText
from treetop.addons.studio.workspace import Workspace
from treetop.advice import at_epsilon, epsilon_for, filled_in, known_outlook, loss_for
from treetop.card import in_words
from treetop.card.meaning import meaning
from treetop.card.sentences import say_epsilon, say_odds
from treetop.errors import PlanError, PlanFileError, TreetopError
from treetop.exporting.levels import ENDS
from treetop.exporting.places import Places
from treetop.plan.file import PlanFile
from treetop.plan.mechanism import JointMechanism
from treetop.plan.plan import Plan
from treetop.privacy import Loss
from treetop.publishing.publish import places_of

LOSS = ("loss",)
STEPS = 60
"""Steps of the slider from the least to the largest epsilon, each by the same factor."""
LEAST, LARGEST = 0.01, 10.0
ROWS = 10


def show(workspace: Workspace, entered: Form) -> dict[str, Any]:
    """Return the values of the page."""
    plan = workspace.plan()
    values: dict[str, Any] = {"trouble": None, "look": None, "stated": plan.get("loss", default={}) != {}}
    values["open"] = [one for one in plan.questions if one[0] == "columns"]
    if values["open"]:
        return values
    try:
        values["look"] = look(workspace, plan, Form())
    except TreetopError as problem:
        return values | {"trouble": str(problem)}
    if entered:  # what was typed was refused: it stays, beside the errors of what is saved
        typed = ("epsilon", "delta", "error", "total", "resolve", "level")
        values["look"] |= {name: entered.get(name) for name in typed if name in entered}
    return values


def act(workspace: Workspace, form: Form) -> Done:
    """Write epsilon and delta or, if an error decides, the epsilon that it takes."""
    plan = workspace.plan()
    file = plan.sketch
    _refuse_others(file.plan)
    chosen = _chosen(file.plan, form)
    changes: dict[tuple[tuple[str, ...], str], Any] = {
        (LOSS, "epsilon"): chosen.loss.epsilon,
        (LOSS, "delta"): chosen.loss.delta,
        (("release",), "resolve"): {"fdr": Decimal("0.05")} if form.get("resolve") == "fdr" else None,
    }
    if form.get("total") and plan.kind is None:
        changes[("data",), "records"] = form.whole("total", "About how many records there are")
    stated = plan.get("release", "resolve", default="full")
    if form.get("resolve") == "keep" or (form.get("resolve") != "fdr" and stated == "full"):
        changes.pop((("release",), "resolve"))
    text = plan.changed(changes)
    if form.get("by") == "split":  # what the level needs decides the shares, too
        told = [f"{form.get('level')}={form.whole('error', 'The error')}"]
        answer = loss_for(replace(file, plan=chosen), told)
        text = filled_in(text, answer.plan, plan.path.name)
    plan.replace(text, form.get("seen"))
    return Done("accuracy", f"Saved to {plan.path.name}.")


def look(workspace: Workspace, plan: PlanText, entered: Form) -> dict[str, Any]:
    """Return the errors of every table at the current loss, and the made-up twin."""
    file = plan.sketch
    _refuse_others(file.plan)
    chosen = _chosen(file.plan, entered)
    accuracy = chosen.accuracy()
    measured = [row for row in accuracy.rows if row.share]
    finest = [row for row in accuracy.levels if row.share]
    level = entered.get("level") or ("" if JointMechanism.runs(chosen) or not finest else finest[-1].name)
    if level not in [row.name for row in measured]:
        level = measured[-1].name if measured else ""
    margin = next((row.margin for row in measured if row.name == level), 0)
    total = entered.whole("total", "About how many records there are") if entered.get("total") else file.records
    total = chosen.population if total is None else total
    file = replace(file, plan=chosen)
    verdict = None if total is None else known_outlook(file, total)
    spine_level = level if level in [one.name for one in accuracy.levels] else (finest[-1].name if finest else None)
    made, why = None, "Say above about how many records there are: a table of that size is made up, and released."
    with suppress(TreetopError):
        if total is not None:
            why = "Beside these public facts there is no made-up twin."
            if JointMechanism.runs(chosen):
                why = "A made-up twin shows plans that go from coarse to fine; this plan fits all tables together."
            made = twin(workspace, file, spine_level, min(total, MOST))
    epsilon = float(chosen.loss.epsilon or 0)
    resolve = entered.get("resolve") or ("full" if chosen.resolve == "full" else "keep")
    stated = plan.get("release", "resolve")
    if resolve == "keep" and isinstance(stated, dict) and set(stated) == {"fdr"} and float(stated["fdr"]) == 0.05:
        resolve = "fdr"
    return {
        "epsilon": plain(chosen.loss.epsilon) if chosen.loss.epsilon else None,
        "position": position(epsilon) if epsilon else 0,
        "steps": STEPS,
        "delta": "" if chosen.loss.delta is None else plain(chosen.loss.delta),
        "level": level,
        "error": margin,
        "levels": accuracy.levels,
        "margins": accuracy.margins,
        "measured": measured,
        "widest": max((row.margin for row in measured), default=1),
        "odds": [{"who": row["who"], "epsilon": say_epsilon(row["epsilon"]), "odds": say_odds(row["epsilon"])}
                 for row in in_words(meaning(chosen))],
        "resolve": resolve,
        "total": total or "",
        "verdict": [] if verdict is None else verdict.notes,
        "twin": made,
        "no_twin": why,
        "twin_title": next((row.title or row.name for row in accuracy.levels if row.name == spine_level), ""),
    }  # fmt: skip


def _refuse_others(plan: Plan) -> None:
    """Refuse plans whose tables are no tables of records."""
    if not JointMechanism.runs(plan):
        plan.refuse_unless_top_down()


def _chosen(plan: Plan, entered: Form) -> Plan:
    """Return the plan at the epsilon that was moved to, or at the one that an error takes."""
    if plan.loss.epsilon is None:
        if entered:
            raise PlanFileError("The plan states its loss as rho: change it in an editor, or state epsilon there")
        return plan
    if "delta" in entered:
        plan = _with_delta(plan, entered.get("delta"))
    if entered.get("resolve") in ("full", "fdr"):
        plan = replace(plan, resolve="full" if entered.get("resolve") == "full" else {"fdr": Decimal("0.05")})
    if entered.get("by") in ("error", "split") and entered.get("error"):
        return at_epsilon(plan, epsilon_for(plan, entered.get("level"), entered.whole("error", "The error")))
    if entered.get("by") == "slider" and entered.get("slider"):
        return at_epsilon(plan, epsilon_at(int(entered.whole("slider", "The slider")) - 1))
    return at_epsilon(plan, number(entered.get("epsilon"), "Epsilon")) if entered.get("epsilon") else plan


def _with_delta(plan: Plan, text: str) -> Plan:
    delta = number(text, "Delta") if text else None
    if delta == plan.loss.delta:
        return plan
    return replace(plan, loss=Loss(epsilon=plan.loss.epsilon, delta=delta))


def number(text: str, what: str) -> Decimal:
    """Read a positive number that was typed."""
    try:
        number = Decimal(text.replace(",", "."))
    except InvalidOperation:
        number = Decimal(0)
    if not number.is_finite() or number <= 0:
        raise PlanError(f"{what} is {text!r}: give a positive number, such as {'1e-8' if what == 'Delta' else '1'}")
    return number


def epsilon_at(position: int) -> Decimal:
    """Return the epsilon at a position of the slider, to two digits."""
    value = LEAST * (LARGEST / LEAST) ** (min(max(position, 0), STEPS) / STEPS)
    return Decimal(f"{value:.2g}")


def position(epsilon: float) -> int:
    """Return the position of the slider that is nearest to an epsilon."""
    return min(max(round(STEPS * math.log(epsilon / LEAST) / math.log(LARGEST / LEAST)), 0), STEPS)


def twin(workspace: Workspace, file: PlanFile, level: str | None, total: int) -> dict[str, Any] | None:
    """Release a made-up twin once; return large and small counts as bars, and a map if places are known."""
    if level is None:
        return None
    made = workspace.twin(file.plan.spine, total)
    tried = release_made_up(
        file.plan, made, level, progress=lambda _, share: report_share(share, "of the twin are released")
    )
    rows = tried.rows(ROWS)
    top = max((max(row.made_up, row.released, row.upper or 0) for row in rows), default=1) or 1
    return {
        "rows": [{"row": row, "bar": _bar(row, top)} for row in rows],
        "total": made.total,
        "map": draw(file, tried),
    }


def _bar(row: MadeUpRow, top: int) -> dict[str, float]:
    """Return the position of a count's bar, from 0 to 100: by square roots, so that small counts are seen as well."""

    def at(count: int) -> float:
        return round(100 * math.sqrt(max(count, 0) / top), 2)

    lower, upper = (row.lower or 0, row.upper if row.upper is not None else row.released)
    return {
        "true": at(row.made_up),
        "from": at(lower),
        "wide": round(at(upper) - at(lower), 2),
        "released": at(row.released),
    }


# A small map of a made-up twin: the largest counts of a release, with invented ones marked.

WIDE, HIGH = 640, 360
DRAWN = 150
DOTS = 1000
_EDGE = 24
_SEEN = (4, 96)
"""Places beyond these percentiles do not affect the extent of the map."""

Floats = NDArray[np.float64]


def draw(file: PlanFile, tried: MadeUpRelease) -> dict[str, Any] | None:
    """Return the lines and dots of a map; None if places have no coordinates."""
    found = places_of(file)
    placed = {name: _points(tried, name, found) for name in tried.attributes}
    ends = [name for name in ENDS if placed.get(name) is not None]
    one = next((name for name in tried.attributes if placed[name] is not None), None)
    if len(ends) < len(ENDS) and (one is None or set(ENDS) <= set(tried.attributes)):
        return None
    shown = ends if len(ends) == len(ENDS) else [str(one)]
    at = {name: tried.attributes.index(name) for name in shown}
    frame = _frame(np.concatenate([_known(placed[name]) for name in shown]))
    largest = sorted(tried.released, key=lambda node: -tried.released[node][0])[:DRAWN]
    top = max((tried.released[node][0] for node in largest), default=1)
    marks = []
    for node in reversed(largest):  # the largest last, on top
        ends_at = [frame(placed[name], node[at[name]]) for name in shown]
        if all(point is not None for point in ends_at):
            real = node in tried.true
            marks.append({"real": real, "wide": _width(tried.released[node][0], top), **_shape(ends_at)})
    dots = {frame(placed[name], node) for name in shown for node in range(_nodes(placed[name]))[:DOTS]} - {None}
    invented = sum(node not in tried.true for node in largest)
    about = {"width": WIDE, "height": HIGH, "drawn": len(largest), "invented": invented}
    return {**about, "marks": marks, "dots": sorted(dots)}


def _points(tried: MadeUpRelease, name: str, found: dict[str, Places]) -> Floats | None:
    """Return latitude and longitude (rows) of the nodes of an attribute; NaN for a node without coordinates."""
    index = list(tried.spine.attributes).index(name)
    tree, depth = tried.spine.trees[index], tried.depths[index] - 1
    if tree.digest not in found:
        return None
    places = found[tree.digest].at(tree, depth)
    number = {code: row for row, code in enumerate(places.code.to_pylist())}
    rows = [number.get(code, -1) for code in tree.codes[depth].to_pylist()]
    points = np.stack([np.append(places.latitude, np.nan), np.append(places.longitude, np.nan)])
    return np.asarray(points[:, rows], np.float64)


def _nodes(points: Floats | None) -> int:
    return 0 if points is None else int(points.shape[1])


def _known(points: Floats | None) -> Floats:
    assert points is not None
    known: Floats = points[:, ~np.isnan(points).any(axis=0)].T
    return known


def _frame(known: Floats) -> Any:
    """Return the function from a node to a point of the picture, so that most places are seen."""
    low, high = np.percentile(known, _SEEN, axis=0)
    shrink = math.cos(math.radians(float(low[0] + high[0]) / 2))
    tall, wide = max(high[0] - low[0], 1e-6), max((high[1] - low[1]) * shrink, 1e-6)
    scale = min((HIGH - 2 * _EDGE) / tall, (WIDE - 2 * _EDGE) / wide)
    middle = (low + high) / 2

    def point(points: Floats, node: int) -> tuple[float, float] | None:
        latitude, longitude = points[:, node]
        if math.isnan(latitude):
            return None
        x = WIDE / 2 + (longitude - middle[1]) * shrink * scale
        return round(float(x), 1), round(float(HIGH / 2 - (latitude - middle[0]) * scale), 1)

    return point


def _width(count: int, top: int) -> float:
    return round(0.6 + 5 * math.sqrt(count / top), 2)


def _shape(points: list[Any]) -> dict[str, Any]:
    """Return a bent line between two points, or a dot."""
    if len(points) == 1 or points[0] == points[1]:
        return {"dot": points[0], "line": None}
    (x, y), (u, v) = points
    bend = (round((x + u) / 2 + (v - y) / 8, 1), round((y + v) / 2 - (u - x) / 8, 1))
    return {"dot": None, "line": f"M{x} {y}Q{bend[0]} {bend[1]} {u} {v}"}
