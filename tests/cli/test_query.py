"""`treetop query`: codes of any level, tables of sums, and mistakes that say what to do."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from tests.commands import Command
from treetop import cli
from treetop.cli.terminal import render_rows
from treetop.domain.conditions import parse_conditions
from treetop.errors import ReleaseError

TOWNS = ["Milano", "Monza", "None", 'say "hi", ok', "two\nlines", "a=b", "007"]
PLACE = tt.Hierarchy.from_table(
    pa.table(
        [["Nord Ovest"] * 3 + ["S"] * 4, ["Milano"] * 2 + ["None"] + ["P"] * 4, TOWNS], ["region", "province", "town"]
    ),
    levels=["region", "province", "town"],
)

run = Command.of("query")


@pytest.fixture(scope="module")
def release() -> tt.Release:
    rng = np.random.default_rng(1)
    trips = pa.table({end: np.array(TOWNS)[rng.integers(0, len(TOWNS), 30_000)] for end in ("origin", "destination")})
    spine = tt.Spine.destination_first(origin=PLACE, destination=PLACE)
    plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(epsilon=1, delta=1e-6), title="Trips")
    return tt.make_release(plan, trips)


@pytest.fixture(scope="module")
def folder(release: tt.Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("query") / "release"
    release.save(folder)
    return folder


def test_without_conditions_it_prints_the_total(folder: Path) -> None:
    assert run(folder) == "30000\n"


def test_codes_are_of_any_level(folder: Path, release: tt.Release) -> None:
    expected = release.query(origin="Nord Ovest", destination="Monza")
    assert run(folder, "origin=Nord Ovest", "destination=Monza") == f"{expected}\n"
    expected = release.query(**{"destination.province": "Milano"})
    assert run(folder, "destination.province=Milano") == f"{expected}\n"
    assert 0 < expected < 30_000


def test_conditions_on_two_levels_of_an_attribute_both_hold(folder: Path) -> None:
    both = run(folder, "origin.region=Nord Ovest", "origin.town=Milano")
    assert both == run(folder, "origin.town=Milano")
    assert run(folder, "origin.region=S", "origin.town=Milano") == "0\n"


@pytest.mark.parametrize("code", TOWNS[3:])
def test_codes_may_hold_anything(code: str, folder: Path, release: tt.Release) -> None:
    expected = release.query(origin=code)
    assert expected > 0
    assert run(folder, f"origin={code}") == f"{expected}\n"


def test_names_of_attributes_may_hold_an_equals_sign() -> None:
    tree = tt.Hierarchy.flat(["f", "=m"])
    spine = tt.Spine(["sex", "sex=now"], {"sex": tree, "sex=now": tree})
    release = tt.Release(spine, np.zeros((2, 0), np.int32), np.zeros(0, np.int64), {})
    assert parse_conditions(["sex=now==m", "sex=f"], release.spine) == {"sex=now": "=m", "sex": "f"}


def test_an_ambiguous_code_lists_the_choices(folder: Path) -> None:
    message = run.fails(folder, "destination=Milano")
    assert "destination.province=Milano or destination.town=Milano" in message


def test_a_code_that_stands_for_one_set_at_several_levels_is_not_ambiguous(folder: Path) -> None:
    assert run(folder, "origin=None") == run(folder, "origin.town=None")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["origin=Monzza"], "no code 'Monzza' in origin (region > province > town) (did you mean 'Monza'?)"),
        (["orgin=Monza"], "no attribute 'orgin' (did you mean 'origin'?)"),
        (["origin.region=Monza"], "no code 'Monza' at origin.region"),
        (["Monza"], "'Monza' is not a condition: write ATTRIBUTE=CODE, such as destination=Monza"),
        (["origin"], "'origin' is not a condition: write ATTRIBUTE=CODE, such as origin=CODE"),
        (["origin.town"], "such as origin.town=CODE"),
        (["origin=Monza", "origin=007"], "origin is asked for twice, as 'Monza' and in 'origin=007'"),
        (["--by", "origin.regoin"], "no level 'origin.regoin' (did you mean 'origin.region'?)"),
        (["--csv", "--json"], "choose one"),
        (["--limit", "3"], "add --by LEVEL"),
        (["--limit", "0", "--by", "origin.region"], "0"),
    ],
)
def test_mistakes_say_what_to_do(arguments: list[str], message: str, folder: Path) -> None:
    assert message in run.fails(folder, *arguments)


def test_a_folder_that_is_no_release_is_refused(tmp_path: Path) -> None:
    assert "not a release folder" in run.fails(tmp_path)


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_by_and_conditions_combine(folder: Path, release: tt.Release) -> None:
    options = ["origin=Nord Ovest", "--by", "destination.town", "--by", "origin.province", "--csv"]
    text = run(folder, *options)
    assert text.split("\n")[0] == "destination.town,origin.province,count,lower,upper,outside"
    rows = read_csv(text)
    assert {row["destination.town"] for row in rows} == set(TOWNS)
    for row in rows:
        codes = {name: row[name] for name in ("destination.town", "origin.province")}
        assert int(row["count"]) == release.query(origin="Nord Ovest", **codes)
        interval = release.where(origin="Nord Ovest").interval(**codes)
        assert (int(row["lower"]), int(row["upper"])) == interval
    assert sum(int(row["count"]) for row in rows) == release.query(origin="Nord Ovest")


def test_csv_without_by_is_one_row(folder: Path, release: tt.Release) -> None:
    assert run(folder, "--csv") == "count,lower,upper,outside\n30000,30000,30000,false\n"
    lower, upper = release.interval(origin="007")
    expected = f"count,lower,upper,outside\n{release.query(origin='007')},{lower},{upper},false\n"
    assert run(folder, "--csv", "origin=007") == expected


def test_json_says_the_same(folder: Path, release: tt.Release) -> None:
    total: Any = json.loads(run(folder, "--json", "origin=007"))
    lower, upper = release.interval(origin="007")
    assert total == {
        "title": "Trips",
        "where": {"origin": "007"},
        "count": release.query(origin="007"),
        "counted": {"what": "records", "sentences": []},
        "interval": {"confidence": 0.95, "lower": lower, "upper": upper, "outside": False},
    }
    table: Any = json.loads(run(folder, "--json", "origin=007", "--by", "destination.town"))
    assert table["by"] == ["destination.town"]
    rows = release.where(origin="007").table("destination.town").to_pylist()
    assert table["rows"] == [row | {"outside": not row["lower"] <= row["count"] <= row["upper"]} for row in rows]
    assert table["left_out"] == 0
    assert table["interval"] == total["interval"]


def test_another_confidence_may_be_asked_for(folder: Path, release: tt.Release) -> None:
    asked: Any = json.loads(run(folder, "--json", "origin=007", "--by", "origin.town", "--confidence", "0.5"))
    lower, upper = release.interval(0.5, origin="007")
    assert asked["interval"] == {
        "confidence": 0.5,
        "lower": lower,
        "upper": upper,
        "outside": not lower <= asked["count"] <= upper,
    }
    assert (asked["rows"][0]["lower"], asked["rows"][0]["upper"]) == (lower, upper)
    usual = release.interval(origin="007")
    assert upper - lower < usual.upper - usual.lower
    assert "confidence is 95.0" in run.fails(folder, "--confidence", "95")


def test_on_a_terminal_a_count_has_its_interval_beside_it(folder: Path, release: tt.Release) -> None:
    count, (lower, upper) = release.query(origin="007"), release.interval(0.9, origin="007")
    shown = run(folder, "origin=007", "--confidence", "0.9", terminal=True)
    assert shown == f"{count:,}   (90 % noise interval {lower:,} – {upper:,})\n"


def test_what_is_unresolved_above_the_level_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"place": [*["Milano"] * 400, "Monza", "007", "a=b"]})
    plan = tt.Plan(
        tt.Spine(["place.region", "place.province", "place.town"], {"place": PLACE}),
        tt.Unit("trip", neighbours="replace"),
        tt.Loss(rho=Fraction(1, 10)),
        resolve={"sigmas": 8},
    )
    release = tt.make_release(plan, table, tt.RunOptions(testing_key=bytes([7] * 32)))
    release.save(tmp_path / "release")
    assert release.query(place="007") == 0
    partly = release.where(place="007").partly_unresolved
    assert partly > 0
    summary: Any = json.loads(run(tmp_path / "release", "place=007", "--json"))
    assert summary["unresolved"] == partly
    by: Any = json.loads(run(tmp_path / "release", "--by", "place.town", "--json"))
    assert (by["unresolved"], by["in_no_row"]) == (0, release.unresolved_total)
    assert sum(row["count"] for row in by["rows"]) + by["in_no_row"] == by["count"]
    cli.main(["query", str(tmp_path / "release"), "place=007"])
    told = capsys.readouterr()
    assert told.out == "0\n"
    assert f"Up to {partly:,} more may belong here" in told.err
    cli.main(["query", str(tmp_path / "release"), "--by", "place.town"])
    assert f"Up to {release.unresolved_total:,} more may belong here" in capsys.readouterr().err


def test_a_count_outside_its_interval_is_pointed_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tt.Plan(
        tt.Spine(["place.region", "place.town"], {"place": PLACE}),
        tt.Unit("trip", neighbours="replace"),
        tt.Loss(rho=Fraction(1, 200)),
        confidence=0.2,
    )
    release = tt.make_release(plan, pa.table({"place": ["Milano", "Monza"] * 50}), tt.RunOptions(testing_key=bytes(32)))
    table = release.table()
    outside = sum(not row["lower"] <= row["count"] <= row["upper"] for row in table.to_pylist())
    assert outside > 0
    release.save(tmp_path / "release")
    cli.main(["query", str(tmp_path / "release"), "--by", "place.town", "--confidence", "0.2"])
    assert "outside the interval" in capsys.readouterr().err


def test_a_release_without_intervals_is_queried_as_it_is(tmp_path: Path) -> None:
    spine = tt.Spine(["place.region", "place.town"], {"place": PLACE})
    plan = tt.Plan(spine, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1), confidence=None)
    tt.make_release(plan, pa.table({"place": ["Milano"] * 1200}), tt.RunOptions(testing_key=bytes(32))).save(
        tmp_path / "release"
    )
    assert json.loads(run(tmp_path / "release", "--json")) == {
        "title": "Untitled release",
        "where": {},
        "count": 1200,
        "counted": {"what": "records", "sentences": []},
    }
    assert run(tmp_path / "release", "--csv") == "count\n1200\n"
    assert "has no intervals" in run.fails(tmp_path / "release", "--confidence", "0.9")
    assert run(tmp_path / "release", terminal=True) == "1,200\n"


def test_limit_keeps_the_largest(folder: Path, release: tt.Release) -> None:
    expected = sorted(release.table("origin.town")["count"].to_pylist(), reverse=True)
    table: Any = json.loads(run(folder, "--by", "origin.town", "--limit", "2", "--json"))
    assert [row["count"] for row in table["rows"]] == expected[:2]
    assert (table["left_out"], table["count"]) == (len(expected) - 2, 30_000)
    assert len(read_csv(run(folder, "--by", "origin.town", "--limit", "2", "--csv"))) == 2


def test_a_plain_table_has_a_line_a_row_and_bare_numbers(folder: Path, release: tt.Release) -> None:
    header, *lines = run(folder, "--by", "origin.town").splitlines()
    assert header.split() == ["origin.town", "count", "lower", "upper"]
    shown = [line.rsplit(None, 3) for line in lines]
    assert [(code.rstrip(), *map(int, numbers)) for code, *numbers in shown] == [
        (row["origin.town"].replace("\n", "\N{REPLACEMENT CHARACTER}"), row["count"], row["lower"], row["upper"])
        for row in release.table("origin.town").to_pylist()
    ]
    assert len({len(line) for line in [header, *lines]}) == 1


def test_a_table_on_a_terminal_has_separators_and_the_total() -> None:
    table = pa.table({"origin.town": ["Milano", "\x1b[31mred"], "count": [1_234_567, 89]})
    assert render_rows(table, "count", "1,234,700 in ", 3, for_terminal=True).splitlines() == [
        "origin.town      count",
        "───────────  ─────────",
        "Milano       1,234,567",
        "\N{REPLACEMENT CHARACTER}[31mred            89",
        "",
        "1,234,700 in 3 rows; 1 smaller not shown",
    ]


def test_a_selection_has_tables_but_is_not_saved(release: tt.Release, tmp_path: Path) -> None:
    chosen = release.where(origin="Nord Ovest").where(destination="007")
    assert chosen.total == release.query(origin="Nord Ovest", destination="007")
    assert set(chosen.level("destination.region")["destination"].to_pylist()) == {"S"}
    assert chosen.records().num_rows == chosen.total
    assert "where origin=Nord Ovest, destination=007" in repr(chosen)
    with pytest.raises(ReleaseError, match="only what matches origin=Nord Ovest, destination=007"):
        chosen.save(tmp_path / "some")


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", "from treetop.cli import main; main()", "query", *map(str, arguments)]


@pytest.mark.parametrize("form", [[], ["--csv"], ["--json"]])
def test_a_reader_that_stops_early_sees_no_traceback(form: list[str], folder: Path) -> None:
    words = command(folder, "--by", "origin.town", "--by", "destination.town", *form)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as query:
        assert query.stdout is not None and query.stderr is not None
        query.stdout.close()
        message = query.stderr.read()
    # A remark about counts beside their intervals is none of the reader's trouble.
    assert query.returncode == 0 and all(line.endswith(b"Believe the interval.") for line in message.splitlines())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_output_that_cannot_be_written_is_a_message(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command(folder, "--csv"), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "treetop: standard output: cannot be written: No space left on device\n",
    )
