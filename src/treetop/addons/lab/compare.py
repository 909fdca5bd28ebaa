"""Mechanisms side by side on one table: every setting, several times, for the steward only.

Each run has a process to itself while it lasts, and one thread. So the time of a processor and the high-water mark of
memory are the run's own, however many runs go on at once. Threads would share both, and the interpreter as well, which
would slow mechanisms that are not compiled. A process for every run would start Python more often than it measures: a
few processes that live for the whole comparison do the same, each with a copy of the table.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import TypeAlias

import pyarrow.parquet as pq

from treetop._util.files import resolved
from treetop._util.picture import new_figure
from treetop._util.system import Progress
from treetop.addons.lab.comparison import Accounting, Case, Comparison, Refused, Setting, Trial, run_trial
from treetop.addons.lab.mechanisms.compared import ComparedMechanism
from treetop.addons.lab.mechanisms.inftda import WithFacts, WithMargins
from treetop.addons.lab.mechanisms.registry import GROUP_MECHANISMS, MECHANISMS, named, register
from treetop.addons.lab.plots import plot_errors, save_plots
from treetop.advice.public import read_public_groups
from treetop.advice.trials import public_twin
from treetop.card.rebuild import rebuild_plan
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.reading import read_counts
from treetop.counts.tally import Tally
from treetop.domain.unit import drops
from treetop.errors import DataError, PlanError, ReleaseError, TreetopError
from treetop.io.source import Source
from treetop.measure.readers import read_true_counts
from treetop.noise import Key
from treetop.plan.file import PlanFile, read_plan
from treetop.plan.plan import Plan
from treetop.plan.region_histograms import RegionHistograms
from treetop.release.errors import LevelErrors, measure_errors, measure_margin_errors
from treetop.release.folder.place import scratch, writing
from treetop.release.release import Release

Outcome: TypeAlias = Trial | Refused
Task: TypeAlias = tuple[Setting, int, Key]


def settings(
    mechanisms: Iterable[str],
    epsilons: Iterable[float],
    delta: float | None = 1e-8,
    accountings: Sequence[Accounting] = ("tight",),
    options: Mapping[str, Mapping[str, object]] | None = None,
) -> list[Setting]:
    """Return every mechanism at every epsilon under every accounting; `options` are by mechanism.

    >>> [(one.mechanism, one.epsilon) for one in settings(["inftda", "sh"], [0.1, 1])]
    [('inftda', 0.1), ('inftda', 1), ('sh', 0.1), ('sh', 1)]
    """
    more = options or {}
    return [
        Setting(mechanism, epsilon, delta, accounting, more.get(mechanism, {}))
        for accounting in (accountings if delta is not None else ("pure",))
        for mechanism in mechanisms
        for epsilon in epsilons
    ]


def compare(
    case: Case,
    chosen: Sequence[Setting],
    repeats: int | Mapping[str, int] = 10,
    *,
    key: Key,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Comparison:
    """Run every setting `repeats` times (a number, or one by mechanism), and gather errors, times and memory.

    Refused settings are listed with the reason. Noise is derived from the key, and no release is kept: results are
    private, and no loss is spent. With several `jobs`, the calling script needs the usual `if __name__ == "__main__"`.
    """
    refused: list[Refused] = []
    tasks: list[Task] = []
    for setting in chosen:
        try:
            setting.make(case)
        except TreetopError as problem:
            refused.append(Refused(setting, str(problem)))
            continue
        number = repeats if isinstance(repeats, int) else repeats[setting.mechanism]
        tasks += [(setting, repeat, _key(key, setting, repeat)) for repeat in range(number)]
    trials: list[Trial] = []
    outcomes = map(partial(_attempt, case), tasks) if jobs <= 1 else _at_once(case, tasks, jobs)
    for done, outcome in enumerate(outcomes, start=1):
        if isinstance(outcome, Trial):
            trials.append(outcome)
        else:
            refused.append(outcome)
        if progress is not None:
            progress("comparing", done / len(tasks))
    place = {setting: number for number, setting in enumerate(chosen)}
    trials.sort(key=lambda trial: (place[trial.setting], trial.repeat))
    return Comparison(tuple(trials), tuple(dict.fromkeys(refused)), case.truth is not None, case.facts is not None)


def _key(secret: Key, setting: Setting, repeat: int) -> Key:
    """A key for one run: runs of different mechanisms share no noise, since their errors are compared."""
    return secret.derive("trial", repr(setting).encode(), repeat)


def _at_once(case: Case, tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    # Spawned, not forked: a forked process would inherit threads in unknown states, and the parent's memory.
    kinds = {named(setting.mechanism) for setting, _, _ in tasks}
    start = (case, [kind for kind in kinds if not kind.__module__.startswith(__package__)])
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_start, initargs=start) as pool:
        waiting = [pool.submit(_work, task) for task in tasks]
        try:
            for finished in as_completed(waiting):
                yield finished.result()
        finally:
            for future in waiting:
                future.cancel()


def _attempt(case: Case, task: Task) -> Outcome:
    setting, repeat, key = task
    try:
        return run_trial(case, setting, repeat, key)
    except TreetopError as problem:  # a solver that gives up, for instance: said, and the rest goes on
        return Refused(setting, str(problem))


_case: Case | None = None


def _start(case: Case, kinds: Sequence[type[ComparedMechanism]]) -> None:
    """Begin a process: register mechanisms that are not the package's own."""
    global _case
    _case = case
    Thread(target=_end_with_parent, daemon=True).start()
    for kind in kinds:
        register(kind)


