"""Releases: tables that agree at every level, queries by any code, records, and folders that read back."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop.card import in_words
from treetop.errors import DataError, QueryError, ReleaseError, SpineError
from treetop.release.folder import drafted, place

PLACE = tt.Hierarchy.from_table(
    pa.table(
        {
            "region": ["N", "N", "N", "S"],
            "province": ["Milano", "Milano", "Como", "Bari"],
            "town": ["Milano", "Monza", "Como", "Bari"],
        }
    ),
    levels=["region", "province", "town"],
)
SPINE = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
KEY = bytes(32)


def trips(rows: int = 500, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    towns = np.array(["Milano", "Milano", "Monza", "Como", "Bari"])
    return pa.table({name: towns[rng.integers(0, 5, rows)] for name in ("origin", "destination")})


def plan() -> tt.Plan:
    return tt.Plan(
        SPINE, tt.Unit("trip", neighbours="replace"), tt.Loss(epsilon=1, delta=1e-6), title="Trips", margins="none"
    )


@pytest.fixture(scope="module")
def release() -> tt.Release:
    return tt.make_release(plan(), trips(), tt.RunOptions(testing_key=KEY))


def test_every_level_sums_to_the_total(release: tt.Release) -> None:
    assert release.total == 500
    for level in ["total", *(level.name for level in SPINE.levels)]:
        assert pc.sum(release.level(level)["count"]).as_py() == 500
    assert release.level("total").to_pylist() == [{"count": 500, "lower": 500, "upper": 500}]


def test_a_table_has_the_attributes_refined_so_far(release: tt.Release) -> None:
    assert release.level("destination.region").column_names == ["destination", "count", "lower", "upper"]
    assert release.level("origin.province").column_names == ["destination", "origin", "count", "lower", "upper"]
    assert set(release.level("destination.province")["destination"].to_pylist()) <= {"Milano", "Como", "Bari"}


def test_coarser_tables_are_sums_of_finer_ones(release: tt.Release) -> None:
    region = dict(zip(PLACE.to_table()["town"].to_pylist(), PLACE.to_table()["region"].to_pylist(), strict=True))
    expected: dict[str, int] = {}
    for row in release.table().to_pylist():
        code = region[row["destination"]]
        expected[code] = expected.get(code, 0) + row["count"]
    table = release.level("destination.region")
    assert dict(zip(table["destination"].to_pylist(), table["count"].to_pylist(), strict=True)) == expected


def test_by_sums_over_whatever_is_left_out(release: tt.Release) -> None:
    table = release.table(["origin.region", "destination.town"])
    assert table.column_names == ["origin.region", "destination.town", "count", "lower", "upper"]
    for row in table.to_pylist():
        answer = release.query(origin=row["origin.region"], **{"destination.town": row["destination.town"]})
        assert row["count"] == answer
    assert pc.sum(release.table("origin.province")["count"]).as_py() == 500
    (total,) = release.table([]).to_pylist()
    assert total == {"count": 500, "lower": 500, "upper": 500}
    with pytest.raises(SpineError, match="no level"):
        release.table("origin.street")


def test_queries_take_codes_of_any_level(release: tt.Release) -> None:
    assert release.query() == 500
    assert release.query(origin="N") + release.query(origin="S") == 500
    towns = sum(release.query(**{"origin.town": town, "destination": "S"}) for town in ("Milano", "Monza"))
    assert release.query(**{"origin.province": "Milano"}, destination="S") == towns


def test_an_ambiguous_code_lists_the_choices(release: tt.Release) -> None:
    with pytest.raises(QueryError, match="say origin.province=Milano or origin.town=Milano"):
        release.query(origin="Milano")


def test_a_code_that_means_the_same_at_both_levels_is_not_ambiguous(release: tt.Release) -> None:
    assert release.query(origin="Bari") == release.query(origin="S")


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("origin", "Monzo", "did you mean 'Monza'"),
        ("orgin", "N", "did you mean 'origin'"),
        ("origin.town", "N", "no code 'N' at origin.town"),
    ],
)
def test_a_question_that_names_nothing_is_refused(release: tt.Release, name: str, code: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        release.query(**{name: code})


def test_records_are_one_row_a_unit(release: tt.Release) -> None:
    records = release.records()
    assert records.num_rows == 500
    again = tt.make_release(plan(), records, tt.RunOptions(testing_key=KEY))
    assert again.total == 500
    counted = records.group_by(["destination", "origin"]).aggregate([([], "count_all")])
    assert counted.num_rows == len(release.count)


def test_a_folder_reads_back(release: tt.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    loaded = tt.Release.load(tmp_path / "out")
    assert loaded.table().equals(release.table())
    assert {name: loaded.card[name] for name in release.card} == release.card
    assert loaded.spine.digest == release.spine.digest
    assert loaded.query(origin="N", destination="S") == release.query(origin="N", destination="S")


def test_the_counts_file_keeps_its_contract(release: tt.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    schema = pq.read_schema(tmp_path / "out" / "counts.parquet")
    assert schema.names == ["destination", "origin", "count", "lower", "upper"]
    assert [str(kind) for kind in schema.types] == ["string", "string", "int64", "int64", "int64"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "card.html",
        "card.json",
        "counts.parquet",
        "evidence.parquet",
        "hierarchies",
        "measurements.parquet",
        "plan.toml",
    ]


def test_the_nodes_file_has_every_level_with_nulls_where_nothing_is_refined(
    release: tt.Release, tmp_path: Path
) -> None:
    release.save(tmp_path / "out", nodes=True)
    nodes = pq.read_table(tmp_path / "out" / "nodes.parquet")
    assert nodes.column_names == ["level", "destination", "origin", "count", "lower", "upper"]
    root = {"level": 0, "destination": None, "origin": None, "count": 500, "lower": 500, "upper": 500}
    assert nodes.slice(0, 1).to_pylist() == [root]
    for level in SPINE.levels:
        rows = nodes.filter(pc.equal(nodes["level"], level.index)).drop_columns("level")
        expected = release.level(level.name)
        for name in ("destination", "origin"):
            if name not in expected.column_names:
                assert rows[name].null_count == rows.num_rows
        assert rows.select(expected.column_names).equals(expected)


def test_a_loaded_release_can_be_saved_again(release: tt.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "one")
    tt.Release.load(tmp_path / "one").save(tmp_path / "two")
    for path in (tmp_path / "one").rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()


def test_the_plan_in_the_folder_is_the_plan_that_was_run(release: tt.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "out")
    told = tomllib.loads((tmp_path / "out" / "plan.toml").read_text(encoding="utf-8"))
    assert told["title"] == "Trips"
    assert told["spine"]["order"] == list(SPINE.splits)
    assert told["attributes"]["origin"]["hierarchy_sha256"] == PLACE.digest


def test_force_replaces_a_release_but_nothing_else(release: tt.Release, tmp_path: Path) -> None:
    out = tmp_path / "out"
    release.save(out, nodes=True)
    release.save(out, force=True)
    assert not (out / "nodes.parquet").exists()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").touch()
    with pytest.raises(ReleaseError, match="never replaced"):
        release.save(tmp_path / "home", force=True)
    (tmp_path / "link").symlink_to(out)
    with pytest.raises(ReleaseError, match="not a folder"):
        release.save(tmp_path / "link", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "link", "out"]


def test_a_draft_that_another_process_is_writing_is_left_alone(release: tt.Release, tmp_path: Path) -> None:
    with drafted(release, tmp_path / "out") as draft:
        with pytest.raises(ReleaseError, match="another process is writing there now"):
            release.save(tmp_path / "out")
        assert (draft.path / "card.json").exists()
        release.save(tmp_path / "other")
        assert (draft.path / "card.json").exists()
        draft.place()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out"]


def test_a_failed_replacement_leaves_the_old_release(
    release: tt.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    release.save(out)
    before = (out / "card.json").read_bytes()

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(place, "exchange", fail)
    with pytest.raises(ReleaseError, match="Input/output error"):
        release.save(out, force=True)
    assert (out / "card.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_folders_are_exchanged_also_where_the_system_cannot_in_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "_in_one_step", lambda one, other: False)
    (tmp_path / "one" / "1").mkdir(parents=True)
    (tmp_path / "other" / "2").mkdir(parents=True)
    place.exchange(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "one" / "2").exists() and (tmp_path / "other" / "1").exists()
    (tmp_path / "other" / "1").rmdir()
    with pytest.raises(OSError, match="No such file"):
        place.exchange(tmp_path / "absent", tmp_path / "other")
    assert (tmp_path / "other").exists()


def test_an_existing_folder_is_refused_and_left_alone(release: tt.Release, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ReleaseError, match="exists already"):
        release.save(tmp_path / "out")
    with pytest.raises(ReleaseError, match="is not a folder"):
        release.save(tmp_path / "no" / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_a_failed_write_leaves_nothing_behind(
    release: tt.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(ReleaseError, match="No space left"):
        release.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_a_release_is_refused(release: tt.Release, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="no card.json"):
        tt.Release.load(tmp_path)
    release.save(tmp_path / "out")
    card = json.loads((tmp_path / "out" / "card.json").read_text(encoding="utf-8"))
    counts = tmp_path / "out" / "counts.parquet"
    pq.write_table(pa.table({"destination": ["?"], "origin": ["Como"], "count": [1]}), counts)
    with pytest.raises(ReleaseError, match="not in its hierarchy"):
        tt.Release.load(tmp_path / "out")
    pq.write_table(pa.table({"destination": ["Como"], "origin": ["Como"], "count": [0]}), counts)
    with pytest.raises(ReleaseError, match="above zero"):
        tt.Release.load(tmp_path / "out")
    del card["plan"]["spine"]
    (tmp_path / "out" / "card.json").write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(ReleaseError, match="lacks 'spine'"):
        tt.Release.load(tmp_path / "out")
    (tmp_path / "out" / "card.json").write_text("{", encoding="utf-8")
    with pytest.raises(ReleaseError, match="not a card"):
        tt.Release.load(tmp_path / "out")


def test_a_testing_key_marks_the_release_as_not_private(release: tt.Release) -> None:
    assert release.card["private"] is False
    assert "Not private" in in_words(release.card["warning"])
    assert "NOT PRIVATE" in repr(release)
    fresh = tt.make_release(plan(), trips())
    assert fresh.card["private"] is True
    assert "epsilon 1" in in_words(fresh.card["guarantee"])
    assert repr(fresh).startswith("Release(500 in ")


def test_the_card_never_holds_the_key(release: tt.Release) -> None:
    key = bytes(range(100, 132))
    text = json.dumps(tt.make_release(plan(), trips(), tt.RunOptions(testing_key=key)).card)
    assert key.hex() not in text


def test_two_releases_of_the_same_table_differ() -> None:
    one, two = tt.make_release(plan(), trips()), tt.make_release(plan(), trips())
    assert not one.table().equals(two.table())


def test_the_same_testing_key_repeats_a_release_but_not_on_other_data(release: tt.Release) -> None:
    assert tt.make_release(plan(), trips(), tt.RunOptions(testing_key=KEY)).table().equals(release.table())
    moved = trips().slice(1)
    assert not tt.make_release(plan(), moved, tt.RunOptions(testing_key=KEY)).table().equals(release.table())


def test_a_notebook_shows_the_counts_of_the_first_level_with_intervals_and_the_guarantee(release: tt.Release) -> None:
    page = release._repr_html_()
    assert "Not private" in page and "95% noise interval" in page
    assert "<th>destination.region</th><th>count</th><th>lower</th><th>upper</th>" in page
    for row in release.table("destination.region").to_pylist():
        cells = (row["destination.region"], *(f"{row[name]:,}" for name in ("count", "lower", "upper")))
        assert "".join(f"<td>{cell}</td>" for cell in cells) in page


def test_one_verb_gives_every_table_by_levels_and_where_codes_match(release: tt.Release) -> None:
    found = release.table(by=["destination.region"], where={"origin": "N"})
    assert found.equals(release.where(origin="N").table("destination.region"))
    assert release.table(where={"origin": "N"}).column_names == ["destination", "origin", "count", "lower", "upper"]
    assert len(release.table()) == release.leaves and release.table(intervals=False).column_names[-1] == "count"
    assert sum(release.table(where={"origin": "N"})["count"].to_pylist()) == release.query(origin="N")
    assert release.table([], where={"origin": "N"})["count"].to_pylist() == [release.query(origin="N")]
    assert pa.table(found).equals(found.arrow)  # by the Arrow stream, as other libraries read it


def test_a_table_goes_to_pandas_and_polars_and_says_what_is_missing(
    release: tt.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = release.table("destination.region")
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(DataError, match=f"{library} is not installed: pip install {library}"):
            getattr(found, f"to_{library}")()
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(from_arrow=lambda table: ("frame", table.num_rows)))
    assert found.to_polars() == ("frame", found.num_rows)


def test_pandas_has_the_same_counts(release: tt.Release) -> None:
    pytest.importorskip("pandas")
    found = release.table("destination.region")
    assert found.to_pandas()["count"].tolist() == found["count"].to_pylist()


def test_a_notebook_shows_a_bar_for_every_range(release: tt.Release) -> None:
    found = release.table(["origin.province", "destination.province"])
    page = found._repr_html_()
    assert page.count("<svg") == min(len(found), 20) and page.count("<tr>") == page.count("<svg") + 1
    row = found.to_pylist()[0]
    assert f"<title>{row['count']:,}, between {row['lower']:,} and {row['upper']:,}</title>" in page
    assert "<svg" not in release.table("origin.province", intervals=False)._repr_html_()


def test_progress_is_a_bar_below_the_cell_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    shell = type("ZMQInteractiveShell", (), {})()
    handle = SimpleNamespace(update=shown.append)

    def display(page: str, display_id: bool) -> SimpleNamespace:
        shown.append(page)
        return handle

    pages = SimpleNamespace(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", pages)
    with tt.ProgressBar() as bar:
        tt.make_release(plan(), trips(50), tt.RunOptions(testing_key=KEY, progress=bar))
    assert shown[0].startswith("<progress value=") and shown[-1] == "" and len(shown) > 2


def test_a_notebook_shows_a_selection_with_its_conditions_and_interval(release: tt.Release) -> None:
    north = release.where(origin="N")
    page, bounds = north._repr_html_(), release.interval(origin="N")
    assert ": origin.region=N" in page or "origin=N" in page
    assert f"{north.total:,} (95% noise interval {bounds.lower:,} – {bounds.upper:,})" in page


def test_a_notebook_shows_a_release_of_nothing(release: tt.Release) -> None:
    assert "<table>" not in tt.make_release(plan(), trips(0), tt.RunOptions(testing_key=KEY))._repr_html_()


def test_an_empty_release_answers_with_zero(tmp_path: Path) -> None:
    nothing = tt.make_release(plan(), trips(0), tt.RunOptions(testing_key=KEY))
    assert nothing.query(origin="N") == 0
    assert nothing.level("origin.region").num_rows == 0
    assert nothing.table("origin.region").num_rows == 0
    nothing.save(tmp_path / "out")
    assert tt.Release.load(tmp_path / "out").total == 0
