"""What `inspect` says beside its description: samples, reasons, hints with counts, and what would be noise."""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import treetop as tt
from tests.commands import printed
from treetop import cli

CODES = [f"{one:05}" for one in range(40)]
PLACES = [(f"R{int(code) // 20}", f"Region {int(code) // 20}", code, f"Town {code}") for code in CODES]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = ["region,region_name,town,town_name", *(",".join(row) for row in PLACES)]
    Path("places.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def table(rows: Sequence[tuple[object, ...]], names: str = "home,work,flow") -> None:
    Path("trips.csv").write_text("\n".join([names, *(",".join(map(str, row)) for row in rows)]) + "\n")


def told(*options: str) -> str:
    return printed("inspect", "trips.csv", *options)


def as_json(*options: str) -> Any:
    return json.loads(told(*options, "--json"))


def pairs(flow: int = 5) -> list[tuple[str, str, int]]:
    return [(home, work, flow) for home in CODES for work in CODES[::2]]


def test_samples_are_shown_to_the_steward_and_never_drafted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("people.csv").write_text(
        "person,town,n\n" + "".join(f"secret{one},Klein-{one % 7},{one % 3 + 1}\n" for one in range(200))
    )
    capsys.readouterr()
    cli.main(["inspect", "people.csv"])
    shown = capsys.readouterr()
    assert "Klein-0, Klein-1, Klein-2" in shown.out
    assert "secret" not in shown.out  # identifiers tell of somebody
    assert "for the steward only" in shown.err
    cli.main(["inspect", "people.csv", "--json"])
    described = json.loads(capsys.readouterr().out)
    assert described["columns"][1]["samples"] == ["Klein-0", "Klein-1", "Klein-2"]
    assert "Klein" not in described["draft"]


def test_a_value_that_drives_a_terminal_is_shown_harmless(folder: Path) -> None:
    table([("\x1b[31mred", "b", 1), ("c", "d", 2)] * 3)
    assert "\x1b" not in told()


def test_codes_that_match_after_padding_or_trimming_are_counted_and_the_rules_drafted(folder: Path) -> None:
    table([(int(home), f" {work} ", flow) for home, work, flow in pairs()])
    shown = told("--hierarchy", "places.csv", "--count", "flow", "--out", "plan.toml")
    assert '40 codes of home match after padding to 5 digits, with their leading zeros: pad = { "home" = 5 }' in shown
    assert '20 codes of work match after trimming the blanks around them: trim = ["work"]' in shown
    text = Path("plan.toml").read_text()
    assert not {"pad", "trim"} & set(tomllib.loads(text)["data"])  # one record may be the reason
    for field in ("entity", "contributions", "neighbours", "epsilon", "delta", "pad", "trim"):
        text = text.replace(f"# {field} = ", f"{field} = ")
    Path("plan.toml").write_text(text)
    file = tt.read_plan("plan.toml")
    assert (file.pad, file.trim) == ({"home": 5}, ("work",))
    counts = tt.read_true_counts(
        file.plan, file.table("trips.csv"), file.columns, file.count
    )  # nothing is unknown any more
    assert counts.total == 5 * 40 * 20


def test_codes_that_need_both_are_told_so(folder: Path) -> None:
    table([(f" {int(home)} ", work, flow) for home, work, flow in pairs()])
    shown = told("--hierarchy", "places.csv")
    assert '40 codes of home match only after trimming as well: trim = ["home"]' in shown
    assert '# trim = ["home"]\n# pad = { home = 5 }' in shown


def test_codes_that_went_through_numbers_are_told(folder: Path) -> None:
    table([(f"{int(home)}.0" if int(home) < 10 else home, work, flow) for home, work, flow in pairs()])
    shown = told("--hierarchy", "places.csv")
    assert "10 codes of home match without the .0 at their end: write the column as text" in shown


def test_marks_of_missing_values_are_counted_unless_they_are_codes(folder: Path) -> None:
    table([*pairs(), ("NA", "00001", 3), ("?", "00001", 3), ("NA", "00002", 1)])
    shown = told("--hierarchy", "places.csv")
    assert 'home: 3 rows with "NA", "?": if that is a missing value, missing = ["NA", "?"]' in shown
    Path("places.csv").write_text(Path("places.csv").read_text() + "R9,Region 9,NA,Napoli\n")
    assert 'rows with "NA"' not in told("--hierarchy", "places.csv")


def test_why_a_column_of_the_file_is_a_level_or_is_none(folder: Path) -> None:
    table(pairs())
    lines = ["zone,region,town"]
    for number, (region, _, town, _) in enumerate(PLACES):
        lines += [f"Z{number // 8},{region},{town}"]
    lines += ["Z9,R0,00006"]  # town 00006 once more, under another zone, in row 41
    Path("zones.csv").write_text("\n".join(lines) + "\n")
    shown = told("--hierarchy", "zones.csv")
    assert "zone is no level: town '00006' stands under two of zone, in rows 7 and 41" in shown
    reasons = {one["column"]: one for one in as_json("--hierarchy", "zones.csv")["levels"]}
    assert reasons["region"] == {
        "column": "region",
        "level": True,
        "why": "region is a level: every town stands under one region",
    }
    assert not reasons["zone"]["level"]


def test_two_groupings_that_cross_are_told(folder: Path) -> None:
    table(pairs())
    rows = [f"{region},S{number % 4},{town}" for number, (region, _, town, _) in enumerate(PLACES)]
    Path("crossing.csv").write_text("\n".join(["region,size,town", *rows]) + "\n")
    shown = told("--hierarchy", "crossing.csv")
    assert "is no level beside" in shown and "stands under two of" in shown


def test_columns_of_the_table_that_nearly_nest_are_told_with_the_rows(folder: Path) -> None:
    rows: list[tuple[object, ...]] = [(f"r{one % 40 // 8}", f"t{one % 40}", 1) for one in range(400)]
    rows[310] = ("r4", "t6", 1)  # t6 is else under r0: in row 7 first
    table(rows, "region,town,n")
    shown = told()
    assert "town is no level below region: town 't6' stands under two of region, in rows 7 and 311" in shown


def test_unrelated_columns_are_not_talked_about(folder: Path) -> None:
    rng = random.Random(1)
    table([(rng.choice("ab"), rng.choice("uvwxyz"), 1) for _ in range(500)], "sex,kind,n")
    assert "is no level" not in told()


def test_a_file_that_nothing_matches_names_what_comes_nearest(folder: Path) -> None:
    table([(f"x{one}", f"y{one % 9}", 1) for one in range(60)] + [("00001", "y1", 1), ("00002", "y1", 1)])
    shown = told("--hierarchy", "places.csv")
    assert "the nearest to places.csv: 2 of 62 codes of home are in town" in shown


def test_several_hierarchies_serve_several_attributes(folder: Path) -> None:
    Path("jobs.csv").write_text("sector,job\n" + "".join(f"s{one // 10},j{one:02}\n" for one in range(30)))
    table([(CODES[one % 40], f"j{one % 30:02}", 1) for one in range(600)], "home,job,n")
    described = as_json("--hierarchy", "places.csv", "--hierarchy", "jobs.csv")
    assert {match["column"]: match["levels"] for match in described["matches"]} == {
        "home": ["region", "town"],
        "job": ["sector", "job"],
    }
    drafted = tomllib.loads(described["draft"])["attributes"]
    assert drafted["home"]["names"] == {"region": "region_name", "town": "town_name"}
    assert drafted["job"]["hierarchy"] == "jobs.csv"


def test_what_would_be_noise_is_counted_and_resolve_and_a_coarser_level_are_named(folder: Path) -> None:
    table(pairs(flow=7))
    described = as_json("--hierarchy", "places.csv", "--count", "flow")
    last = described["noise"]["tables"][-1]
    assert (last["cells"], last["small"], last["share"]) == (800, 800, 1.0)
    tree = tt.Hierarchy.from_table("places.csv", ["region", "town"])
    unit = tt.Unit("record", contributions=1, neighbours="replace", may_be_missing=True)
    expected = tt.Plan(tt.Spine.destination_first(tree, tree), unit, tt.Loss(epsilon=1.0, delta=1e-8)).accuracy()
    assert last["margin"] == expected.levels[-1].margin
    shown = told("--hierarchy", "places.csv", "--count", "flow")
    assert f"smaller than about {last['margin']} are noise, one by one. That is 800 of 800 here" in shown
    assert "resolve = { fdr = 0.05 } would name only what the measurements show" in shown
    better = described["noise"]["tables"][-2]
    assert better["counts"] == "destination town × origin region" and better["small"] == 0
    assert "stopping at destination town × origin region would help: there 100% of the records" in shown


def test_large_counts_need_no_advice(folder: Path) -> None:
    table(pairs(flow=5000))
    shown = told("--hierarchy", "places.csv", "--count", "flow")
    assert "That is 0 of 800 here" in shown
    assert "would help" not in shown and "would name only" not in shown


def test_drafts_ask_about_resolve_and_hold_no_number_of_the_table(folder: Path) -> None:
    drafts = []
    for flow in (7, 5000):
        table(pairs(flow))
        drafts.append(as_json("--hierarchy", "places.csv", "--count", "flow")["draft"])
    assert drafts[0] == drafts[1]
    assert "\n[release]\n# Optional: which counts are named?" in drafts[0]
    assert "\n# resolve = { fdr = 0.05 }\n" in drafts[0]


def test_counts_with_thousands_are_seen_and_their_rule_is_drafted(folder: Path) -> None:
    rows = [(home, work, f'"{1000 + 7 * number:,}"') for number, (home, work, _) in enumerate(pairs())]
    table(rows)
    shown = told("--hierarchy", "places.csv")
    assert 'flow: \',\' between thousands: thousands = { "flow" = "," }' in shown
    assert '# thousands = { flow = "," }' in shown and "up to 6,593" in shown
    stated = as_json("--hierarchy", "places.csv", "--count", "flow")
    assert '\n# thousands = { flow = "," }\n' in stated["draft"]
    assert stated["noise"]["tables"][-1]["cells"] == 800


def test_counts_with_a_point_and_a_zero_are_counts(folder: Path) -> None:
    table([(home, work, f"{flow}.0") for home, work, flow in pairs()])
    described = as_json("--hierarchy", "places.csv")
    assert described["columns"][2]["looks_like"] == "count" and described["count"] == "flow"


def test_many_numbers_of_an_age_suggest_bands(folder: Path) -> None:
    table([(one % 90, "x" if one % 2 else "y", 1) for one in range(900)], "age,sex,n")
    assert "numbers, to be counted in bands" in told()
    assert "\n# bands = [0, 18, 40, 60, 80]\n" in as_json()["draft"]
