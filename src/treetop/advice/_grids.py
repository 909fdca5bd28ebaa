"""The errors of every level at several epsilons, side by side, as a table or as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

from treetop._util.numbers import Number, plain
from treetop._util.picture import INK, label_ends, new_figure, plain_ticks, save_figure, tidy
from treetop.advice._error_laws import mean_absolute_of_count
from treetop.advice._losses import definition_of, with_epsilon
from treetop.advice._report import Report, Row
from treetop.advice.public import Planned, open_plan, refuse_other_kinds
from treetop.errors import LossError
from treetop.plan.workload import text_table

Lines: TypeAlias = dict[tuple[int, ...], list[str]]
"""By the margins at each epsilon, the levels that have them."""


def error_grid(
    plan: Planned,
    epsilons: Sequence[Number],
    *,
    delta: Number | None = None,
    pure: bool = False,
    confidence: float = 0.95,
) -> Report:
    """Return the errors of the measurements of every level and margin at every epsilon; no data is read.

    Args:
        plan: The plan, or its file, which may leave the loss open.
        epsilons: The epsilons of the whole release.
        delta: Their delta; the plan's by default.
        pure: Pure epsilons, without delta.
        confidence: One count is within the margin with this confidence, by the measurements of its level alone.
    """
    own, file = open_plan(plan, open_loss=True)
    refuse_other_kinds(own)
    kind, exact = definition_of(own, file, delta, pure)
    if kind == "zcdp" and exact is None:
        raise LossError("the plan states its loss in rho: give `delta` for a grid of epsilons")
    if not epsilons:
        raise LossError("the grid has no epsilon: give at least one")
    if not 0 < confidence < 1:
        raise LossError(f"confidence is {confidence}: give a probability between 0 and 1")
    risk, rows = 1 - Fraction(str(confidence)), []
    for epsilon in epsilons:
        for part in with_epsilon(own, epsilon, exact).workload:
            rows.append(
                {
                    "epsilon": float(epsilon),
                    "level": part.index,
                    "name": part.name,
                    "nodes": part.nodes,
                    "noise": part.deviation,
                    "mean": mean_absolute_of_count(part.law, own.terms) if part.is_measured else 0.0,
                    "margin": part.margin(risk, own.terms),
                }
            )
    at = "pure" if exact is None else f"delta {plain(exact)}"
    return Report(
        own,
        "grid",
        f"One measurement is within ± this, {100 * confidence:g}% of the time ({at})",
        tuple(rows),
        (),
        "rows",
        {"delta": None if exact is None else float(exact)},
        notes=(
            grid_text({float(epsilon): [row for row in rows if row["epsilon"] == epsilon] for epsilon in epsilons}),
        ),
    )


def grid_text(rows: Mapping[float, Sequence[Row]]) -> str:
    """Return the margins of levels as a table for people: a row per level, a column per epsilon."""
    head = ("level", "name", "public nodes", *(f"epsilon {epsilon:g}" for epsilon in rows))
    body = [
        (str(own[0]["level"]), own[0]["name"], f"{own[0]['nodes']:,}", *(f"{row['margin']:,}" for row in own))
        for own in zip(*rows.values(), strict=True)
    ]
    return text_table([head, *body], left=(1,))


def plot_grid(
    grid: Report, file: Path, confidence: float, trials: Mapping[float, Report] | None = None, title: str = ""
) -> None:
    """Draw the margins of a grid to a file; with trials at the same epsilons, those of released counts beside them."""
    epsilons = sorted(set(grid.column("epsilon")))
    panels = [("one count, as measured", _measured(grid.rows, epsilons))]
    if trials:
        panels.append(("released counts, on the twin", _released(trials, epsilons)))
    longest = max(len(_label(names)) for _, lines in panels for names in lines.values()) if panels[0][1] else 0
    is_positive = all(margin > 0 for _, lines in panels for line in lines for margin in line)
    figure = new_figure(1.2 + (3.6 + 0.075 * longest) * len(panels), 4.2, dpi=130)
    from matplotlib import colormaps

    found = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (what, lines) in zip(found, panels, strict=True):
        for place, margins in enumerate(lines):
            axes.plot(epsilons, margins, marker="o", markersize=4, linewidth=1.8, color=_shade(colormaps, place, lines))
        axes.set(xlabel="epsilon", xscale="log", yscale="log" if is_positive else "symlog")
        axes.set_title(what, loc="left")
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        tidy(axes)
        plain_ticks(axes, "y")
    figure.axes[0].set_ylabel(f"off by at most this, {100 * confidence:g} times in 100")
    figure.suptitle(title or grid.plan.title, x=0.01, ha="left", color=INK, fontsize=12)
    figure.draw_without_rendering()  # limits are known from here on
    for axes, (_, lines) in zip(found, panels, strict=True):
        ends = enumerate(lines.items())
        label_ends(
            axes, epsilons[-1], [(own[-1], _label(names), _shade(colormaps, at, lines)) for at, (own, names) in ends]
        )
    save_figure(figure, file)


def _shade(maps: Any, place: int, lines: Lines) -> Any:
    return maps["viridis"](0.1 + 0.65 * place / max(len(lines) - 1, 1))


def _measured(rows: Sequence[Row], epsilons: Sequence[float]) -> Lines:
    margins = {(row["name"], row["epsilon"]): row["margin"] for row in rows}
    # A level that is not measured is exact, or as the level above.
    names = dict.fromkeys(row["name"] for row in rows if row["noise"] > 0)
    return _joined({name: tuple(margins[name, epsilon] for epsilon in epsilons) for name in names})


def _released(trials: Mapping[float, Report], epsilons: Sequence[float]) -> Lines:
    names = trials[epsilons[0]].column("name")
    lines = zip(*(trials[epsilon].column("margin") for epsilon in epsilons), strict=True)
    margins = dict(zip(names, lines, strict=True))
    return _joined({name: line for name, line in margins.items() if any(line)})


def _joined(margins: Mapping[str, tuple[int, ...]]) -> Lines:
    """Group levels with the same errors: their lines would hide one another."""
    lines: Lines = {}
    for name, line in margins.items():
        lines.setdefault(line, []).append(name)
    return lines


def _label(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 3 else f"{names[0]} … {names[-1]} ({len(names)} levels)"
