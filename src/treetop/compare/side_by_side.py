"""Mechanisms side by side on the private table of a plan, written to a folder for the steward. Nothing is released."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from treetop.basics.picture import new_figure
from treetop.basics.progress import Progress
from treetop.choose.group_twin import read_group_twin
from treetop.choose.simulate import public_twin
from treetop.compare.compare import compare, settings
from treetop.compare.comparison import Comparison
from treetop.compare.mechanisms import GROUP_MECHANISMS, MECHANISMS
from treetop.compare.mechanisms.inftda import WithFacts, WithMargins
from treetop.compare.plots import save_plots
from treetop.compare.trial import Case, Setting
from treetop.errors import PlanError, ReleaseError
from treetop.intake.bound import Bound
from treetop.intake.reading import read_counts
from treetop.intake.tally import Tally
from treetop.noise import Key
from treetop.plan.file import PlanFile, read_plan
from treetop.plan.groups.planned import PureGroupTablePlan
from treetop.release.folder.place import scratch, writing

USUAL = ("inftda", "tda-l2", "gauss", "sh")
"""The mechanisms that are compared where none are named."""
ACCOUNTINGS = {"tight": ("tight",), "paper": ("paper",), "both": ("tight", "paper")}


@dataclass(frozen=True)
class SideBySide:
    """A comparison, and where it was written. Private: errors tell of the truth."""

    comparison: Comparison
    """The results."""
    title: str
    """What was compared."""
    files: tuple[Path, ...] = ()
    """What was written."""


def compare_mechanisms(
    plan: PlanFile | str | Path,
    table: str | None = None,
    out: str | Path | None = None,
    *,
    mechanisms: Sequence[str] | None = None,
    epsilons: Sequence[float] = (),
    delta: float | None = None,
    accounting: Sequence[str] = ("tight",),
    repeat: int = 10,
    jobs: int | None = None,
    query: str | None = None,
    plots: bool = True,
    progress: Progress | None = None,
) -> SideBySide:
    """Run mechanisms side by side on a private table; with `out`, write their errors, times and memory to a new folder.

    Nothing is released and nothing is spent; the errors are computed from private data, so all of this is for the
    steward only. Attributes, unit, split and margins are the plan's, and so is the loss where none is given; errors of
    margins are told of every mechanism. Without `mechanisms`, the usual ones are run (`USUAL`), and those that keep
    margins and public facts where the plan does; of a plan for group sizes, all that are for those. Accounting is
    "tight", "paper" or "both". As many as `jobs` run at once, one a core when it is left out; with more than one, a
    script needs the usual `if __name__ == "__main__"`.
    """
    file = plan if isinstance(plan, PlanFile) else read_plan(plan)
    of_groups = isinstance(file.plan, PureGroupTablePlan)
    if not of_groups:
        file.plan.refuse_unless_top_down()
    place = None if out is None else Path(out)
    if place is not None and (place.exists() or place.is_symlink()):
        raise ReleaseError(f"{place} exists already: choose another folder")
    if place is not None and plots:
        # Without matplotlib it is refused now, before hours of work.
        new_figure(1, 1, extra="compare", without="leave the plots out (--no-plots)")
    if mechanisms is None:
        usual = tuple(GROUP_MECHANISMS) if of_groups else USUAL
        facts = (WithFacts.name,) if file.plan.public_facts else ()
        mechanisms = (*facts, *((WithMargins.name,) if file.plan.margin_tables else ()), *usual)
    _check_kinds(mechanisms, of_groups)
    chosen = _settings(file, mechanisms, epsilons, delta, accounting)
    location = table or file.source
    if location is None:
        raise PlanError("name the private TABLE, or give the plan a [data] source")
    key = Key.fresh()
    case = _read(file, location, query, key, progress)
    found = compare(case, chosen, repeat, key=key, jobs=jobs or os.cpu_count() or 1, progress=progress)
    title = f"{file.plan.title or file.path.stem}: mechanisms side by side"
    return SideBySide(found, title, () if place is None else _write(found, place, title, plots))


def _settings(
    file: PlanFile, mechanisms: Sequence[str], epsilons: Sequence[float], delta: float | None, accounting: Sequence[str]
) -> list[Setting]:
    """Return what is to be run, with the plan's loss where the call names none."""
    loss = file.plan.loss
    if not accounting or not set(accounting) <= set(ACCOUNTINGS):
        raise PlanError(f"--accounting is {', '.join(accounting) or 'empty'}: choose tight, paper, or both")
    if delta is None and loss.delta is not None:
        delta = float(loss.delta)
    if (delta is None and loss.definition == "zcdp") or (not epsilons and loss.epsilon is None):
        raise PlanError("the plan states its loss in rho: give --epsilon and --delta to compare at")
    if not mechanisms:
        raise PlanError("--mechanisms names none: give some, such as inftda,sh")
    asked = epsilons or [float(loss.epsilon or 0)]
    named = dict.fromkeys(one for name in accounting for one in ACCOUNTINGS[name])
    kept = isinstance(file.plan, PureGroupTablePlan) and file.plan.keeps_regions
    options = {name: {"public": "regions"} for name in mechanisms if kept and name.endswith("-joint")}
    return settings(mechanisms, asked, delta, list(named), options)  # type: ignore[arg-type]


