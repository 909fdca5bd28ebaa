"""`treetop estimate`: what all measurements of a release say of every node, and a new release made of them."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treetop.basics.resolved import resolved
from treetop.cli.common import print_csv, standard_output
from treetop.cli.terminal import style
from treetop.errors.showing import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from treetop.release.estimates.table import LevelDifference
    from treetop.release.release import Release


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--level", metavar="LEVEL", help="The estimates of a level of the spine, a row for each measured node.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the N largest estimates, largest first.")
@click.option("--out", type=click.Path(path_type=Path), metavar="NEW", help="Write a release of lower error here.")
@click.option("--force", is_flag=True, help="Replace the folder NEW if there is one.")
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values.")
@click.option("--json", "as_json", is_flag=True, help="The same for machines.")
def command(
    folder: Path, level: str | None, limit: int | None, out: Path | None, force: bool, as_csv: bool, as_json: bool
) -> None:
    """Estimate the counts of the release DIR by least squares, from all its measurements. Nothing is spent.

    The release must have kept them: all are where no level has more than a million public nodes, and with
    --keep-measurements. Without options it shows, level by level, how far the estimates are from the released counts.
    With --level place.state there is a row for each measured node: its estimate, which may be negative, the standard
    deviation of that, and the released count. With --out a new release of the same measurements is written, with
    whole counts of lower error that add up, a card and intervals.
    """
    from treetop.release.release import Release

    _check_call(level, limit, out, force, as_csv, as_json)
    if out is not None and resolved(out) == resolved(folder):
        raise click.UsageError(f"{out} is the release itself, and is never replaced by another: name a new folder")
    release = Release.load(folder)
    if warning := release.card.get("warning"):
        click.echo(f"treetop: {warning}", err=True)
    if out is not None:
        summary = _write(release, folder, out, force)
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False) if as_json else render_written(summary))
    elif level is not None:
        table = release.estimates(level)
        shown = table if limit is None else table.sort_by([("estimate", "descending")]).slice(0, limit)
        with standard_output():
            _print_table(release, level, table, shown, as_csv, as_json)
    else:
        summary = _summary(release, folder)
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False) if as_json else render(summary))


def render(summary: dict[str, Any]) -> str:
    """Return how estimates differ from released counts, for people."""
    from treetop.plan.accuracy import text_table

    rows = [("level", "estimated nodes", "released nodes", "typical sd", "mean difference")]
    for row in summary["levels"]:
        numbers = (f"{row['sd']:,.3g}", f"{row['difference']:,.3g}")
        rows.append((row["name"], f"{row['nodes']:,}", f"{row['released']:,}", *numbers))
    title = style(printable(summary["title"]), bold=True)
    told = (
        "Estimates are by least squares from all measurements; they may be negative, and add up. The\n"
        "typical sd is the median of their standard deviations; the mean difference is between estimates and\n"
        "released counts, zeros included."
    )
    return "\n".join([title, text_table(rows, left=(0,)), "", told, *(f"Next: {step}" for step in summary["next"])])


def render_written(summary: dict[str, Any]) -> str:
    """Return what was written, for people."""
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
    from treetop.card.first_format import words_only
    from treetop.release.estimates.table import level_differences

    levels: list[LevelDifference] = level_differences(release)
    finest = release.spine.splits[-1]
    steps = [f"treetop estimate {shlex.quote(str(folder))} --level {shlex.quote(finest)}"]
    again = release.card["plan"]["repair"] != "least-squares" and release.left is None
    if again and not words_only(release.card, release.plan_toml or ""):
        out = folder.with_name(f"{resolved(folder).name}-estimated")
        steps.append(f"treetop estimate {shlex.quote(str(folder))} --out {shlex.quote(str(out))}")
    return {"title": release.card["title"], "levels": [level.to_dict() for level in levels], "next": steps}


def _print_table(release: Release, level: str, table: pa.Table, shown: pa.Table, as_csv: bool, as_json: bool) -> None:
    if as_json:
        summary = {"title": release.card["title"], "level": level, "rows": shown.to_pylist()}
        summary["left_out"] = table.num_rows - shown.num_rows
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False))
    elif as_csv:
        print_csv(shown)
    else:
        click.echo(render_table(shown, table.num_rows, sys.stdout.isatty()))


def render_table(table: pa.Table, rows: int, for_terminal: bool) -> str:
    """Return the estimates of a level for people; with a rule and what is not shown on a terminal."""
    from treetop.plan.accuracy import text_table

    names = table.column_names
    codes = names.index("estimate")
    columns = [[printable(code) for code in table.column(i).to_pylist()] for i in range(codes)]
    columns += [[f"{value:.2f}" for value in table[name].to_pylist()] for name in ("estimate", "sd")]
    columns.append([f"{count:,}" if for_terminal else str(count) for count in table["count"].to_pylist()])
    text = text_table([names, *zip(*columns, strict=True)], left=range(codes))
    if not for_terminal:
        header, _, *lines = text.split("\n")
        return "\n".join([header, *lines])
    left = f"; {rows - table.num_rows:,} smaller not shown" if rows > table.num_rows else ""
    return f"{text}\n\n{rows:,} row{'s' * (rows != 1)}{left}"


def _write(release: Release, folder: Path, out: Path, force: bool) -> dict[str, Any]:
    import pyarrow.parquet as pq

    from treetop.release.folder import NODES, PLACES, check_place, drafted

    check_place(out, force)
    again = release.reestimated()
    places = {path.stem: pq.read_table(path) for path in sorted((folder / PLACES).glob("*.parquet"))}
    with drafted(again, out, force=force, nodes=(folder / NODES).is_file(), places=places) as draft:
        draft.place()
    return {
        "out": str(out),
        "id": again.card["id"],
        "source": release.card["id"],
        "title": again.card["title"],
        "total": again.total,
        "leaves": len(again.count),
        "next": f"treetop check {shlex.quote(str(out))}",
    }
