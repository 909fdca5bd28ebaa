"""Any release in the formats of statistical offices and catalogues: CSVW, Parquet, JSON-stat 2.0, SDMX and DCAT."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from treetop.errors import ReleaseError
from treetop.exporting.any_table import attributes_of, notes_of, rows_at
from treetop.exporting.formats import Content, Format, Request
from treetop.exporting.levels import are_dates, trees_of
from treetop.exporting.page_statements import attribute_at, citation, notes_on
from treetop.exporting.sheet import ExportedFile, Page, Sheet, count_guarded, guard

CUBE = 200_000
"""Most combinations of a cube in which released zeros are written as well."""
LARGEST_TEXT = 1_000_000
"""Most rows of a format that is one text in memory."""
AGENCY = "TREETOP"
"""The maintenance agency of SDMX structures, for the publisher to replace."""
_NUMBERS = {"count": "OBS_VALUE", "lower": "LOWER_BOUND", "upper": "UPPER_BOUND", "outside": "OUTSIDE_RANGE"}
_MEDIA = {
    ".csv": "text/csv",
    ".gpkg": "application/geopackage+sqlite3",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_DAYS = re.compile(r"(\d{4}-\d\d-\d\d)\s+(?:to|–|-|/)\s+(\d{4}-\d\d-\d\d)")


def _made(make: Callable[[Request, pa.Table], Sequence[ExportedFile]]) -> Callable[[Request], Content]:
    """Return the maker of a format that needs all rows."""

    def of(request: Request) -> Content:
        table = rows_at(request.release, request.depths)
        return Content(make(request, table), notes=notes_of(request, table))

    return of


def _page(file: str, content: Any, table: pa.Table) -> Page:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Page(file, text, table.num_rows, int(pc.sum(table["count"]).as_py() or 0), len(text))


def _remarks(request: Request) -> list[str]:
    """Return what a reader has to know: the guarantee, exactness, ranges, zeros."""
    rows = notes_on(request.release, request.depths, request.language)
    return [": ".join(str(cell) for cell in row if cell) for row in rows]


def _title(request: Request) -> str:
    return str(request.release.card.get("title") or request.language.words["page"]["untitled"])


def _label(request: Request, name: str) -> str:
    """Return the label of an attribute, with its level if that says more."""
    level = trees_of(request.release)[name].levels[request.depths[name]]
    return attribute_at(name, level, request.release.card, request.language)


def _described(request: Request) -> dict[str, str]:
    """Return the descriptions of the columns of numbers."""
    words = request.language.words
    named = {name: words["files"][name] for name in ("count", "lower", "upper")}
    return {**named, "outside": words["sure"]["outside"]}


def parquet_of(request: Request, table: pa.Table) -> list[ExportedFile]:
    """Return the rows as Parquet."""
    return [Sheet.of("counts.parquet", table, "count")]


# CSV on the Web: what the columns are, beside the file.


def csvw_of(request: Request, table: pa.Table) -> list[ExportedFile]:
    """Return the rows as CSV, and their description."""
    names = attributes_of(request.release)
    own = request.language
    code = own.words["files"]["code"]
    told = {**_described(request), **{name: code.format(attribute=_label(request, name)) for name in names}}
    plain = (lambda text: text) if request.options.get("as_is") else guard
    columns = [
        {
            "name": quote(field.name, safe="").replace("-", "%2D"),
            "titles": plain(field.name),
            "datatype": {"bool": "boolean", "int64": "integer"}.get(str(field.type), "string"),
            **({"dc:description": told[field.name]} if field.name in told else {}),
        }
        for field in table.schema
    ]
    codes = any(count_guarded(table[name].combine_chunks()) for name in names)
    remarks = [*_remarks(request), *([own.words["downloads"]["formulas"]] if codes and plain is guard else [])]
    keys = [column["name"] for column, field in zip(columns, table.schema, strict=True) if field.name in names]
    content: dict[str, Any] = {
        "@context": "http://www.w3.org/ns/csvw",
        "url": "counts.csv",
        "dc:title": _title(request),
        "dc:identifier": request.release.card.get("id"),
        "dc:issued": request.release.card.get("time"),
        "notes": remarks,
        "tableSchema": {"columns": columns, "primaryKey": keys},
    }
    told_of = {name: value for name, value in content.items() if value is not None}
    return [Sheet.of("counts.csv", table, "count"), _page("counts.csv-metadata.json", told_of, table)]


# JSON-stat 2.0: one cube, whose last dimension tells counts from the ends of their ranges.


def jsonstat_of(request: Request, table: pa.Table) -> list[ExportedFile]:
    """Return the rows as a cube: with released zeros if it is small, and with what is listed alone otherwise."""
    _require_few(table, "JSON-stat", request)
    release, trees, names = request.release, trees_of(request.release), attributes_of(request.release)
    measures = [name for name in ("count", "lower", "upper") if name in table.column_names]
    last = "measure"
    while last in names:
        last += "_"
    dimension: dict[str, Any] = {}
    at = np.zeros(table.num_rows, np.int64)
    cells = 1
    for name in names:
        tree, depth = trees[name], request.depths[name]
        order = np.argsort(tree.listing(depth), kind="stable")
        codes = tree.codes[depth].take(pa.array(order))
        called = tree.names.get(tree.levels[depth])
        label = codes if called is None else pc.coalesce(called.take(pa.array(order)), codes)
        category = {"index": codes.to_pylist(), "label": dict(zip(codes.to_pylist(), label.to_pylist(), strict=True))}
        dimension[name] = {"label": _label(request, name), "category": category}
        at = at * len(codes) + pc.index_in(table[name].combine_chunks(), value_set=codes).to_numpy()
        cells *= len(codes)
    words = request.language.words
    label = {"count": words["table"]["count"], "lower": words["files"]["lower"], "upper": words["files"]["upper"]}
    units = {name: {"decimals": 0} for name in measures}
    category = {"index": measures, "label": {name: label[name] for name in measures}, "unit": units}
    dimension[last] = {"label": words["files"]["measure"], "category": category}
    value: dict[str, int] = {}
    if cells <= CUBE and release.whole.left is None:
        value = {str(cell * len(measures)): 0 for cell in range(cells)}
    for step, measure in enumerate(measures):
        value |= zip(map(str, (at * len(measures) + step).tolist()), table[measure].to_pylist(), strict=True)
    role = {
        "metric": [last],
        "time": _times(request),
        "geo": [name for name in names if name in (request.places or {})],
    }
    content = {
        "version": "2.0",
        "class": "dataset",
        "label": _title(request),
        "updated": release.card.get("time"),
        "note": _remarks(request),
        "id": [*names, last],
        "size": [len(one["category"]["index"]) for one in dimension.values()],
        "role": {name: own for name, own in role.items() if own},
        "dimension": dimension,
        "value": value,
    }
    return [_page("counts.json", content, table)]


def _times(request: Request) -> list[str]:
    """Return the attributes whose codes are dates."""
    trees = trees_of(request.release)
    return [
        name
        for name in attributes_of(request.release)
        if are_dates(trees[name].levels[depth := request.depths[name]], trees[name].codes[depth].to_pylist())
    ]


def _require_few(table: pa.Table, what: str, request: Request) -> None:
    if table.num_rows > LARGEST_TEXT:
        raise ReleaseError(
            f"{request.out}: would have {table.num_rows:,} rows, and {what} is for at most {LARGEST_TEXT:,}: export a "
            "coarser `level`, or `to=csv`"
        )


# SDMX: rows as SDMX-CSV 2.0, and the structure that they name as SDMX-JSON 2.0.


def sdmx_of(request: Request, table: pa.Table) -> list[ExportedFile]:
    """Return the rows, and their structure: dimensions, code lists where SDMX has room for the codes, attributes."""
    ids = _identifiers(request)
    numbers = {name: id for name, id in _NUMBERS.items() if name in table.column_names}
    flow = f"{AGENCY}:{_flow(request)}(1.0.0)"
    head = {"STRUCTURE": "dataflow", "STRUCTURE_ID": flow, "ACTION": "R"}
    columns = {name: pa.repeat(value, table.num_rows) for name, value in head.items()}
    columns |= {id: table[name] for name, id in {**ids, **numbers}.items()}
    if "outside" in numbers:
        columns[numbers["outside"]] = table["outside"].cast(pa.string())
    rows = Sheet.of("sdmx.csv", pa.table(columns), "OBS_VALUE")
    return [rows, _page("sdmx-structure.json", _structure(request, ids, numbers), table)]


def _flow(request: Request) -> str:
    return "R_" + re.sub(r"\W", "_", str(request.release.card.get("id") or "0"))[:8]


def _identifiers(request: Request) -> dict[str, str]:
    """Return the identifiers of dimensions by attribute; the first with dates is the time dimension."""
    found: dict[str, str] = {}
    time = next(iter(_times(request)), None)
    for name in attributes_of(request.release):
        id = "TIME_PERIOD" if name == time else re.sub(r"[^A-Za-z0-9_]", "_", name).upper()
        id = id if id[:1].isalpha() else f"D_{id}"
        while id in (*found.values(), *_NUMBERS.values(), "STRUCTURE", "STRUCTURE_ID", "ACTION") or (
            id == "TIME_PERIOD" and name != time
        ):
            id += "_"
        found[name] = id
    return found


def _structure(request: Request, ids: Mapping[str, str], numbers: Mapping[str, str]) -> dict[str, Any]:
    """Return the structure: a skeleton of SDMX-JSON with the dimensions, code lists, concepts and texts filled in."""
    flow, trees = _flow(request), trees_of(request.release)
    skeleton = files("treetop.exporting").joinpath("sdmx.json").read_text(encoding="utf-8")
    whole = json.loads(skeleton.replace("FLOW", flow).replace("AGENCY", AGENCY).replace("MOMENT", _moment(request)))
    (structure,), (dataflow,), (scheme,) = (
        whole["data"][part] for part in ("dataStructures", "dataflows", "conceptSchemes")
    )
    components = structure["dataStructureComponents"]
    concept = components["measureList"]["measures"][0]["conceptIdentity"].removesuffix("OBS_VALUE")
    for name, id in ids.items():
        tree, depth = trees[name], request.depths[name]
        codes = tree.codes[depth].to_pylist()
        one: dict[str, Any] = {"id": id, "conceptIdentity": concept + id}
        scheme["concepts"].append({"id": id, "name": _label(request, name)})
        if id == "TIME_PERIOD":
            kind: dict[str, Any] = {"format": {"dataType": "ObservationalTimePeriod"}}
            components["dimensionList"]["timeDimension"] = one | {"localRepresentation": kind}
            continue
        kind = {"format": {"dataType": "String"}}
        if all(re.fullmatch(r"[A-Za-z0-9_@$-]+", code) for code in codes) and not count_guarded(tree.codes[depth]):
            called = tree.names.get(tree.levels[depth])
            names = codes if called is None else pc.coalesce(called, tree.codes[depth]).to_pylist()
            order = np.argsort(tree.listing(depth), kind="stable").tolist()
            listed = [{"id": codes[at], "name": names[at]} for at in order]
            about = {"id": f"CL_{id}", "name": _label(request, name), "agencyID": AGENCY, "version": "1.0.0"}
            whole["data"]["codelists"].append({**about, "codes": listed})
            kind = {"enumeration": f"urn:sdmx:org.sdmx.infomodel.codelist.Codelist={AGENCY}:CL_{id}(1.0.0)"}
        dimensions = components["dimensionList"]["dimensions"]
        dimensions.append(one | {"position": len(dimensions), "localRepresentation": kind})
    scheme["concepts"] += [
        {"id": _NUMBERS[name], "name": text} for name, text in _described(request).items() if name in numbers
    ]
    attributes = components["attributeList"]["attributes"]
    attributes[:] = [own for own in attributes if own["id"] in numbers.values()]
    if not attributes:
        del components["attributeList"]
    for part in (structure, dataflow, scheme):
        part["name"] = _title(request)
    dataflow["description"] = " ".join(_remarks(request))
    return dict(whole)


def _moment(request: Request) -> str:
    return f"{str(request.release.card.get('time') or '2000-01-01')[:10]}T00:00:00Z"


# DCAT: a record for data catalogues.


def dcat_of(request: Request, table: pa.Table, beside: Sequence[str]) -> Page:
    """Return the record of a release as JSON-LD, with files that lie beside it."""
    card, words = request.release.card, request.language.words
    described = [card.get("description"), *_remarks(request)[1:]]
    period = card.get("data", {}).get("period")
    days = _DAYS.fullmatch(period or "")
    time = {"dcat:startDate": _day(days[1]), "dcat:endDate": _day(days[2])} if days else {"rdfs:label": period}
    content = {
        **json.loads(files("treetop.exporting").joinpath("dcat.json").read_text(encoding="utf-8")),
        "@id": f"urn:uuid:{card['id']}" if card.get("id") else None,
        "dct:title": _title(request),
        "dct:description": " ".join(filter(None, described)) or None,
        "dct:identifier": card.get("id"),
        "dct:issued": _day(card["time"]) if card.get("time") else None,
        "dct:temporal": {"@type": "dct:PeriodOfTime", **time} if period else None,
        "dct:bibliographicCitation": citation(request.release.card, request.language),
        "dcat:keyword": [*([words["files"]["keyword"]] if card["private"] else []), *attributes_of(request.release)],
        "dcat:distribution": [_distribution(file) for file in beside],
    }
    text = json.dumps(
        {name: value for name, value in content.items() if value is not None}, ensure_ascii=False, indent=1
    )
    return Page("dcat.jsonld", text + "\n", table.num_rows, int(pc.sum(table["count"]).as_py() or 0))


def _distribution(file: str) -> dict[str, Any]:
    media = _MEDIA.get(PurePath(file).suffix)
    kind = {"dcat:mediaType": {"@id": f"https://www.iana.org/assignments/media-types/{media}"}} if media else {}
    return {"@type": "dcat:Distribution", "dct:title": file, "dcat:downloadURL": {"@id": quote(file)}, **kind}


def _day(text: str) -> dict[str, str]:
    return {"@value": text[:10], "@type": "xsd:date"}


def _catalogued(request: Request, table: pa.Table) -> list[ExportedFile]:
    beside = csvw_of(request, table)
    return [dcat_of(request, table, [file.file for file in beside]), *beside]


_CSVW = ("counts.csv", "counts.csv-metadata.json")
CSVW, PARQUET, JSONSTAT, SDMX, DCAT = (
    Format(name, about, files, _made(make), suffixes=suffixes, coordinates="any" if name == "jsonstat" else "none")
    for name, files, suffixes, make, about in (
        ("csvw", _CSVW, (), csvw_of,
         "CSV on the Web: counts.csv, and what its columns mean as metadata beside it (JSON)"),
        ("parquet", ("counts.parquet",), (".parquet",), parquet_of, "the same columns for Python, R and databases"),
        ("jsonstat", ("counts.json",), (".json",), jsonstat_of, "a cube for statistical software (JSON-stat 2.0)"),
        ("sdmx", ("sdmx.csv", "sdmx-structure.json"), (".csv",), sdmx_of,
         "rows for statistical offices (SDMX-CSV 2.0), and their structure (SDMX-JSON 2.0)"),
        ("dcat", ("dcat.jsonld", *_CSVW), (), _catalogued,
         "a record for data catalogues (DCAT, JSON-LD), with the table in CSV and its metadata"),
    )
)  # fmt: skip
