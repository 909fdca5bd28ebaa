"""The smallest epsilon at which an error is accepted: the plan stays as it is, its split too, and only the loss moves.

A target (`targets`) may also divide the loss anew, so that more of it goes where it is needed. Here one number moves
another, for whoever turns a knob and wants to see what becomes of all the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np

from treetop._util.files import resolved
from treetop._util.numbers import Number, delta_between_0_and_1, positive
from treetop._util.system import Progress
from treetop.advice.design import Design, design, with_trials
from treetop.advice.expected import Floats
from treetop.advice.fill_in import designed_in, filled_in
from treetop.advice.grid import GridRow, error_grid, plot_grid
from treetop.advice.known import TOLD, differs
from treetop.advice.largest import LargestAdvice, ThetaAdvice, advise_theta, largest_advice
from treetop.advice.outlook import Forecast, ForecastRow, Outlook, forecast, forecast_of, known_outlook
from treetop.advice.prior import Prior
from treetop.advice.public import is_release, private_tables, read_public, read_public_groups, read_twin, twin_source
from treetop.advice.refine import Refinement, Shares, refine_split
from treetop.advice.simulate import Trials, simulate, squared_errors
from treetop.advice.split_for import Objective, level_weights
from treetop.advice.targets import Answer, Target, loss_for, loss_for_error, read_target
from treetop.domain.spine import Spine
from treetop.domain.unit import TOTAL
from treetop.errors import IncompletePlan, LossError, PlanError, PlanFileError
from treetop.plan.fields.ordinary import DELTA
from treetop.plan.file import PlanFile, read_plan
from treetop.plan.graphs.degrees import DegreeCounts
from treetop.plan.groups.planned import GroupTablePlan
from treetop.plan.plan import Plan
from treetop.plan.workload import Part
from treetop.privacy import Definition, Loss

LEAST, MOST = Fraction(1, 1000), Fraction(100)
"""Between these epsilons one is looked for."""
_DIGITS = 3
_STEPS = 40


def at_epsilon(plan: Plan, epsilon: Number) -> Plan:
    """Return the plan with another epsilon; its delta, and how it is kept, stay."""
    if plan.loss.epsilon is None:
        raise LossError("the plan states its loss as rho: state epsilon and delta to choose an epsilon")
    loss = plan.loss
    meant = loss.large_delta and loss.delta is not None
    made = Loss(epsilon=epsilon, delta=loss.delta, accounting=loss.accounting, noise=loss.noise, large_delta=meant)
    return replace(plan, loss=made)


def margin_of(plan: Plan, table: str, confidence: float = 0.95) -> int:
    """Return how far one count of a level or margin may be off, by its name."""
    for row in plan.accuracy(confidence).rows:
        if row.name == table:
            return row.margin
    raise LossError(f"the plan has no table {table!r}: name a level or a margin of it")


def epsilon_for(plan: Plan, table: str, error: int, confidence: float = 0.95) -> Fraction:
    """Return the smallest epsilon, to three digits, at which the counts of a table are off by at most an error."""
    if error < 1:
        raise LossError(f"the error is {error}: accept 1 or more, since an exact count protects nobody")
    now = plan.loss.epsilon or Fraction(1)
    if margin_of(plan, table, confidence) == 0:
        raise LossError(f"{table} is told without noise, or follows from other tables: choose another one")

    def met(epsilon: Fraction) -> bool:
        return margin_of(at_epsilon(plan, epsilon), table, confidence) <= error

    # Noise is about inversely proportional to epsilon: so the first guess is near.
    guess = _short(min(max(now * margin_of(plan, table, confidence) / error, LEAST), MOST))
    if met(guess):
        while guess > LEAST and met(lower := _short(guess * Fraction(97, 100))):
            guess = lower
        low, high = guess * Fraction(97, 100), guess
    else:
        low = guess
        for _ in range(_STEPS):
            if met(high := _short(low * Fraction(103, 100))):
                break
            if high > MOST:
                raise LossError(f"no epsilon below {MOST} makes {table} that accurate: accept a larger error")
            low = high
    for _ in range(_STEPS):
        middle = _short((low + high) / 2)
        if not low < middle < high:
            break
        low, high = (low, middle) if met(middle) else (middle, high)
    return positive(high, "epsilon")


def _short(value: Fraction) -> Fraction:
    """Round up to three digits."""
    context = Context(prec=_DIGITS, rounding=ROUND_CEILING)
    return Fraction(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


# The best split of a plan for group sizes on a public table, found by trials.

RUNS = 20
"""How often each split is tried."""
STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How far the splits are on the way from even shares."""
SURE = 2.0
"""A split is better where it is so many standard errors of the difference better."""