def _end_with_parent() -> None:
    """End this process, which holds private counts, when its parent has ended for any reason."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(task: Task) -> Outcome:
    assert _case is not None
    return _attempt(_case, task)


# Mechanisms side by side on the private table of a plan, written to a folder for the steward. Nothing is released.

USUAL = ("inftda", "tda-l2", "gauss", "sh")
ACCOUNTINGS = {"tight": ("tight",), "paper": ("paper",), "both": ("tight", "paper")}


@dataclass(frozen=True)
class SideBySide:
    """A comparison, and its files. Private: errors are computed from the truth."""

    comparison: Comparison
    title: str
    files: tuple[Path, ...] = ()


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

    No release is made and no loss is spent; the errors are computed from private data, so all of this is for the
    steward only. Attributes, unit, split and margins are the plan's, and so is the loss if none is given; errors of
    margins are reported for every mechanism. Without `mechanisms`, the usual ones are run (`USUAL`), and those that
    keep margins and public facts if the plan has them; for a plan for group sizes, all mechanisms for group sizes.
    Accounting is "tight", "paper" or "both". As many as `jobs` run at once, one a core when it is left out; with more
    than one, a script needs the usual `if __name__ == "__main__"`.
    """
    file = plan if isinstance(plan, PlanFile) else read_plan(plan)
    of_groups = file.plan.reader.name == "groups"
    if not of_groups:
        file.plan.refuse_unless_top_down()
    place = None if out is None else Path(out)
    if place is not None and (place.exists() or place.is_symlink()):
        raise ReleaseError(f"{place} exists already: choose another folder")
    if place is not None and plots:
        # Without matplotlib it is refused now, before hours of work.
        new_figure(1, 1, extra="compare", without="leave the plots out (`plots=False`)")
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
    """Return the settings to run, with the plan's loss if the call names none."""
    loss = file.plan.loss
    if not accounting or not set(accounting) <= set(ACCOUNTINGS):
        raise PlanError(f"`accounting` is {', '.join(accounting) or 'empty'}: choose tight, paper, or both")
    if delta is None and loss.delta is not None:
        delta = float(loss.delta)
    if (delta is None and loss.definition == "zcdp") or (not epsilons and loss.epsilon is None):
        raise PlanError("the plan states its loss in rho: give `epsilons` and `delta` to compare at")
    if not mechanisms:
        raise PlanError("`mechanisms` names none: give some, such as inftda,sh")
    asked = epsilons or [float(loss.epsilon or 0)]
    named = dict.fromkeys(one for name in accounting for one in ACCOUNTINGS[name])
    kept = RegionHistograms.runs(file.plan) and RegionHistograms.of(file.plan).keeps_regions
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
    """Read the private table; if a limit of contributions is enforced, also without it, as the truth."""
    if file.plan.reader.name == "groups":
        return _read_groups(file, file.plan, location, query)
    plan, source, tally = file.plan, file.table(location, query), Tally()
    # Other mechanisms know no facts, and so nothing that is impossible: they have the spine as it is without these.
    spine = plan.public_facts.spine if plan.public_facts else plan.spine
    how = (source, spine, file.columns, file.count, plan.unknown)
    truth = read_counts(*how, progress=progress, tally=tally, pairs=plan.pairs)
    tally.tell(plan.unit)
    counts, whole = truth, None
    if (cap := ContributionCap.of(plan.unit, key.derive("bound"))) is not None:
        counts, whole = read_counts(*how, cap, progress, pairs=plan.pairs), truth
    facts = plan.public_facts or None
    return Case(spine, plan.unit, counts, whole, plan.split, drops(plan.unknown), plan.margins, facts)


