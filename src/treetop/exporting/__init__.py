"""Exports: a release in the formats of other tools, written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import disk_usage
from typing import Unpack

import pyarrow as pa

from treetop._util.files import resolved
from treetop.card import in_words
from treetop.errors import ReleaseError
from treetop.exporting._flows import FLOWMAP, KEPLER, OD, QGIS, RECORDS, SKMOB
from treetop.exporting.any_table import CSV, EXCEL
from treetop.exporting.formats import FORMATS, Content, Format, Options, Request, named, register_export
from treetop.exporting.levels import ENDS, counts_at, depths_of, trees_of
from treetop.exporting.places import Places, place_attribute, read_places, saved_places
from treetop.exporting.sheet import ExportedFile, Page, Sheet, Workbook, count_guarded, say_bytes
from treetop.exporting.standards import CSVW, DCAT, JSONSTAT, PARQUET, SDMX
from treetop.release.folder.place import scratch, sync
from treetop.release.release import Release
from treetop.release.selection import Selection

__all__ = [
    "FORMATS", "Content", "Exported", "Format", "Options", "Page", "Places", "Request", "Sheet", "counts_at", "export",
    "read_places", "register_export",
]  # fmt: skip

MANY_ROWS, MANY_OF_A_BOOK = 1_000_000, 100_000
"""Announce the number of rows from this size on, before writing; a workbook takes fifty times as long as text."""

for _form in (CSV, CSVW, EXCEL, PARQUET, JSONSTAT, SDMX, DCAT, FLOWMAP, SKMOB, KEPLER, OD, QGIS, RECORDS):
    register_export(_form)
for _name, _address in {
    "map": "treetop.addons.map:MAP",
    "site": "treetop.addons.site:SITE",
    "geopackage": "treetop.addons.map.geopackage:GEOPACKAGE",
}.items():
    FORMATS.offer(_name, _address)


# The target: a new folder or file, in place whole or not at all, and never inside a release.


@dataclass(frozen=True)
class Target:
    """The files to be written: in a folder of their own, or beside other files."""

    out: Path
    """The folder, or the main file."""
    names: tuple[str, ...]
    """Names of the files in a folder, the main one first."""
    is_folder: bool
    every: frozenset[str]
    """The files that a folder may hold and still be replaced."""

    @staticmethod
    def of(out: Path, names: tuple[str, ...], suffixes: Sequence[str], force: bool, every: frozenset[str]) -> Target:
        """Choose the target of the files; refuse to overwrite anything else."""
        is_folder = out.is_dir() or not out.suffix
        if not is_folder and out.suffix not in suffixes:
            single = f"a file that ends in {' or '.join(suffixes)}, or " if suffixes else ""
            raise ReleaseError(f"{out}: name {single}a folder, whose name has no ending")
        target = Target(out, names, is_folder, every)
        target._refuse_release()
        if not out.absolute().parent.is_dir():
            raise ReleaseError(f"{out.absolute().parent} is not a folder: create it first")
        target._refuse_existing(force)
        return target

    def only(self, names: Sequence[str]) -> Target:
        """Return the same with some of the files."""
        return replace(self, names=tuple(names))

    def named(self, name: str) -> str:
        """Return a file's name at the target: a single file has its own name, and files beside it follow it."""
        if self.is_folder:
            return name
        return self.out.stem + (self.out.suffix if name == self.names[0] else Path(name).suffix)

    def files(self) -> tuple[Path, ...]:
        """Return the files, the main one first."""
        folder = self.out if self.is_folder else self.out.parent
        return tuple(folder / self.named(name) for name in self.names)

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """Yield a folder beside the target to write in; its content is moved into place at the end."""
        try:
            with scratch(self.out) as beside:
                whole = beside / "whole"
                whole.mkdir()
                yield whole
                for path in [*whole.iterdir(), whole]:
                    sync(path)
                if self.is_folder:
                    self._replace_folder(whole)
                else:  # what stands beside the main file comes first: the main file is there only when all is
                    for file in reversed(self.files()):
                        (whole / file.name).replace(file)
                sync(self.out.absolute().parent)
        except OSError as problem:
            raise ReleaseError(f"{self.out}: cannot be written: {problem.strerror or problem}") from problem

    def _replace_folder(self, whole: Path) -> None:
        if not self.out.exists():
            whole.rename(self.out)
            return
        old = whole.parent / "old"
        self.out.rename(old)
        try:
            whole.rename(self.out)
        except OSError:
            old.rename(self.out)
            raise

    def _refuse_release(self) -> None:
        place = resolved(self.out)
        for folder in (place, *place.parents):
            if (folder / "card.json").is_file() and (folder / "counts.parquet").is_file():
                raise ReleaseError(f"{self.out} is inside the release {folder}, which is not to change: choose another")

    def _refuse_existing(self, force: bool) -> None:
        there = [path for path in (self.out, *self.files()) if path.exists() or path.is_symlink()]
        if there and not force:
            raise ReleaseError(f"{there[0]} exists already: choose another name, or replace it (`force=True`)")
        if not self.is_folder or not there:
            return
        if not self.out.is_dir():
            raise ReleaseError(f"{self.out} is a file, not a folder: choose another name")
        others = sorted(path.name for path in self.out.iterdir() if path.name not in self.every)
        if others:
            raise ReleaseError(
                f"{self.out} holds more than an export, {others[0]!r} for example, so it is not replaced: "
                "choose another folder"
            )


