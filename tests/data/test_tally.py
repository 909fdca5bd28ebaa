"""What a steward is told of a private table: what was dropped, which codes, what would match, and ids that never
repeat."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop.counts.reading import read_counts
from treetop.counts.tally import Tally
from treetop.errors import DataError, ManyDropped, Refusal
from treetop.release.errors import measure_errors

TREE = tt.Hierarchy.flat(["01001", "01003", "02001"])
SPINE = tt.Spine(["place"], {"place": TREE})
KEY = bytes(range(32))


def plan(unknown: object = "drop", **unit: object) -> tt.Plan:
    one = tt.Unit("person", neighbours="add-remove", **unit)  # type: ignore[arg-type]
    return tt.Plan(SPINE, one, tt.Loss(rho=10**6), unknown=unknown)  # type: ignore[arg-type]


def table(known: int, *others: str | None, **more: Any) -> pa.Table:
    codes = ["01001"] * known + list(others)
    return pa.table({"place": pa.array(codes, pa.string()), **more})


def told(caplog: pytest.LogCaptureFixture) -> str:
    text = "\n".join(record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
    caplog.clear()
    return text


def test_the_steward_is_told_how_many_rows_were_dropped_and_the_commonest_codes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    release = tt.make_release(plan(), table(200, "x", "y", "x", None), tt.RunOptions(testing_key=KEY))
    assert release.total == 200
    text = told(caplog)
    assert "4 of 204 rows were dropped (2.0%)." in text
    assert "Unknown in column 'place': 'x' (2), missing (1), 'y' (1)." in text
    assert "for the steward only" in text
    tt.make_release(plan(), table(200), tt.RunOptions(testing_key=KEY))
    assert told(caplog) == ""


def test_records_are_told_beside_rows_where_a_row_is_several(caplog: pytest.LogCaptureFixture) -> None:
    rows = table(2, "x", n=[500, 499, 1])
    with pytest.raises(ManyDropped, match="1 of 3 rows would be dropped, which stand for 1 of 1,000 records"):
        tt.make_release(plan(), rows, tt.RunOptions(count="n", testing_key=KEY))
    rows = table(99, "x", n=[1] * 99 + [50])
    with pytest.raises(ManyDropped, match="1 of 100 rows would be dropped, which stand for 50 of 149 records"):
        tt.make_release(plan(), rows, tt.RunOptions(count="n", testing_key=KEY))


def test_much_that_would_be_dropped_is_refused_before_anything_is_spent() -> None:
    charged: list[bool] = []
    rows = table(90, *["x"] * 10)
    with pytest.raises(ManyDropped, match="10 of 100 rows would be dropped") as refused:
        tt.make_release(plan(), rows, tt.RunOptions(before_measuring=lambda: charged.append(True), testing_key=KEY))
    assert isinstance(refused.value, Refusal)
    assert "allow_dropped=True" in str(refused.value)
    assert charged == []
    tt.make_release(
        plan(), rows, tt.RunOptions(before_measuring=lambda: charged.append(True), allow_dropped=True, testing_key=KEY)
    )
    assert charged == [True]


def test_a_few_percent_may_be_dropped_without_asking() -> None:
    assert tt.make_release(plan(), table(97, *["x"] * 3), tt.RunOptions(testing_key=KEY)).total == 97
    with pytest.raises(ManyDropped):
        tt.make_release(plan(), table(96, *["x"] * 4), tt.RunOptions(testing_key=KEY))


def test_leading_zeros_and_blanks_that_would_match_are_pointed_out() -> None:
    rows = table(10, "1001", "1001", "1003", " 02001", "02001 ", " 1003", "x", "", None)
    with pytest.raises(ManyDropped) as refused:
        tt.make_release(plan(), rows, tt.RunOptions(testing_key=KEY))
    assert "4 of these 9 would be known with their leading zeros: read column 'place' as text" in str(refused.value)
    assert "2 of these 9 would be known without the blanks around them: trim column 'place'" in str(refused.value)
    with pytest.raises(DataError, match="The hierarchy has '01001': trim the column"):
        tt.make_release(plan("error"), table(1, "01001 "), tt.RunOptions(testing_key=KEY))
    with pytest.raises(DataError, match="The hierarchy has '01003': leading zeros were lost"):
        tt.make_release(plan("error"), table(1, "1003"), tt.RunOptions(testing_key=KEY))


def test_codes_that_go_to_a_leaf_of_their_own_are_told(caplog: pytest.LogCaptureFixture) -> None:
    rows = table(1, "1001", "x")
    release = tt.make_release(plan({"place": "02001"}), rows, tt.RunOptions(allow_dropped=True, testing_key=KEY))
    assert release.total == 3
    text = told(caplog)
    assert "2 of 3 rows count under the leaf for unknown codes (place '02001')" in text
    assert "1 of these 2 would be known with their leading zeros" in text


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_many_codes_that_go_to_a_leaf_are_refused_before_anything_is_spent(engine: str, tmp_path: Path) -> None:
    charged: list[bool] = []
    rows = tmp_path / "rows.csv"
    rows.write_text("place\n" + "01001\n" * 96 + "x\n" * 4)
    how: dict[str, Any] = {
        "before_measuring": lambda: charged.append(True),
        "testing_key": KEY,
        "engine": tt.Engine(engine, workers=2),
    }
    with pytest.raises(ManyDropped, match=r"4 of 100 rows would count under the leaf .*place '02001'"):
        tt.make_release(plan({"place": "02001"}), rows, tt.RunOptions(**how))
    assert charged == []
    assert tt.make_release(plan({"place": "02001"}), rows, tt.RunOptions(allow_dropped=True, **how)).total == 100
    rows.write_text("place\n" + "01001\n" * 97 + "x\n" * 3)
    assert tt.make_release(plan({"place": "02001"}), rows, tt.RunOptions(**how)).total == 100


def test_rows_without_an_id_are_dropped_rows(caplog: pytest.LogCaptureFixture) -> None:
    who = [f"p{i % 50}" for i in range(199)]
    tt.make_release(plan(id="who"), table(200, who=[*who, None]), tt.RunOptions(testing_key=KEY))
    assert "1 of 200 rows were dropped" in told(caplog)


def test_an_id_that_never_repeats_is_told(caplog: pytest.LogCaptureFixture) -> None:
    once = table(40, who=[f"stay {i}" for i in range(40)])
    tt.make_release(plan("error", id="who"), once, tt.RunOptions(testing_key=KEY))
    assert "No id in column 'who' stands in more than one row: each row is then a person of its own." in told(caplog)
    twice = table(40, who=[f"stay {i}" for i in range(39)] + ["stay 0"])
    tt.make_release(plan("error", id="who"), twice, tt.RunOptions(testing_key=KEY))
    assert "No id in column" not in told(caplog)
    cleaned = table(2, who=["ann", "Ann"])
    tt.make_release(plan("error", id="who", id_clean=["casefold"]), cleaned, tt.RunOptions(testing_key=KEY))
    assert "No id in column" not in told(caplog)


def test_nothing_of_it_enters_the_folder(tmp_path: Path) -> None:
    both = [table(300, *["secret code"] * number) for number in (1, 9)]
    made = [tt.make_release(plan(), rows, tt.RunOptions(testing_key=KEY)) for rows in both]
    for number, release in enumerate(made):
        release.save(tmp_path / str(number))
        text = b"".join(file.read_bytes() for file in (tmp_path / str(number)).rglob("*") if file.is_file())
        assert b"secret code" not in text
    one, other = (release.card | {"id": 0, "time": 0} for release in made)
    assert one == other
    assert np.array_equal(made[0].count, made[1].count)


def test_what_was_dropped_is_an_error_of_the_total_and_lost_below() -> None:
    rows, tally = table(80, *["1001"] * 20), Tally()
    release = tt.make_release(plan(), rows, tt.RunOptions(allow_dropped=True, testing_key=KEY))
    truth = tt.read_true_counts(plan(), rows, tally=tally)
    assert (truth.total, tally.dropped, tally.share) == (80, 20, 0.2)
    total, places = measure_errors(release, truth, tally.dropped)
    assert (total.largest, places.largest) == (20, 0)
    assert places.lost_mass == pytest.approx(0.2)
    assert measure_errors(release, truth)[0].largest == 0


def test_very_many_different_codes_are_counted_and_the_commonest_kept() -> None:
    rng = np.random.default_rng(1)
    codes = [f"c{number}" for number in rng.permutation(60_000)] + ["often"] * 500
    tally = Tally()
    read_counts(pa.table({"place": codes}), SPINE, unknown="drop", tally=tally)
    assert (tally.unknown_rows, tally.codes["place"].records) == (60_500, 60_500)
    assert tally.codes["place"].commonest(1) == [("often", 500)]
    assert len(tally.codes["place"].often) < 60_000


def several(number: int = 6, **more: Any) -> pa.Table:
    """A table of two people with as many records each, in turn."""
    return table(2 * number, who=["ann", "bob"] * number, **more)


def limited(**unit: object) -> tt.Plan:
    return plan("error", id="who", contributions=4, **unit)


def test_the_steward_is_told_how_many_records_the_limit_left_out(caplog: pytest.LogCaptureFixture) -> None:
    release = tt.make_release(limited(), several(), tt.RunOptions(testing_key=KEY))
    assert release.total == 8
    assert "4 of 12 records were beyond the limit of 4 per person (33 %): they are not counted." in told(caplog)
    tt.make_release(limited(), several(4), tt.RunOptions(testing_key=KEY))
    assert "beyond the limit" not in told(caplog)


def test_a_row_that_stands_for_several_records_counts_them(caplog: pytest.LogCaptureFixture) -> None:
    tt.make_release(limited(), several(2, n=[100, 3, 1, 0]), tt.RunOptions(count="n", testing_key=KEY))
    assert "97 of 104 records were beyond the limit of 4 per person (93 %)" in told(caplog)


def test_records_that_count_as_one_are_told_with_those_beyond_the_limit(caplog: pytest.LogCaptureFixture) -> None:
    tt.make_release(limited(distinct=True), several(), tt.RunOptions(testing_key=KEY))
    text = "10 of 12 records were beyond the limit of 4 per person, or in the same leaf as another of the same person"
    assert text in told(caplog)


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_every_engine_tells_the_same(engine: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pq.write_table(several(500), tmp_path / "rows.parquet", row_group_size=100)
    where = tt.Engine(engine, staging=None if engine == "local" else tmp_path)
    tt.make_release(limited(), str(tmp_path / "rows.parquet"), tt.RunOptions(engine=where, threads=2, testing_key=KEY))
    assert "992 of 1,000 records were beyond the limit of 4 per person (99 %)" in told(caplog)


def test_what_the_limit_left_out_enters_no_file(tmp_path: Path) -> None:
    for number in (6, 600):
        release = tt.make_release(limited(), several(number), tt.RunOptions(testing_key=KEY))
        release.save(tmp_path / str(number))
        text = b"".join(file.read_bytes() for file in (tmp_path / str(number)).rglob("*") if file.is_file())
        assert b"were beyond the limit" not in text and str(2 * number - 8).encode() + b" of" not in text
    names = [sorted(file.name for file in (tmp_path / str(number)).iterdir()) for number in (6, 600)]
    assert names[0] == names[1]
