"""`treetop estimate`: estimates of every node from all measurements of a release, and a new release from them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treetop._util.files import resolved
from treetop.cli.terminal import PATH, print_csv, render_rows, say_json, say_warning, standard_output, style, text_table
from treetop.errors import printable

if TYPE_CHECKING:
    from treetop.release.release import Release


@click.command()
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--level", metavar="LEVEL", help="The estimates of a level of the spine, a row for each measured node.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the N largest estimates, largest first.")
@click.option("--out", type=PATH, metavar="NEW", help="Write a release of lower error here.")
@click.option("--force", is_flag=True, help="Replace the folder NEW if there is one.")
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values.")
@click.option("--json", "as_json", is_flag=True, help="The same for machines.")
def command(
    folder: Path, level: str | None, limit: int | None, out: Path | None, force: bool, as_csv: bool, as_json: bool
) -> None:
    """Estimate the counts of the release DIR by least squares, from all its measurements. Nothing is spent.

    The release must have kept them: all are where no level has more than a million public nodes, and with
    --keep-measurements. Without options it shows, table by table, how far the estimates are from the released counts.
    With --level place.state there is a row for each measured node: its estimate, which may be negative, the standard
    deviation of that, and the released count; --level "margin place.state" is that margin. With --out a new release of
    the same measurements is written, with whole counts of lower error that add up, a card and intervals.
    """
    from treetop.release.release import Release

    _check_call(level, limit, out, force, as_csv, as_json)
    if out is not None:
        summary = _rewritten(folder, out, force)
        say_json(summary) if as_json else click.echo(render_written(summary))
        return
    release = Release.load(folder)
    say_warning(release.card)
    if level is not None:
        table = release.estimates(level)
        shown = table if limit is None else table.sort_by([("estimate", "descending")]).slice(0, limit)
        with standard_output():
            if as_json:
                about = {"title": release.card["title"], "level": level, "rows": shown.to_pylist()}
                say_json({**about, "left_out": table.num_rows - shown.num_rows})
            elif as_csv:
                print_csv(shown)
            else:
                click.echo(render_rows(shown, "estimate", "", table.num_rows, sys.stdout.isatty()))
    else:
        summary = _summary(release, folder)
        say_json(summary) if as_json else click.echo(render(summary))


def render(summary: dict[str, Any]) -> str:
    """Return how estimates differ from released counts, for people."""
    rows = [("level", "estimated nodes", "released nodes", "typical sd", "mean difference")]
    for row in summary["levels"]:
        numbers = (f"{row['sd']:,.3g}", f"{row['difference']:,.3g}")
        rows.append((row["counts"], f"{row['nodes']:,}", f"{row['released']:,}", *numbers))
    title = style(printable(summary["title"]), bold=True)
    told = (
        "Estimates are by least squares from all measurements, margins included; they may be negative. The\n"
        "typical sd is the median of their standard deviations; the mean difference is between estimates and\n"
        "released counts, zeros included."
    )
    return "\n".join([title, text_table(rows, left=(0,)), "", told, *(f"Next: {step}" for step in summary["next"])])


def render_written(summary: dict[str, Any]) -> str:
    """Return a text on the written release."""
    leaves = f"{summary['leaves']:,} {'leaf' if summary['leaves'] == 1 else 'leaves'}"
    return "\n".join(
        [
            style(f"{printable(summary['title'])}: {summary['out']}", bold=True),
            f"{summary['total']:,} in {leaves}, estimated again from release {summary['source']}.",
            "Nothing was spent: both releases are made of the same measurements.",
            f"Next: {summary['next']}",
        ]
    )


def _check_call(
    level: str | None, limit: int | None, out: Path | None, force: bool, as_csv: bool, as_json: bool
) -> None:
    if level is not None and out is not None:
        raise click.UsageError("--level shows estimates, --out writes a release: choose one")
    if as_csv and as_json:
        raise click.UsageError("--csv and --json are two ways to print the same: choose one")
    if level is None and (limit is not None or as_csv):
        raise click.UsageError(f"{'--csv' if as_csv else '--limit'} is for the rows of a table: add --level LEVEL")
    if force and out is None:
        raise click.UsageError("--force is about the folder that --out names: give --out NEW as well")


def _summary(release: Release, folder: Path) -> dict[str, Any]:
    from treetop.release.estimates.estimate_table import level_differences
    from treetop.release.estimates.reestimate import why_not_again

    levels = [level.to_dict() for level in level_differences(release)]
    finest = release.spine.splits[-1]
    steps = [f"treetop estimate {shlex.quote(str(folder))} --level {shlex.quote(finest)}"]
    if why_not_again(release) is None:
        out = folder.with_name(f"{resolved(folder).name}-estimated")
        steps.append(f"treetop estimate {shlex.quote(str(folder))} --out {shlex.quote(str(out))}")
    return {"title": release.card["title"], "levels": levels, "next": steps}


def _rewritten(folder: Path, out: Path, force: bool) -> dict[str, Any]:
    from treetop.release.folder import read_card
    from treetop.release.release import reestimate

    again = reestimate(folder, out, force=force)
    say_warning(again.card)
    return {
        "out": str(out),
        "id": again.card["id"],
        "source": read_card(folder)["id"],
        "title": again.card["title"],
        "total": again.total,
        "leaves": len(again.count),
        "next": f"treetop check {shlex.quote(str(out))}",
    }
