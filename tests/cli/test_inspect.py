"""`treetop inspect`: a description of a private table, and a draft of a plan."""

from __future__ import annotations

import gzip
import re
import tomllib
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.commands import Command
from treetop import PlanFile, cli, read_plan
from treetop.errors import IncompletePlan

DATA = Path(__file__).parents[2].parent / "shared" / "data"
FLIGHTS = ["region", "division", "state", "iata"]
OPEN = ["unit.entity", "unit.contributions", "unit.neighbours", "loss.epsilon"]

PLACES = "region,province,town,town_name,lat,lon\n" + "".join(
    f"{'NS'[i // 20]},{i // 5:02},{i:05},Town {i},45.{i},9.{i}\n" for i in range(40)
)

run = Command.of("inspect", warning="for the steward only")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(cli.COMMANDS, "inspect", "Describe a table and draft a plan file.")
    (tmp_path / "places.csv").write_text(PLACES)
    return tmp_path


@pytest.fixture
def shared(folder: Path) -> Path:
    if not DATA.is_dir():
        pytest.skip("the shared tables are not here")
    return DATA


def looks(described: Any) -> dict[str, str]:
    return {column["name"]: column["looks_like"] for column in described["columns"]}


def open_fields(path: Path) -> list[str]:
    with pytest.raises(IncompletePlan) as refused:
        read_plan(path)
    return re.findall(r"^  ([\w.]+): ", str(refused.value), re.MULTILINE)


def answer(path: Path, *fields: str, **answers: str) -> PlanFile:
    """Remove the # before the fields, as a steward would, and read the plan."""
    text = path.read_text()
    for field in ("entity", "contributions", "neighbours", "epsilon", "delta", *fields):
        text, answered = re.subn(rf"^# ({field} = )", r"\1", text, flags=re.MULTILINE)
        assert answered, field
    for field, value in answers.items():
        text = re.sub(rf"^{field} = .*$", f"{field} = {value}", text, flags=re.MULTILINE)
    path.write_text(text)
    return read_plan(path)


def answer_more(path: Path, field: str) -> PlanFile:
    """Answer one question more."""
    text, answered = re.subn(rf"^# ({field} = )", r"\1", path.read_text(), flags=re.MULTILINE)
    assert answered == 1, field
    path.write_text(text)
    return read_plan(path)


def write(folder: Path, **columns: list[Any]) -> Path:
    pq.write_table(pa.table(columns), folder / "table.parquet")
    return folder / "table.parquet"


def trips(folder: Path) -> Path:
    pairs = [(i, j) for i in range(40) for j in range(0, 40, 3)]
    return write(
        folder,
        work=[f"{j:05}" for _, j in pairs],
        home=[f"{i:05}" for i, _ in pairs],
        flow=[i * j % 7 + 1 for i, j in pairs],
    )


def test_rows_columns_types_distinct_and_missing_values_are_told(folder: Path) -> None:
    table = write(folder, sex=["f", "m", None, ""], age=[1, 2, 3, 3], x=[0.5, 1.0, 2.0, None])
    described = run.json(table)
    assert described["rows"] == 4
    assert [(c["name"], c["type"], c["distinct"], c["missing"]) for c in described["columns"]] == [
        ("sex", "text", 2, 2),
        ("age", "whole number", 3, 0),
        ("x", "number", 3, 1),
    ]
    assert "4 rows, 3 columns" in run(table)


def test_two_columns_of_one_lookup_become_origin_and_destination(folder: Path) -> None:
    out = folder / "plan.toml"
    told = run(trips(folder), "--hierarchy", folder / "places.csv", "--out", out)
    assert "40 of 40 codes of home are in town (region > province > town)" in told
    assert open_fields(out) == OPEN
    assert answer(out).count is None
    file = answer_more(out, "count")
    assert file.columns == {"origin": "home", "destination": "work"}
    assert (file.count, file.source) == ("flow", str(folder / "table.parquet"))
    assert file.plan.spine.splits[0] == "destination.region"
    assert file.plan.spine.attributes["origin"].levels == ("region", "province", "town")
    lookup = file.lookups["origin"]
    assert (lookup.name, lookup.latitude, lookup.longitude) == ("town_name", "lat", "lon")


