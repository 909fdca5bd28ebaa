"""Tables and hierarchies as they come: what a plan file can say about how to read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop import Hierarchy, PlanFile, read_plan
from treetop.counts.reading import read_counts
from treetop.errors import DataError, HierarchyError, PlanFileError, TreetopError
from treetop.plan.file import describe_plan

Write = Callable[[str], Path]

DECIDED = """
[unit]
entity = "trip"
contributions = 1
neighbours = "replace"
[loss]
rho = 1
"""

ONE = """
[attributes.place]
hierarchy = "{file}"
{how}
"""

FLOWS = """
[attributes.origin]
column = "home"
hierarchy = "places.csv"
levels = ["region", "town"]
[attributes.destination]
column = "work"
same_as = "origin"
[spine]
order = "destination-first"
[data]
source = "flows.txt"
count = "people"
keep = { record = "S" }
[data.fields]
record = 1
home = [[3, 5], [7, 9]]
work = [[11, 13], [15, 17]]
people = [19, 22]
"""


def one(folder: Path, content: str | bytes, how: str, name: str = "places.csv") -> PlanFile:
    """A plan with one attribute, whose hierarchy is in a file with this content."""
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "plan.toml").write_text(ONE.format(file=name, how=how) + DECIDED)
    return read_plan(folder / "plan.toml")


def refused(kind: type[TreetopError], path: Path) -> str:
    with pytest.raises(kind) as caught:
        read_plan(path)
    return str(caught.value)


def flows(folder: Path, old: str = "", new: str = "") -> Path:
    assert old in FLOWS
    (folder / "places.csv").write_text("region,town\nN,001001\nN,001168\nS,002001\n")
    (folder / "flows.txt").write_text("S 001 001 002 001   12\nL 001 001 002 001  7.5\nS 001 168 001 001    3\n")
    (folder / "plan.toml").write_text((FLOWS.replace(old, new) if old else FLOWS) + DECIDED)
    return folder / "plan.toml"


def total(file: PlanFile) -> int:
    assert file.source is not None
    return read_counts(file.table(file.source), file.plan.spine, file.columns, file.count).total


def test_a_plan_says_how_fixed_width_text_is_read_and_which_records_count(tmp_path: Path) -> None:
    assert total(read_plan(flows(tmp_path))) == 15


def test_the_total_is_measured_where_a_plan_selects_rows(tmp_path: Path) -> None:
    kept, whole = read_plan(flows(tmp_path)).plan, read_plan(flows(tmp_path, 'keep = { record = "S" }\n', "\n")).plan
    assert kept.levels[0].is_measured and kept.unit.may_be_missing
    assert whole.levels[0].is_exact and "may_be_missing" not in whole.describe()["unit"]


@pytest.mark.parametrize("query", ["trips", "select home, work from trips", "select home from trips where year = 2008"])
def test_the_total_is_measured_where_there_is_a_query(tmp_path: Path, query: str) -> None:
    """What it calls a table may be a view that leaves rows out."""
    text = flows(tmp_path, 'keep = { record = "S" }\n', f"query = '{query}'\n")
    assert read_plan(text).plan.levels[0].law is not None


def test_the_plan_as_it_was_run_says_which_rows_and_fields(tmp_path: Path) -> None:
    file = read_plan(flows(tmp_path))
    (tmp_path / "run.toml").write_text(describe_plan(file))
    again = read_plan(tmp_path / "run.toml")
    assert (again.keep, again.fields) == (file.keep, file.fields)
    assert again.plan.digest == file.plan.digest
    assert total(PlanFile(**{**vars(again), "source": file.source})) == 15


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('record = "S"', "record = 1", '[data.keep] record must be a text in quotes, as in record = "1"'),
        ('record = "S"', "record = []", "[data.keep] record must be a text in quotes, or a list of them"),
        ('keep = { record = "S" }', 'keep = "S"', "[data] keep must be a table of columns and their values"),
        ('record = "S"', 'recrd = "S"', "there is no field 'recrd' (did you mean 'record'?): say where it stands"),
        ("home = [[3", "hme = [[3", "[data.fields] there is no field 'home' (did you mean 'hme'?)"),
        ("people = ", "persons = ", "[data.fields] there is no field 'people'"),
        ("[data]", '[data]\ndelimiter = ";"', "which has no delimiter"),
    ],
)
def test_mistakes_about_reading_are_named_with_their_field(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert message in refused(PlanFileError, flows(tmp_path, old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[19, 22]", "[17, 22]", "[data.fields] fields 'work' at 15-17 and 'people' at 17-22 overlap"),
        ("[19, 22]", '"19-22"', "[data.fields] field 'people' is '19-22': give the first and the last character"),
        ("record = 1", "record = 0", "[data.fields] field 'record' goes from character 0 to 0: count from 1"),
    ],
)
def test_positions_that_cannot_be_meant_are_named_with_their_field(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert message in refused(DataError, flows(tmp_path, old, new))


NUTS = "NUTS_ID;LEVL_CODE;NAME\nAT;0;Österreich\nAT1;1;Ostösterreich\nAT11;2;Burgenland\nAT111;3;Mittelburgenland\n"
NUTS += "AT112;3;Nordburgenland\nAT12;2;Niederösterreich\nAT121;3;Mostviertel-Eisenwurzen\nIT;0;Italia\nIT1;1;Nord\n"
NUTS += "IT11;2;Piemonte\nIT111;3;Torino\n"


def test_nuts_codes_are_cut_after_two_three_and_four_characters(tmp_path: Path) -> None:
    how = 'codes = "NUTS_ID"\nwidths = [2, 3, 4]\nlevels = ["country", "one", "two", "three"]\n'
    how += 'encoding = "latin-1"\ndelimiter = ";"\nkeep = { LEVL_CODE = "3" }'
    file = one(tmp_path, NUTS.encode("latin-1"), how)
    assert file.plan.spine.trees[0].sizes == (2, 2, 3, 4)


def test_a_list_with_the_codes_of_all_levels_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match=r"lengths \[2, 3, 4, 5\].*'AT' begins 'AT111'.*only those of 5.*keep = "):
        one(tmp_path, NUTS, 'codes = "NUTS_ID"\nwidths = [2, 3, 4]')


@pytest.mark.parametrize(("widths", "sizes"), [("[2]", (2, 3)), ("[2, 5]", (2, 3, 3)), ("[2, 5, 11]", (2, 3, 3, 3))])
def test_fips_codes_are_cut_into_state_county_tract_and_block(
    tmp_path: Path, widths: str, sizes: tuple[int, ...]
) -> None:
    blocks = "block\n010010201001000\n010030201001000\n560010201001000\n"
    assert one(tmp_path, blocks, f'codes = "block"\nwidths = {widths}').plan.spine.trees[0].sizes == sizes


def test_codes_that_lost_their_zeros_are_refused_with_what_they_were(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match=r"lengths \[4, 5\].*write all codes with 5 digits: '01001' for '1001'"):
        one(tmp_path, "county\n1001\n56001\n", 'codes = "county"\nwidths = [2]')


def test_codes_of_istat_have_their_regions_from_the_list(tmp_path: Path) -> None:
    """Province and municipality are cut from the code, three and three; the region is in a column of its own."""
    places = "reg;pro;pro_com;comune\n01;001;001001;Agliè\n01;001;001168;None\n02;007;007003;Aosta\n"
    how = 'levels = ["reg", "pro", "pro_com"]\nencoding = "cp1252"\nname = "comune"'
    file = one(tmp_path, places.encode("cp1252"), how)
    tree = file.plan.spine.trees[0]
    assert tree.sizes == (2, 2, 3)
    assert tree.codes[-1].to_pylist() == ["001001", "001168", "007003"]
    assert Hierarchy.from_prefixes(["001001", "001168", "007003"], [3], ["pro", "pro_com"]).digest == (
        tree.select(["pro", "pro_com"]).digest
    )


def test_a_hierarchy_may_be_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.table({"region": ["N", "N"], "town": [1001, 1002]}), tmp_path / "x.parquet")
    content = (tmp_path / "x.parquet").read_bytes()
    file = one(tmp_path, content, 'levels = ["region", "town"]', name="places.parquet")
    assert file.plan.spine.trees[0].codes[1].to_pylist() == ["1001", "1002"]


def test_a_list_of_parents_may_be_of_mixed_depth_and_in_another_encoding(tmp_path: Path) -> None:
    places = "code;parent\nN\xf6rd;\ntown;N\xf6rd\nstreet;town\nisland;N\xf6rd\n"
    how = 'child = "code"\nparent = "parent"\nencoding = "latin-1"'
    with pytest.raises(HierarchyError, match='ragged = "repeat"'):
        one(tmp_path, places.encode("latin-1"), how)
    tree = one(tmp_path, places.encode("latin-1"), how + '\nragged = "repeat"').plan.spine.trees[0]
    assert tree.sizes == (1, 2, 2)
    assert set(tree.codes[2].to_pylist()) == {"street", "island"}


def test_a_hierarchy_in_another_encoding_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match=r"the text is not UTF-8.*encoding = \"latin-1\" in the plan file"):
        one(tmp_path, "region,town\nÅland,x\n".encode("latin-1"), 'levels = ["region", "town"]')


def test_a_level_in_other_letters_is_answered_with_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match=r"no column 'Region' \(did you mean 'REGION'\?\)"):
        one(tmp_path, "REGION,town\nN,x\n", 'levels = ["Region", "town"]')
    with pytest.raises(HierarchyError, match=r"no column 'town_code' \(did you mean 'TOWN_CODE'\?\)"):
        one(tmp_path, "REGION,TOWN_CODE\nN,x\n", 'levels = ["REGION", "town_code"]')


@pytest.mark.parametrize("option", ['encoding = "latin-1"', 'delimiter = ";"', 'keep = { a = "b" }'])
def test_options_of_a_file_need_a_file(write: Write, design: str, option: str) -> None:
    text = design.replace('same_as = "origin"', f'values = ["a", "b"]\n{option}')
    assert "values needs none: leave it out" in refused(PlanFileError, write(text))


def test_the_same_options_are_there_in_python(tmp_path: Path) -> None:
    file = tmp_path / "places.csv"
    file.write_bytes("region;town\nÅland;x\n".encode("latin-1"))
    tree = Hierarchy.from_table(file, ["region", "town"], delimiter=";", encoding="latin-1")
    assert tree.codes[0].to_pylist() == ["Åland"]
    assert Hierarchy.from_parents(file, "town", "region", encoding="latin-1").sizes == (1, 1)
    with pytest.raises(HierarchyError, match="those of a CSV file, and this is none"):
        Hierarchy.from_table(pa.table({"a": ["x"]}), ["a"], encoding="latin-1")


DEEP = 'hierarchy = "deep.csv"\nlevels = ["region", "province", "town"]'
SHALLOW = 'hierarchy = "shallow.csv"\nlevels = ["zone", "office"]'
THIRD = '[attributes.reason]\nvalues = ["work", "study"]\nlevels = ["reason"]'


def ends(folder: Path, origin: str, destination: str, order: str, third: str = "") -> Path:
    """A plan with different hierarchies for both ends."""
    (folder / "deep.csv").write_text("region,province,town\nN,NA,1\nN,NB,2\nS,SA,3\n")
    (folder / "shallow.csv").write_text("zone,office\nX,7\nX,8\nY,9\n")
    text = (
        f"[attributes.origin]\n{origin}\n[attributes.destination]\n{destination}\n{third}\n[spine]\norder = {order}\n"
    )
    (folder / "plan.toml").write_text(text + DECIDED)
    return folder / "plan.toml"


@pytest.mark.parametrize(
    ("origin", "destination", "order", "expected"),
    [
        (DEEP, SHALLOW, '"destination-first"', "d.zone o.region d.office o.province o.town"),
        (DEEP, SHALLOW, '"origin-first"', "o.region d.zone o.province d.office o.town"),
        (SHALLOW, DEEP, '"destination-first"', "d.region o.zone d.province o.office d.town"),
        (SHALLOW, DEEP, '"origin-first"', "o.zone d.region o.office d.province d.town"),
        (
            SHALLOW,
            DEEP,
            '["origin.zone", "origin.office", "destination.region", "destination.town"]',
            "o.zone o.office d.region d.town",
        ),
    ],
)
def test_both_ends_may_have_hierarchies_of_different_depth(
    tmp_path: Path, origin: str, destination: str, order: str, expected: str
) -> None:
    plan = read_plan(ends(tmp_path, origin, destination, order)).plan
    splits = [split.replace("destination.", "d.").replace("origin.", "o.") for split in plan.spine.splits]
    assert " ".join(splits) == expected
    towns, offices = ["1", "3", "3", "2"], ["7", "9", "9", "8"]
    columns = (towns, offices) if origin == DEEP else (offices, towns)
    release = tt.make_release(
        plan, pa.table(dict(zip(("origin", "destination"), columns, strict=True))), tt.RunOptions(testing_key=bytes(32))
    )
    assert release.total == 4


def test_a_third_attribute_is_refused_with_the_list_to_paste(tmp_path: Path) -> None:
    message = refused(PlanFileError, ends(tmp_path, DEEP, SHALLOW, '"destination-first"', THIRD))
    assert "there is reason as well" in message
    order = message.rpartition("order = ")[2]
    assert order == (
        '["destination.zone", "origin.region", "destination.office", "origin.province", "origin.town", "reason.reason"]'
    )
    plan = read_plan(ends(tmp_path, DEEP, SHALLOW, order, THIRD)).plan
    assert plan.spine.levels[-1].name == "reason"
