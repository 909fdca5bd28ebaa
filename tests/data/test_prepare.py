"""Columns that are prepared: by plan file and in Python, said on the card, and never in the way of what is private."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import treetop as tt
from treetop.errors import DataError, PlanFileError, ReleaseError
from treetop.io.table import read

PLAN = """
[attributes.home]
hierarchy = "places.csv"
levels = ["county", "town"]
[attributes.age]
bands = [0, 15, 65]
blank = "not known"
[spine]
order = ["home.county", "age", "home.town"]
[unit]
entity = "person"
contributions = 1
neighbours = "replace"
[loss]
epsilon = 1.0
delta = 1e-6
[data]
source = "people.csv"
unknown = { home = "99999" }
trim = true
missing = ["NA", "?"]
replace = { home = "merged.csv" }
pad = { home = 5 }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "places.csv").write_text("county,town\n01,01001\n01,01002\n99,99999\n")
    (tmp_path / "merged.csv").write_text("old,new\n1003,1002\n")
    (tmp_path / "people.csv").write_text("home,age\n 1001 ,7\n1003,70\n01002, 15\nNA,64.5\n1001,?\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_a_messy_table_is_read_as_the_plan_says(folder: Path) -> None:
    file = tt.read_plan(folder / "plan.toml")
    counts = tt.read_true_counts(file.plan, file.table(str(folder / "people.csv")))
    expected = pa.table(
        {"home": ["01001", "01002", "01002", "99999", "01001"], "age": ["0-14", "65+", "15-64", "15-64", "not known"]}
    )
    assert counts.digest == tt.read_true_counts(file.plan, expected).digest


def test_the_card_says_what_was_done_and_the_truth_needs_the_plan(folder: Path) -> None:
    tt.publish(
        folder / "plan.toml", options=tt.RunOptions(testing_key=bytes(32), allow_dropped=True), out=folder / "out"
    )
    assert all(verdict.verified for verdict in tt.check(folder / "out"))
    assert tt.Release.load(folder / "out").card["data"]["prepared"] == [
        "blanks at the ends of all text do not count",
        "'NA', '?' stand for a missing value",
        "1 code of home is counted as another",
        "codes of home have zeros in front up to 5 characters",
        "age is counted in bands: 0-14, 15-64, 65+",
        "a record without age is counted as 'not known'",
    ]
    with pytest.raises(ReleaseError, match="columns of the table were prepared"):
        tt.compare_with_truth(folder / "out", str(folder / "people.csv"))
    errors = tt.compare_with_truth(folder / "out", str(folder / "people.csv"), plan=folder / "plan.toml")
    assert errors.levels[0].largest == 0
    again = tt.read_plan(folder / "plan.toml")
    (folder / "again.toml").write_text((folder / "out" / "plan.toml").read_text())
    assert tt.read_plan(folder / "again.toml").prepared == again.prepared


def test_in_python_a_source_is_prepared_too(folder: Path) -> None:
    plan = tt.read_plan(folder / "plan.toml").plan
    prepare = tt.Prepare(True, ["NA", "?"], {"home": {"1003": "1002"}}, {"home": 5})
    release = tt.make_release(
        plan,
        tt.Source(folder / "people.csv", prepare=prepare),
        tt.RunOptions(testing_key=bytes(32), allow_dropped=True),
    )
    assert release.total == 5 and len(release.card["data"]["prepared"]) == 6
    table = pa.table({"home": ["01001"], "age": ["0-14"]})
    alone = tt.make_release(plan, table, tt.RunOptions(testing_key=bytes(32))).card["data"]["prepared"]
    assert alone == list(plan.spine.coded)


def test_dictionaries_numbers_and_what_is_not_named(tmp_path: Path) -> None:
    rows = pa.record_batch(
        {
            "code": pa.array([7, None, 123456]),
            "town": pa.array([" x", "NA", " x"]).dictionary_encode(),
            "other": pa.array([" x", "NA", "y"]),
            "size": pa.array([1, 2, 3]),
        }
    )
    made = tt.Prepare(trim=["town"], missing=["NA"], pad={"code": 5}, replace={"town": {"x": "z"}}).rows(rows)
    assert made.to_pydict() == {
        "code": ["00007", None, "123456"],
        "town": ["z", None, "z"],
        "other": [" x", None, "y"],
        "size": [1, 2, 3],
    }


def test_codes_are_replaced_once() -> None:
    rows = pa.record_batch({"town": ["a", "b", "c"]})
    made = tt.Prepare(replace={"town": {"a": "b", "b": "a"}}).rows(rows)
    assert made.column("town").to_pylist() == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("given", "message"),
    [({"pad": {"a": 0}}, "pad: 'a' has the width 0"), ({"pad": {"a": True}}, "pad: 'a' has the width True")],
)
def test_rules_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        tt.Prepare(**given)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pad = { home = 0 }", r"plan\.toml: \[data\.pad\] home"),
        ('replace = { home = "people.csv" }', r"plan\.toml: \[data\.replace\] home is the private table itself"),
    ],
)
def test_a_plan_file_names_the_place_of_a_mistake(folder: Path, line: str, message: str) -> None:
    name = line.partition(" ")[0]
    text = "\n".join(one for one in PLAN.splitlines() if not one.startswith(name))
    (folder / "plan.toml").write_text(f"{text}\n{line}\n")
    with pytest.raises((PlanFileError, DataError), match=message):
        tt.read_plan(folder / "plan.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("old,new\n1,2\n1,3\n", "'1' is replaced twice"),
        ("old,new\n1,\n", "row 1: a code is missing"),
        ("old\n1\n", "has 1 columns: give two"),
    ],
)
def test_a_file_of_codes_that_makes_no_sense_is_refused_before_anything_is_spent(
    folder: Path, text: str, message: str
) -> None:
    (folder / "merged.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        tt.publish(folder / "plan.toml", options=tt.RunOptions(testing_key=bytes(32)), out=folder / "out")
    assert not (folder / "out").exists()


def test_a_column_that_is_not_there_is_refused(folder: Path) -> None:
    source = tt.Source(folder / "people.csv", prepare=tt.Prepare(pad={"hmoe": 5}))
    with pytest.raises(DataError, match="no column 'hmoe'"):
        read(source)


def test_thousands_are_read_as_declared_and_in_no_other_way() -> None:
    rows = pa.record_batch({"n": ["1,234", "12,345,678", "1234", "1,234.0", "9465.0", "1,23", "1,2345", "1.234", None]})
    made = tt.Prepare(thousands={"n": ","}).rows(rows).column("n").to_pylist()
    assert made == ["1234", "12345678", "1234", "1234", "9465.0", "1,23", "1,2345", "1.234", None]
    rows = pa.record_batch({"n": ["1.234", "1.234,00", "12", "1.0", "1.23"]})
    made = tt.Prepare(thousands={"n": "."}).rows(rows).column("n").to_pylist()
    assert made[:3] == ["1234", "1234", "12"]
    assert made[3:] == ["1.0 ('.' between thousands)", "1.23 ('.' between thousands)"]
    rows = pa.record_batch({"n": ["1 234", "1 234 567,0"]})
    assert tt.Prepare(thousands={"n": " "}).rows(rows).column("n").to_pylist() == ["1234", "1234567"]
    numbers = pa.record_batch({"n": [1234.0, 5.0]})
    assert tt.Prepare(thousands={"n": ","}).rows(numbers) == numbers


@pytest.mark.parametrize("mark", ["", ",,", "1", "-", "x"])
def test_what_cannot_stand_between_thousands_is_refused(mark: str) -> None:
    with pytest.raises(DataError, match="give one character"):
        tt.Prepare(thousands={"n": mark})


COUNTED = PLAN.replace('unknown = { home = "99999" }', 'count = "n"\nthousands = { n = "," }').replace(
    "trim = true", "trim = true\n"
)


def test_counts_have_thousands_where_the_plan_says_so(folder: Path) -> None:
    (folder / "plan.toml").write_text(COUNTED)
    (folder / "people.csv").write_text('home,age,n\n1001,7,"1,234"\n1001,70,9465.0\n1001,70,3\n')
    file = tt.read_plan(folder / "plan.toml")
    counts = tt.read_true_counts(file.plan, file.table(str(folder / "people.csv")), count="n")
    assert counts.total == 1234 + 9465 + 3
    assert "',' between the thousands of n does not count" in file.prepared
    (folder / "people.csv").write_text('home,age,n\n1001,7,"1,23"\n')
    with pytest.raises(DataError, match="row 1: the count '1,23' is not a whole number"):
        tt.read_true_counts(file.plan, file.table(str(folder / "people.csv")), count="n")


def test_a_point_between_thousands_makes_no_number_of_1_0(folder: Path) -> None:
    (folder / "plan.toml").write_text(COUNTED.replace('n = ","', 'n = "."'))
    (folder / "people.csv").write_text("home,age,n\n1001,7,1.000\n1001,7,1.0\n")
    file = tt.read_plan(folder / "plan.toml")
    with pytest.raises(DataError, match="row 2: the count .*between thousands.* is not a whole number"):
        tt.read_true_counts(file.plan, file.table(str(folder / "people.csv")), count="n")


ELSEWHERE = PLAN.replace('unknown = { home = "99999" }', 'unknown = "elsewhere"').replace('blank = "not known"\n', "")


def test_unknown_codes_are_counted_elsewhere_and_the_total_stays_exact(folder: Path) -> None:
    (folder / "plan.toml").write_text(ELSEWHERE)
    file = tt.read_plan(folder / "plan.toml")
    assert file.plan.reads_total
    tt.publish(file, options=tt.RunOptions(testing_key=bytes(32), allow_dropped=True), out=folder / "out")
    release = tt.Release.load(folder / "out")
    assert release.total == 5
    assert release.spine.trees[0].codes[0].to_pylist()[-1] == "elsewhere"
    assert all(verdict.verified for verdict in tt.check(folder / "out"))
    counts = tt.read_true_counts(file.plan, file.table(str(folder / "people.csv")))
    by_hand = pa.table(
        {
            "home": ["01001", "01002", "01002", "elsewhere", "01001"],
            "age": ["0-14", "65+", "15-64", "15-64", "elsewhere"],
        }
    )
    assert counts.digest == tt.read_true_counts(file.plan, by_hand).digest


def test_the_leaf_for_unknown_codes_is_there_whether_or_not_it_is_needed(folder: Path) -> None:
    """The domain is public: it must not depend on whether a record is unknown."""
    (folder / "plan.toml").write_text(ELSEWHERE)
    digests = []
    for rows in ("home,age\n1001,7\n", "home,age\nnowhere,7\n"):
        (folder / "people.csv").write_text(rows)
        plan = tt.read_plan(folder / "plan.toml").plan
        digests.append(plan.digest)
        tt.publish(
            folder / "plan.toml",
            options=tt.RunOptions(testing_key=bytes(32), allow_dropped=True),
            out=folder / f"out{len(digests)}",
        )
    assert digests[0] == digests[1]
    trees = [sorted(path.name for path in (folder / f"out{one}" / "hierarchies").iterdir()) for one in (1, 2)]
    assert trees[0] == trees[1]
    cards = [tt.Release.load(folder / f"out{one}").card for one in (1, 2)]
    for same in ("plan", "hierarchies", "data", "levels", "caveats"):
        assert cards[0][same] == cards[1][same]


def test_a_plan_from_a_folder_counts_elsewhere_again(folder: Path) -> None:
    (folder / "plan.toml").write_text(ELSEWHERE)
    tt.publish(
        folder / "plan.toml", options=tt.RunOptions(testing_key=bytes(32), allow_dropped=True), out=folder / "out"
    )
    text = (folder / "out" / "plan.toml").read_text()
    assert 'unknown = "elsewhere"' in text
    (folder / "again.toml").write_text(text)
    assert tt.read_plan(folder / "again.toml").plan.digest == tt.read_plan(folder / "plan.toml").plan.digest
    (folder / "out" / "plan.toml").write_text(text.replace('unknown = "elsewhere"', 'unknown = "drop"'))
    assert any("unknown" in finding for verdict in tt.check(folder / "out") for finding in verdict.findings)


def test_a_code_that_is_called_elsewhere_already_is_refused(folder: Path) -> None:
    (folder / "places.csv").write_text("county,town\n01,01001\nelsewhere,99999\n")
    (folder / "plan.toml").write_text(ELSEWHERE)
    with pytest.raises(PlanFileError, match="home: the code 'elsewhere' stands at the level 'county' already"):
        tt.read_plan(folder / "plan.toml")


def test_shared_hierarchies_stay_shared_with_their_leaf_for_unknown_codes(folder: Path) -> None:
    (folder / "plan.toml").write_text(
        '[attributes.origin]\nhierarchy = "places.csv"\nlevels = ["county", "town"]\n'
        '[attributes.destination]\nsame_as = "origin"\n[spine]\norder = "origin-first"\n'
        '[unit]\nentity = "trip"\ncontributions = 1\nneighbours = "replace"\n[loss]\nrho = 1\n'
        '[data]\nunknown = "elsewhere"\n'
    )
    origin, destination = tt.read_plan(folder / "plan.toml").plan.spine.attributes.values()
    assert origin is destination and origin.codes[-1].to_pylist()[-1] == "elsewhere"


def test_long_lists_are_cut_short_in_words() -> None:
    made = tt.Prepare(missing=[f"m{one}" for one in range(40)])
    assert made.words() == ["'m0', 'm1', 'm2', 'm3', 'm4', 'm5' and 34 more stand for a missing value"]