def _check_kinds(mechanisms: Sequence[str], of_groups: bool) -> None:
    """Refuse mechanisms that are for another kind of counts."""
    other = MECHANISMS if of_groups else GROUP_MECHANISMS
    if wrong := [name for name in mechanisms if name in other]:
        own = GROUP_MECHANISMS if of_groups else MECHANISMS
        kind, others = ("group sizes", "counts of records") if of_groups else ("counts of records", "group sizes")
        raise PlanError(
            f"{', '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} for {others}, and the plan is for {kind}: choose "
            f"among {', '.join(own)}"
        )


def _read(file: PlanFile, location: str, query: str | None, key: Key, progress: Progress | None) -> Case:
    """Read the private table; where a limit of contributions is enforced, also without it, as the truth."""
    if isinstance(file.plan, PureGroupTablePlan):
        return _read_groups(file, file.plan, location, query)
    plan, source, tally = file.plan, file.table(location, query), Tally()
    # Other mechanisms know no facts, and so nothing that is impossible: they have the spine as it is without these.
    spine = plan.public_facts.spine if plan.public_facts else plan.spine
    how = (source, spine, file.columns, file.count, plan.unknown)
    truth = read_counts(*how, progress=progress, tally=tally)
    tally.tell(plan.unit)
    counts, whole = truth, None
    if (bound := Bound.of(plan.unit, key.derive("bound"))) is not None:
        counts, whole = read_counts(*how, bound, progress), truth
    facts = plan.public_facts or None
    return Case(spine, plan.unit, counts, whole, plan.split, plan.unknown == "drop", plan.margins, facts)


def _read_groups(file: PlanFile, plan: PureGroupTablePlan, location: str, query: str | None) -> Case:
    """Read the plan's own table as a release does; another, such as a public one, may have any number of groups."""
    if location == file.source:
        counts = plan.counts(file.table(location, query), file.columns, file.count)
    else:
        counts = public_twin(read_group_twin(plan, file, location, location)[0].prior)
    return Case(plan.spine, plan.unit, counts, split=plan.split)


def _write(found: Comparison, out: Path, title: str, plots: bool) -> tuple[Path, ...]:
    """Write the folder beside its place, then move it there in one step; return its files."""
    with scratch(out) as beside, writing(out):
        whole = beside / "comparison"
        whole.mkdir()
        pq.write_table(found.table(), whole / "results.parquet")
        (whole / "summary.md").write_text(found.summary(title), encoding="utf-8")
        if plots and found.trials:
            save_plots(found, whole, title)
        whole.rename(out)
    return tuple(sorted(out.iterdir()))
