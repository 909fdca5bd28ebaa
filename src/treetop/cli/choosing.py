"""`treetop plan` before the loss is known: what accuracy costs, what a loss buys, how to divide it, trials on a twin.

Everything here is computed from the plan and from public tables; the plan's own table is refused as one of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from treetop.basics.resolved import resolved
from treetop.cli.chosen import Found, render, summarise
from treetop.cli.progress import Bar
from treetop.errors import IncompletePlan, LossError, PlanError, PlanFileError

if TYPE_CHECKING:
    from fractions import Fraction

    from treetop.basics.exact import Number
    from treetop.choose import GridRow, Prior, Target, Trials
    from treetop.domain.spine import Spine
    from treetop.plan.file import PlanFile
    from treetop.plan.plan import PurePlan
    from treetop.privacy import Definition

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_GRID = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""The epsilons of a plot where none are given."""


def _numbers(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(0 < number < float("inf") for number in numbers):
        raise click.BadParameter(f"{text!r}: give positive numbers with commas between them, such as 0.1,1,10")
    return tuple(sorted(set(numbers)))


_OPTIONS = (
    click.option("--target", "targets", multiple=True, help='What a level must keep: "state=20", "state mean 8".'),
    click.option("--delta", type=float, help="Delta; the plan's by default."),
    click.option("--pure", is_flag=True, help="A pure epsilon, without delta: Laplace noise."),
    click.option("--epsilon-grid", "epsilons", callback=_numbers, help="Errors at several epsilons: 0.1,1,10."),
    click.option("--plot", type=click.Path(path_type=Path), help="Draw the grid to this file."),
    click.option("--twin", metavar="TABLE", help="A public or synthetic table, or a release, to try the plan on."),
    click.option("--twin-source", help="Where the twin is from, in words."),
    click.option("--runs", type=click.IntRange(min=1), default=20, show_default=True, help="Trials on the twin."),
    click.option("--threads", type=click.IntRange(min=1), help="Trials at once; as many as cores by default."),
    click.option("--prior", metavar="TABLE", help="An earlier release, or a public table, to choose the split by."),
    click.option("--prior-source", help="Where the prior is from, in words."),
    click.option("--weight", "weights", multiple=True, metavar="LEVEL=NUMBER", help="With --prior: what errors weigh."),
    click.option("--write", type=click.Path(path_type=Path), help="Write the plan with the answer filled in."),
    click.option("--force", is_flag=True, help="Draw over a plot that is there already."),
)


def options(command: F) -> F:
    """Give a command the options of this module."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class Wishes:
    """What was asked for on the command line."""

    targets: tuple[str, ...]
    """What levels must keep, as people write it."""
    delta: float | None
    """A delta in place of the plan's."""
    pure: bool
    """Whether the loss is to be pure."""
    epsilons: tuple[float, ...] | None
    """The epsilons of a grid."""
    plot: Path | None
    """Where to draw the grid."""
    twin: str | None
    """A public table to try the plan on."""
    twin_source: str | None
    """Where it is from."""
    runs: int
    """How many trials."""
    threads: int | None
    """How many at once."""
    prior: str | None
    """A public table to choose the split by."""
    prior_source: str | None
    """Where it is from."""
    weights: tuple[str, ...]
    """What errors of levels weigh."""
    write: Path | None
    """Where to write the plan with the answer."""
    force: bool
    """Whether a plot may replace another file."""

    @property
    def any(self) -> bool:
        """Whether anything of this module was asked for."""
        return bool(self.targets or self.epsilons or self.plot or self.twin or self.prior)

    @property
    def grid(self) -> tuple[float, ...]:
        """The epsilons to compare; none where no grid was asked for."""
        return self.epsilons or (DEFAULT_GRID if self.plot else ())

    def __post_init__(self) -> None:
        if self.pure and self.delta is not None:
            raise click.UsageError("a pure loss has no delta: give --pure or --delta")
        if self.targets and self.prior:
            raise click.UsageError("a target decides the split itself: give --target or --prior")
        needs = (
            (self.weights or self.prior_source, self.prior, "--weight and --prior-source are about a --prior"),
            (self.twin_source, self.twin, "--twin-source is about a --twin"),
            (self.force, self.plot, "--force is about a --plot"),
            (self.write, self.targets or self.prior, "--write fills in an answer: ask with --target or --prior"),
            (
                self.delta is not None or self.pure,
                self.targets or self.grid,
                "--delta and --pure are for --target or a grid",
            ),
        )
        for given, needed, why in needs:
            if given and not needed:
                raise click.UsageError(why)


def run(path: Path, wishes: Wishes, confidence: float, as_json: bool) -> None:
    """Answer what was asked, and print it."""
    from treetop.plan.file import read_plan

    if not 0 < confidence < 1:
        raise PlanError(f"confidence is {confidence}: give a probability between 0 and 1")
    file = read_plan(path, stand_in=1 if wishes.targets or wishes.grid else None)
    file.plan.refuse_unless_top_down()
    if file.plan.loss.accounting == "exact":
        raise LossError(
            f'{path}: [loss] accounting is "exact", and a loss is chosen by "zcdp": leave it out until the loss is '
            "chosen. Put back then, it only makes the noise smaller"
        )
    if wishes.write is not None:
        _check_place(wishes.write, path)
    if wishes.plot is not None and not wishes.force and (wishes.plot.exists() or wishes.plot.is_symlink()):
        raise PlanFileError(f"{wishes.plot} exists already: choose another name, or replace it (--force)")
    with Bar(shown=not as_json) as bar:
        found = choose(file, wishes, confidence, bar)
    click.echo(json.dumps(summarise(found), indent=2) if as_json else render(found))


def choose(file: PlanFile, wishes: Wishes, confidence: float, bar: Bar) -> Found:
    """Answer what was asked."""
    from treetop.choose import error_grid, filled_in, forecast, loss_for, plot_grid, read_target, simulate
    from treetop.choose.public import private_tables, read_twin

    plan, spine = file.plan, file.plan.spine
    kind, delta = _definition(file, wishes)
    targets = tuple(one for text in wishes.targets for one in _at_levels(read_target(text), spine))
    answer = best = None
    notes: list[str] = []
    if targets:
        answer = loss_for(
            spine,
            plan.unit,
            targets,
            delta=delta,
            definition=kind,
            unknown=plan.unknown,
            large_delta=plan.loss.large_delta,
        )
        plan = replace(plan, loss=answer.loss, split=answer.split)
    if wishes.prior is not None:
        prior, said = _prior(file, wishes.prior, wishes.prior_source)
        notes += said
        best = forecast(plan, prior, _weights(wishes.weights, spine))
        plan = best.plan
    grid: tuple[GridRow, ...] = ()
    if wishes.grid:
        if kind == "zcdp" and delta is None:
            raise click.UsageError("the plan states its loss in rho: give --delta for a grid of epsilons")
        grid = error_grid(spine, plan.unit, wishes.grid, delta, plan.split, unknown=plan.unknown, confidence=confidence)
    trials, grid_trials = None, {}
    if wishes.twin is not None:
        twin, said = read_twin(file, wishes.twin, wishes.twin_source)
        notes += said

        def tried(one: PurePlan) -> Trials:
            return simulate(one, twin, runs=wishes.runs, confidence=confidence, threads=wishes.threads, progress=bar)

        trials = tried(plan) if answer is not None or not file.loss_is_open else None
        grid_trials = {epsilon: tried(_at(plan, epsilon, delta)) for epsilon in wishes.grid}
    files = []
    if wishes.plot is not None:
        plot_grid(grid, wishes.plot, plan.title or file.path.name, confidence, grid_trials)
        files.append(wishes.plot)
    if wishes.write is not None:
        _write(wishes.write, filled_in(file.text, plan, str(file.path)))
        files.append(wishes.write)
    guarded = bool(private_tables(file))
    told = (confidence, tuple(files), guarded, tuple(notes))
    return Found(file, plan, targets, answer, best, grid, delta, trials, grid_trials, *told)


def levels_named(spine: Spine, name: str) -> list[str]:
    """Return the levels of a name: `attribute.level`, or a short one, which may be that of several attributes.

    A target for a short name is one for them all. That costs nothing: what is above a target is as accurate anyway.
    """
    from treetop.domain.unit import TOTAL

    if name == TOTAL:
        return [TOTAL]
    pairs = list(zip(spine.levels, spine.splits, strict=True))
    if name not in [known for level, split in pairs for known in (level.name, split)]:
        short = [level.name for level, split in pairs if split.partition(".")[2] == name]
        if short:
            return short
    return [spine.level(name).name]


def _at_levels(target: Target, spine: Spine) -> list[Target]:
    return [replace(target, level=name) for name in levels_named(spine, target.level)]


def _definition(file: PlanFile, wishes: Wishes) -> tuple[Definition, Fraction | None]:
    """Return the kind of loss that is looked for, and its delta: as the call says, or the plan."""
    from treetop.basics.exact import delta_between_0_and_1

    if wishes.pure:
        return "pure", None
    if wishes.delta is not None:
        return "approximate", delta_between_0_and_1(wishes.delta)
    loss = file.plan.loss
    if file.loss_is_open and loss.delta is None:
        from treetop.plan.fields.ordinary import DELTA

        raise IncompletePlan(
            f"{file.path} states no delta, at which an epsilon could be found. {DELTA}\n"
            "Give one here with --delta 1e-8 or in the plan, or --pure for an epsilon without."
        )
    return loss.definition, loss.delta


def _at(plan: PurePlan, epsilon: float, delta: Fraction | None) -> PurePlan:
    from treetop.privacy import Loss

    meant = plan.loss.large_delta and delta is not None
    return replace(plan, loss=Loss(epsilon=epsilon, delta=delta, large_delta=meant))


def _weights(texts: Sequence[str], spine: Spine) -> dict[str, Number]:
    weights: dict[str, Number] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            raise click.UsageError(f"--weight {text!r}: write LEVEL=NUMBER, as in state=2") from None
        weights |= dict.fromkeys(levels_named(spine, name.strip()), weight)
    return weights


def _prior(file: PlanFile, location: str, source: str | None) -> tuple[Prior, list[str]]:
    from treetop.choose.public import is_release, read_public

    if source is None and not is_release(location):
        raise click.UsageError(
            f"say where {location} is from, since only public facts may shape the noise: "
            '--prior-source "ISTAT, commuting 2011"'
        )
    return read_public(file, location, source or "", "prior")


def _check_place(out: Path, plan: Path) -> None:
    if out.exists():
        raise PlanFileError(f"{out} exists already: choose another name")
    if resolved(out).parent != resolved(plan).parent:
        raise PlanFileError(f"{out}: paths in a plan are relative to its folder: write it to {resolved(plan).parent}")


def _write(out: Path, text: str) -> None:
    with out.open("x", encoding="utf-8") as stream:
        stream.write(text)