@dataclass(frozen=True)
class Exported:
    """The files that an export has written."""

    files: tuple[Path, ...]
    """The files, the main one first."""
    rows: int
    total: int
    skipped: tuple[str, ...]
    """The codes whose rows were left out because they have no coordinates."""
    warning: str | None
    """Warning on the card, which the files do not repeat; None if there is none."""
    unresolved: int = 0
    """Count that is in no row, because it is not resolved down to these levels."""
    guarded: int = 0
    """Number of codes that begin like a formula, and were written with an apostrophe before them."""
    notes: tuple[str, ...] = ()
    """Further remarks on the files."""


def export(release: Release | Selection | str | Path, to: str, out: str | Path, **options: Unpack[Options]) -> Exported:
    """Write a release, or a release folder, for another tool: to a folder, or to a file by its suffix."""
    named(to)  # now: an unknown name is a mistake, whatever the release is
    folder = Path(release) if isinstance(release, str | Path) else None
    loaded = (Release.load(release) if isinstance(release, str | Path) else release).where()
    form = named(to)
    _check(form, options)
    every = frozenset(file for one in FORMATS.values() for file in one.files)
    target = Target.of(Path(out), form.files, form.suffixes, options.get("force", False), every)
    if loaded.whole.pairs is not None and (form.flows or form.translated):
        raise ReleaseError(
            f"{form.name} shows flows from one place to another, and unordered pairs have no direction: export them to "
            "csv, excel or qgis"
        )
    if form.flows:
        _require_ends(loaded, form)
    depths = depths_of(loaded, options.get("level"))
    request = Request(loaded, depths, _places(loaded, form, folder, options), target.out, options, folder)
    made = form.make(request)
    target = target.only([file.file for file in made.files])
    files, guarded = made.files, 0
    if not options.get("as_is") and any(path.suffix == ".csv" for path in target.files()):
        files = [file.guarded() if target.named(file.file).endswith(".csv") else file for file in files]
        trees = trees_of(loaded)
        codes = [trees[name].codes[depths[name]] for name in (ENDS if form.flows else depths)]
        guarded = count_guarded(pa.concat_arrays(codes).unique())
    _announce(files[0], target.out, options)
    with target.draft() as draft:
        for number, file in enumerate(files, 1):
            file.write(draft / target.named(file.file))
            if (share := options.get("share")) is not None:
                share(number / len(files))
    main = files[0]
    unresolved = 0 if made.skipped or loaded.whole.left is None else loaded.total - main.total
    warning = in_words(loaded.card.get("warning"))
    return Exported(target.files(), main.rows, main.total, made.skipped, warning, unresolved, guarded, made.notes)