def group_forecast(
    plan: GroupTablePlan,
    prior: Prior,
    weights: Mapping[str, Number] | None = None,
    *,
    runs: int = RUNS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Forecast:
    """Find the best split of the plan's loss in trials on a public table (weights by level, 1 where none is given)."""
    weigh = level_weights(plan.spine, weights)
    by_level = np.array([0.0, *(weigh[level.name] for level in plan.spine.levels)])
    splits = _splits(plan, weigh)
    plans = [plan, *(replace(plan, split=split) for split in splits)]
    tried: list[float] = []
    for done, one in enumerate(plans, start=1):
        tried.append(float((squared_errors(one, prior, runs=runs, threads=threads) @ by_level).mean()))
        if progress is not None:
            progress("trials", done / len(plans))
    # With other noise than that by which it was chosen: the best of several would look better than it is.
    own, best = (squared_errors(one, prior, runs=runs, threads=threads, seed=1)
                 for one in (plan, plans[int(np.argmin(tried))]))  # fmt: skip
    chosen, kept = plans[int(np.argmin(tried))], ""
    saved = (own - best) @ by_level
    unsure = saved.std(ddof=1) / math.sqrt(runs) if runs > 1 else math.inf
    if saved.mean() <= SURE * unsure:
        chosen, best = plan, own
        kept = " No split was better by more than two standard errors: the plan keeps its own."
    words = (
        f"In {runs} trials each on {prior.kind}: {prior.source}, of {len(splits)} splits. Errors are the root of the "
        f"mean squared error of released numbers of groups, zeros included.{kept}"
    )
    rows = tuple(
        ForecastRow(old.name, old.nodes, float(old.share), float(new.share), *_roots(own, best, old))
        for old, new in zip(plan.levels, chosen.levels, strict=True)
        if old.is_measured
    )
    before, after = (float((errors @ by_level).mean()) for errors in (own, best))
    return Forecast(chosen, rows, before, after, f"{prior.kind}: {prior.source}", words)


def _roots(own: Floats, best: Floats, level: Part) -> tuple[float, float]:
    before, after = (math.sqrt(float(errors[:, level.index].mean()) / level.nodes) for errors in (own, best))
    return before, after


def _splits(plan: GroupTablePlan, weigh: Mapping[str, float]) -> list[dict[str, Fraction]]:
    """Return shares in whole percents, from even ones to those that levels by themselves would have."""
    power = 1 / 3 if plan.loss.definition == "pure" else 1 / 2
    levels = [level for level, _ in plan.workload.measured]
    need = np.array([level.nodes * max(float(weigh[level.name]), 1e-3) for level in levels])
    found = []
    for step in STEPS:
        part = need ** (step * power)
        percents = np.maximum(np.rint(100 * part / part.sum()), 1).astype(int)
        found.append({level.name: Fraction(int(one)) for level, one in zip(levels, percents, strict=True)})
    return [one for number, one in enumerate(found) if one not in found[:number]]


# Advice on a plan: what accuracy costs, what a loss buys, how to divide it, which tables to measure, trials on a twin.

DEFAULT_GRID = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""The epsilons of a plot where none are given."""


class Wishes(TypedDict, total=False):
    """What may be asked about a plan, beside targets."""

    confidence: float
    """How sure margins are: 0.95 when left out."""
    delta: Number | None
    """A delta in place of the plan's."""
    pure: bool
    """Whether the loss is to be an epsilon without delta."""
    epsilons: Sequence[float]
    """At which epsilons to show the errors of every level."""
    plot: str | Path | None
    """Where to draw them; at the usual epsilons when none are given."""
    force: bool
    """Whether the plot may replace another file."""
    twin: str | None
    """A public or synthetic table, or a release folder, to try the plan on."""
    twin_source: str | None
    """Where it is from, in words."""
    runs: int
    """How many trials: 20 when left out."""
    threads: int | None
    """How many at once; as many as cores when left out."""
    prior: str | None
    """An earlier release, or a public table, to choose the split by."""
    prior_source: str | None
    """Where it is from, in words; a table must say."""
    weights: Mapping[str, Number]
    """What errors of a level weigh: 1 where nothing is said. A short name is for every level of that name."""
    objective: Objective
    """Of which counts the split has the least error for the prior: "separate" measurements, as they are when left out,
    or "consistent" ones."""
    refine: bool
    """Whether to try splits near the best one on the prior's table, and take one that is better beyond chance."""
    shares: str | None
    """What is done with the counts, such as "block in tract": a fixed sum is dealt out in every tract by the counts of
    its blocks. With `refine`, splits are judged by the errors of such shares."""
    squared_error: float | None
    """A total squared error that is expected of the prior: the smallest loss for it is found, with its split."""
    design: bool
    """Whether to choose tables, order and shares for what is cared for."""
    care: Sequence[str]
    """What is cared for, such as "origin totals" or "leaves=3": totals and pairs of every level when left out."""
    total: float | None
    """About how many records there are; those of the twin, or as many as there are units at least, when left out."""
    write: str | Path | None
    """Where to write the plan file with the answer filled in."""
    progress: Progress | None
    """Told how far trials have come."""


@dataclass(frozen=True)
class Advice:
    """What came of it."""

    file: PlanFile
    """The plan that was asked about."""
    plan: Plan
    """The plan with the answer, or as it is."""
    confidence: float
    """How sure margins are."""
    guarded: bool
    """Whether the plan names its private table, so that public ones could be compared with it."""
    targets: tuple[Target, ...] = ()
    """The targets as they were read."""
    answer: Answer | None = None
    """The smallest loss for the targets."""
    forecast: Forecast | None = None
    """The best split for the prior."""
    squared_error: float | None = None
    """The total squared error that the answer is for, where it is not for targets."""
    refined: Refinement | None = None
    """What trials of other splits came to."""
    design: Design | None = None
    """Which tables to measure, in which order, with which shares."""
    outlook: Outlook | None = None
    """What a release would be worth, where the number of records is roughly known."""
    largest: LargestAdvice | None = None
    """Of a plan for group sizes: what its largest size costs, and loses of the twin."""
    grid: tuple[GridRow, ...] = ()
    """Errors at several epsilons."""
    grid_delta: Fraction | None = None
    """The delta of those epsilons; None where they are pure."""
    trials: Trials | None = None
    """Trials of the plan on the twin."""
    grid_trials: Mapping[float, Trials] = field(default_factory=dict)
    """Trials at the epsilons of the grid."""
    theta: ThetaAdvice | None = None
    """What every largest degree would come to, of a plan for degrees under "node"."""
    notes: tuple[str, ...] = ()
    """How the public tables were read otherwise than the private one will be."""
    files: tuple[Path, ...] = ()
    """What was written."""


def advise(plan: PlanFile | str | Path, targets: Sequence[str | Target] = (), **wishes: Unpack[Wishes]) -> Advice:
    """Find the smallest loss that meets targets such as "state=20", the best split for a prior, or the best tables to
    measure for what is cared for; or show errors.

    The plan file may leave its loss open. No private data is used: where the plan names its table, that is read only to
    refuse it as a public one.
    """
    epsilons = tuple(sorted(set(wishes.get("epsilons", ())))) or (DEFAULT_GRID if wishes.get("plot") else ())
    _check_wishes(bool(targets), bool(epsilons), wishes)
    open_loss = targets or epsilons or wishes.get("squared_error") is not None
    file = plan if isinstance(plan, PlanFile) else read_plan(plan, stand_in=1 if open_loss else None)
    if isinstance(file.plan, DegreeCounts) and wishes.get("twin") and not (targets or epsilons or wishes.get("design")):
        return _with_theta(file, wishes)
    _check_file(file, wishes)
    kind, delta = _definition(file, wishes)
    advice = Advice(file, file.plan, wishes.get("confidence", 0.95), bool(private_tables(file)))
    if targets:
        advice = _with_loss(advice, targets, kind, delta)
    if wishes.get("design"):
        advice = _with_design(advice, wishes)
    elif wishes.get("prior") is not None:
        advice = _with_split(advice, wishes, kind, delta)
    if epsilons:
        advice = _with_grid(advice, epsilons, kind, delta)
    if (twin := wishes.get("twin")) is not None and not wishes.get("design"):
        advice = _with_trials(advice, twin, epsilons, wishes)
    if advice.outlook is None:
        advice = replace(advice, outlook=known_outlook(advice.plan, wishes.get("total")))
    return _written(advice, wishes)


def levels_named(spine: Spine, name: str) -> list[str]:
    """Return the levels of a name: `attribute.level`, or a short one, which may be that of several attributes.

    A target for a short name is one for them all. That costs nothing: what is above a target is as accurate anyway.
    """
    if name == TOTAL:
        return [TOTAL]
    pairs = list(zip(spine.levels, spine.splits, strict=True))
    if name not in [known for level, split in pairs for known in (level.name, split)]:
        levels = [tree.levels for tree in spine.trees]
        short = [
            level.name
            for level in spine.levels
            if any(levels[part.attribute][part.depth] == name for part in level.parts)
        ]
        if short:
            return short
    return [spine.level(name).name]


def _with_theta(file: PlanFile, wishes: Wishes) -> Advice:
    """Weigh the largest degree of a plan for degrees, which has nothing else to be tried on a twin."""
    if wishes.get("prior") is not None:
        file.plan.refuse_unless_top_down()
    found = advise_theta(file, wishes["twin"] or "", wishes.get("twin_source"), wishes.get("total"))
    return Advice(file, file.plan, wishes.get("confidence", 0.95), bool(private_tables(file)), theta=found)


def _check_wishes(targets: bool, grid: bool, wishes: Wishes) -> None:
    """Refuse what contradicts itself, or leads to nothing, before anything is read."""
    wish = wishes.get
    changed = wish("delta") is not None or wish("pure")
    if wish("pure") and wish("delta") is not None:
        raise LossError("a pure loss has no delta: give --pure or --delta")
    if targets and wish("prior"):
        raise PlanError("a target decides the split itself: give --target or --prior")
    if wish("design") and (targets or grid):
        raise PlanError("--advise is about a plan with its loss: give it without --target and --epsilon-grid")
    if wish("design") and wish("prior") and wish("twin"):
        raise PlanError("--advise tries plans on one public table: give --twin or --prior")
    for given, needed, why in (
        (wish("weights") or wish("prior_source"), wish("prior"), "--weight and --prior-source are about a --prior"),
        (
            wish("objective") or wish("refine") or wish("squared_error") is not None,
            wish("prior") and not wish("design"),
            "--objective, --refine and --squared-error are about a --prior, without --advise",
        ),
        (
            wish("objective") == "consistent",
            wish("squared_error") is None,
            "--squared-error is about measurements: give it without --objective consistent",
        ),
        (wish("shares"), wish("refine"), "--shares says what --refine judges splits by: give that as well"),
        (wish("shares"), not wish("weights"), "--shares says what errors weigh: give it without --weight"),
        (wish("weights"), not wish("design"), "--advise weighs tables by --care, not by --weight"),
        (wish("care"), wish("design"), "--care says what --advise is for: give that as well"),
        (wish("twin_source"), wish("twin"), "--twin-source is about a --twin"),
        (wish("force"), wish("plot"), "--force is about a --plot"),
        (
            wish("write"),
            targets or wish("prior") or wish("design"),
            "--write fills in an answer: ask with --target, --prior or --advise",
        ),
        (
            changed,
            targets or grid or wish("squared_error") is not None,
            "--delta and --pure are for --target, --squared-error or a grid",
        ),
        (
            True,
            targets or grid or wish("twin") or wish("prior") or wish("design"),
            "ask for targets, epsilons, a twin, a prior or a design",
        ),
    ):
        if given and not needed:
            raise PlanError(why)
    if not 0 < (confidence := wishes.get("confidence", 0.95)) < 1:
        raise PlanError(f"confidence is {confidence}: give a probability between 0 and 1")


def _check_file(file: PlanFile, wishes: Wishes) -> None:
    """Refuse a plan whose loss is not chosen so, and places where nothing can be written."""
    if not isinstance(file.plan, GroupTablePlan):
        file.plan.refuse_unless_top_down()
    elif wishes.get("design"):
        raise PlanError(
            "--advise chooses which tables to measure, and in which order; a plan for group sizes has one table, whose "
            "levels are measured together. Its shares are chosen with --prior TABLE, its loss with --target, and what "
            "its largest size loses is shown with --twin TABLE"
        )
    elif wishes.get("total") is not None:
        raise PlanError("--total is for records; how many groups there are, the plan says already: leave it out")
    if (out := wishes.get("write")) is not None:
        if Path(out).exists():
            raise PlanFileError(f"{out} exists already: choose another name")
        if resolved(out).parent != (own := resolved(file.path).parent):
            raise PlanFileError(f"{out}: paths in a plan are relative to its folder: write it to {own}")
    plot = wishes.get("plot")
    if plot is not None and not wishes.get("force") and (Path(plot).exists() or Path(plot).is_symlink()):
        raise PlanFileError(f"{plot} exists already: choose another name, or replace it (--force)")


def _definition(file: PlanFile, wishes: Wishes) -> tuple[Definition, Fraction | None]:
    """Return the kind of loss that is looked for, and its delta: as the call says, or the plan."""
    if wishes.get("pure"):
        return "pure", None
    if (delta := wishes.get("delta")) is not None:
        return "approximate", delta_between_0_and_1(delta)
    loss = file.plan.loss
    if file.loss_is_open and loss.delta is None:
        raise IncompletePlan(
            f"{file.path} states no delta, at which an epsilon could be found. {DELTA}\n"
            "Give one here with --delta 1e-8 or in the plan, or --pure for an epsilon without."
        )
    return loss.definition, loss.delta


def _with_loss(advice: Advice, asked: Sequence[str | Target], kind: Definition, delta: Fraction | None) -> Advice:
    """Find the smallest loss that meets the targets, and its split."""
    plan = advice.plan
    read = [read_target(one) if isinstance(one, str) else one for one in asked]
    targets = tuple(replace(one, level=name) for one in read for name in levels_named(plan.spine, one.level))
    answer = loss_for(
        plan.spine,
        plan.unit,
        targets,
        delta=delta,
        definition=kind,
        unknown=plan.unknown,
        large_delta=plan.loss.large_delta,
        accounting=plan.loss.accounting,
        margins=plan.margins,
        facts=plan.public_facts,
        terms=plan.terms,
    )
    chosen = replace(plan, loss=answer.loss, split=answer.split)
    return replace(advice, plan=chosen, targets=targets, answer=answer)


def _with_design(advice: Advice, wishes: Wishes) -> Advice:
    """Choose tables, order and shares, and try both plans on a public table if there is one."""
    public: Prior | None = None
    notes: list[str] = []
    if (twin := wishes.get("twin")) is not None:
        public, notes = read_twin(advice.file, twin, wishes.get("twin_source"))
    elif wishes.get("prior") is not None:
        public, notes = _read_prior(advice, wishes)
    total = wishes.get("total")
    if total is None:
        total = advice.plan.population
    if total is None and public is not None and public.twin is not None:
        total = public.twin.total
    best = design(advice.plan, wishes.get("care", ()), total)
    if public is not None:
        notes += _of_facts(advice.plan, public)
        best = with_trials(
            best,
            public,
            runs=wishes.get("runs", 20),
            threads=wishes.get("threads"),
            progress=wishes.get("progress"),
        )
    found = known_outlook(best.plan, total)
    return replace(advice, plan=best.plan, design=best, outlook=found, notes=(*advice.notes, *notes))


def _read_prior(advice: Advice, wishes: Wishes) -> tuple[Prior, list[str]]:
    location, source = wishes["prior"] or "", wishes.get("prior_source")
    if source is None and not is_release(location):
        raise PlanError(
            f"say where {location} is from, since only public facts may shape the noise: "
            '--prior-source "ISTAT, commuting 2011"'
        )
    return read_public(advice.file, location, source or "", "prior")


def _with_split(advice: Advice, wishes: Wishes, kind: Definition, delta: Fraction | None) -> Advice:
    """Find the best split for the prior, of the plan's loss or of the least that reaches a squared error."""
    prior, notes = _read_prior(advice, wishes)
    spine = advice.plan.spine
    weights = {level: by for name, by in wishes.get("weights", {}).items() for level in levels_named(spine, name)}
    plan = advice.plan
    error = wishes.get("squared_error")
    if isinstance(plan, GroupTablePlan):
        if wishes.get("objective") or wishes.get("refine") or error is not None:
            raise PlanError("a plan for group sizes has its split found by trials: give --prior and --weight only")
        best = group_forecast(
            plan,
            prior,
            weights,
            runs=wishes.get("runs", 20),
            threads=wishes.get("threads"),
            progress=wishes.get("progress"),
        )
    else:
        if error is not None:
            answer = loss_for_error(plan, prior, error, weights, delta=delta, definition=kind)
            plan = replace(plan, loss=answer.loss, split="uniform")
            advice = replace(advice, answer=answer, squared_error=error)
            best = forecast_of(plan, replace(plan, split=answer.split), prior, weights)
        else:
            best = forecast(plan, prior, weights, wishes.get("objective") or "separate")
        if wishes.get("refine"):
            task = _shares(spine, wishes.get("shares"))
            tried = refine_split(best.plan, prior, weights, shares=task, threads=wishes.get("threads"))
            best = forecast_of(plan, replace(best.plan, split=tried.split), prior, weights, best.words)
            advice = replace(advice, refined=tried)
    return replace(advice, plan=best.plan, forecast=best, notes=(*advice.notes, *notes))


def _shares(spine: Spine, text: str | None) -> Shares | None:
    """Read a task as people write it: "block in tract", or "block" for one sum in all."""
    if text is None:
        return None
    names = [levels_named(spine, name.strip()) for name in text.split(" in ")]
    if len(names) > 2 or any(len(name) != 1 for name in names):
        raise PlanError(
            f'--shares {text!r}: write "LEVEL in LEVEL", each by its full name, as in "place.block in place.tract"'
        )
    return Shares(*(name for (name,) in names))


def _with_grid(advice: Advice, epsilons: Sequence[float], kind: Definition, delta: Fraction | None) -> Advice:
    """Add the errors at several epsilons."""
    if kind == "zcdp" and delta is None:
        raise LossError("the plan states its loss in rho: give --delta for a grid of epsilons")
    plan = advice.plan
    confidence, margins = advice.confidence, plan.margins
    grid = error_grid(
        plan.spine,
        plan.unit,
        epsilons,
        delta,
        plan.split,
        unknown=plan.unknown,
        confidence=confidence,
        accounting=plan.loss.accounting,
        margins=margins,
        facts=plan.public_facts,
        terms=plan.terms,
    )
    return replace(advice, grid=grid, grid_delta=delta)


def _with_trials(advice: Advice, location: str, epsilons: Sequence[float], wishes: Wishes) -> Advice:
    """Try the plan, and what the grid shows, on a public twin."""
    file, source, largest = advice.file, wishes.get("twin_source"), None
    if isinstance(file.plan, GroupTablePlan):
        groups, notes = read_public_groups(file, file.plan, location, twin_source(location, source), "twin")
        twin, largest = groups.prior, largest_advice(file.plan, advice.confidence, groups)
    else:
        twin, notes = read_twin(file, location, source)
        notes += _of_facts(advice.plan, twin)

    def tried(plan: Plan) -> Trials:
        return simulate(
            plan,
            twin,
            runs=wishes.get("runs", 20),
            confidence=advice.confidence,
            threads=wishes.get("threads"),
            progress=wishes.get("progress"),
        )

    is_chosen = advice.answer is not None or not file.loss_is_open
    trials = tried(advice.plan) if is_chosen else None
    at = {epsilon: tried(_at(advice.plan, epsilon, advice.grid_delta)) for epsilon in epsilons}
    return replace(advice, trials=trials, grid_trials=at, largest=largest, notes=(*advice.notes, *notes))


def _of_facts(plan: Plan, public: Prior) -> list[str]:
    """Say that a twin has other counts than the public facts of a plan, where that is so."""
    return [TOLD] if public.twin is not None and differs(plan, public.twin) else []


def _at(plan: Plan, epsilon: float, delta: Fraction | None) -> Plan:
    meant = plan.loss.large_delta and delta is not None
    loss = Loss(epsilon=epsilon, delta=delta, large_delta=meant, accounting=plan.loss.accounting)
    return replace(plan, loss=loss)


def _written(advice: Advice, wishes: Wishes) -> Advice:
    """Draw and write what was asked for."""
    file, plan, files = advice.file, advice.plan, []
    if (plot := wishes.get("plot")) is not None:
        title = plan.title or file.path.name
        plot_grid(advice.grid, Path(plot), title, advice.confidence, advice.grid_trials)
        files.append(Path(plot))
    if (out := wishes.get("write")) is not None:
        fill = filled_in if advice.design is None else designed_in
        text = fill(file.text, plan, str(file.path))
        with Path(out).open("x", encoding="utf-8") as stream:
            stream.write(text)
        files.append(Path(out))
    return replace(advice, files=tuple(files))
