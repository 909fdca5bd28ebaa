"""A design: which tables to measure, in which order and with which shares, for the tables whose errors matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

from treetop._util.choices import nearest
from treetop._util.system import Progress
from treetop.advice.expected import LEAST_SHARE, Depths, expected_errors
from treetop.advice.outlooks import known_outlook
from treetop.advice.public import Planned, Prior, counts_groups, open_plan, twin_of
from treetop.advice.report import Cell, Report, Row
from treetop.advice.search import Candidate, Search, level_name, moved
from treetop.advice.trials import OWN_FACTS, differs, table_errors
from treetop.domain.marginal import depths_alone, table_named
from treetop.domain.spine import Spine, apart
from treetop.errors import PlanError, SpineError
from treetop.plan.plan import Plan
from treetop.plan.workload import text_table

PAIRS = 3.0
"""Weight of all pairs together beside all totals by default."""
FINER = 2.0
"""Weight of the pairs of one level beside coarser ones by default: their counts are smaller, and errors matter more."""
_HOW = "write 'totals', 'pairs', 'leaves', 'origin totals', 'state pairs' or a table, 'place.state * sex'"


@dataclass(frozen=True)
class Objective:
    """A table whose errors matter: a design minimises the sum of weight · log(error)."""

    table: Depths
    weight: float


def read_objectives(spine: Spine, asked: Sequence[str] = ()) -> list[Objective]:
    """Return the tables that people name, each once with the sum of its weights; all totals and pairs by default.

    By default each attribute at all its levels, and all together at equal levels: the finer, the heavier. The best
    share of a table is about its share of all weights, so that totals get a fourth of the loss.

    >>> from treetop.domain.hierarchy import Hierarchy
    >>> ends = Hierarchy.from_prefixes(["AX", "AY", "BX"], widths=[1], levels=["state", "county"])
    >>> spine = Spine.origin_first(ends, ends)
    >>> [(one.table, one.weight) for one in read_objectives(spine, ["state pairs", "leaves=3", "origin totals"])]
    [((1, 1), 1.0), ((2, 2), 3.0), ((1, 0), 1.0), ((2, 0), 1.0)]
    >>> [one.table for one in read_objectives(spine)]
    [(1, 0), (2, 0), (0, 1), (0, 2), (1, 1), (2, 2)]
    """
    weights: dict[Depths, float] = {}
    if not asked:
        pairs = _pairs(spine)
        totals = [table for table in _totals(spine) if table not in pairs]
        weights = dict.fromkeys(totals, 1 / max(len(totals), 1))
        whole = sum(FINER**at for at in range(len(pairs)))
        weights |= {table: PAIRS * FINER**at / whole for at, table in enumerate(pairs)}
    for text in asked:
        name, weight = _weighted(text)
        for table in dict.fromkeys(_tables(spine, name, text)):
            weights[table] = weights.get(table, 0.0) + weight
    return [Objective(table, weight) for table, weight in weights.items()]


def _weighted(text: str) -> tuple[str, float]:
    name, equals, number = text.rpartition("=")
    if not equals:
        return text.strip(), 1.0
    try:
        weight = float(number)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight > 0):
        raise PlanError(f"{text!r}: the weight is {number.strip()!r}: write a positive number, as in leaves=3")
    return name.strip(), weight


def _tables(spine: Spine, name: str, text: str) -> list[Depths]:
    """Return the tables of "totals", "pairs" or "leaves", of what comes before these, or of a table's own name."""
    *words, kind = name.split(" ")
    about = " ".join(words).strip()
    levels = [tree.levels for tree in spine.trees]
    if kind == "totals":
        if found := _totals(spine, about):
            return found
        known = [*spine.attributes, *dict.fromkeys(level for own in levels for level in own)]
        raise PlanError(
            f"{text!r}: there is no attribute or level {about!r}{nearest(about, known)}; there are {', '.join(known)}"
        )
    if kind == "pairs" and about:  # of all attributes that have a level of that name
        found = [tuple(own.index(about) + 1 if about in own else 0 for own in levels)]
        if np.count_nonzero(found) < 2:
            shared = [name for name in levels[0] if any(name in own for own in levels[1:])]
            raise PlanError(
                f"{text!r}: {about!r} is not a level of two attributes{nearest(about, shared)}; name the table, as "
                "in 'place.state * sex'"
            )
        return found
    if name in ("pairs", "leaves"):
        return _pairs(spine)[0 if name == "pairs" else -1 :]
    try:
        return [table_named(spine, name)]
    except SpineError as problem:
        raise PlanError(f"{str(problem).removeprefix('margins: ')}; {_HOW}") from problem


