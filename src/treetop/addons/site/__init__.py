"""A site for the public: static pages with the numbers, the map, downloads and the noise, in one folder."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.distribution import install_extra
from treetop.addons.map import is_mapped, make_map
from treetop.addons.map.geopackage import geopackage_of
from treetop.addons.site.guarantee import GuaranteePage
from treetop.addons.site.page import KINDS, MainPage
from treetop.addons.site.site_tables import joined, rows_of, totals_of
from treetop.errors import ReleaseError
from treetop.exporting.any_table import notes_of, rows_at
from treetop.exporting.formats import Content, Format, Request
from treetop.exporting.language import Language
from treetop.exporting.page_statements import notes_on
from treetop.exporting.sheet import LARGEST, LONGEST, Page, Sheet, Workbook, count_guarded
from treetop.exporting.standards import LARGEST_TEXT, csvw_of, dcat_of, jsonstat_of, parquet_of, sdmx_of
from treetop.release.folder import PAGE as CARD
from treetop.release.folder import drafted

INDEX, WHOLE_MAP, GUARANTEE = "index.html", "map.html", "guarantee.html"
TOTALS, TEXT, BOOK = "totals.csv", "counts.csv", "counts.xlsx"


def _make(request: Request) -> Content:
    release, given, notes = request.release, request.options, []
    _require_card(release.card)
    words = request.language
    table = rows_at(release, request.depths)
    drawn = make_map(request, INDEX) if is_mapped(request) else None
    totals = list(totals_of(release, request.depths))
    whole = [Sheet.of(TOTALS, joined(release, totals))] if totals else []
    downloads = [*whole, *csvw_of(request, table), *parquet_of(request, table), *sdmx_of(request, table)]
    book, why_not = _book(request, table, words)
    downloads += [book] if book else []
    if table.num_rows <= LARGEST_TEXT:
        downloads += jsonstat_of(request, table)
    if drawn is None:
        notes.append("there is no map: it is not known where the places are (give `coordinates`)")
    else:
        downloads.append(geopackage_of(request, table))
    downloads.append(dcat_of(request, table, [file.file for file in downloads]))
    page = MainPage(release, request.depths, rows_of(release, request.depths, table), totals, words)
    text = page.render(
        [file.file for file in downloads],
        has_map=drawn is not None,
        guarded=not given.get("as_is") and _has_formulas(table),
        credit=given.get("credit"),
    )
    sheet = Sheet.of(TEXT, table, "count")
    index = Page(INDEX, text, table.num_rows, sheet.total, 3 * sheet.size + len(text))  # about that of all files
    if why_not:
        notes.append(why_not)
    maps = [] if drawn is None else drawn.files
    told = Page(GUARANTEE, GuaranteePage(release.card, words).render(INDEX, CARD), 0, 0)
    files = [index, *maps, told, Page(CARD, _card(request), 0, 0), *downloads]
    return Content(files, () if drawn is None else drawn.skipped, (*notes_of(request, table), *notes))


def _require_card(card: Mapping[str, Any]) -> None:
    """Refuse a release that does not state its guarantee: a site must."""
    lacking = [key for key in ("private", "loss", "unit", "levels", "software") if key not in card]
    if lacking:
        raise ReleaseError(
            f"a site states what a release guarantees, and this one has no whole card: it lacks {', '.join(lacking)}. "
            "Export a release that a plan has made"
        )


def _book(request: Request, table: pa.Table, own: Language) -> tuple[Workbook | None, str | None]:
    """Return the workbook, or the reason that there is none."""
    if find_spec("xlsxwriter") is None:
        return None, f"there is no Excel file: it needs XlsxWriter ({install_extra('excel')})"
    texts = [column for column in table.columns if pa.types.is_string(column.type)]
    longest = max((pc.max(pc.utf8_length(column)).as_py() or 0 for column in texts), default=0)
    if table.num_rows > LARGEST or longest > LONGEST:
        return None, "there is no Excel file: it has no room for so many rows, or for so long a code"
    return Workbook.of(BOOK, table, notes_on(request.release, request.depths, own), own), None


def _card(request: Request) -> str:
    """Return the release's own card: the page of its folder or, if it was not saved, the same page made now."""
    if request.folder is not None and (request.folder / CARD).is_file():
        return (request.folder / CARD).read_text(encoding="utf-8")
    with TemporaryDirectory() as room, drafted(request.release.whole, Path(room) / "release") as draft:
        return (draft.path / CARD).read_text(encoding="utf-8")


def _has_formulas(table: pa.Table) -> bool:
    texts = (column for column in table.columns if pa.types.is_string(column.type))
    return any(count_guarded(column) for column in texts)


SITE = Format(
    "site",
    "pages for the public in a folder: the numbers with their ranges, a map, downloads, how sure they are",
    (INDEX, WHOLE_MAP, GUARANTEE, CARD, *KINDS),
    _make,
    coordinates="any",
    outlines=True,
    suffixes=(),
    told="rows, {total:,} in all; open it in a browser, or put the folder on any web server",
    translated=True,
)
