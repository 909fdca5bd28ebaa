"""`treetop compare`: mechanisms side by side on the private table, for the steward only. Nothing is released."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import click

from treetop.cli.progress import Bar
from treetop.cli.terminal import PATH, numbers, say_json, style, text_table

if TYPE_CHECKING:
    from treetop.addons.lab.compare import SideBySide
    from treetop.addons.lab.comparison import Comparison, Setting, Trial


def _names(_: click.Context, __: click.Parameter, text: str | None) -> list[str] | None:
    return None if text is None else list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


@click.command()
@click.argument("plan", type=PATH)
@click.argument("table", required=False)
@click.option("--out", type=PATH, required=True, help="The folder to write.")
@click.option(
    "--mechanisms",
    callback=_names,
    help="Which ones; by default inftda,tda-l2,gauss,sh, and margins and facts if the plan keeps them; all for groups.",
)
@click.option("--epsilon", "epsilons", callback=numbers, help="Which epsilons, as in 0.1,1,10; the plan's by default.")
@click.option("--delta", type=float, help="Delta; the plan's by default.")
@click.option("--accounting", callback=_names, default="tight", show_default=True, help="tight, paper, or both.")
@click.option("--repeat", type=click.IntRange(min=1), default=10, show_default=True, help="How often each is run.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="How many runs at once; as many as there are cores by default."
)
@click.option("--query", help="The query, if TABLE is a database.")
@click.option("--plots/--no-plots", default=True, help="Whether to draw error, false discoveries and time.")
@click.option("--json", "as_json", is_flag=True, help="The results for machines.")
def command(plan: Path, table: str | None, out: Path, as_json: bool, **options: Any) -> None:
    """Run mechanisms side by side on TABLE and write their errors, times and memory to a folder.

    Nothing is released and nothing is spent; the errors are computed from private data, so everything that is written
    is for the steward only. Attributes, unit, split and margins are the plan's; the errors of its margins are told of
    every mechanism, whether it measures them or they are summed from its leaves. Public facts of the plan are
    kept by the mechanism called facts alone: all others run on the plan without them. A plan for group sizes has
    mechanisms of its own; TABLE may then also be a public one, of places, sizes and counts. To see what today's
    practice costs, name suppression and rounding as well: they protect nobody.
    """
    from treetop.addons.lab.compare import compare_mechanisms

    with Bar(shown=not as_json) as bar:
        done = compare_mechanisms(plan, table, out, progress=bar, **options)
    say_json(summarise(done, out)) if as_json else click.echo(render(done, out))


def summarise(done: SideBySide, out: Path) -> dict[str, Any]:
    """Return the means over the runs of every setting as plain values."""
    from treetop.addons.lab.comparison import FENCE, LIMITED, WARNING, WITHOUT_FACTS

    found = done.comparison
    return {
        "fence": FENCE,
        "warning": WARNING,
        "note": LIMITED if found.limited else None,
        "facts": WITHOUT_FACTS if found.facts else None,
        "out": str(out),
        "files": [file.name for file in done.files],
        "settings": [_means(setting, trials) for setting, trials in found.by_setting().items()],
        "refused": found.refusals().to_pylist(),
    }


def _means(setting: Setting, trials: Sequence[Trial]) -> dict[str, Any]:
    metrics = ("largest", "mean", "root_mean_square", "false_discoveries", "false_negatives", "negative")
    peaks = [trial.peak_bytes for trial in trials]
    tables = [trial.errors + trial.margins for trial in trials]
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
                "counts": level.counts,
                "bound": trials[0].bounds[at] if at < len(trials[0].bounds) else None,
                **{name: fmean(getattr(run[at], name) for run in tables) for name in metrics},
            }
            for at, level in enumerate(tables[0])
        ],
    }


def render(done: SideBySide, out: Path) -> str:
    """Return the results for people, behind a fence."""
    from treetop.addons.lab.comparison import FENCE, WARNING, number, percent, seconds

    found = done.comparison
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
    lines = [rule, style(done.title, bold=True)]
    if len(rows) > 1:
        lines += [text_table(rows, left=(0, 2)), "Largest absolute errors; all are means over the runs."]
        lines += found.notes
        lines += _tables(found)
    for one in found.refused:
        lines.append(f"Not run: {one.setting.mechanism} at epsilon {one.setting.epsilon:g}: {one.reason}")
    return "\n".join([*lines, "", WARNING, f"All results are in {out}.", rule])


def _tables(found: Comparison) -> list[str]:
    """Return, for every accounting and epsilon, the mean errors of levels and margins: a column per mechanism."""
    from treetop.addons.lab.comparison import mean_errors, number

    lines = []
    for (accounting, epsilon, _), members in found.groups().items():
        head = (f"mean error, epsilon {epsilon:g}, {accounting}", *(trials[0].setting.mechanism for trials in members))
        rows = [head, *((title, *map(number, means)) for title, _, *means in mean_errors(members))]
        lines += ["", text_table(rows, left=(0,))]
    return lines
