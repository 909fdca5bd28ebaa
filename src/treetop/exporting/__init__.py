"""Exports: a release in the formats of other tools, written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from treetop.errors import ReleaseError
from treetop.exporting.flows import FLOWMAP, KEPLER, OD, QGIS, SKMOB
from treetop.exporting.formats import FORMATS, Content, Format, Progress, Request, named, register
from treetop.exporting.formulas import count_guarded
from treetop.exporting.levels import ENDS, counts_at, depths_of, trees_of
from treetop.exporting.map import MAP
from treetop.exporting.places import Places, place_attribute, read_places, saved_places
from treetop.exporting.records import RECORDS
from treetop.exporting.sheet import Sheet
from treetop.exporting.target import Target
from treetop.release.release import Release
from treetop.release.selection import Selection

__all__ = [
    "FORMATS",
    "Content",
    "Exported",
    "Format",
    "Places",
    "Request",
    "Sheet",
    "counts_at",
    "export",
    "read_places",
    "register",
]

for _form in (FLOWMAP, SKMOB, KEPLER, OD, QGIS, RECORDS, MAP):
    register(_form)


@dataclass(frozen=True)
class Exported:
    """What was written."""

    files: tuple[Path, ...]
    """The files, the main one first."""
    rows: int
    """The rows of the main file."""
    total: int
    """The sum of its counts."""
    skipped: tuple[str, ...]
    """The codes whose rows were left out because they have no coordinates."""
    warning: str | None
    """What the card warns of, which the files do not say."""
    unresolved: int = 0
    """How much of the release is in no row, because it is not resolved so far."""
    guarded: int = 0
    """How many codes begin like a formula, and were written with an apostrophe before them."""


def export(
    release: Release | Selection | str | Path,
    to: str,
    out: str | Path,
    *,
    level: str | Sequence[str] | None = None,
    coordinates: str | Path | None = None,
    code: str | None = None,
    latitude: str | None = None,
    longitude: str | None = None,
    name: str | None = None,
    encoding: str | None = None,
    boundaries: str | Path | None = None,
    boundaries_code: str | None = None,
    credit: str | None = None,
    skip_missing: bool = False,
    as_is: bool = False,
    force: bool = False,
    large: bool = False,
    progress: Progress | None = None,
    announce: Callable[[str], object] | None = None,
) -> Exported:
    """Write a release, or a release folder, for another tool: to a folder, or to a file by its suffix.

    `level` is a level of both ends ("province"), or one of an attribute ("origin.province"); the finest when None. A
    map has all levels down to it.
    `coordinates` is a public file with a row a place, such as the hierarchy file; `code`, `latitude`, `longitude` and
    `name` are its columns, found by their usual names when None. Without it, what the folder carries is used.
    `boundaries` is a public GeoJSON file for a map; its property `boundaries_code`, found by what it holds when None,
    has the codes of one level. `credit` is a line for the foot of a map, such as the source of the boundaries.
    `encoding` is that of these files where they are text other than UTF-8.
    More than a thousand million records are refused unless they are meant to be `large`; `announce` is told how many
    there will be, where they are many.
    In CSV files, codes that a spreadsheet would compute are written with an apostrophe before them
    (`treetop.exporting.formulas` takes it off again), unless they are to be written `as_is`.
    """
    form = named(to)
    _check_files(form, bool(coordinates or boundaries), encoding, boundaries, boundaries_code, credit)
    every = frozenset(file for one in FORMATS.values() for file in one.files)
    target = Target.of(Path(out), form.files, form.suffixes, force, every)
    folder = Path(release) if isinstance(release, str | Path) else None
    loaded = (Release.load(release) if isinstance(release, str | Path) else release).where()
    if form.flows:
        _require_ends(loaded, form)
    depths = depths_of(loaded, level)
    columns = {"code": code, "latitude": latitude, "longitude": longitude, "name": name}
    places = _places(loaded, form, folder, coordinates, columns, encoding)
    request = Request(
        loaded,
        depths,
        places,
        target.out,
        skip_missing=skip_missing,
        large=large,
        boundaries=boundaries,
        boundaries_code=boundaries_code,
        encoding=encoding,
        credit=credit,
        progress=progress,
        announce=announce,
    )
    made = form.make(request)
    files, guarded = made.files, 0
    if not as_is and target.files()[0].suffix == ".csv":
        files = [file.guarded() for file in files]
        trees = trees_of(loaded)
        codes = [trees[name].codes[depths[name]] for name in (ENDS if form.flows else depths)]
        guarded = count_guarded(pa.concat_arrays(codes).unique())
    with target.draft() as draft:
        for file in files:
            file.write(draft / target.named(file.file))
    main = files[0]
    unresolved = 0 if made.skipped or loaded.tree.left is None else loaded.total - main.total
    warning = loaded.card.get("warning")
    return Exported(target.files(), main.rows, main.total, made.skipped, warning, unresolved, guarded)


def _check_files(
    form: Format,
    has_files: bool,
    encoding: str | None,
    boundaries: str | Path | None,
    boundaries_code: str | None,
    credit: str | None,
) -> None:
    """Refuse what is said of files that are not named, or that the format has no use for."""
    if encoding and not has_files:
        raise ReleaseError(
            "encoding is that of a file with coordinates or boundaries: name the file too (--coordinates, --boundaries)"
        )
    if not form.outlines and (boundaries or boundaries_code or credit):
        raise ReleaseError(
            f"boundaries and a credit are for a map, and {form.name} has no place for them: leave them out"
        )
    if boundaries_code and not boundaries:
        raise ReleaseError(
            "boundaries_code is a property of the file with boundaries: name that file too (--boundaries)"
        )


def _require_ends(release: Selection, form: Format) -> None:
    lacking = [end for end in ENDS if end not in release.spine.attributes]
    if lacking:
        others = " or ".join(one.name for one in FORMATS.values() if not one.flows)
        raise ReleaseError(
            f"{form.name} is a format for flows, but this release has no {' and no '.join(lacking)}: its attributes "
            f"are {', '.join(release.spine.attributes)}. Export it to {others}, which take any release"
        )


def _places(
    release: Selection,
    form: Format,
    folder: Path | None,
    coordinates: str | Path | None,
    columns: Mapping[str, str | None],
    encoding: str | None,
) -> dict[str, Places] | None:
    """Return the places by attribute: of both ends for flows; None where the format does without."""
    needs = form.coordinates
    is_flows = all(end in release.spine.attributes for end in ENDS)
    if coordinates is None:
        if given := next((column for column in columns if columns[column] is not None), None):
            raise ReleaseError(f"{given} is a column of the file with coordinates: name that file too (--coordinates)")
        found = saved_places(release, folder) if folder is not None and needs != "none" else {}
        if needs == "any" or all(end in found for end in ENDS):
            return found
        if needs == "needed":
            raise ReleaseError(
                f"{form.name} needs coordinates, and the release has none: name a public file with one row a place and "
                "columns for code, latitude and longitude (--coordinates FILE)"
            )
        return None
    if needs == "none" or not (is_flows or needs == "any"):
        why = f"{form.name} has no place for them" if needs == "none" else "they are for origin/destination releases"
        raise ReleaseError(f"coordinates are not used here, because {why}: leave them out")
    stated = {**columns, "encoding": encoding}
    attributes = ENDS if is_flows else (place_attribute(release, coordinates, stated),)
    trees = trees_of(release)
    return {name: read_places(coordinates, trees[name].levels[-1], **stated) for name in attributes}