def _announce(main: ExportedFile, out: Path, options: Options) -> None:
    """Announce the size of a large main file; refuse one that the disk does not hold."""
    if main.size > (free := disk_usage(out.absolute().parent).free):
        raise ReleaseError(
            f"{out}: would take about {say_bytes(main.size)}, and its disk has {say_bytes(free)} left: export a "
            "coarser `level`"
        )
    announce, book = options.get("announce"), isinstance(main, Workbook)
    if announce is not None and main.rows >= (MANY_OF_A_BOOK if book else MANY_ROWS):
        size = f", about {say_bytes(main.size)}" if main.size else ""
        announce(f"writing {main.rows:,} rows{size}{': a workbook takes its time, and csv is faster' if book else ''}")


def _check(form: Format, options: Options) -> None:
    """Refuse options for files that are not named, or that the format does not use."""
    boundaries, code = options.get("boundaries"), options.get("boundaries_code")
    if options.get("encoding") and not (options.get("coordinates") or boundaries):
        raise ReleaseError(
            "encoding is that of a file with coordinates or boundaries: name the file too (`coordinates`, `boundaries`)"
        )
    if not form.outlines and (boundaries or code or options.get("credit")):
        raise ReleaseError(
            f"boundaries and a credit are for a map, and {form.name} has no place for them: leave them out"
        )
    if options.get("language") and not form.translated:
        raise ReleaseError(f"a language is for a site or a map, and {form.name} has no words of its own: leave it out")
    if code and not boundaries:
        raise ReleaseError(
            "boundaries_code is a property of the file with boundaries: name that file too (`boundaries`)"
        )


def _require_ends(release: Selection, form: Format) -> None:
    lacking = [end for end in ENDS if end not in release.spine.attributes]
    if lacking:
        others = " or ".join(one.name for one in FORMATS.values() if not one.flows)
        raise ReleaseError(
            f"{form.name} is a format for flows, but this release has no {' and no '.join(lacking)}: its attributes "
            f"are {', '.join(release.spine.attributes)}. Export it to {others}, which take any release"
        )


def _places(release: Selection, form: Format, folder: Path | None, options: Options) -> dict[str, Places] | None:
    """Return the places by attribute, both ends of flows; None if the format does not need them."""
    columns = {
        "code": options.get("code"),
        "latitude": options.get("latitude"),
        "longitude": options.get("longitude"),
        "name": options.get("name"),
    }
    coordinates = options.get("coordinates")
    needs = form.coordinates
    is_flows = all(end in release.spine.attributes for end in ENDS)
    if coordinates is None:
        if given := next((column for column in columns if columns[column] is not None), None):
            raise ReleaseError(f"{given} is a column of the file with coordinates: name that file too (`coordinates`)")
        found = saved_places(release, folder) if folder is not None and needs != "none" else {}
        if needs == "any" or all(end in found for end in ENDS):
            return found
        if needs == "needed":
            raise ReleaseError(
                f"{form.name} needs coordinates, and the release has none: name a public file with one row per place "
                "and columns for code, latitude and longitude (`coordinates`)"
            )
        return None
    if needs == "none" or not (is_flows or needs == "any"):
        why = f"{form.name} has no place for them" if needs == "none" else "they are for origin/destination releases"
        raise ReleaseError(f"coordinates are not used here, because {why}: leave them out")
    stated = {**columns, "encoding": options.get("encoding")}
    attributes = ENDS if is_flows else (place_attribute(release, coordinates, stated),)
    trees = trees_of(release)
    return {name: read_places(coordinates, trees[name].levels[-1], **stated) for name in attributes}
