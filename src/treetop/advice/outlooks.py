"""What to expect of a release before anything is spent: which tables are mostly noise, and errors at several epsilons.

An outlook needs the number of records, roughly: from the steward, since that of the private table is not known yet. A
table whose counts are smaller than its noise on average is mostly noise, unless records crowd in few of its nodes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias

from treetop._util.numbers import Number, plain
from treetop._util.picture import INK, label_ends, new_figure, plain_ticks, save_figure, tidy
from treetop.advice.error_laws import mean_absolute_of_count
from treetop.advice.expected import expected_errors
from treetop.advice.losses import definition_of, with_epsilon
from treetop.advice.public import Planned, counts_groups, open_plan, refuse_other_kinds
from treetop.advice.report import Report, Row
from treetop.errors import LossError, PlanError
from treetop.plan.plan import Plan
from treetop.plan.workload import text_table

Verdict: TypeAlias = Literal["better than zeros", "better than zeros if crowded", "worse than zeros"]
"""A release of every leaf, compared with a table that says zero everywhere."""


def outlook(plan: Planned, total: float) -> Report:
    """Compare the average count of every level and margin with its noise, for about `total` records; no data is read.

    Values: `total`, `verdict` (of the leaves), `needed` (half of the records must be in leaves with at least so many,
    else zeros everywhere would be closer), and `sentences` with remedies.
    """
    own, _ = open_plan(plan)
    if counts_groups(own):
        raise PlanError("`total` is for records; a plan for group sizes states how many groups there are: leave it out")
    own.refuse_unless_top_down()
    if not (math.isfinite(total) and total > 0):
        raise PlanError(f"the total is {total}: give about how many records there are, such as 40e6")
    spine = own.spine
    named = [(level.name, spine.depths(level.index)) for level in spine.levels]
    named += [(margin.part, margin.depths) for margin in own.margin_tables]
    expected = expected_errors(own, [depths for _, depths in named])
    sizes = [part.nodes for part in own.workload][1:]  # without cells that public facts make impossible
    rows = tuple(
        {
            "name": name,
            "counts": table.title,
            "nodes": size,
            "average": total / size,
            "noise": table.deviation,
            "mostly_noise": bool(total / size < table.deviation),
        }
        for (name, _), table, size in zip(named, expected, sizes, strict=True)
    )
    levels = rows[: len(spine.levels)]
    verdict, needed = _verdict(own, total, levels[-1]), levels[-1]["noise"]
    sentences = _sentences(own, total, rows, levels, verdict) if any(row["mostly_noise"] for row in rows) else []
    return Report(
        own,
        "outlook",
        f"What to expect of about {total:,.0f} records",
        rows,
        (
            ("counts", "{counts}"),
            ("public nodes", "{nodes:,}"),
            (
                "average count",
                lambda row: f"{row['average']:,.3g}" if row["average"] < 1000 else f"{row['average']:,.0f}",
            ),
            ("noise (sd)", "{noise:,.3g}"),
            ("mostly noise", lambda row: "yes" if row["mostly_noise"] else ""),
        ),
        "tables",
        {"total": float(total), "verdict": verdict, "needed": needed, "sentences": sentences},
        notes=tuple(sentences),
    )


def known_outlook(plan: Plan, declared: float | None = None) -> Report | None:
    """Return the outlook for as many records as declared, or as there are units at least; None if neither is known."""
    if declared is not None:
        return outlook(plan, declared)
    try:
        plan.refuse_unless_top_down()
    except PlanError:  # nobody has asked, and nothing can be said of this kind of plan
        return None
    return None if plan.population is None else outlook(plan, plan.population)


def _verdict(plan: Plan, total: float, leaves: Row) -> Verdict:
    """Judge the leaves; they are most crowded if each leaf of one attribute has a single partner."""
    if not leaves["mostly_noise"]:
        return "better than zeros"
    crowded = total / max(tree.sizes[-1] for tree in plan.spine.trees)
    return "better than zeros if crowded" if crowded >= leaves["noise"] else "worse than zeros"


def _sentences(plan: Plan, total: float, rows: Sequence[Row], levels: Sequence[Row], verdict: Verdict) -> list[str]:
    """Return what to expect if something is mostly noise, and what would help."""
    names = ", ".join(row["counts"] for row in rows if row["mostly_noise"])
    needed = f"{levels[-1]['noise']:,.3g}"
    sentences = [f"Mostly noise, if {total:,.0f} records are spread evenly: {names}."]
    if verdict == "worse than zeros":
        sentences.append(
            "A full release would be worse than zeros: even the leaves of a single attribute have fewer records on "
            f"average than the {needed} by which a count is off."
        )
    elif verdict == "better than zeros if crowded":
        sentences.append(
            "A full release is better than zeros only if more than half of the records are in leaves with "
            f"{needed} or more of them. Trials on a public twin would show it."
        )
    return sentences + [f"- {remedy}" for remedy in _remedies(plan, total, levels)]


def _remedies(plan: Plan, total: float, levels: Sequence[Row]) -> list[str]:
    last = levels[-1]
    if not last["mostly_noise"]:
        return ["Give the loss to fewer tables, or more of it to these: a design would choose them."]
    good = [row for row in levels if not row["mostly_noise"]]
    remedies = [f"Stop at {good[-1]['name']}: leave the finer levels out of the spine."] if good else []
    if plan.resolve == "full":
        remedies.append("Name only what the measurements show: resolve = { fdr = 0.05 }.")
    cells = total / last["noise"]
    if cells >= 2:
        remedies.append(f"Merge leaves until there are no more than {cells:,.0f}.")
    return [*remedies, f"Or spend more: about {_larger(plan, last)}."]


def _larger(plan: Plan, last: Row) -> str:
    """Return about what loss would bring the noise down to the average: noise falls as fast as epsilon grows."""
    factor, loss = last["noise"] / last["average"], plan.loss
    if loss.epsilon is None:
        return f"rho {float(f'{float(loss.budget) * factor**2:.2g}'):,g}"
    return f"epsilon {float(f'{float(loss.epsilon) * factor:.2g}'):,g}"


# The errors of every level at several epsilons, side by side, as a table or as a picture.

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
    figure = new_figure(1.2 + (3.6 + 0.075 * longest) * len(panels), 4.2, dpi=130)
    from matplotlib import colormaps

    found = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (what, lines) in zip(found, panels, strict=True):
        for place, margins in enumerate(lines):
            axes.plot(epsilons, margins, marker="o", markersize=4, linewidth=1.8, color=_shade(colormaps, place, lines))
        axes.set(xlabel="epsilon", xscale="log", yscale="log" if _positive(panels) else "symlog")
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


def _positive(panels: Sequence[tuple[str, Lines]]) -> bool:
    return all(margin > 0 for _, lines in panels for line in lines for margin in line)


def _label(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 3 else f"{names[0]} … {names[-1]} ({len(names)} levels)"