def _read_groups(file: PlanFile, plan: Plan, location: str, query: str | None) -> Case:
    """Read the plan's own table as a release does; another, such as a public one, may have any number of groups."""
    if location == file.source:
        counts = read_true_counts(plan, file.table(location, query), file.columns, file.count)
    else:
        counts = public_twin(read_public_groups(plan, file, location, location)[0])
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


# A release beside its private table, for the steward only: how far off the released counts are.

_PLAN = "Give the plan file, which says how to read the truth, as `plan`"
_READING = "If the plan says how the table is read (header, names, blank_lines, encoding, fields, delimiter), give it"


@dataclass(frozen=True)
class TrueErrors:
    """The errors of a release. Private: they are computed from the truth."""

    levels: tuple[LevelErrors, ...]
    margins: tuple[LevelErrors, ...]
    tally: Tally
    """Records that were left out of the truth."""


def compare_with_truth(
    folder: str | Path,
    truth: str,
    *,
    plan: PlanFile | str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    count: str | None = None,
    query: str | None = None,
    plot: str | Path | None = None,
) -> TrueErrors:
    """Read the private table of a release folder and return the errors of the release, for the steward only.

    The card states how to read the table, or the plan file if more is needed, as for a graph; `columns` and `count`
    name columns with other names here. `plot` is a file to draw the errors to, outside of the folder.
    """
    refuse_plot_inside(folder, plot)
    release = Release.load(folder)
    data = release.card["data"]
    if plan is None:
        _refuse_unless_plain(release)
        reader, named, counted = (
            rebuild_plan(release.card, release.spine, release.facts),
            data["columns"] or {},
            data["count_column"],
        )
        source = Source(truth, query, keep=data.get("keep"), drop=data.get("drop"))
    else:
        file = plan if isinstance(plan, PlanFile) else read_plan(plan)
        own = file.plan.as_released(release.spine)
        if own.spine.digest != release.spine.digest:
            raise ReleaseError(f"{file.path} refines other levels or hierarchies than the release in {folder}")
        reader, named, counted, source = own, file.columns, file.count, file.table(truth, query)
    tally = Tally()
    try:
        counts = read_true_counts(reader, source, {**named, **(columns or {})}, count or counted, tally)
    except DataError as problem:
        if plan is not None or not Path(truth).exists():
            raise
        raise DataError(f"{str(problem).rstrip('.')}. {_READING} as `plan`") from problem
    levels, margins = (measure(release, counts, tally.lost) for measure in (measure_errors, measure_margin_errors))
    errors = TrueErrors(levels, margins, tally)
    if plot is not None:
        plot_errors(errors.levels + errors.margins, Path(plot), release.card["title"])
    return errors


def refuse_plot_inside(folder: str | Path, plot: str | Path | None) -> None:
    """Refuse to draw errors into the folder that is published."""
    if plot is not None and resolved(plot).is_relative_to(resolved(folder)):
        raise ReleaseError("the plot shows private errors: never write it into the release folder")


def _refuse_unless_plain(release: Release) -> None:
    """Refuse to read a truth without the plan file if reading takes more than a location."""
    text = release.plan_toml or ""
    if "graph" in release.card or re.search(r"^(# )?\[graph\]$", text, re.MULTILINE):
        raise ReleaseError(f"the truth of this release is made from a graph, of several tables. {_PLAN}")
    if "blank_lines" in tomllib.loads(text).get("data", {}):  # without it, other records would be counted in silence
        raise ReleaseError(f"the plan of this release says what blank lines are (blank_lines). {_PLAN}")
    if "prepared" in release.card["data"]:
        raise ReleaseError(f"columns of the table were prepared before they were read. {_PLAN}")
