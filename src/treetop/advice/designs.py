"""A design: which tables to measure, in which order and with which shares, for the tables whose errors matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from treetop._util.choices import nearest
from treetop._util.system import Progress
from treetop.advice.error_laws import Floats
from treetop.advice.expected import Depths, expected_errors
from treetop.advice.outlooks import known_outlook
from treetop.advice.prior import Prior
from treetop.advice.public import GroupTwin, Planned, counts_groups, open_plan, twin_of
from treetop.advice.report import Cell, Report, Row
from treetop.advice.search import LEAST_SHARE, Candidate, Search, level_name, moved
from treetop.advice.trials import OWN_FACTS, differs, table_errors
from treetop.domain.marginal import table_named
from treetop.domain.spine import Spine
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

    >>> from treetop.domain.hierarchy import Hierarchy
    >>> ends = Hierarchy.from_prefixes(["AX", "AY", "BX"], widths=[1], levels=["state", "county"])
    >>> spine = Spine.origin_first(ends, ends)
    >>> [(one.table, one.weight) for one in read_objectives(spine, ["state pairs", "leaves=3", "origin totals"])]
    [((1, 1), 1.0), ((2, 2), 3.0), ((1, 0), 1.0), ((2, 0), 1.0)]
    >>> [one.table for one in read_objectives(spine)]
    [(1, 0), (2, 0), (0, 1), (0, 2), (1, 1), (2, 2)]
    """
    if not asked:
        return _everything(spine)
    weights: dict[Depths, float] = {}
    for text in asked:
        name, weight = _weighted(text)
        for table in dict.fromkeys(_tables(spine, name, text)):
            weights[table] = weights.get(table, 0.0) + weight
    return [Objective(table, weight) for table, weight in weights.items()]


def _everything(spine: Spine) -> list[Objective]:
    """Return each attribute at all its levels, and all together at equal levels: the finer, the heavier.

    The best share of a table is about its share of all weights, so that totals get a fourth of the loss.
    """
    pairs = _equal(spine)
    totals = [table for table in _every_total(spine) if table not in pairs]
    weights = dict.fromkeys(totals, 1 / max(len(totals), 1))
    whole = sum(FINER**at for at in range(len(pairs)))
    weights |= {table: PAIRS * FINER**at / whole for at, table in enumerate(pairs)}
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
    *words, kind = name.split(" ")
    about = " ".join(words).strip()
    if kind == "totals":
        return _totals(spine, about, text) if about else _every_total(spine)
    if kind == "pairs":
        return [_pair(spine, about, text)] if about else _equal(spine)
    if name == "leaves":
        return _equal(spine)[-1:]
    try:
        return [table_named(spine, name)]
    except SpineError as problem:
        raise PlanError(f"{str(problem).removeprefix('margins: ')}; {_HOW}") from problem


def _every_total(spine: Spine) -> list[Depths]:
    return [table for attribute in spine.attributes for table in _alone(spine, attribute)]


def _alone(spine: Spine, attribute: str, level: str | None = None) -> list[Depths]:
    """Return the tables of one attribute, at all its levels or at one."""
    own = list(spine.attributes).index(attribute)
    return [
        tuple(depth if one == own else 0 for one in range(len(spine.trees)))
        for depth, name in enumerate(spine.trees[own].levels, start=1)
        if level in (None, name)
    ]


def _totals(spine: Spine, about: str, text: str) -> list[Depths]:
    """Return the tables of an attribute, of `attribute.level`, or of every attribute with a level of that name."""
    attribute, _, level = about.partition(".")
    if attribute in spine.attributes:
        found = _alone(spine, attribute, level or None)
    else:
        found = [one for of in spine.attributes for one in _alone(spine, of, about)]
    if not found:
        known = [*spine.attributes, *dict.fromkeys(name for tree in spine.trees for name in tree.levels)]
        raise PlanError(
            f"{text!r}: there is no attribute or level {about!r}{nearest(about, known)}; there are {', '.join(known)}"
        )
    return found


def _pair(spine: Spine, about: str, text: str) -> Depths:
    """Return the table of all attributes that have a level of that name, at that level."""
    found = tuple(tree.levels.index(about) + 1 if about in tree.levels else 0 for tree in spine.trees)
    if sum(depth > 0 for depth in found) < 2:
        shared = [
            name for name in spine.trees[0].levels if any(name in tree.levels for tree in spine.trees[1:])
        ]  # fmt: skip
        raise PlanError(
            f"{text!r}: {about!r} is not a level of two attributes{nearest(about, shared)}; name the table, as "
            "in 'place.state * sex'"
        )
    return found


