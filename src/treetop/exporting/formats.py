"""Export formats, each registered under its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict

from treetop._util.choices import Registry, nearest
from treetop.errors import ReleaseError
from treetop.exporting.language import ENGLISH, Language, language
from treetop.exporting.levels import Depths
from treetop.exporting.places import Places
from treetop.exporting.sheet import ExportedFile
from treetop.release.selection import Selection

Progress: TypeAlias = Callable[[int], object]
"""Called with the number of rows just written."""


class Options(TypedDict, total=False):
    """The options of an export; a format uses those that apply to it."""

    level: str | Sequence[str] | None
    """A level of both ends ("province"), or one of an attribute ("origin.province"); the finest when None. A map has
    all levels down to it."""
    coordinates: str | Path | None
    """A public file with a row per place, such as the hierarchy file. Without it, the coordinates in the folder are
    used.
    """
    code: str | None
    """Its column with the codes, found by its usual name if None; so are the next three."""
    latitude: str | None
    longitude: str | None
    name: str | None
    encoding: str | None
    """Its encoding, or that of the boundaries, if they are text other than UTF-8."""
    boundaries: str | Path | None
    """A public GeoJSON file for a map."""
    boundaries_code: str | None
    """Its property with the codes of one level, found by its values if None."""
    credit: str | None
    """A line for the foot of a map, such as the source of the boundaries."""
    language: str | None
    """Language of a site or a map: "en", "de", "es", "fr" or "it"; English if None."""
    skip_missing: bool
    """Whether to leave out counts of places without coordinates; otherwise they are refused."""
    as_is: bool
    """Whether a CSV file keeps codes that a spreadsheet would compute unchanged; otherwise they have an apostrophe
    before them, which a reader takes off again.
    """
    force: bool
    large: bool
    """Whether to allow more than a thousand million records; otherwise they are refused."""
    progress: Progress | None
    """Called with the number of records as they are written."""
    share: Callable[[float], object] | None
    """Called with the share of the files that are written."""
    announce: Callable[[str], object] | None
    """Called with a sentence on the size of a large export."""


@dataclass(frozen=True, eq=False)
class Request:
    """One request for an export."""

    release: Selection
    depths: Depths
    """The level of every attribute, by its depth."""
    places: Mapping[str, Places] | None
    """Places by attribute; None if unknown, or not asked for."""
    out: Path
    """The folder or file to write."""
    options: Options
    folder: Path | None = None
    """The folder of the release, if it was read from one."""

    @property
    def language(self) -> Language:
        """The language of pages, notes and labels."""
        return language(self.options.get("language") or ENGLISH)


@dataclass(frozen=True)
class Content:
    """The files that a format makes of a request."""

    files: Sequence[ExportedFile]
    """The format's files, in their order; some of those that go to a folder may be left out."""
    skipped: tuple[str, ...] = ()
    """The codes without coordinates; their rows were left out."""
    notes: tuple[str, ...] = ()
    """Further remarks on the files."""


@dataclass(frozen=True)
class Format:
    """The format of one tool."""

    name: str
    """The name, such as "csv"."""
    about: str
    files: tuple[str, ...]
    """The names of the files in a folder; the first is the main file, and always there."""
    make: Callable[[Request], Content]
    flows: bool = False
    """Whether only an origin/destination release has it."""
    coordinates: Literal["none", "used", "needed", "any"] = "none"
    """Coordinates of both ends of flows, used if known or needed; or those of any attribute, as for a map."""
    outlines: bool = False
    """Whether it draws boundaries, and has a place for a credit."""
    suffixes: tuple[str, ...] = (".csv",)
    """Endings of a single file's name; empty if there are several files."""
    aliases: tuple[str, ...] = ()
    told: str = "rows, {total:,} in all"
    """Message on the written file, after the number of rows."""
    translated: bool = False
    """Whether it has words in several languages."""
    long: bool = False
    """Whether it has a row per unit of count, and so reports progress."""


FORMATS: Registry[Format] = Registry()
"""By name, in the order of their registration."""


def register_export(form: Format) -> Format:
    """Register a format; refuse one without a description or files."""
    if not form.name.strip() or not form.about.strip() or not form.files:
        raise ReleaseError(
            f"the format {form.name!r} cannot be registered: give it a name, a line about it, and its files"
        )
    for name in (form.name, *form.aliases):
        if name in names() and named(name) is not form:
            raise ReleaseError(f"there is a format {name!r} already: give {form.name!r} another name")
    FORMATS[form.name] = form
    return form


def names() -> list[str]:
    """Return the names of all formats, with their aliases."""
    return [*FORMATS, *(alias for form in FORMATS.values() for alias in form.aliases)]


def named(name: str) -> Format:
    """Return the format of a name."""
    if name in FORMATS:
        return FORMATS[name]
    for form in FORMATS.values():
        if name in form.aliases:
            return form
    raise ReleaseError(f"there is no format {name!r}{nearest(name, FORMATS)}; the formats are {', '.join(FORMATS)}")