def test_the_draft_is_printed_when_no_file_is_named(folder: Path) -> None:
    table = trips(folder)
    told = run(table, "--hierarchy", folder / "places.csv")
    draft = told[told.index("# A plan for table.parquet") :]
    assert tomllib.loads(draft)["attributes"]["destination"] == {"column": "work", "same_as": "origin"}
    assert run.json(table, "--hierarchy", folder / "places.csv")["draft"] == draft


def test_a_file_that_exists_is_never_overwritten(folder: Path) -> None:
    out = folder / "plan.toml"
    out.write_text("mine")
    assert "exists already and is kept" in run.fails(trips(folder), "--out", out)
    assert out.read_text() == "mine"


def test_a_draft_that_cannot_be_written_is_an_error(folder: Path) -> None:
    assert "cannot be written" in run.fails(trips(folder), "--out", folder / "none" / "plan.toml")


def test_codes_that_do_not_match_are_listed_and_the_draft_asks_about_them(folder: Path) -> None:
    table = write(folder, town=[f"{i:05}" for i in range(30)] * 3 + ["99999", "88888"])
    described = run.json(table, "--hierarchy", folder / "places.csv")
    (match,) = described["matches"]
    assert (match["codes"], match["matched"], match["unmatched_examples"]) == (32, 30, ["88888", "99999"])
    assert '# unknown = "elsewhere"' in described["draft"]
    assert "88888" not in described["draft"]


def test_lost_leading_zeros_are_noticed(folder: Path) -> None:
    table = write(folder, town=list(range(40)) * 3)
    described = run.json(table, "--hierarchy", folder / "places.csv")
    assert described["matches"][0]["leading_zeros_lost"] == 40
    assert "with their leading zeros" in run(table, "--hierarchy", folder / "places.csv")


def test_lost_leading_zeros_are_suspected_without_a_lookup(folder: Path) -> None:
    table = write(folder, county=list(range(1001, 56001, 1000)) * 3)
    assert "leading zeros may be lost" in run(table)


def test_a_coarser_column_that_also_matches_is_not_an_attribute_of_its_own(folder: Path) -> None:
    towns = [f"{i:05}" for i in range(40)]
    table = write(folder, province=[f"{int(t) // 5:02}" for t in towns], town=towns)
    described = run.json(table, "--hierarchy", folder / "places.csv")
    assert [match["hierarchy_column"] for match in described["matches"]] == ["province", "town"]
    assert [attribute["column"] for attribute in described["attributes"]] == ["town"]


def test_a_few_small_numbers_are_not_taken_for_codes(folder: Path) -> None:
    (folder / "zones.csv").write_text("zone,borough\n" + "".join(f"{i},b{i % 5}\n" for i in range(1, 266)))
    table = write(folder, passengers=[1, 2, 3, 4] * 20, zone=[*range(1, 81)])
    described = run.json(table, "--hierarchy", folder / "zones.csv")
    assert [match["column"] for match in described["matches"]] == ["zone"]


def test_a_lookup_that_matches_nothing_is_told(folder: Path) -> None:
    table = write(folder, sex=["f", "m"] * 30)
    assert "no column holds codes of" in run(table, "--hierarchy", folder / "places.csv")


def test_columns_that_nest_are_found_and_drafted_as_one_attribute(folder: Path) -> None:
    towns = [i % 30 for i in range(300)]
    table = write(
        folder,
        town=[f"t{i}" for i in towns],
        region=[f"r{i % 2}" for i in towns],
        province=[f"p{i % 6}" for i in towns],
        colour=[f"c{i % 7}" for i in range(300)],
    )
    described = run.json(table, "--out", folder / "plan.toml")
    assert described["chains"] == [["region", "province", "town"]]
    assert [one["column"] for one in described["attributes"]] == ["town", "colour"]
    assert open_fields(folder / "plan.toml")[:2] == ["attributes.town.hierarchy", "attributes.town.levels"]
    (folder / "places.csv").write_text(
        "region,province,town\n" + "".join(f"r{i % 2},p{i % 6},t{i}\n" for i in range(30))
    )
    file = answer(folder / "plan.toml", "hierarchy", "levels", "values")
    assert file.plan.spine.splits == ("town.region", "colour.value", "town.province", "town.town")


