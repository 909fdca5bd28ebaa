"""Real counts in the layouts of national offices: fixed-width text with record types, and margins instead of flows."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

HERE = Path(__file__).parent
Command = Callable[..., Any]

SARDINIA = 391_395
NEAR = 150
"""More than ten standard deviations of the noise of a total: it is measured where rows are selected."""
FIELDS = ("record=1", "home=5-7,9-11", "place=17", "work=19-21,23-25", "people=56-62")


@pytest.fixture(scope="module")
def matrix(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The flows of Sardinia as ISTAT wrote those of 2011: each flow once as S and again, in parts, as L."""
    table = pq.read_table(data / "od_it_istat" / "od_comune_sardinia_2001.parquet")
    lines = []
    for row in table.to_pylist():
        home, work, people = row["o_com"], row["d_com"], row["commuters"]
        place = "1" if home == work else "2"
        ends = f"1 {home[:3]} {home[3:]} 1 2 {place} {work[:3]} {work[3:]} 000"
        estimate = f"{people / 3:.2f}"
        lines.append(f"S {ends}  + + + {people:016.2f}  {people:07}")
        lines += [f"L {ends} {way} 2 1 {estimate:>16}       ND" for way in ("05", "12")]
    lines.append("S 1 090 003 1 2 3 000 000 215  + + + 0000000000004.00  0000004")
    assert {len(line) for line in lines} == {62}
    file = tmp_path_factory.mktemp("layout") / "matrix.txt.gz"
    file.write_bytes(gzip.compress(("\r\n".join(lines) + "\r\n").encode()))
    return file


def test_fixed_width_text_is_recognised_and_its_positions_are_told(treetop: Command, matrix: Path) -> None:
    said = treetop("inspect", matrix, expect=2).err
    assert "looks like fixed-width text" in said
    assert "Text stands at 1, 3, 5-7, 9-11, 13, 15, 17, 19-21, 23-25, 27-29, 31-32, 34, 36, 38-53, 56-62" in said
    assert "--field home=8-13" in said and "[data.fields]" in said


def test_a_table_with_two_types_of_records_from_inspect_to_export(
    data: Path, treetop: Command, matrix: Path, tmp_path: Path
) -> None:
    fields = [word for field in FIELDS for word in ("--field", field)]
    keep = ("--keep", "record=S", "--keep", "place=1", "--keep", "place=2")
    lookup = data / "lookup_it" / "comuni_2011.parquet"
    draft = tmp_path / "draft.toml"
    options = ("--count", "people", "--hierarchy", lookup, "--out", draft)
    seen = treetop("inspect", matrix, *fields, *keep, *options, "--json").json()
    assert seen["rows"] == 10_997
    assert seen["count"] == "people"
    assert {one["name"]: one["column"] for one in seen["attributes"]} == {"origin": "home", "destination": "work"}
    assert "[data.fields]" in draft.read_text(encoding="utf-8")

    plan, out = HERE / "it_fixed.toml", tmp_path / "release"
    assert "The data set is the rows with record 'S' and place '1' or '2'" in treetop("plan", plan).out
    assert treetop("plan", plan, "--json").json()["keep"] == {"record": ["S"], "place": ["1", "2"]}
    released = treetop("release", plan, matrix, "--out", out, "--json").json()["total"]
    assert abs(released - SARDINIA) < NEAR
    report = treetop("check", out, "--truth", matrix, "--plan", plan, "--json").json()
    assert report["verified"]
    assert report["errors"]["levels"][0]["largest"] == abs(released - SARDINIA)
    page = (out / "card.html").read_text(encoding="utf-8")
    assert "The data set is the rows with record &#39;S&#39; and place" in page
    assert 'keep = { record = ["S"], place = ["1", "2"] }' in (out / "plan.toml").read_text(encoding="utf-8")
    told = treetop("export", out, "--to", "od", "--out", tmp_path / "od", "--json").json()
    assert told["total"] == released


def test_without_the_filter_nothing_is_released(treetop: Command, matrix: Path, tmp_path: Path) -> None:
    text = (HERE / "it_fixed.toml").read_text(encoding="utf-8").replace("../../..", str(HERE.parents[2]))
    plan = tmp_path / "plan.toml"
    plan.write_text(text.replace('keep = { record = "S", place = ["1", "2"] }\n', ""), encoding="utf-8")
    refused = treetop("release", plan, matrix, "--out", tmp_path / "no", expect=2).err
    assert "'ND' is not a whole number" in refused or "'000000' is not a" in refused
    plan.write_text(text.replace('record = "S"', 'record = "s"'), encoding="utf-8")
    assert not (tmp_path / "no").exists()
    told = treetop("release", plan, matrix, "--out", tmp_path / "none").err
    assert "there are no rows with record 's'" in told  # a table without rows is one, and the steward is told


def test_margins_of_some_provinces_from_inspect_to_export(data: Path, treetop: Command, tmp_path: Path) -> None:
    table = data / "od_it_istat" / "commuter_margins_comune_2021.parquet"
    if not table.exists():
        pytest.skip(f"the table is not here: {table} does not exist")
    provinces = ("090", "091", "092", "095", "111", "087", "088")
    (total,) = duckdb.execute(
        f"select sum(commuters_internal) from read_parquet('{table}') where prov in {provinces}"
    ).fetchone()  # type: ignore[misc]
    seen = treetop("inspect", table, "--hierarchy", data / "lookup_it" / "comuni_current.parquet", "--json").json()
    assert seen["rows"] == 7_904  # as its SOURCE.md says
    plan, out = HERE / "it_margins.toml", tmp_path / "release"
    treetop("plan", plan)
    released = treetop("release", plan, "--out", out, "--json").json()["total"]
    assert abs(released - total) < NEAR
    report = treetop("check", out, "--truth", table, "--json").json()  # the card says which rows
    assert report["verified"]
    assert report["errors"]["levels"][0]["largest"] == abs(released - total)
    regions = treetop("query", out, "--by", "place.reg", "--json").json()["rows"]
    assert sum(row["count"] for row in regions) == released
    told = treetop("export", out, "--to", "records", "--out", tmp_path / "records.parquet", "--json").json()
    assert pq.read_metadata(told["files"][0]).num_rows == released