def _equal(spine: Spine) -> list[Depths]:
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
    public, notes = (None, []) if twin is None else twin_of(own, file, twin, twin_source)
    assert not isinstance(public, GroupTwin)
    if public is not None and public.twin is not None:
        notes = [*notes, *([OWN_FACTS] if differs(own, public.twin) else [])]
    if total is None:
        total = own.population if public is None or public.twin is None else own.population or public.twin.total
    objectives = _possible(own, read_objectives(own.spine, care))
    search = Search(own, [one.table for one in objectives], [one.weight for one in objectives], total)
    best = search.best()
    advised = _as_plan(search, best)
    wanted = [one.table for one in objectives]
    there = moved(wanted, own.spine, advised.spine)
    before, after = expected_errors(own, wanted), expected_errors(advised, there)
    rows = [
        {
            "counts": now.title,
            "nodes": now.nodes,
            "weight": one.weight,
            "error_before": now.error,
            "error": then.error,
            "tried_before": None,
            "tried": None,
        }
        for one, now, then in zip(objectives, before, after, strict=True)
    ]
    if public is not None:
        tried = [
            table_errors(each, public, tables, runs=runs, threads=threads, progress=progress)
            for each, tables in ((own, wanted), (advised, there))
        ]
        rows = [row | {"tried_before": now, "tried": then} for row, now, then in zip(rows, *tried, strict=True)]
    report = _report(own, advised, rows, search, best, None if public is None else public.words)
    found = known_outlook(advised, total)
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
    columns: list[tuple[str, Cell]] = [
        ("counts", "{counts}"),
        ("public nodes", "{nodes:,}"),
        ("weight", "{weight:.3g}"),
        ("error now", "{error_before:,.4g}"),
        ("advised", "{error:,.4g}"),
        ("better by", lambda row: _better(row["error_before"], row["error"])),
    ]
    note = (
        "Errors are mean absolute ones, to expect of counts that are not small: those of small counts are smaller. By "
        f"weight, they get better by × {gain:.2f}."
    )
    if twin is not None:
        columns += [
            ("twin: now", "{tried_before:,.4g}"),
            ("advised", "{tried:,.4g}"),
            ("better by", lambda row: _better(row["tried_before"], row["tried"])),
        ]
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
    margins = plan.margins
    return Report(
        plan,
        "design",
        "What to measure",
        tuple(rows),
        columns,
        "tables",
        {
            "spine": list(plan.spine.splits),
            "margins": margins if isinstance(margins, str) else list(margins),
            "split": {part.name: float(part.share) for part in plan.workload if part.is_measured},
            "skipped": skipped,
            "refused": search.refused or None,
            "crossing": crossing,
            "gain": gain,
            "twin": twin,
        },
        notes=(note, "", _shares(before, plan), *_changes(before, plan, skipped, crossing, search.refused)),
    )


def _better(before: float, after: float) -> str:
    return f"× {before / after:.2f}" if after > 0 else "-"


def _shares(before: Plan, plan: Plan) -> str:
    now, new = (
        {part.name: f"{float(part.share):.1%}" for part in each.workload if part.is_measured} for each in (before, plan)
    )
    rows = [(name, now.get(name, "-"), new.get(name, "-")) for name in dict.fromkeys((*new, *now))]
    return text_table([("measured", "share now", "advised"), *rows], left=(0,))


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


def _possible(plan: Plan, objectives: Sequence[Objective]) -> list[Objective]:
    """Leave out tables without error, such as a level with one node under an exact total."""
    expected = expected_errors(plan, [one.table for one in objectives])
    kept = [one for one, found in zip(objectives, expected, strict=True) if found.variance > 0]
    if not kept:
        raise PlanError("every table that you care for is known without noise: name others with `care`")
    return kept


def _as_plan(search: Search, best: Candidate) -> Plan:
    """Return a plan that measures the tables of a candidate with the best shares."""
    plan = search.as_plan(best)
    assert plan is not None, "a search keeps to candidates that keep the facts"
    measured = [part.name for part in plan.workload if part.is_measured]
    return replace(plan, split=dict(zip(measured, _rounded(search.solve(best)[1]), strict=True)))


def _rounded(shares: Floats) -> list[Fraction]:
    """Round shares to tenths of a percent."""
    return [Fraction(Decimal(f"{max(share, LEAST_SHARE):.3f}")) for share in shares]
