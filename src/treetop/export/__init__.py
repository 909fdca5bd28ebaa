"""Exports: a release in the formats of other tools, written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from treetop.basics.nearest import nearest
from treetop.errors import ReleaseError
from treetop.export.flows import Progress, Sheet, flow_sheets, record_sheet, table_sheet
from treetop.export.formulas import count_guarded
from treetop.export.levels import ENDS, Depths, depths_of, trees_of
from treetop.export.map import Page, map_page, read_boundaries
from treetop.export.places import Places, place_attribute, read_places, saved_places
from treetop.export.size import MANY, Size
from treetop.export.target import Target
from treetop.release.release import Release
from treetop.release.selection import Selection

__all__ = ["ALIASES", "FORMATS", "Exported", "Format", "Places", "Sheet", "export", "read_places"]


@dataclass(frozen=True)
class Format:
    """What one tool expects."""

    about: str
    """The tool and the columns, in a few words."""
    files: tuple[str, ...]
    """The names of the files in a folder; the first is the one that a file's name stands for."""
    flows: bool = True
    """Whether only an origin/destination release has it."""
    coordinates: str = "none"
    """`needed`, `used` where they are known, or `none`."""
    suffixes: tuple[str, ...] = (".csv",)
    """What the name of a single file may end in; nothing where there are several files."""


FORMATS = {
    "flowmap": Format("flowmap.blue: locations.csv and flows.csv", ("flows.csv", "locations.csv"), True, "needed", ()),
    "skmob": Format("scikit-mobility: origin, destination, flow", ("flows.csv",)),
    "kepler": Format("kepler.gl: origin, destination, count, lat0, lng0, lat1, lng1", ("flows.csv",), True, "needed"),
    "od": Format("R od and stplanr: origin, destination, count", ("flows.csv",)),
    "qgis": Format("QGIS: a CSV and its .csvt, so that codes stay text", ("table.csv", "table.csvt"), False, "used"),
    "records": Format("synthetic records, one row a unit", ("records.parquet",), False, "none", (".parquet", ".csv")),
    "map": Format("a map in one HTML file that opens anywhere", ("map.html",), False, "used", (".html",)),
}
"""The formats, by the name that `--to` takes."""

ALIASES = {"csv": "od"}
"""Other names of formats."""


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
    (`treetop.export.formulas` takes it off again), unless they are to be written `as_is`.
    """
    to = ALIASES.get(to, to)
    form = _format(to)
    if encoding and not (coordinates or boundaries):
        raise ReleaseError(
            "encoding is that of a file with coordinates or boundaries: name the file too (--coordinates, --boundaries)"
        )
    if to != "map" and (boundaries or boundaries_code or credit):
        raise ReleaseError(f"boundaries and a credit are for a map, and {to} has no place for them: leave them out")
    if boundaries_code and not boundaries:
        raise ReleaseError(
            "boundaries_code is a property of the file with boundaries: name that file too (--boundaries)"
        )
    target = Target.of(Path(out), form.files, form.suffixes, force, every=_every_file())
    folder = Path(release) if isinstance(release, str | Path) else None
    whole = Release.load(release) if isinstance(release, str | Path) else release
    loaded = whole.where()
    if form.flows:
        _require_ends(loaded, to)
    depths = depths_of(loaded, level)
    if to == "records":
        size = Size.of(loaded, depths)
        size.refuse_unless(large, target.out)
        if announce is not None and size.records >= MANY:
            announce(f"writing {size}")
    columns = {"code": code, "latitude": latitude, "longitude": longitude, "name": name}
    places = _places(loaded, to, folder, coordinates, columns, encoding)
    sheets: Sequence[Sheet | Page]
    if to == "map":
        trees = loaded.spine.trees
        outlines = read_boundaries(boundaries, trees, boundaries_code, encoding) if boundaries else None
        page, skipped = map_page(loaded, depths, places or {}, outlines, skip_missing=skip_missing, credit=credit)
        sheets = [page]
    else:
        sheets, skipped = _sheets(loaded, to, depths, places, skip_missing, progress)
    guarded = 0
    if not as_is and target.files()[0].suffix == ".csv":
        sheets = [sheet.guarded() if isinstance(sheet, Sheet) else sheet for sheet in sheets]
        guarded = _count_guarded(loaded, depths, ENDS if form.flows else tuple(depths))
    with target.draft() as draft:
        for sheet in sheets:
            sheet.write(draft / target.named(sheet.file))
    main = sheets[0]
    unresolved = 0 if skipped or loaded.tree.left is None else loaded.total - main.total
    return Exported(target.files(), main.rows, main.total, skipped, loaded.card.get("warning"), unresolved, guarded)


def _format(to: str) -> Format:
    if to not in FORMATS:
        raise ReleaseError(f"there is no format {to!r}{nearest(to, FORMATS)}; the formats are {', '.join(FORMATS)}")
    return FORMATS[to]


def _count_guarded(release: Selection, depths: Depths, attributes: Sequence[str]) -> int:
    trees = trees_of(release)
    codes = pa.concat_arrays([trees[name].codes[depths[name]] for name in attributes])
    return count_guarded(codes.unique())


def _every_file() -> frozenset[str]:
    return frozenset(file for form in FORMATS.values() for file in form.files)


def _require_ends(release: Selection, to: str) -> None:
    lacking = [end for end in ENDS if end not in release.spine.attributes]
    if lacking:
        others = " or ".join(name for name, form in FORMATS.items() if not form.flows)
        raise ReleaseError(
            f"{to} is a format for flows, but this release has no {' and no '.join(lacking)}: its attributes are "
            f"{', '.join(release.spine.attributes)}. Export it to {others}, which take any release"
        )


def _places(
    release: Selection,
    to: str,
    folder: Path | None,
    coordinates: str | Path | None,
    columns: dict[str, str | None],
    encoding: str | None,
) -> dict[str, Places] | None:
    """Return the places by attribute: of both ends for flows; None where the format does without."""
    needs = FORMATS[to].coordinates
    is_flows = all(end in release.spine.attributes for end in ENDS)
    if coordinates is None:
        if given := next((column for column in columns if columns[column] is not None), None):
            raise ReleaseError(f"{given} is a column of the file with coordinates: name that file too (--coordinates)")
        found = saved_places(release, folder) if folder is not None and needs != "none" else {}
        if to == "map" or all(end in found for end in ENDS):
            return found
        if needs == "needed":
            raise ReleaseError(
                f"{to} needs coordinates, and the release has none: name a public file with one row a place and "
                "columns for code, latitude and longitude (--coordinates FILE)"
            )
        return None
    if needs == "none" or not (is_flows or to == "map"):
        why = f"{to} has no place for them" if needs == "none" else "they are for origin/destination releases"
        raise ReleaseError(f"coordinates are not used here, because {why}: leave them out")
    stated = columns | {"encoding": encoding}
    attributes = ENDS if is_flows else (place_attribute(release, coordinates, stated),)
    trees = trees_of(release)
    return {name: read_places(coordinates, trees[name].levels[-1], **stated) for name in attributes}


def _sheets(
    release: Selection,
    to: str,
    depths: Depths,
    places: dict[str, Places] | None,
    skip_missing: bool,
    progress: Progress | None,
) -> tuple[list[Sheet], tuple[str, ...]]:
    if to == "records":
        return [record_sheet(release, depths, progress)], ()
    if to == "qgis" and places is None:
        return table_sheet(release, depths), ()
    return flow_sheets(release, to, depths, places, skip_missing)
