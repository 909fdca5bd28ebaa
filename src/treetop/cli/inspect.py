"""`treetop inspect`: describe a private table and draft a plan file, for the steward only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treetop.cli.terminal import PATH, pairs, say_json, text_table
from treetop.errors import PlanFileError, printable

if TYPE_CHECKING:
    from treetop.advice.first_look import FirstLook
    from treetop.inspection import Inspection

_REASONS = 6
"""Most columns to list that are no levels, each with the reason."""
FENCE = "treetop inspect reads the private table: what it prints is for the steward only, not for release."


@click.command()
@click.argument("table")
@click.option(
    "--hierarchy",
    "hierarchies",
    type=PATH,
    multiple=True,
    help="A public file with the codes of all levels; once for each.",
)
@click.option("--nodes", type=PATH, help="Of a list of edges: the table of the people.")
@click.option(
    "--attribute",
    "attributes",
    multiple=True,
    metavar="COLUMN[=LEVELS]",
    help="Publish this column, and others only if they are named as well: sex, date=year,month, age=0,18,65, "
    "icd=icd-10-cm.",
)
@click.option("--ask", is_flag=True, help="Ask the open questions one by one, and write a whole plan.")
@click.option("--count", help="The column that says how many records a row stands for.")
@click.option("--query", help="The query, if TABLE is a database.")
@click.option("--delimiter", help="The character between the fields of a CSV file, if its header does not show it.")
@click.option("--encoding", help="The encoding of a text file; UTF-8 by default.")
@click.option(
    "--header/--no-header", default=None, help="Whether the first line of a CSV file holds names, or is a row."
)
@click.option("--names", metavar="NAME,NAME", help="With --no-header, the names of all columns in order.")
@click.option(
    "--field", "fields", multiple=True, metavar="NAME=POSITIONS", help="Of fixed-width text, a field: home=8-13."
)
@click.option("--keep", multiple=True, metavar="COLUMN=VALUE", help="Take only the rows with this value.")
@click.option("--drop", multiple=True, metavar="COLUMN=VALUE", help="Leave out the rows with this value.")
@click.option("--comment", help="The character with which lines above a CSV table begin, such as #.")
@click.option("--sheet", help="The sheet, if TABLE is a workbook of Excel with several.")
@click.option("--hierarchy-encoding", help="The encoding of the hierarchy files; UTF-8 by default.")
@click.option("--out", type=PATH, help="Write the draft here; a file that exists is kept.")
@click.option("--json", "as_json", is_flag=True, help="The same for machines.")
def command(
    table: str,
    hierarchies: tuple[Path, ...],
    hierarchy_encoding: str | None,
    count: str | None,
    nodes: Path | None,
    attributes: tuple[str, ...],
    ask: bool,
    out: Path | None,
    as_json: bool,
    fields: tuple[str, ...],
    keep: tuple[str, ...],
    drop: tuple[str, ...],
    names: str | None,
    **reading: Any,
) -> None:
    """Describe TABLE and draft a plan file for it.

    TABLE is a CSV, Parquet, Excel or fixed-width file, a database file or URL (with --query) or - for standard input.
    """
    from treetop.advice.first_look import first_look
    from treetop.inspection import inspect_table
    from treetop.io.source import Source, parse
    from treetop.plan.file import draft_plan

    if out is not None and out.exists():
        raise PlanFileError(f"{out} exists already and is kept: name another file, or move it away")
    positions = {name: parse(text) for name, text in pairs("--field", "home=8-13", fields)}
    rows: dict[str, Any] = {}
    for name, given in (("keep", keep), ("drop", drop)):
        for column, value in pairs(f"--{name}", "year=2008", given):
            rows.setdefault(name, {}).setdefault(column, []).append(value)
    named = None if names is None else [name.strip() for name in names.split(",")]
    source = Source(table, **reading, **rows, fields=positions or None, names=named)
    lookups = [Source(one, encoding=hierarchy_encoding) for one in hierarchies]
    named_levels = (one.partition("=") for one in attributes)
    chosen = {name: tuple(filter(None, rest.split(","))) for name, _, rest in named_levels}

    def again(columns: Mapping[str, tuple[str, ...]], files: tuple[Path, ...]) -> Inspection:
        return inspect_table(source, [*lookups, *map(Source, files)], count, None, columns)

    inspection = inspect_table(source, lookups, count, nodes, chosen or None)
    click.echo(FENCE, err=True)
    if ask:
        from treetop.cli.asking import ask_for_plan

        out = Path("plan.toml") if out is None else out
        look, draft = None, ask_for_plan(inspection, again, out)
    else:
        look = first_look(inspection) if inspection.layout is None else None
        draft = draft_plan(inspection, Path() if out is None else out.parent)
    if out is not None:
        try:
            with out.open("x", encoding="utf-8") as file:
                file.write(draft)
        except FileExistsError:
            raise PlanFileError(f"{out} exists already and is kept: name another file, or move it away") from None
        except OSError as problem:
            raise PlanFileError(f"{out}: cannot be written: {problem.strerror or problem}") from problem
    if ask:
        click.echo(f"The plan is in {out}: treetop plan {out} shows it; treetop release {out} runs it once.")
        return
    if as_json:
        noise = None if look is None else look.to_dict()
        say_json({**inspection.to_dict(), "noise": noise, "draft": draft})
        return
    click.echo(render(inspection, look))
    if out is None:
        click.echo(f"\nA draft of a plan file (--out plan.toml writes it to a file):\n\n{draft}", nl=False)
    else:
        click.echo(f"\nThe draft is in {out}. Answer its open questions; then: treetop plan {out}")


def render(inspection: Inspection, look: FirstLook | None = None) -> str:
    """Return the description for people."""
    from treetop.inspection.lookup import SAMPLE

    rows = [("column", "type", "distinct", "missing", "looks like", "such as")]
    rows += [
        (
            column.name,
            column.type,
            f"{column.distinct:,}",
            f"{column.missing:,}",
            column.looks_like(),
            printable(", ".join(repr(one) if one != one.strip() else one for one in column.samples)),
        )
        for column in inspection.columns
    ]
    lines = [
        f"{inspection.path}: {inspection.rows:,} rows, {len(inspection.columns)} columns",
        "",
        text_table(rows, left=(0, 1, 4, 5)),
    ]
    sampled = f" (judged from {SAMPLE:,} rows)" if inspection.sampled else ""
    found = [] if inspection.layout is None else [inspection.layout.sentence()]
    found += [f"columns that nest: {' > '.join(chain)}{sampled}" for chain in inspection.chains]
    for name, code in inspection.names.items():
        found.append(f"{name} names the codes of {code}, one to one: no attribute of its own")
    found += _hierarchy(inspection)
    found += [f"{column.name}: {column.note}" for column in inspection.columns if column.note]
    reasons: dict[str, list[str]] = {}
    for name, why in inspection.left_out.items():
        reasons.setdefault(why, []).append(name)
    found += [f"left out: {printable(', '.join(names))}. {why[0].upper()}{why[1:]}" for why, names in reasons.items()]
    found += inspection.notes
    found += [] if inspection.count is None else [_count(inspection)]
    identifiers = inspection.identifiers if inspection.layout is None else ()
    found += [line for identifier in identifiers for line in identifier.sentences()]
    found += [] if look is None else look.sentences()
    return "\n".join([*lines, "", *(f"- {line}" for line in found)] if found else lines)


def _hierarchy(inspection: Inspection) -> list[str]:
    if not inspection.lookups:
        return ["no hierarchy file was given: --hierarchy FILE compares the codes with a public one, once for each"]
    matched = [match.lookup for match in inspection.matches]
    told = [line for match in inspection.matches for line in (match.sentence(), *match.hints())]
    told += [reason.why for reason in inspection.reasons() if not reason.level][:_REASONS]
    return told + [
        f"no column holds codes of {lookup.path}, whose columns are {', '.join(lookup.columns)}"
        for lookup in inspection.lookups
        if lookup not in matched
    ]


def _count(inspection: Inspection) -> str:
    """Say which column holds counts, or ask."""
    if inspection.count_is_stated:
        return f"{inspection.count} is the count: a row stands for so many records"
    column = next(one for one in inspection.columns if one.name == inspection.count)
    often = "" if column.largest is None else f", up to {column.largest:,}"
    return (
        f"does a row stand for as many records as {inspection.count} says{often}? Only then it is the count; otherwise "
        "each row is one record"
    )
