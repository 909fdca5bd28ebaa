"""`treetop compare`: mechanisms side by side on the private table, for the steward only. Nothing is released."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import click

from treetop.cli.progress import Bar
from treetop.cli.terminal import style
from treetop.errors import ReleaseError

if TYPE_CHECKING:
    from treetop.compare.comparison import Comparison
    from treetop.compare.trial import Case, Setting, Trial
    from treetop.plan.file import PlanFile

MECHANISMS = "inftda,tda-l2,gauss,sh"
ACCOUNTINGS = ("tight", "paper", "both")


def _names(_: click.Context, __: click.Parameter, text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _numbers(_: click.Context, parameter: click.Parameter, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(0 < number < float("inf") for number in numbers):
        raise click.BadParameter(f"{text!r}: give positive numbers with commas between them, such as 0.1,1,10")
    return list(dict.fromkeys(numbers))


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@click.argument("table", required=False)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write.")
@click.option("--mechanisms", callback=_names, default=MECHANISMS, show_default=True, help="Which ones.")
@click.option("--epsilon", "epsilons", callback=_numbers, help="Which epsilons, as in 0.1,1,10; the plan's by default.")
@click.option("--delta", type=float, help="Delta; the plan's by default.")
@click.option("--accounting", callback=_names, default="tight", show_default=True, help="tight, paper, or both.")
@click.option("--repeat", type=click.IntRange(min=1), default=10, show_default=True, help="How often each is run.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="How many runs at once; as many as there are cores by default."
)
@click.option("--query", help="The query, where TABLE is a database.")
@click.option("--plots/--no-plots", default=True, help="Whether to draw error, false discoveries and time.")
@click.option("--json", "as_json", is_flag=True, help="The results for machines.")
def command(plan: Path, table: str | None, out: Path, as_json: bool, **options: Any) -> None:
    """Run mechanisms side by side on TABLE and write their errors, times and memory to a folder.

    Nothing is released and nothing is spent; the errors are computed from private data, so everything that is written
    is for the steward only. Attributes, unit and split are the plan's.
    """
    from treetop.basics.picture import new_figure
    from treetop.compare.compare import compare
    from treetop.plan.file import read_plan

    file = read_plan(plan)
    file.plan.refuse_unless_top_down()
    if out.exists() or out.is_symlink():
        raise ReleaseError(f"{out} exists already: choose another folder")
    if options["plots"]:
        # Without matplotlib it is refused now, before hours of work.
        new_figure(1, 1, extra="compare", without="leave the plots out (--no-plots)")
    chosen = _settings(file, options["mechanisms"], options["epsilons"], options["delta"], options["accounting"])
    location = table or file.source
    if location is None:
        raise click.UsageError("name the private TABLE, or give the plan a [data] source")
    with Bar(shown=not as_json) as bar:
        case = _read(file, location, options["query"], bar)
        jobs = options["jobs"] or os.cpu_count() or 1
        found = compare(case, chosen, options["repeat"], jobs=jobs, progress=bar)
        title = f"{file.plan.title or plan.stem}: mechanisms side by side"
        files = _write(found, out, title, options["plots"])
    click.echo(json.dumps(summarise(found, out, files), indent=2) if as_json else render(found, out, title))


def _settings(
    file: PlanFile, mechanisms: list[str], epsilons: list[float] | None, delta: float | None, accounting: list[str]
) -> list[Setting]:
    """Return what is to be run, with the plan's loss where the call names none."""
    from treetop.compare.compare import settings

    loss = file.plan.loss
    if not accounting or not set(accounting) <= set(ACCOUNTINGS):
        raise click.UsageError(f"--accounting is {', '.join(accounting) or 'empty'}: choose tight, paper, or both")
    if "both" in accounting:
        accounting = ["tight", "paper"]
    if delta is None and loss.delta is not None:
        delta = float(loss.delta)
    if epsilons is None:
        if loss.epsilon is None:
            raise click.UsageError("the plan states its loss in rho: give --epsilon and --delta to compare at")
        epsilons = [float(loss.epsilon)]
    if delta is None and loss.definition == "zcdp":
        raise click.UsageError("the plan states its loss in rho: give --epsilon and --delta to compare at")
    if not mechanisms:
        raise click.UsageError("--mechanisms names none: give some, such as inftda,sh")
    return settings(mechanisms, epsilons, delta, accounting)  # type: ignore[arg-type]


