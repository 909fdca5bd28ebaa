"""`treetop export`: a release in the formats of other tools."""

from __future__ import annotations

import sys
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treetop.cli.terminal import PATH, raw, say_json, tell

if TYPE_CHECKING:
    from treetop.exporting import Exported, Format

SHOWN = 10
"""Most left-out codes to list."""


def _known(ctx: click.Context, parameter: click.Parameter, name: str) -> str:
    """Refuse a format that is not registered; `treetop.export`, which is slow to load, is imported only now."""
    from treetop.exporting.formats import names

    return click.Choice(names()).convert(name, parameter, ctx)


class _Command(click.Command):
    """A command whose help lists the formats that are registered."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from treetop.exporting import FORMATS

        listed = {", ".join((form.name, *form.aliases)): form.about for form in FORMATS.values()}
        width = max(map(len, listed))
        lines = "\n".join(f"{name:{width}}  {about}" for name, about in listed.items())
        told, self.help = self.help, cleandoc(self.help or "").replace("FORMATS", lines)
        super().format_help_text(ctx, formatter)
        self.help = told  # what is registered later is listed the next time


@click.command(cls=_Command)
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--to", callback=_known, metavar="FORMAT", required=True, help="The tool that will read it.")
@click.option("--out", type=PATH, required=True, metavar="FOLDER_OR_FILE", help="A folder, or a file by its ending.")
@click.option("--level", multiple=True, metavar="LEVEL", help="A coarser level: province, or origin.province.")
@click.option("--coordinates", type=PATH, metavar="FILE", help="A public file with a row per place.")
@click.option("--code", metavar="COLUMN", help="Its column with the codes.")
@click.option("--latitude", metavar="COLUMN", help="Its column with the latitudes, in degrees.")
@click.option("--longitude", metavar="COLUMN", help="Its column with the longitudes, in degrees.")
@click.option("--name", metavar="COLUMN", help="Its column with the names.")
@click.option("--encoding", metavar="NAME", help="Its encoding, or that of the boundaries, such as latin-1.")
@click.option("--boundaries", type=PATH, metavar="GEOJSON", help="For a map: a public file with outlines, also .gz.")
@click.option("--boundaries-code", metavar="PROPERTY", help="Its property with the codes; found when left out.")
@click.option("--credit", metavar="TEXT", help="For a map: a line at its foot, such as the source of the outlines.")
@click.option("--language", metavar="CODE", help="For a site or a map: en, de, es, fr or it; English when left out.")
@click.option("--skip-missing", is_flag=True, help="Leave out the flows of places that lack coordinates.")
@click.option("--as-is", is_flag=True, help="In CSV, write codes such as =1+1 as they are; see below.")
@click.option("--force", is_flag=True, help="Replace an earlier export.")
@click.option("--large", is_flag=True, help="Write records even if they are more than a thousand million.")
@click.option("--json", "as_json", is_flag=True, help="What was written, for machines.")
def command(folder: Path, to: str, out: Path, as_json: bool, **options: Any) -> None:
    """Write the release DIR for another tool.

    \b
    FORMATS

    Coordinates come from --coordinates, or from the release if it has them; those of a coarser level are the mean of
    its leaves'. Attributes other than origin and destination are summed over in the formats for flows. A map has all
    levels, or those down to --level, and shades outlines where it is given --boundaries.

    A code that begins with = + - @ may be run by a spreadsheet: in CSV files it has an apostrophe before it, which can
    be taken off again, unless --as-is is given.
    """
    from treetop.exporting import export
    from treetop.exporting.formats import named
    from treetop.release.release import Release

    form = named(to)
    if form.long and sys.stderr.isatty():
        release = Release.load(folder)
        with click.progressbar(length=release.total, label=form.name, file=raw(sys.stderr)) as bar:
            done = export(release, to, out, progress=bar.update, announce=tell, **options)
    else:
        done = export(folder, to, out, announce=tell, **options)
    if done.warning:
        click.echo(f"treetop: {done.warning}", err=True)
    say_json(_summary(to, done)) if as_json else click.echo(render(form, done))


def render(form: Format, done: Exported) -> str:
    """Return a text on the written files."""
    what = form.told.format(total=done.total)
    lines = [f"{done.files[0]}: {done.rows:,} {what}", *(str(file) for file in done.files[1:])]
    if done.unresolved:
        lines.append(f"{done.unresolved:,} more are unresolved at coarser levels, and in no row.")
    if done.guarded:
        lines.append(
            f"{done.guarded:,} code{'s' * (done.guarded > 1)} of the hierarchies may be taken for formulas, and "
            f"{'have' if done.guarded > 1 else 'has'} an apostrophe before (--as-is leaves it out)."
        )
    lines += [f"{note[0].upper()}{note[1:]}." for note in done.notes]
    if done.skipped:
        codes = f"{len(done.skipped):,} code{'s' * (len(done.skipped) > 1)}"
        more = f" and {len(done.skipped) - SHOWN:,} more" if len(done.skipped) > SHOWN else ""
        lines.append(
            f"The {'counts' if form.coordinates == 'any' else 'flows'} of {codes} without coordinates were left out: "
            f"{', '.join(done.skipped[:SHOWN])}{more}"
        )
    return "\n".join(lines)


def _summary(to: str, done: Exported) -> dict[str, Any]:
    return {
        "to": to,
        "files": [str(file) for file in done.files],
        "rows": done.rows,
        "total": done.total,
        "skipped": list(done.skipped),
        "guarded": done.guarded,
        "notes": list(done.notes),
    }
