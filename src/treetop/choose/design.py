"""A designer of plans: which tables to measure, in which order, with which shares, from public sizes alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from treetop.basics.progress import Progress
from treetop.choose.cares import Care, read_cares
from treetop.choose.drafts import Draft, Search, level_name, moved
from treetop.choose.error_laws import Floats
from treetop.choose.expected import expected_errors
from treetop.choose.prior import Prior
from treetop.choose.shares import LEAST_SHARE
from treetop.choose.tried import table_errors
from treetop.errors import PlanError
from treetop.plan.accuracy import text_table
from treetop.plan.plan import PurePlan


@dataclass(frozen=True)
class DesignRow:
    """One table that is cared for, in the plan as it is and as advised."""

    title: str
    """What it counts."""
    nodes: int
    """How many cells the public domain has."""
    weight: float
    """How much its errors matter."""
    error_before: float
    """The mean absolute error to expect of it now, where counts are not small."""
    error: float
    """The same with the advice."""
    tried_before: float | None = None
    """The mean absolute error of all its cells in trials on a public twin, now."""
    tried: float | None = None
    """The same with the advice."""


@dataclass(frozen=True, eq=False)
class Design:
    """Which tables to measure, and with which shares; print it for people."""

    plan: PurePlan
    """The plan as advised."""
    before: PurePlan
    """The plan as it is."""
    rows: tuple[DesignRow, ...]
    """The tables that are cared for."""
    skipped: tuple[str, ...]
    """The levels that are left out."""
    cares: tuple[Care, ...]
    """The same tables, by depths of the plan's spine as it is."""
    twin: str | None = None
    """What both plans were tried on."""
    refused: str = ""
    """Why other spines, or the first of them, were left out: they could not keep the facts."""
    crossing: tuple[str, ...] = ()
    """The plan's margins that the advice leaves out because they cross others and would not be kept."""

    @property
    def reordered(self) -> bool:
        """Whether the order of the spine is another."""
        return tuple(self.plan.spine.splits) != tuple(self.before.spine.splits)

    @property
    def gain(self) -> float:
        """By which factor errors get smaller: the weighted geometric mean."""
        weight = sum(row.weight for row in self.rows)
        gains = (row.weight * math.log(row.error_before / row.error) for row in self.rows if row.error > 0)
        return math.exp(math.fsum(gains) / weight)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for programs."""
        measured = {part.name: float(part.share) for part in self.plan.workload if part.is_measured}
        margins = self.plan.margins
        return {
            "spine": list(self.plan.spine.splits),
            "margins": margins if isinstance(margins, str) else list(margins),
            "split": measured,
            "skipped": list(self.skipped),
            "refused": self.refused or None,
            "crossing": list(self.crossing),
            "gain": self.gain,
            "twin": self.twin,
            "tables": [
                {
                    "counts": row.title,
                    "nodes": row.nodes,
                    "weight": row.weight,
                    "error_before": row.error_before,
                    "error": row.error,
                    "tried_before": row.tried_before,
                    "tried": row.tried,
                }
                for row in self.rows
            ],
        }

    def __str__(self) -> str:
        head = ["counts", "public nodes", "weight", "error now", "advised", "better by"]
        rows = [
            (
                row.title,
                f"{row.nodes:,}",
                f"{row.weight:.3g}",
                *_compared(row.error_before, row.error),
                *(() if row.tried is None or row.tried_before is None else _compared(row.tried_before, row.tried)),
            )
            for row in self.rows
        ]
        note = (
            "Errors are mean absolute ones, to expect where counts are not small: those of small counts are smaller. "
            f"By weight, they get better by × {self.gain:.2f}."
        )
        if self.twin is not None:
            head += ["twin: now", "advised", "better by"]
            note += f" Those of the twin ({self.twin}) are of released counts, over all public nodes."
        shares = [("measured", "share now", "advised"), *self._shares()]
        tables = [text_table([head, *rows], left=(0,)), note, text_table(shares, left=(0,))]
        return "\n\n".join([*tables, *self.notes()])

    def _shares(self) -> list[tuple[str, str, str]]:
        now, new = (
            {part.name: f"{float(part.share):.1%}" for part in plan.workload if part.is_measured}
            for plan in (self.before, self.plan)
        )
        return [(name, now.get(name, "-"), new.get(name, "-")) for name in dict.fromkeys((*new, *now))]

    def notes(self) -> list[str]:
        """Say what else changes."""
        said = []
        if self.reordered:
            merged = any(level.is_merged for level in self.plan.spine.levels)
            what = " Levels that are joined by * are refined at once." if merged else ""
            said.append(f"The spine is another: {' > '.join(level.name for level in self.plan.spine.levels)}.{what}")
        if self.skipped:
            said.append(
                f"Left out, since no table that you care for needs them: {', '.join(self.skipped)}. They are not "
                "released, and cannot be asked for; name them with --care to keep them."
            )
        if self.crossing:
            said.append(
                f"Margins left out, since they cross others and would not be kept: {', '.join(self.crossing)}. "
                "Released counts would not add up to them, however well they are measured."
            )
        if self.refused:
            said.append(
                f"Other spines were left out, since they cannot keep the facts. The first of them: {self.refused}."
            )
        return said


def _compared(before: float, after: float) -> tuple[str, str, str]:
    return f"{before:,.4g}", f"{after:,.4g}", f"× {before / after:.2f}" if after > 0 else "-"


def design(plan: PurePlan, care: Sequence[str] = (), total: float | None = None) -> Design:
    """Choose tables, order and shares for what is cared for, such as "origin totals", "state pairs", "leaves=3".

    Only public sizes decide, and `total`, a rough number of records, where a descent could become too long.
    """
    plan.refuse_unless_top_down()
    if plan.spine.goes_past:
        raise PlanError(
            "the plan is bottom-up, or goes past levels, which decides what is measured: list its levels in [spine] "
            "order to have them advised on"
        )
    if not any(part.is_measured for part in plan.workload):
        raise PlanError("the plan measures nothing: there is nothing to design")
    cares = _possible(plan, read_cares(plan.spine, care))
    designing = Search(plan, cares, total)
    draft = designing.best()
    advised = _as_plan(designing, draft)
    wanted = [care.table for care in cares]
    now, new = expected_errors(plan, wanted), expected_errors(advised, moved(wanted, plan.spine, advised.spine))
    rows = tuple(
        DesignRow(one.title, one.nodes, care.weight, one.error, other.error)
        for care, one, other in zip(cares, now, new, strict=True)
    )
    kept = {one for step in draft.steps for one in step}
    parts = (part for level in plan.spine.levels for part in level.parts)
    gone = [(part.attribute, part.depth + 1) for part in parts if (part.attribute, part.depth + 1) not in kept]
    skipped = [level_name(plan.spine, *one) for one in gone]
    crossing = tuple(
        margin.name
        for margin in plan.margin_tables
        if margin.depths in designing.crossing(replace(draft, margins=(*draft.margins, margin.depths)))
        and margin.depths not in draft.margins
    )
    return Design(advised, plan, rows, tuple(skipped), tuple(cares), refused=designing.refused, crossing=crossing)


def with_trials(
    design: Design, prior: Prior, *, runs: int = 20, threads: int | None = None, progress: Progress | None = None
) -> Design:
    """Try both plans on a public twin, under the same noise as far as they measure the same."""
    wanted = [care.table for care in design.cares]
    plans = (design.before, wanted), (design.plan, moved(wanted, design.before.spine, design.plan.spine))
    now, new = (
        table_errors(plan, prior, tables, runs=runs, threads=threads, progress=progress) for plan, tables in plans
    )
    rows = tuple(
        replace(row, tried_before=before, tried=after) for row, before, after in zip(design.rows, now, new, strict=True)
    )
    return replace(design, rows=rows, twin=f"{prior.kind}: {prior.source}")


def _possible(plan: PurePlan, cares: Sequence[Care]) -> list[Care]:
    """Leave out tables without error, such as a level with one node under an exact total."""
    found = expected_errors(plan, [care.table for care in cares])
    kept = [care for care, one in zip(cares, found, strict=True) if one.variance > 0]
    if not kept:
        raise PlanError("every table that you care for is known without noise: name others with --care")
    return kept


def _as_plan(designing: Search, draft: Draft) -> PurePlan:
    """Return a plan that measures the tables of a draft with the best shares."""
    plan = designing.as_plan(draft)
    assert plan is not None, "a search keeps to drafts that keep the facts"
    measured = [part.name for part in plan.workload if part.is_measured]
    return replace(plan, split=dict(zip(measured, _written(designing.solve(draft)[1]), strict=True)))


def _written(shares: Floats) -> list[Fraction]:
    """Return shares in whole tenths of a percent: nobody can tell more."""
    return [Fraction(Decimal(f"{max(share, LEAST_SHARE):.3f}")) for share in shares]
