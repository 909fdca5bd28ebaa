"""A design: which tables to measure, in which order and with which shares, for the tables whose errors matter."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from treetop._util.choices import nearest
from treetop._util.dtypes import Floats
from treetop._util.system import Progress
from treetop.advice._outlooks import known_outlook
from treetop.advice._report import Cell, Report, Row
from treetop.advice.expected import LEAST_SHARE, Depths, ErrorModel, Tables, best_shares, expected_errors, sizes_of
from treetop.advice.public import Planned, Prior, counts_groups, open_plan, twin_of
from treetop.advice.trials import OWN_FACTS, TrialOptions, differs, table_errors
from treetop.counts.constraint_reader import COUNT
from treetop.domain.constraints import COUNTED, INVARIANT, Fact, PublicFacts
from treetop.domain.marginal import Stage, depths_alone, exact_tables, margin_at, margins_of, table_named
from treetop.domain.spine import TIMES, WIDEST, Spine, apart
from treetop.domain.unit import TOTAL
from treetop.errors import FactError, PlanError, SpineError
from treetop.plan.mechanism import JointMechanism
from treetop.plan.plan import Plan
from treetop.plan.workload import text_table

PAIRS = 3.0
"""Weight of all pairs together beside all totals by default."""
FINER = 2.0
"""Weight of the pairs of one level beside coarser ones by default: their counts are smaller, and errors matter more."""
JOINT_CARE = ("all 1-way", "all 2-way")
"""What a joint fit is designed for by default."""
_HOW = (
    "write 'totals', 'pairs', 'leaves', 'origin totals', 'state pairs', 'all 2-way', 'pairs with sex' or a table, "
    "'place.state * sex'"
)


def read_objectives(spine: Spine, asked: Sequence[str] = ()) -> dict[Depths, float]:
    """Return the tables that people name, each with the sum of its weights; all totals and pairs by default.

    A design minimises the sum of weight · log(error). By default the tables are those of each attribute at all its
    levels, and of all together at equal levels: the finer, the heavier. The best share of a table is about its share of
    all weights, so that totals get a fourth of the loss.

    >>> from treetop.domain.hierarchy import Hierarchy
    >>> ends = Hierarchy.from_prefixes(["AX", "AY", "BX"], widths=[1], levels=["state", "county"])
    >>> spine = Spine.origin_first(ends, ends)
    >>> read_objectives(spine, ["state pairs", "leaves=3", "origin totals"])
    {(1, 1): 1.0, (2, 2): 3.0, (1, 0): 1.0, (2, 0): 1.0}
    >>> list(read_objectives(spine))
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
        name, equals, number = text.rpartition("=")
        name, number = (name, number) if equals else (text, "1")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not (math.isfinite(weight) and weight > 0):
            raise PlanError(f"{text!r}: the weight is {number.strip()!r}: write a positive number, as in leaves=3")
        for table in dict.fromkeys(_tables(spine, name.strip(), text)):
            weights[table] = weights.get(table, 0.0) + weight
    return weights


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
    if ways := re.fullmatch(r"all (\d+)-way", name):
        if found := _ways(spine, int(ways[1])):
            return found
        raise PlanError(f"{text!r}: there are {len(spine.trees)} attributes: name a number of them")
    if name.startswith("pairs with "):
        return [table for table in _ways(spine, 2) if _is_with(spine, table, name.removeprefix("pairs with "), text)]
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


def _ways(spine: Spine, number: int) -> list[Depths]:
    """Return all tables of so many attributes: those of two as a joint fit measures them, else the coarsest."""
    if number <= 2:
        tables = margins_of(spine, "pairs", levels="kept")
        return [table.depths for table in tables if len(table.attributes) == number]
    every = range(len(spine.trees))
    return [tuple(int(one in told) for one in every) for told in combinations(every, number)]