def _read(file: PlanFile, location: str, query: str | None, bar: Bar) -> Case:
    """Read the private table; where a limit of contributions is enforced, also without it, as the truth."""
    from treetop.compare.trial import Case
    from treetop.noise import Key
    from treetop.read.bound import Bound
    from treetop.read.encode import read_counts
    from treetop.read.tally import Tally

    plan = file.plan
    source = file.table(location, query)
    tally = Tally()
    truth = read_counts(source, plan.spine, file.columns, file.count, plan.unknown, progress=bar, tally=tally)
    tally.tell(plan.unit)
    counts, whole = truth, None
    if (bound := Bound.of(plan.unit, Key.fresh())) is not None:
        counts, whole = read_counts(source, plan.spine, file.columns, file.count, plan.unknown, bound, bar), truth
    return Case(plan.spine, plan.unit, counts, whole, plan.split, plan.unknown == "drop")


def _write(found: Comparison, out: Path, title: str, plots: bool) -> list[str]:
    """Write the folder beside its place, then move it there in one step; return the names of its files."""
    import pyarrow.parquet as pq

    from treetop.compare.plots import save_plots
    from treetop.release.folder.place import scratch, writing

    with scratch(out) as beside, writing(out):
        whole = beside / "comparison"
        whole.mkdir()
        pq.write_table(found.table(), whole / "results.parquet")
        (whole / "summary.md").write_text(found.summary(title), encoding="utf-8")
        if plots and found.trials:
            save_plots(found, whole, title)
        names = sorted(path.name for path in whole.iterdir())
        whole.rename(out)
    return names


def summarise(found: Comparison, out: Path, files: list[str]) -> dict[str, Any]:
    """Return the means over the runs of every setting as plain values."""
    from treetop.compare.comparison import FENCE, LIMITED, WARNING

    return {
        "fence": FENCE,
        "warning": WARNING,
        "note": LIMITED if found.limited else None,
        "out": str(out),
        "files": files,
        "settings": [_means(setting, trials) for setting, trials in found.by_setting().items()],
        "refused": found.refusals().to_pylist(),
    }


def _means(setting: Setting, trials: Sequence[Trial]) -> dict[str, Any]:
    metrics = ("largest", "mean", "root_mean_square", "false_discoveries", "false_negatives", "negative")
    peaks = [trial.peak_bytes for trial in trials]
    return {
        "mechanism": setting.mechanism,
        "accounting": setting.accounting,
        "epsilon": setting.epsilon,
        "delta": setting.delta,
        "runs": len(trials),
        "seconds": fmean(trial.seconds for trial in trials),
        "peak_bytes": None if None in peaks else max(peak for peak in peaks if peak is not None),
        "violations": fmean(trial.violations for trial in trials),
        "leaves": fmean(trial.leaves for trial in trials),
        "levels": [
            {
                "level": level.level,
                "name": level.name,
                **{name: fmean(getattr(trial.errors[at], name) for trial in trials) for name in metrics},
            }
            for at, level in enumerate(trials[0].errors)
        ],
    }


def render(found: Comparison, out: Path, title: str) -> str:
    """Return the results for people, behind a fence."""
    from treetop.compare.comparison import FENCE, LIMITED, WARNING, number, percent, seconds
    from treetop.plan.accuracy import text_table

    rule = style(f"──── {FENCE} ────", fg="red", bold=True)
    head = ("mechanism", "epsilon", "accounting", "error, first level", "error, leaves", "invented", "lost", "seconds")
    rows = [head]
    for setting, trials in found.by_setting().items():
        leaf = [trial.errors[-1] for trial in trials]
        rows.append(
            (
                setting.mechanism,
                f"{setting.epsilon:g}",
                setting.accounting,
                number(fmean(trial.errors[1].largest for trial in trials)),
                number(fmean(errors.largest for errors in leaf)),
                percent(fmean(errors.false_discoveries for errors in leaf)),
                percent(fmean(errors.false_negatives for errors in leaf)),
                seconds(fmean(trial.seconds for trial in trials)),
            )
        )
    lines = [rule, style(title, bold=True)]
    if len(rows) > 1:
        lines += [text_table(rows, left=(0, 2)), "Largest absolute errors; all are means over the runs."]
        lines += [LIMITED] if found.limited else []
    for one in found.refused:
        lines.append(f"Not run: {one.setting.mechanism} at epsilon {one.setting.epsilon:g}: {one.reason}")
    return "\n".join([*lines, "", WARNING, f"All results are in {out}.", rule])