def named_trips(folder: Path, rows: int = 400) -> Path:
    """Trips between two regions of named towns, with names beside all codes."""
    ends = [(i * 7 % 40, i * i % 40) for i in range(rows)]
    return write(
        folder,
        Comune=[f"Town {i}" for i, _ in ends],
        home=[f"{i:05}" for i, _ in ends],
        home_region=["NS"[i // 20] for i, _ in ends],
        home_region_name=[("North", "South")[i // 20] for i, _ in ends],
        work=[f"{j:05}" for _, j in ends],
        work_label=[f"Town {j}" for _, j in ends],
        sex=["fm"[i % 3 % 2] for i in range(rows)],
    )


def test_names_beside_codes_are_no_attributes(folder: Path) -> None:
    names = {"Comune": "home", "home_region_name": "home_region", "work_label": "work"}
    described = run.json(named_trips(folder))
    assert described["names"] == names
    assert described["chains"] == [["home_region", "home"]]
    assert [one["column"] for one in described["attributes"]] == ["home", "work", "sex"]
    assert "could be attributes" not in described["draft"]
    told = run(named_trips(folder), "--hierarchy", folder / "places.csv")
    assert "work_label names the codes of work, one to one: no attribute of its own" in told


def test_names_beside_codes_of_a_lookup_are_its_names(folder: Path) -> None:
    out = folder / "plan.toml"
    run(named_trips(folder), "--hierarchy", folder / "places.csv", "--out", out)
    file = answer(out)
    assert file.columns == {"origin": "home", "destination": "work"}
    assert file.lookups["origin"].name == "town_name"


def test_a_row_a_place_is_enough_for_a_lookup_that_has_its_name(folder: Path) -> None:
    towns = [f"{i:05}" for i in range(0, 40, 2)]
    table = write(folder, label=[f"Town {int(town)}" for town in towns], code=towns, people=list(range(20)))
    assert run.json(table)["names"] == {}
    described = run.json(table, "--hierarchy", folder / "places.csv")
    assert described["names"] == {"label": "code"}
    assert [one["column"] for one in described["attributes"]] == ["code"]


def test_names_alone_are_codes_when_the_lookup_knows_only_them(folder: Path) -> None:
    (folder / "names.csv").write_text("region,town_name\n" + "".join(f"{'NS'[i // 20]},Town {i}\n" for i in range(40)))
    rows = [i * i % 40 for i in range(400)]
    table = write(folder, town=[f"X{i:05}" for i in rows], town_name=[f"Town {i}" for i in rows])
    described = run.json(table, "--hierarchy", folder / "names.csv")
    assert described["names"] == {"town": "town_name"}
    assert [one["column"] for one in described["attributes"]] == ["town_name"]


def test_columns_that_go_together_by_accident_or_hold_the_same_codes_are_not_names(folder: Path) -> None:
    table = write(folder, sex=["f", "m", "f", "m"], work=["yes", "no", "yes", "no"])
    assert run.json(table)["names"] == {}
    stays = [f"{i % 40:05}" for i in range(400)]
    described = run.json(write(folder, home=stays, work=stays))
    assert described["names"] == {}
    assert [one["name"] for one in described["attributes"]] == ["origin", "destination"]


def test_prefix_codes_are_cut_where_their_scheme_cuts(folder: Path) -> None:
    blocks = [f"{state:02}{county:03}{tract:06}1001" for state in (1, 2) for county in (1, 3) for tract in (100, 200)]
    described = run.json(write(folder, block=blocks * 3), "--out", folder / "plan.toml")
    assert described["columns"][0]["prefixes"] == {
        "length": 15,
        "widths": [2, 5, 11, 12],
        "levels": ["state", "county", "tract", "block_group", "block"],
        "scheme": "FIPS codes",
    }
    assert open_fields(folder / "plan.toml") == ["attributes.block.hierarchy", "attributes.block.codes", *OPEN]
    (folder / "places.csv").write_text("block\n" + "\n".join(blocks))
    assert answer(folder / "plan.toml", "hierarchy", "codes").plan.spine.trees[0].sizes == (2, 4, 8, 8, 8)


def test_prefix_codes_of_no_known_scheme_are_cut_where_a_field_begins(folder: Path) -> None:
    codes = [f"9{a}{b:02}" for a in range(10) for b in range(1, 9)]
    (column,) = run.json(write(folder, code=codes * 3))["columns"]
    assert column["prefixes"]["widths"] == [2]


def test_identifiers_dates_counts_and_constants_are_recognised(folder: Path) -> None:
    rows = 200
    table = write(
        folder,
        ticket=[f"T{i}" for i in range(rows)],
        person_id=[f"{i % 60}" for i in range(rows)],
        day=["2011-10-09"] * rows,
        year=[2000 + i % 3 for i in range(rows)],
        flow=list(range(rows)),
        trips=[i - 5 for i in range(rows)],
        same=["x"] * rows,
        fare=[i + 0.5 for i in range(rows)],
        vendor=[float(i % 2) for i in range(rows)],
        blank=pa.nulls(rows, pa.string()),
        yes=[True, False] * (rows // 2),
        many=[[1, 2]] * rows,
    )
    described = run.json(table)
    assert looks(described) == {
        "ticket": "id",
        "person_id": "id",
        "day": "date",
        "year": "date",
        "flow": "count",
        "trips": "id",
        "same": "constant",
        "fare": "number",
        "vendor": "number",
        "blank": "empty",
        "yes": "code",
        "many": "other",
    }
    assert described["count"] == "flow"
    assert '# id = "person_id"' in described["draft"]
    assert "stored as fractions" in run(table)


def test_the_only_number_beside_codes_that_never_recur_is_taken_for_the_count(folder: Path) -> None:
    table = write(folder, a=["x", "x", "y", "y"], b=["u", "v", "u", "v"], z=[4, 9, 4, 1])
    assert run.json(table)["count"] == "z"


def test_the_count_may_be_named(folder: Path) -> None:
    table = write(folder, a=["x", "y"] * 30, z=[4, 9] * 30)
    described = run.json(table, "--count", "z")
    assert described["count"] == "z"
    assert tomllib.loads(described["draft"])["data"]["count"] == "z"
    assert "did you mean 'z'?" in run.fails(table, "--count", "zz")


def stays(folder: Path) -> Path:
    """Stays in hospital: every one has a number, patients come back, and what was done to them is counted."""
    rows = 300
    return write(
        folder,
        encounter_id=[f"{i + 1000}" for i in range(rows)],
        patient_nbr=[f"{i * i % 97}" for i in range(rows)],
        race=[("a", "b", "c")[i % 3] for i in range(rows)],
        num_lab_procedures=[i % 105 + 1 for i in range(rows)],
    )


def test_an_id_that_repeats_is_proposed_and_one_that_never_does_is_warned_of(folder: Path) -> None:
    told = run(stays(folder))
    assert "WARNING: encounter_id never repeats" in told
    patients = [i * i % 97 for i in range(300)]
    most = max(patients.count(one) for one in set(patients))
    repeated = sum(patients.count(one) > 1 for one in set(patients))
    assert (
        f"patient_nbr repeats: {len(set(patients))} values, {repeated} of them in several rows, one in {most}" in told
    )
    draft = told[told.index("# A plan for") :]
    assert '# id = "patient_nbr"' in draft
    assert '# id = "encounter_id"' not in draft
    assert 'Hardly "encounter_id"' in draft
    assert not re.search(rf"\b(105|{len(set(patients))}|{repeated})\b", draft)


def test_a_count_is_a_question_and_never_an_answer(folder: Path) -> None:
    told = run(stays(folder))
    assert "does a row stand for as many records as num_lab_procedures says, up to 105?" in told
    draft = told[told.index("# A plan for") :]
    assert "count" not in tomllib.loads(draft)["data"]
    assert '# count = "num_lab_procedures"' in draft
    assert "Does a row stand for several records" in draft


def test_ids_that_differ_in_spelling_only_are_warned_of_with_their_number(folder: Path) -> None:
    names = [f"{name}{i}" for i in range(40) for name in ("ann", "ann", "bo")]
    names[:6] = ["ann0 ", "Ann0", "cafe\u0301", "caf\u00e9", "7", "07"]
    table = write(folder, person=names, place=["x", "y"] * 60)
    (told,) = run.json(table)["identifiers"]
    assert (told["column"], told["other_spellings"], told["other_zeros"]) == ("person", 2, 1)
    assert told["id_clean"] == ["trim", "nfc", "casefold"]
    names[0] = "ann2 "
    (fewer,) = run.json(write(folder, person=names, place=["x", "y"] * 60))["identifiers"]
    assert (fewer["id_clean"], fewer["other_spellings"]) == (["trim", "nfc"], 2)
    names[0] = "ann0 "
    shown = run(write(folder, person=names, place=["x", "y"] * 60))
    assert f"WARNING: 2 of the {told['ids']} values of person are another one but for the spelling" in shown
    assert f"1 of the {told['ids']} values of person are another one but for leading zeros" in shown
    assert "# id_clean = [" in shown


def test_plain_values_are_asked_for_and_never_taken_from_the_table(folder: Path) -> None:
    table = write(folder, sex=["female", "male"] * 30, colour=["red", "blue", "blue"] * 20)
    run(table, "--out", folder / "plan.toml")
    draft = (folder / "plan.toml").read_text()
    assert not any(word in draft for word in ("female", "blue"))
    assert open_fields(folder / "plan.toml")[0] == "attributes.sex.hierarchy"
    file = answer(folder / "plan.toml", "values")
    assert file.plan.spine.splits == ("sex.value", "colour.value")


def test_a_table_without_codes_gives_a_draft_that_asks_for_attributes(folder: Path) -> None:
    run(write(folder, x=[0.5, 1.5]), "--out", folder / "plan.toml")
    assert open_fields(folder / "plan.toml") == ["attributes", *OPEN]


def test_names_that_need_quotes_are_quoted(folder: Path) -> None:
    table = write(folder, **{'a."b" c': ["x", "y"] * 30, "count": ["p", "q", "r"] * 20})
    draft = tomllib.loads(run.json(table)["draft"])
    assert [section["column"] for section in draft["attributes"].values()] == ['a."b" c', "count"]
    assert list(draft["attributes"]) == ['a."b" c', "count_code"]


def test_csv_codes_stay_text(folder: Path) -> None:
    (folder / "t.csv").write_text("home;n\n" + "".join(f"{i:05};{i}\n" for i in range(40)))
    described = run.json(folder / "t.csv", "--hierarchy", folder / "places.csv")
    assert described["matches"][0]["matched"] == 40
    assert described["count"] == "n"


def test_a_table_without_rows_is_described(folder: Path) -> None:
    (folder / "t.csv").write_text("a,b\n")
    described = run.json(folder / "t.csv", "--hierarchy", folder / "places.csv")
    assert (described["rows"], looks(described)) == (0, {"a": "empty", "b": "empty"})


def test_mistakes_in_the_call_are_told_with_exit_code_2(folder: Path) -> None:
    table = trips(folder)
    assert "no such file" in run.fails(folder / "none.csv")
    assert "hierarchy: " in run.fails(table, "--hierarchy", folder / "none.csv")
    assert "its own hierarchy" in run.fails(table, "--hierarchy", table)
    (folder / "twice.csv").write_text("a,a\n1,2\n")
    assert "the same name" in run.fails(folder / "twice.csv")


@pytest.mark.parametrize(
    ("table", "lookup", "columns", "levels", "count"),
    [
        ("shippable/od_us_flights_2001/od_total", "lookup_airport", ("origin", "destination"), FLIGHTS, "flights"),
        ("shippable/od_us_flights_2001/od_daily", "lookup_airport", ("origin", "destination"), FLIGHTS, "flights"),
        ("od_slovenia_2000_2008/od", "lookup", ("o_mun", "d_mun"), ["region", "mun"], "commuters"),
        (
            "od_nyc_taxi/trips_sample_360k",
            "zone_lookup",
            ("pickup_location_id", "dropoff_location_id"),
            ["borough", "zone_id"],
            None,
        ),
        (
            "od_nyc_taxi/seaborn_taxis_2019_03",
            "zone_lookup",
            ("pickup_zone", "dropoff_zone"),
            ["borough", "zone"],
            None,
        ),
        ("od_it_istat/od_region_2011", "../lookup_it/comuni_2011", ("o_reg", "d_reg"), ["macro", "reg"], "commuters"),
    ],
)
def test_real_tables_are_matched_with_their_lookups(
    shared: Path, folder: Path, table: str, lookup: str, columns: tuple[str, str], levels: list[str], count: str | None
) -> None:
    path = shared / f"{table}.parquet"
    out = folder / "plan.toml"
    run(path, "--hierarchy", path.parent / f"{lookup}.parquet", "--out", out)
    assert open_fields(out) == OPEN
    draft = tomllib.loads(out.read_text())
    assert draft["attributes"]["origin"]["column"] == columns[0]
    assert draft["attributes"]["origin"]["levels"] == levels
    assert draft["attributes"]["destination"] == {"column": columns[1], "same_as": "origin"}
    assert "count" not in draft["data"]
    assert re.findall('^# count = "(.*)"', out.read_text(), re.MULTILINE) == ([] if count is None else [count])
    if table != "od_nyc_taxi/seaborn_taxis_2019_03":  # two zones there have one name
        assert answer(out).source is not None


def test_real_prefix_codes_are_recognised(shared: Path, folder: Path) -> None:
    described = run.json(shared / "od_ny_tract_mobility" / "od.parquet")
    assert described["rows"] == 616_991
    draft = tomllib.loads(described["draft"])
    assert draft["attributes"]["origin"] == {"column": "o_tract", "widths": [5], "levels": ["county", "tract"]}
    assert draft["attributes"]["destination"] == {"column": "d_tract", "same_as": "origin"}
    described = run.json(shared / "od_it_istat" / "od_comune_sardinia_2001.parquet")
    assert described["columns"][0]["prefixes"]["scheme"] == "ISTAT codes"


TREE = "chapter,block,code,about\n" + "".join(
    f"{'AB'[i // 20]},{'AB'[i // 20]}{i // 5},{'' if i // 5 in (2, 5) else f'{i:03}'},{('gut', 'skin')[i // 20]}\n"
    for i in range(40)
    if i // 5 not in (2, 5) or i % 5 == 0
)
"""Some blocks have no finer codes: the tree is ragged."""


def patients(folder: Path) -> Path:
    (folder / "tree.csv").write_text(TREE)
    leaves = [row.split(",")[2] or row.split(",")[1] for row in TREE.splitlines()[1:]]
    draw = Random(17)
    return write(
        folder,
        town=[f"{draw.randrange(40):05}" for _ in range(1200)],
        diagnosis=draw.choices(leaves, k=1200),
        age=draw.choices([f"{k}0s" for k in range(9)], k=1200),
        sex=draw.choices("fm", k=1200),
        outcome=draw.choices(["home", "died"], k=1200),
    )


def test_several_hierarchies_are_matched_and_a_ragged_tree_is_one(folder: Path) -> None:
    table, out = patients(folder), folder / "plan.toml"
    files = ("--hierarchy", folder / "places.csv", "--hierarchy", folder / "tree.csv")
    told = run.json(table, *files)
    assert told["hierarchies"] == [str(folder / "places.csv"), str(folder / "tree.csv")]
    found = {one["column"]: (one["levels"], one["matched"] == one["codes"], one["ragged"]) for one in told["matches"]}
    assert found == {
        "town": (["region", "province", "town"], True, False),
        "diagnosis": (["chapter", "block", "code"], True, True),
    }
    assert "(chapter > block > code, some branches ending early)" in run(table, *files, "--out", out)
    file = answer(out, "values")
    assert file.plan.spine.attributes["diagnosis"].sizes == (2, 8, 32)
    assert file.columns == {name: name for name in ("town", "diagnosis", "age", "sex", "outcome")}


def test_five_columns_are_drafted_as_a_joint_fit_of_their_pairs(folder: Path) -> None:
    table, out = patients(folder), folder / "plan.toml"
    run(table, "--hierarchy", folder / "tree.csv", "--hierarchy", folder / "places.csv", "--out", out)
    plan = answer(out, "values").plan
    assert (plan.mechanism.name, plan.margins) == ("joint", "pairs")
    assert {"town.region * diagnosis.chapter", "age * sex"} <= {margin.name for margin in plan.margin_tables}
    assert out.read_text().count("Which values can it have?") == 1


def test_a_hierarchy_that_matches_nothing_is_named_beside_one_that_does(folder: Path) -> None:
    table = patients(folder)
    (folder / "other.csv").write_text("planet\n" + "\n".join(f"P{i}" for i in range(9)))
    told = run(table, "--hierarchy", folder / "tree.csv", "--hierarchy", folder / "other.csv")
    assert f"no column holds codes of {folder / 'other.csv'}, whose columns are planet" in told
    assert f"no column holds codes of {folder / 'tree.csv'}" not in told


def test_a_blank_that_makes_no_tree_leaves_a_lookup_as_it_is(folder: Path) -> None:
    table = patients(folder)
    (folder / "tree.csv").write_text(TREE.replace("A,A2,,gut", ",A2,,gut"))
    told = run.json(table, "--hierarchy", folder / "tree.csv")
    (match,) = [one for one in told["matches"] if one["column"] == "diagnosis"]
    assert (match["levels"], match["matched"], match["codes"]) == (["code"], 30, 32)


def test_many_codes_without_a_hierarchy_are_an_attribute_that_asks_for_one(folder: Path) -> None:
    draw = Random(17)
    codes = [f"{'ABC'[i % 3]}{i:04}" for i in range(1150)]
    table = write(folder, code=draw.choices(codes, k=60_000), sex=draw.choices("fm", k=60_000))
    run(table, "--out", folder / "plan.toml")
    draft = (folder / "plan.toml").read_text()
    assert '# hierarchy = "code.csv"\n# levels = ["group", "code"]' in draft
    assert tomllib.loads(draft)["spine"]["order"] == ["sex", "code.group", "code.code"]


def test_more_columns_than_a_plan_should_have_are_named_and_left_out(folder: Path) -> None:
    draw = Random(17)
    table = write(folder, **{f"q{k}": draw.choices("abcdefghij"[: k + 1], k=2000) for k in range(1, 9)})
    told = run.json(table)
    assert [one["column"] for one in told["attributes"]] == [f"q{k}" for k in range(1, 7)]
    assert 'are left out: "q7", "q8".' in told["draft"]


def test_other_columns_of_a_table_of_flows_are_named_and_left_out(folder: Path) -> None:
    told = run.json(named_trips(folder), "--hierarchy", folder / "places.csv")
    assert [one["name"] for one in told["attributes"]] == ["origin", "destination"]
    assert 'are left out: "sex".' in told["draft"]
    assert tomllib.loads(told["draft"])["spine"]["margins"] == "each"


def test_how_a_file_is_packed_is_not_in_the_title(folder: Path) -> None:
    with gzip.open(folder / "stays.2001.csv.gz", "wt") as file:
        file.write("sex,ward\n" + "f,a\nm,b\n" * 30)
    assert tomllib.loads(run.json(folder / "stays.2001.csv.gz")["draft"])["title"] == "stays.2001"