def _is_with(spine: Spine, table: Depths, about: str, text: str) -> bool:
    """Whether a table tells an attribute, or a level of that name."""
    told = [own for own in _totals(spine, about) if any(own)]
    if not told:
        raise PlanError(f"{text!r}: there is no attribute or level {about!r}{nearest(about, spine.attributes)}")
    return any(table[own.index(max(own))] >= max(own) for own in told)


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
    if public is not None and differs(own, public.twin):
        notes = [*notes, OWN_FACTS]
    if total is None:
        total = own.population or (None if public is None else public.twin.total)
    joint, noisy = JointMechanism.runs(own), list[str]()
    asked = read_objectives(own.spine, care or (JOINT_CARE if joint else ()))
    if joint:
        if public is not None:
            raise PlanError("a twin tries plans that go level by level: leave it out, or give the plan an order")
        asked, noisy = _readable(own, asked, total)
    # Without tables that have no error, such as a level with one node under an exact total.
    now = [found for found in expected_errors(own, list(asked)) if found.variance > 0]
    if not now:
        raise PlanError("every table that you care for is known without noise: name others with `care`")
    wanted = [one.table for one in now]
    search = (JointSearch if joint else Search)(own, wanted, [asked[table] for table in wanted], total)
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
        options: TrialOptions = {"runs": runs, "threads": threads, "progress": progress}
        tried = [table_errors(one, public, at, **options) for one, at in ((own, wanted), (advised, there))]
    rows = [
        {
            "counts": before.title,
            "nodes": before.nodes,
            "weight": asked[before.table],
            "error_before": before.error if before.is_told else None,
            "error": after.error,
            "tried_before": tried_before,
            "tried": tried_after,
        }
        for before, after, tried_before, tried_after in zip(now, expected_errors(advised, there), *tried, strict=True)
    ]
    report = _report(own, advised, rows, search, best, None if public is None else public.words)
    if noisy:
        left = f"No weight has what would be mostly noise with {total:,.0f} records: {', '.join(noisy)}."
        report = replace(report, notes=(*report.notes, "", left))
    found = known_outlook(advised, total)
    return replace(report, parts={} if found is None else {"outlook": found.alone()}, public_notes=tuple(notes))


def _readable(plan: Plan, asked: dict[Depths, float], total: float | None) -> tuple[dict[Depths, float], list[str]]:
    """Return the tables to care for without those that are mostly noise, and the names of these.

    What a table has on average decides, beside the noise that it would have if all of them were measured alike. Without
    a number of records, or if nothing is left, all of them count.
    """
    tables = tuple(dict.fromkeys((*(margin.depths for margin in plan.margin_tables), *asked)))
    every = replace(
        plan, margins=[margin_at(plan.spine, table).name for table in tables if any(table)], split="uniform"
    )
    errors = {one.table: one for one in expected_errors(every, list(asked))}
    kept = {
        table: weight
        for table, weight in asked.items()
        if total is None or total / errors[table].nodes >= errors[table].deviation
    }
    return (kept, [errors[table].title for table in asked if table not in kept]) if kept else (asked, [])


def _refuse_what_has_no_choice(plan: Plan) -> None:
    if counts_groups(plan):
        raise PlanError(
            "a design chooses which tables to measure, and in which order; a plan for group sizes has one table, whose "
            "levels are measured together. Choose its shares with `prior`, its loss with `targets`, and see what its "
            "largest size loses with `twin`"
        )
    if JointMechanism.runs(plan):
        return
    plan.refuse_unless_top_down()
    if plan.spine.goes_past:
        raise PlanError(
            "the plan is bottom-up, or goes past levels, which decides what is measured: list its levels in [spine] "
            "order to have them advised on"
        )
    if not any(part.is_measured for part in plan.workload):
        raise PlanError("the plan measures nothing: there is nothing to design")


