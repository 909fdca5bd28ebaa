"""`treetop check`: verify a release folder; with the truth, its errors, for the steward only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treetop.cli.terminal import PATH, pairs, say_json, style, text_table
from treetop.errors import printable

if TYPE_CHECKING:
    from treetop.addons.lab.compare import TrueErrors
    from treetop.checking.check import Verdict
    from treetop.release.errors import LevelErrors


@click.command()
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--truth", metavar="TABLE", help="The private table: adds the errors, for the steward only.")
@click.option("--plan", type=PATH, help="The plan file that says how to read the truth.")
@click.option("--column", "columns", multiple=True, metavar="ATTRIBUTE=COLUMN", help="A column of the truth.")
@click.option("--count", help="The column of the truth that says how many records a row stands for.")
@click.option("--query", help="The query, if the truth is a database.")
@click.option("--plot", type=PATH, help="Draw the errors to this file, outside of DIR.")
@click.option("--json", "as_json", is_flag=True, help="The same for machines.")
def command(folder: Path, truth: str | None, plot: Path | None, as_json: bool, **options: Any) -> None:
    """Verify the release in DIR: sums, integers, card, hashes, loss. Exit code 1 if anything is wrong."""
    from treetop.checking.check import check_folder

    _check_call(folder, truth, plot, options)
    verdicts = []
    for verdict in check_folder(folder):
        verdicts.append(verdict)
        if not as_json:
            click.echo(render_verdict(verdict))
    wrong = [verdict for verdict in verdicts if not verdict.verified]
    compared = None
    if truth is not None and not wrong:
        from treetop.addons.lab.compare import compare_with_truth

        columns = dict(pairs("--column", "origin=home", options.pop("columns")))
        compared = compare_with_truth(folder, truth, columns=columns, plot=plot, **options)
    if as_json:
        say_json(_report(folder, verdicts, compared))
    else:
        click.echo(_conclusion(folder, verdicts))
        if compared is not None:
            click.echo(render_errors(compared))
    if wrong:
        raise click.exceptions.Exit(1)


def render_verdict(verdict: Verdict) -> str:
    """Return a line on the verified statements, or one for each that is wrong or that no check can verify."""
    if verdict.warns:
        return f"{style('!', fg='red', bold=True)} {style(printable(verdict.subject), bold=True)}"
    if verdict.caution:
        return f"{style('!', fg='yellow')} {printable(verdict.subject)}"
    if verdict.verified:
        return f"{style('✓', fg='green')} {printable(verdict.subject)}"
    lines = [f"{style('✗', fg='red', bold=True)} {printable(verdict.subject)}"]
    return "\n".join([*lines, *(f"    {printable(finding)}" for finding in verdict.findings)])


def render_errors(errors: TrueErrors) -> str:
    """Return the errors for people, behind a fence."""
    from treetop.addons.lab.comparison import FENCE

    rows, tally = errors.levels + errors.margins, errors.tally
    head = ("level", "true nodes", "released", "largest error", "mean error")
    resolved = any(row.resolved < 1 for row in rows)
    named = ("resolved",) if resolved else ()
    table = [(*head, "invented", "by count", "lost", "by count", *named), *(_cells(row, resolved) for row in rows)]
    sizes = [("bias by true count", *(bias.size for bias in rows[0].biases))]
    sizes += [(row.counts, *("-" if bias.bias is None else f"{bias.bias:+.3g}" for bias in row.biases)) for row in rows]
    rule = style(f"──── {FENCE} ────", fg="red", bold=True)
    note = (
        "Invented: of the released nodes, or of the released count in them, the share in nodes that are truly zero.\n"
        "Lost: of the nodes truly above zero, or of the true count in them, the share in nodes released as zero.\n"
        "The mean is over nodes above zero in truth or in the release; the bias is released less true count.\n"
        "The truth is the whole table: records beyond a limit of contributions, or dropped, count as errors."
    )
    if resolved:
        note += (
            "\nResolved: the share of the total that stands at the level; the rest was left at coarser nodes. What is "
            "not named\nbecause of that counts as lost, and its whole count as error."
        )
    if told := tally.sentences():
        note = "\n".join([note, *map(printable, told)])
        if tally.lost:
            note += "\nWhat was dropped as unknown belongs to the true total, and is lost at every level."
        if tally.left is not None and (tally.left.self_loops or tally.left.repeated):
            note += "\nSelf-loops and repeated edges that are dropped are no edges of the graph, and no errors."
    return "\n".join(["", rule, text_table(table, left=(0,)), "", text_table(sizes, left=(0,)), "", note, rule])


def _cells(row: LevelErrors, resolved: bool) -> tuple[str, ...]:
    nodes = (f"{row.true_nodes:,}", f"{row.released_nodes:,}")
    rates = (row.false_discoveries, row.false_mass, row.false_negatives, row.lost_mass)
    shares = (*rates, row.resolved) if resolved else rates
    return (row.counts, *nodes, f"{row.largest:,}", f"{row.mean:,.3g}", *(f"{share:.1%}" for share in shares))


def _check_call(folder: Path, truth: str | None, plot: Path | None, options: dict[str, Any]) -> None:
    given = [f"--{name.rstrip('s')}" for name in ("plan", "columns", "count", "query") if options[name]]
    if truth is None and (plot or given):
        raise click.UsageError(f"{given[0] if given else '--plot'} is about the truth: give --truth TABLE as well")
    if plot is not None:
        from treetop.addons.lab.compare import refuse_plot_inside

        refuse_plot_inside(folder, plot)


def _conclusion(folder: Path, verdicts: list[Verdict]) -> str:
    from treetop.card import render
    from treetop.release.folder import read_card

    if not all(verdict.verified for verdict in verdicts):
        return style(f"{folder} does NOT match its card: do not rely on it.", fg="red", bold=True)
    lines = [f"All checks passed: {folder} matches its card."]
    for verdict in verdicts:
        if verdict.warns:
            lines.append(style(f"But {printable(verdict.subject)}.", fg="red", bold=True))
    if warning := read_card(folder)["warning"]:
        lines.append(style(render(warning).upper(), fg="red", bold=True))
    return "\n".join(lines)


def _report(folder: Path, verdicts: list[Verdict], compared: TrueErrors | None) -> dict[str, Any]:
    report: dict[str, Any] = {
        "folder": str(folder),
        "verified": all(verdict.verified for verdict in verdicts),
        "warnings": [one.subject for one in verdicts if one.warns],
        "checks": [
            {"subject": one.subject, "findings": list(one.findings), "caution": one.caution} for one in verdicts
        ],
    }
    if compared is not None:
        from treetop.addons.lab.comparison import FENCE
        from treetop.counts.tally import LeftOut

        tally = compared.tally
        left = tally.left or LeftOut()
        report["errors"] = {
            "fence": FENCE,
            "levels": [row.to_dict() for row in compared.levels],
            "margins": [row.to_dict() for row in compared.margins],
            "unknown": {
                "rows": tally.unknown_rows + left.unknown,
                "records": tally.unknown_records + left.unknown,
                "dropped": tally.lost,
            },
        }
    return report
