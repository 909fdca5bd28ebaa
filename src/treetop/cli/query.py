"""`treetop query`: counts of a release by codes of any level, and tables of sums."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treetop.cli.terminal import PATH, print_csv, render_rows, say_json, say_warning, standard_output, text_table
from treetop.errors import QueryError, printable

if TYPE_CHECKING:
    import pyarrow as pa

    from treetop.release.selection import Selection


@click.command()
@click.argument("folder", metavar="DIR", type=PATH)
@click.argument("conditions", metavar="[ATTRIBUTE=CODE_OR_NAME]...", nargs=-1)
@click.option("--by", "levels", metavar="LEVEL", multiple=True, help="A row for each code of a level; repeatable.")
@click.option(
    "--derived",
    type=click.Choice(["cumulative", "people", "mean-size", "share-of-one", "mean-degree", "quantiles", "share-above"]),
    help="Of group sizes and degrees: a table that follows from them, by one level of the place.",
)
@click.option("--above", type=int, metavar="DEGREE", help="With --derived share-above: the degree.")
@click.option("--plot", type=PATH, metavar="FILE", help="Of degrees: draw how many people have how many edges.")
@click.option("--confidence", type=float, metavar="P", help="Of the noise intervals; that of the plan by default.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the N largest counts, largest first.")
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values.")
@click.option("--json", "as_json", is_flag=True, help="The same for machines.")
def command(
    folder: Path,
    conditions: tuple[str, ...],
    levels: tuple[str, ...],
    derived: Any | None,
    above: int | None,
    plot: Path | None,
    confidence: float | None,
    limit: int | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Count what matches the codes in the release DIR: the total when there are none.

    Codes are of any level, and so are names, where the release has them: origin=Veneto destination=Milano. Where one
    may be several, say which: destination.province=Milano. With --by origin.region there is a row for each region above
    zero, and with --by region for each pair of them; those that are not listed are released zeros, but for what a
    release leaves unresolved. Where the release has noise intervals they are shown beside the counts: on a terminal, in
    tables, and with --csv and --json.
    """
    from treetop.domain.conditions import parse_conditions
    from treetop.release.count_table import noted, with_outside
    from treetop.release.derived import DegreeTables, draw_degrees
    from treetop.release.release import Release

    if as_csv and as_json:
        raise click.UsageError("--csv and --json are two ways to print the same: choose one")
    if derived is not None and (limit is not None or len(levels) > 1):
        raise click.UsageError("--derived is a whole table by at most one level: leave --limit out, and name one level")
    if limit is not None and not levels:
        raise click.UsageError("--limit is for the rows of a table: add --by LEVEL")
    release = Release.load(folder)
    asked = parse_conditions(conditions, release.spine)
    chosen = release.where(**asked)
    if above is not None and derived != "share-above":
        raise click.UsageError("--above is for --derived share-above: add that, or leave it out")
    if plot is not None:
        draw_degrees(DegreeTables.of(chosen), plot, levels[0] if levels else None, confidence)
        click.echo(f"{plot}: drawn.", err=True)
    if confidence is not None and chosen.confidence is None:
        raise QueryError(
            f"{folder} has no intervals: its plan has them off, or has none of its kind; drop --confidence"
        )
    if derived is not None:
        options = {"confidence": confidence} | ({"above": above} if "degrees" in release.card["plan"] else {})
        named = release.spine.levels_named(levels[0]) if levels else [None]
        _print_derived(chosen, asked, derived, named[0], options, (as_csv, as_json))
        return
    table = chosen.table(levels, confidence=confidence, names=True).arrow
    shown = table if limit is None else table.sort_by([("count", "descending")]).slice(0, limit)
    say_warning(release.card)
    with standard_output():
        if as_json:
            say_json(_summary(chosen, asked, levels, table, shown, confidence))
        elif as_csv:
            print_csv(with_outside(shown))
        elif levels:
            total = f"{sum(table['count'].to_pylist()):,} in "
            click.echo(render_rows(noted(shown), "count", total, table.num_rows, sys.stdout.isatty()))
        elif sys.stdout.isatty():
            row, stated = table.to_pylist()[0], confidence or chosen.confidence
            interval = f"({100 * stated:g} % noise interval {row['lower']:,} – {row['upper']:,})" if stated else ""
            click.echo(f"{row['count']:,}   {interval}".rstrip())
        else:
            click.echo(chosen.total)
    if not as_json:
        for remark in _remarks(chosen, table, shown):
            click.echo(remark, err=True)