def _report(before: Plan, plan: Plan, rows: Sequence[Row], search: Search, best: Candidate, twin: str | None) -> Report:
    told = [row for row in rows if row["error"] > 0 and row["error_before"] is not None]
    gains = (row["weight"] * math.log(row["error_before"] / row["error"]) for row in told)
    gain = math.exp(math.fsum(gains) / (sum(row["weight"] for row in told) or 1.0))

    def better(error: str) -> Cell:
        def cell(row: Row) -> str:
            before, after = row[f"{error}_before"], row[error]
            return f"× {before / after:.2f}" if after > 0 and before is not None else "-"

        return cell

    columns: list[tuple[str, Cell]] = [
        ("counts", "{counts}"),
        ("public nodes", "{nodes:,}"),
        ("weight", "{weight:.3g}"),
        ("error now", lambda row: "a guess" if row["error_before"] is None else f"{row['error_before']:,.4g}"),
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


# The search: which levels a spine has, in which order, which margins, and the best shares of the loss.

WORTH = 0.02
"""Least gain for which a spine is changed: a plan that is known is worth something too."""
MOST_SLOTS = 10**8
"""A level is left out, or merged, only if a descent measures no more nodes than this, or than it does now."""

Step: TypeAlias = tuple[tuple[int, int], ...]
"""A level of a spine: the attributes that it refines, each with its depth."""
Steps: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True)
class Candidate:
    """A spine, by its levels from the top, and margins."""

    steps: Steps
    margins: tuple[Depths, ...]

    def after(self, attributes: int) -> Iterator[tuple[Step, Depths, Depths]]:
        """Yield each step with the table of the level above and its own."""
        depths = (0,) * attributes
        for step in self.steps:
            finer = dict(step)
            above, depths = depths, tuple(finer.get(attribute, depth) for attribute, depth in enumerate(depths))
            yield step, above, depths

    def levels(self, sizes: Sequence[Sequence[int]]) -> Iterator[Depths]:
        """Yield the tables of the levels that divide a node."""
        for step, above, depths in self.after(len(sizes)):
            if any(sizes[attribute][depth] > sizes[attribute][above[attribute]] for attribute, depth in step):
                yield depths

    def slots(self, sizes: Sequence[Sequence[int]], total: float) -> float:
        """Return how many nodes a descent measures at most: it goes on below no more nodes than there are records."""
        slots = 0.0
        for step, above, _ in self.after(len(sizes)):
            children = 1.0
            for attribute, depth in step:
                children *= sizes[attribute][depth] / sizes[attribute][above[attribute]]
            slots += min(math.prod(own[at] for own, at in zip(sizes, above, strict=True)), total) * children
        return slots