def _totals(spine: Spine, about: str = "") -> list[Depths]:
    """Return the tables of an attribute, of `attribute.level`, or of every attribute with a level of that name."""
    attribute, level = apart(about, spine.attributes)
    if attribute not in spine.attributes:
        attribute, level = "", about
    return [
        depths_alone(len(spine.trees), index, depth)
        for index, (name, tree) in enumerate(zip(spine.attributes, spine.trees, strict=True))
        for depth, one in enumerate(tree.levels, start=1)
        if attribute in ("", name) and level in ("", one)
    ]


def _pairs(spine: Spine) -> list[Depths]:
    """Return the tables of all attributes, each as fine as the others or as it gets; the last are the leaves."""
    deepest = max(len(tree.levels) for tree in spine.trees)
    return [tuple(min(depth, len(tree.levels)) for tree in spine.trees) for depth in range(1, deepest + 1)]


def design(
    plan: Planned,
    care: Sequence[str] = (),
    *,
    total: float | None = None,
    twin: Prior | str | Path | None = None,
    twin_source: str | None = None,
    runs: int = 20,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Choose tables, order and shares for what you care about; only public sizes decide.

    The rows are the tables that matter, with the mean absolute error to expect now and with the design. Values: the
    `spine`, `margins` and `split` to use, levels that are `skipped`, margins left out for `crossing` others, and the
    `gain`, the factor by which errors get smaller (weighted geometric mean).

    Args:
        plan: The plan, or its file.
        care: Such as "origin totals", "state pairs", "leaves=3"; totals and pairs of every level by default.
        total: About how many records there are, in case a descent could become too long.
        twin: A public table, or a release, on which both plans are tried; a `Prior` or its location.
        twin_source: Where the twin is from, in words.
        runs: Trials on the twin.
        threads: Trials at once; as many as cores by default.
        progress: Called with the fraction of trials done.
    """
    own, file = open_plan(plan)
    _refuse_what_has_no_choice(own)
    public, notes = (None, []) if twin is None else twin_of(file, twin, twin_source)
    if public is not None and public.twin is not None:
        notes = [*notes, *([OWN_FACTS] if differs(own, public.twin) else [])]
    if total is None:
        total = own.population if public is None or public.twin is None else own.population or public.twin.total
    asked = read_objectives(own.spine, care)
    # Without tables that have no error, such as a level with one node under an exact total.
    now = zip(asked, expected_errors(own, [one.table for one in asked]), strict=True)
    objectives = {one: found for one, found in now if found.variance > 0}
    if not objectives:
        raise PlanError("every table that you care for is known without noise: name others with `care`")
    wanted = [one.table for one in objectives]
    search = Search(own, wanted, [one.weight for one in objectives], total)
    best = search.best()
    advised = search.as_plan(best)
    assert advised is not None, "a search keeps to candidates that keep the facts"
    # Shares in tenths of a percent.
    shares = [Fraction(Decimal(f"{max(share, LEAST_SHARE):.3f}")) for share in search.solve(best)[1]]
    measured = [part.name for part in advised.workload if part.is_measured]
    advised = replace(advised, split=dict(zip(measured, shares, strict=True)))
    there = moved(wanted, own.spine, advised.spine)
    tried: Sequence[Sequence[float | None]] = [[None] * len(wanted)] * 2
    if public is not None:
        options = {"runs": runs, "threads": threads, "progress": progress}
        tried = [table_errors(one, public, at, **options) for one, at in ((own, wanted), (advised, there))]  # type: ignore[arg-type]
    rows = [
        {
            "counts": before.title,
            "nodes": before.nodes,
            "weight": one.weight,
            "error_before": before.error,
            "error": after.error,
            "tried_before": tried_before,
            "tried": tried_after,
        }
        for (one, before), after, tried_before, tried_after in zip(
            objectives.items(), expected_errors(advised, there), *tried, strict=True
        )
    ]
    report = _report(own, advised, rows, search, best, None if public is None else public.words)
    found = known_outlook(advised, total)
    found = None if found is None else found.alone()
    return replace(report, parts={} if found is None else {"outlook": found}, public_notes=tuple(notes))


def _refuse_what_has_no_choice(plan: Plan) -> None:
    if counts_groups(plan):
        raise PlanError(
            "a design chooses which tables to measure, and in which order; a plan for group sizes has one table, whose "
            "levels are measured together. Choose its shares with `prior`, its loss with `targets`, and see what its "
            "largest size loses with `twin`"
        )
    plan.refuse_unless_top_down()
    if plan.spine.goes_past:
        raise PlanError(
            "the plan is bottom-up, or goes past levels, which decides what is measured: list its levels in [spine] "
            "order to have them advised on"
        )
    if not any(part.is_measured for part in plan.workload):
        raise PlanError("the plan measures nothing: there is nothing to design")


def _report(before: Plan, plan: Plan, rows: Sequence[Row], search: Search, best: Candidate, twin: str | None) -> Report:
    weight = sum(row["weight"] for row in rows)
    gains = (row["weight"] * math.log(row["error_before"] / row["error"]) for row in rows if row["error"] > 0)
    gain = math.exp(math.fsum(gains) / weight)

    def better(error: str) -> Cell:
        return lambda row: f"× {row[f'{error}_before'] / row[error]:.2f}" if row[error] > 0 else "-"

    columns: list[tuple[str, Cell]] = [
        ("counts", "{counts}"),
        ("public nodes", "{nodes:,}"),
        ("weight", "{weight:.3g}"),
        ("error now", "{error_before:,.4g}"),
        ("advised", "{error:,.4g}"),
        ("better by", better("error")),
    ]
    note = (
        "Errors are mean absolute ones, to expect of counts that are not small: those of small counts are smaller. By "
        f"weight, they get better by × {gain:.2f}."
    )
    if twin is not None:
        columns += [("twin: now", "{tried_before:,.4g}"), ("advised", "{tried:,.4g}"), ("better by", better("tried"))]
        note += f" Those of the twin ({twin}) are of released counts, over all public nodes."
    kept = {one for step in best.steps for one in step}
    refined = [(part.attribute, part.depth + 1) for level in before.spine.levels for part in level.parts]
    skipped = [level_name(before.spine, *one) for one in refined if one not in kept]
    crossing = [
        margin.name
        for margin in before.margin_tables
        if margin.depths not in best.margins
        and margin.depths in search.crossing(replace(best, margins=(*best.margins, margin.depths)))
    ]
    now, new = (
        {part.name: f"{float(part.share):.1%}" for part in each.workload if part.is_measured} for each in (before, plan)
    )
    shares = [(name, now.get(name, "-"), new.get(name, "-")) for name in dict.fromkeys((*new, *now))]
    changes = _changes(before, plan, skipped, crossing, search.refused)
    return Report(
        plan,
        "design",
        "What to measure",
        tuple(rows),
        columns,
        "tables",
        {
            "spine": list(plan.spine.splits),
            "margins": plan.margins if isinstance(plan.margins, str) else list(plan.margins),
            "split": {part.name: float(part.share) for part in plan.workload if part.is_measured},
            "skipped": skipped,
            "refused": search.refused or None,
            "crossing": crossing,
            "gain": gain,
            "twin": twin,
        },
        notes=(note, "", text_table([("measured", "share now", "advised"), *shares], left=(0,)), *changes),
    )


def _changes(before: Plan, plan: Plan, skipped: Sequence[str], crossing: Sequence[str], refused: str) -> list[str]:
    """Return what else the design changes, in sentences after blank lines."""
    sentences = []
    if tuple(plan.spine.splits) != tuple(before.spine.splits):
        merged = any(level.is_merged for level in plan.spine.levels)
        how = " Levels that are joined by * are refined at once." if merged else ""
        sentences.append(f"The spine is another: {' > '.join(level.name for level in plan.spine.levels)}.{how}")
    if skipped:
        sentences.append(
            f"Left out, since no table that you care for needs them: {', '.join(skipped)}. They are not released, and "
            "cannot be asked for; care for them to keep them."
        )
    if crossing:
        sentences.append(
            f"Margins left out, since they cross others and would not be kept: {', '.join(crossing)}. Released counts "
            "would not add up to them, however well they are measured."
        )
    if refused:
        sentences.append(f"Other spines were left out, since they cannot keep the facts. The first of them: {refused}.")
    return [line for sentence in sentences for line in ("", sentence)]