def _remarks(chosen: Selection, table: pa.Table, shown: pa.Table) -> Iterator[str]:
    """Yield remarks beside the numbers: the unit of count, remainders that may belong, and counts outside intervals."""
    from treetop.card import in_words
    from treetop.release.count_table import outside

    yield from in_words(chosen.card.get("counted", {}).get("sentences", []))
    unresolved = chosen.partly_unresolved + _in_no_row(chosen, table)
    if unresolved:
        yield f"Up to {unresolved:,} more may belong here: they are unresolved, at coarser nodes."
    if "lower" in shown.column_names:
        number = int(outside(shown).sum())
        if number:
            which = "It lies" if shown.num_rows == 1 else f"{number:,} of them lie{'s' * (number == 1)}"
            yield f"{which} outside the interval: counts are made to add up, intervals are not. Believe the interval."


def _in_no_row(chosen: Selection, table: pa.Table) -> int:
    """Return the part of the selection's count that is in no row of a table."""
    shown: int = sum(table["count"].to_pylist())
    return chosen.total - shown


def _summary(
    chosen: Selection,
    asked: dict[str, str],
    levels: Sequence[str],
    table: pa.Table,
    shown: pa.Table,
    confidence: float | None,
) -> dict[str, Any]:
    from treetop.card import in_words
    from treetop.release.count_table import with_outside

    summary: dict[str, Any] = {"title": chosen.card.get("title"), "where": asked, "count": chosen.total}
    if counted := chosen.card.get("counted"):
        summary["counted"] = in_words(counted)
    if chosen.confidence is not None:
        bounds = chosen.interval(confidence)._asdict()
        outside = not bounds["lower"] <= chosen.total <= bounds["upper"]
        summary["interval"] = {"confidence": confidence or chosen.confidence, **bounds, "outside": outside}
    if chosen.whole.left is not None:
        summary["unresolved"] = chosen.partly_unresolved
    if levels:
        summary |= {"by": chosen.columns_of(*levels), "rows": with_outside(shown).to_pylist()}
        summary["left_out"] = table.num_rows - shown.num_rows
        if chosen.whole.left is not None:
            summary["in_no_row"] = _in_no_row(chosen, table)
    return summary


def _print_derived(
    chosen: Selection,
    asked: dict[str, str],
    derived: Any,
    level: str | None,
    options: dict[str, Any],
    formats: tuple[bool, bool],
) -> None:
    from treetop.card import in_words
    from treetop.release.derived import DegreeTables, GroupTables

    as_csv, as_json = formats
    tables = DegreeTables.of(chosen) if "degrees" in chosen.card["plan"] else GroupTables(chosen)
    table = tables.table(derived, level, **options)
    note, counted = tables.note(derived), in_words(chosen.card.get("counted", {}))
    say_warning(chosen.card)
    with standard_output():
        if as_json:
            about = {"title": chosen.card.get("title"), "where": asked, "derived": derived, "counted": counted}
            say_json({**about, "note": note, "rows": table.to_pylist()})
        elif as_csv:
            print_csv(table)
        else:
            largest = counted.get("open", {}).get("from")
            rows = [
                [printable(_cell(name, value, largest)) for name, value in row.items()] for row in table.to_pylist()
            ]
            click.echo(text_table([table.column_names, *rows], left=(0,) if level else (), rule=False))
    if not as_json:
        for remark in [*counted.get("sentences", ()), *([] if note is None else [note])]:
            click.echo(remark, err=True)
    if isinstance(tables, GroupTables) and (why := tables.why_no_interval(level)) is not None:
        click.echo(f"{why}.", err=True)


def _cell(name: str, value: object, largest: int | None) -> str:
    if value is None:
        return "open" if name == "upper" else "-"
    if name == "degree" and value == largest:
        return f"{value} or more"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