class Search:
    """A search for the spine and margins with the smallest weighted mean of log V of the wanted tables."""

    def __init__(
        self, plan: Plan, wanted: Sequence[Depths], weights: Sequence[float], total: float | None = None
    ) -> None:
        self.plan, self.sizes, self.total = plan, sizes_of(plan.spine), total
        self.wanted = tuple(wanted)
        self.weights: Floats = np.array(weights) / np.array(weights).sum()
        # Laplace noise: precision grows with the square of a share.
        self.power = 2 if plan.loss.definition == "pure" else 1
        # The tables of facts must be in the spine, too.
        tables = [*wanted, *(fact.table.depths for fact in plan.public_facts)]
        self.needed = {(attribute, depth) for table in tables for attribute, depth in enumerate(table) if depth}
        self.facts = _as_given(plan.public_facts)
        self.refused = ""
        self.solve = cache(self._solve)
        self.as_plan = cache(self._as_plan)

    def now(self) -> Candidate:
        """Return the plan's own spine and margins."""
        steps = (tuple((part.attribute, part.depth + 1) for part in level.parts) for level in self.plan.spine.levels)
        return Candidate(tuple(steps), tuple(margin.depths for margin in self.plan.margin_tables))

    def best(self) -> Candidate:
        """Return the best candidate that steps lead to, or the present spine if they gain too little."""
        now = best = self.with_each_margin(self.now())
        if not self._keeps(now):
            return self.now()  # as it is the plan keeps its facts, and with more margins it would not
        if not self.plan.unit.per_node and self.plan.graph is None:
            best = self._walk(now, self.neighbours)
            if self.value(best) > self.value(now) + 2 * math.log1p(-WORTH):
                # Fewer levels are better than they are expected to be: each one more loses nodes that were there.
                best = self._walk(now, self._merging)
        every = best = self.with_each_margin(best)
        for table in every.margins:  # those stay that are worth their share
            fewer = replace(best, margins=tuple(one for one in best.margins if one != table))
            if table not in self.wanted and self._keeps(fewer) and self.value(fewer) <= self.value(best):
                best = fewer
        return best

    def _walk(self, best: Candidate, neighbours: Callable[[Candidate], Iterable[Candidate]]) -> Candidate:
        """Return the end of a walk, each step of which goes to the best of all neighbours that keep the facts."""
        while True:
            better = min(filter(self._keeps, neighbours(best)), key=self.value, default=best)
            if self.value(better) >= self.value(best) - 1e-4:
                return best
            best = better

    # What a candidate is worth.

    def value(self, candidate: Candidate) -> float:
        """Return the weighted mean of log V with the best shares of a candidate."""
        return self.solve(candidate)[0]

    def _solve(self, candidate: Candidate) -> tuple[float, Floats]:
        """Return the weighted mean of log V with the best shares of a candidate, and these."""
        tables = self.tables(candidate)
        model = ErrorModel(tables, self.wanted)
        scale = np.array([1 / self._change(candidate, table) for table in tables.all])
        share = best_shares(model, self.weights, scale, self.power)
        return model.pulls(scale * share**self.power, self.weights)[0], share

    def tables(self, candidate: Candidate) -> Tables:
        """Return what a candidate measures."""
        total = [(0,) * len(self.sizes)] if self.plan.levels[0].is_measured else []
        levels: Iterable[Depths] = candidate.levels(self.sizes)
        if self.facts and (planned := self.as_plan(candidate)) is not None:  # without those that facts determine
            parts = zip(candidate.after(len(self.sizes)), planned.levels[1:], strict=True)
            levels = (depths for (_, _, depths), part in parts if part.is_measured)
        return Tables(
            self.sizes,
            (*total, *levels),
            candidate.margins,
            self.plan.levels[0].is_exact,
            # Even if least squares follow: they cannot recover nodes that the descent has lost.
            top_down=True,
            known=self.plan.known_tables,
            crossing=self.crossing(candidate),
        )

    def crossing(self, candidate: Candidate) -> tuple[Depths, ...]:
        """Return the margins of a candidate that a release would not keep, because they cross others."""
        depths, stages = [0] * len(self.sizes), []
        for attribute, depth in (one for step in candidate.steps for one in step):
            depths[attribute] = depth
            stages.append(Stage(attribute, tuple(depths)))
        kept = exact_tables(stages, [len(own) - 1 for own in self.sizes], candidate.margins)
        return tuple(table for table, is_kept in zip(candidate.margins, kept, strict=True) if not is_kept)

    def _change(self, candidate: Candidate, table: Depths) -> float:
        """Return the squared sensitivity of a table, by its name, since a plan may cap some tables."""
        if not any(table):
            name = TOTAL
        elif table in candidate.margins:
            name = margin_at(self.plan.spine, table).part
        else:  # only a spine that stays as it is has caps
            name = next((part.name for part in self.plan.levels if self.plan.spine.depths(part.index) == table), "")
        change = self.plan.unit.sensitivity(name)
        return float(change.l1**2 if self.power == 2 else change.l2_squared)

    def _as_plan(self, candidate: Candidate) -> Plan | None:
        """Return a plan that measures a candidate's tables, with even shares; None if it could not keep the facts."""
        spine = self.plan.spine
        splits = [TIMES.join(level_name(spine, *one) for one in step) for step in candidate.steps]
        # The same object if nothing changes, so that its cached values stay valid.
        same = tuple(splits) == tuple(spine.splits)
        try:
            other = spine if same else Spine(splits, spine.attributes)
            names = [margin_at(other, table).name for table in moved(candidate.margins, spine, other)]
            is_each = set(names) == {margin.name for margin in margins_of(other, "each")}
            margins = "none" if not names else "each" if is_each else names
            facts = self.plan.public_facts if same else self.facts
            return replace(self.plan, spine=other, margins=margins, split="uniform", facts=facts)
        except FactError as problem:
            self.refused = self.refused or str(problem)
            return None

    def _keeps(self, candidate: Candidate) -> bool:
        """Whether a candidate can keep the facts."""
        return not self.facts or self.as_plan(candidate) is not None

    # Which candidates there are.

    def with_each_margin(self, candidate: Candidate) -> Candidate:
        """Return a candidate with all margins of one attribute, and those of several that the plan has and would keep.

        Of two that cross, the wanted one is kept.
        """
        several = [table for table in self.now().margins if np.count_nonzero(table) > 1]
        several.sort(key=lambda table: table not in self.wanted)
        used = set(candidate.levels(self.sizes))
        refined = sorted(one for step in candidate.steps for one in step)
        alone = [
            depths_alone(len(self.sizes), attribute, depth)
            for attribute, depth in refined
            if self.sizes[attribute][depth] > self.sizes[attribute][_coarser(candidate.steps, attribute, depth)]
        ]
        known = self.plan.public_facts.decides if self.facts else lambda table: False
        tables = tuple(table for table in (*alone, *several) if table not in used and not known(table))
        crossing = self.crossing(replace(candidate, margins=tables))
        return replace(candidate, margins=tuple(table for table in tables if table not in crossing))

    def neighbours(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield candidates that differ in one step."""
        for steps in _other_orders(candidate.steps):
            yield self.with_each_margin(replace(candidate, steps=steps))
        yield from self._merging(candidate)
        refined = [one for step in candidate.steps for one in step]
        for own in refined:  # an attribute's level left out, one that no table needs
            finer = any(attribute == own[0] and depth > own[1] for attribute, depth in refined)
            if own not in self.needed and finer:
                fewer = (tuple(one for one in step if one != own) for step in candidate.steps)
                other = replace(candidate, steps=tuple(step for step in fewer if step))
                if self._can_be_measured(other):
                    yield self.with_each_margin(other)

    def _merging(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield two steps as one; margins of several attributes may cross it, so that it is not for them."""
        if any(np.count_nonzero(table) > 1 for table in self.now().margins):
            return
        steps = candidate.steps
        for at in range(len(steps) - 1):
            if _are_of_others(steps[at], steps[at + 1]):
                merged = replace(candidate, steps=(*steps[:at], steps[at] + steps[at + 1], *steps[at + 2 :]))
                if self._can_be_measured(merged):
                    yield self.with_each_margin(merged)

    def _can_be_measured(self, candidate: Candidate) -> bool:
        """Whether a descent is short enough; it may reach every leaf if the number of records is not known."""
        for at, step in enumerate(candidate.steps):
            if len(step) > 1:
                widest = 1  # the most nodes into which the step divides one
                for attribute, depth in step:
                    tree, coarser = self.plan.spine.trees[attribute], _coarser(candidate.steps[:at], attribute)
                    inside = tree.ancestors(coarser - 1, depth - 1) if coarser else np.zeros(tree.sizes[depth - 1], int)
                    widest *= int(np.bincount(inside).max())
                if widest > WIDEST:
                    return False
        if self.total is None:
            return self.plan.spine.leaves <= MOST_SLOTS
        return candidate.slots(self.sizes, self.total) <= max(MOST_SLOTS, self.now().slots(self.sizes, self.total))


def _other_orders(steps: Steps) -> Iterator[Steps]:
    """Yield two steps exchanged, or a merged one as two."""
    for at in range(len(steps) - 1):
        if _are_of_others(steps[at], steps[at + 1]):
            yield *steps[:at], steps[at + 1], steps[at], *steps[at + 2 :]
    for at, step in enumerate(steps):
        for own in step if len(step) > 1 else ():
            rest = tuple(one for one in step if one != own)
            yield *steps[:at], (own,), rest, *steps[at + 1 :]
            yield *steps[:at], rest, (own,), *steps[at + 1 :]


class JointSearch(Search):
    """The search for the tables of a joint fit: those of the plan, and those to care for."""

    def best(self) -> Candidate:
        """Return the tables that are worth their share; every attribute is told apart down to its leaves."""
        now = self.now()
        best = replace(now, margins=tuple(table for table in dict.fromkeys((*now.margins, *self.wanted)) if any(table)))
        tables = self.tables(best)
        for table in sorted(best.margins, key=tables.nodes, reverse=True):
            fewer = replace(best, margins=tuple(one for one in best.margins if one != table))
            if table not in self.wanted and self._keeps(fewer) and self.value(fewer) <= self.value(best):
                best = fewer
        return best

    def tables(self, candidate: Candidate) -> Tables:
        """Return what a candidate measures."""
        total = () if self.plan.levels[0].is_exact else ((0,) * len(self.sizes),)
        return Tables(self.sizes, total, candidate.margins, self.plan.levels[0].is_exact, top_down=False)

    def crossing(self, candidate: Candidate) -> tuple[Depths, ...]:
        """Return nothing: no table has precedence."""
        return ()

    def _as_plan(self, candidate: Candidate) -> Plan | None:
        try:
            names = [margin_at(self.plan.spine, table).name for table in candidate.margins]
            return replace(self.plan, margins=names, split="uniform")
        except PlanError:  # some leaves would not be told apart
            return None

    def _keeps(self, candidate: Candidate) -> bool:
        return self.as_plan(candidate) is not None


def _coarser(steps: Steps, attribute: int, depth: float = math.inf) -> int:
    """Return the finest depth of an attribute in some steps, above a depth."""
    return max((at for step in steps for one, at in step if one == attribute and at < depth), default=0)


def _are_of_others(one: Step, other: Step) -> bool:
    """Whether two steps refine no attribute both."""
    return not {attribute for attribute, _ in one} & {attribute for attribute, _ in other}


def level_name(spine: Spine, attribute: int, depth: int) -> str:
    """Return a level of an attribute as a spine lists it."""
    return f"{list(spine.attributes)[attribute]}.{spine.trees[attribute].levels[depth - 1]}"


def moved(tables: Sequence[Depths], spine: Spine, other: Spine) -> list[Depths]:
    """Return tables of one spine by the depths of another, which may leave out levels that they do not need."""
    depth_in = [
        {0: 0} | {tree.levels.index(name) + 1: at for at, name in enumerate(own.levels, start=1)}
        for tree, own in zip(spine.trees, other.trees, strict=True)
    ]
    return [tuple(by[depth] for by, depth in zip(depth_in, table, strict=True)) for table in tables]


def _as_given(facts: PublicFacts) -> dict[str, Fact]:
    """Return facts by table as they could have been given for a spine of another order."""
    found = {}
    for fact in facts:
        given: dict[str, pa.Table] = {}
        for kind, (cells, numbers) in fact.stated.items():
            nodes = fact.table.nodes(cells)
            columns = {
                name: fact.table.codes(one).take(pa.array(nodes[one]))
                for name, one in zip(fact.name.split(TIMES), fact.table.attributes, strict=True)
            }
            given[kind] = pa.table(columns | ({COUNT: pa.array(numbers)} if kind in COUNTED else {}))
        found[fact.name] = Fact(**given, invariant=INVARIANT in fact.kinds, unchecked=fact.unchecked)
    return found
