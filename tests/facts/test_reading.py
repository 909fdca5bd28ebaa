"""Facts are read from files, tables and mappings; whatever is wrong with one is said with file, row and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from treetop.counts.constraint_reader import read_facts
from treetop.errors import FactError

PLACE = tt.Hierarchy.from_prefixes(["01X1", "01X2", "01Y1", "02X1"], [2, 3], ["state", "county", "tract"])
SPINE = tt.Spine(["place.state", "sex", "place.tract"], {"place": PLACE, "sex": tt.Hierarchy.flat(["f", "m"])})
COUNTS = {"01": 12, "02": 0}


def counts_of(stated: Any, name: str = "place.state") -> dict[str, int]:
    (fact,) = read_facts(SPINE, {name: stated})
    assert fact.boxes is not None
    words = (fact.table.words(int(cell)) for cell in fact.boxes.cells)
    return dict(zip(words, fact.boxes.lower.tolist(), strict=True))


def test_codes_are_text_and_columns_are_found_by_name_or_in_order(tmp_path: Path) -> None:
    expected = {"place.state '01'": 12, "place.state '02'": 0}
    for header in ("place.state,count", "place,count", "count,state", "code,count", "state,name,count"):
        rows = {"code": ("01", "02"), "name": ("One", "Two"), "count": ("12", "0")}
        columns = [rows.get(name, rows["code"]) for name in header.split(",")]
        path = tmp_path / "population.csv"
        path.write_text("\n".join([header, *(",".join(row) for row in zip(*columns, strict=True))]) + "\n")
        assert counts_of(path) == counts_of(str(path)) == counts_of(tt.Source(path)) == expected


def test_the_same_facts_have_the_same_digest_however_they_are_written(tmp_path: Path) -> None:
    table = pa.table({"place.state": ["02", "01"], "count": [0, 12]})
    (tmp_path / "a.csv").write_text("state,count\n01,12\n02,0\n")
    pq.write_table(table, tmp_path / "b.parquet")
    stated = [COUNTS, table, tmp_path / "a.csv", tmp_path / "b.parquet", tt.Fact(exact=COUNTS)]
    digests = {fact.sha256 for one in stated for fact in read_facts(SPINE, {"place.state": one})}
    assert len(digests) == 1
    (other,) = read_facts(SPINE, {"place.state": {"01": 12, "02": 1}})
    assert other.sha256 not in digests
    assert read_facts(SPINE, {"place.state": tt.Fact(exact=COUNTS, sha256=digests.pop())})
    with pytest.raises(FactError, match="made for other facts"):
        read_facts(SPINE, {"place.state": tt.Fact(exact=COUNTS, sha256=other.sha256)})


def test_columns_of_two_ends_are_told_apart() -> None:
    ends = tt.Spine.origin_first(PLACE, PLACE)
    rows = {"destination": ["02"], "origin": ["01"]}
    for table in (pa.table(rows), pa.table({f"{name}.state": codes for name, codes in rows.items()})):
        (fact,) = read_facts(ends, {"origin.state * destination.state": tt.Fact(possible=table)})
        assert fact.rule is not None
        assert fact.table.words(int(fact.rule.cells[0])) == "origin.state '01', destination.state '02'"
    with pytest.raises(FactError, match=r"there is no column 'destination\.state'; the columns are origin, state"):
        read_facts(
            ends, {"origin.state * destination.state": tt.Fact(possible=pa.table({"origin": ["01"], "state": ["02"]}))}
        )


FILES = {
    "a duplicate": ("01,1\n02,2\n01,1\n", r"facts\.csv, row 3: place\.state '01' stands there twice, first in .*row 1"),
    "an unknown code": ("01,1\n3,2\n", r"facts\.csv, column 'state', row 2: '3' is not a code of place\.state"),
    "a lost zero": ("1,1\n2,2\n", r"row 1: '1' is not a code.*nor is 1 more"),
    "a missing code": ("01,1\n,2\n", r"row 2: the code is missing"),
    "a negative number": ("01,-1\n02,2\n", r"column 'count', row 1: the count '-1' is negative"),
    "a fraction": ("01,1.5\n02,2\n", r"row 1: the count '1\.5' is not a whole number"),
    "no number": ("01,many\n02,2\n", r"row 1: the count 'many' is not a whole number"),
    "a missing number": ("01,\n02,2\n", r"row 1: the count"),
    "no rows": ("", r"no rows"),
    "a cell that is left out": (
        "01,1\n",
        r"leaves out 1 of its cells, such as place\.state '02'.*state at_least and at_most instead",
    ),
}


@pytest.mark.parametrize("what", FILES)
def test_a_bad_file_is_refused_with_its_row_and_a_remedy(what: str, tmp_path: Path) -> None:
    rows, message = FILES[what]
    path = tmp_path / "facts.csv"
    path.write_text("state,count\n" + rows)
    with pytest.raises(FactError, match=message) as refused:
        read_facts(SPINE, {"place.state": path})
    assert "place.state" in str(refused.value)


def test_columns_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    for header, message in (
        ("state,number", "there is no column 'count'"),
        ("area,region,count", r"there is no column 'place\.state'; the columns are area, region"),
    ):
        path.write_text(f"{header}\n{','.join(['01'] * len(header.split(',')))}\n")
        with pytest.raises(FactError, match=message):
            read_facts(SPINE, {"place.state": path})


STATED: dict[str, tuple[dict[str, Any], str]] = {
    "a level that the spine leaves out": (
        {"place.county": {"01X": 1}},
        r"the spine, which leaves it out.*state, tract",
    ),
    "a level that there is none of": ({"place.stat": COUNTS}, r"did you mean 'state'"),
    "an attribute that there is none of": ({"plac.state": COUNTS}, r"no attribute 'plac'.*did you mean 'place'"),
    "an attribute of several levels": ({"place": COUNTS}, r"name one of place\.state, place\.tract"),
    "two files for one table": (
        {"place.state * sex": tt.Fact(possible=[("01", "f")]), "sex * place.state": tt.Fact(possible=[("f", "01")])},
        r"are the same table",
    ),
    "nothing": ({"sex": tt.Fact(at_most={})}, "no rows"),
    "no file": ({"sex": "nowhere.csv"}, "no such file"),
    "a number": ({"sex": 5}, "give a file, a table, or a mapping"),
    "a flag": ({"sex": True}, "give a file of counts, or a treetop.Fact"),
    "codes that are no text": ({"sex": {1: 5, 2: 6}}, "codes are text"),
    "too few codes": ({"place.state * sex": tt.Fact(possible=["01"])}, "not 2 codes"),
    "equal codes of one attribute": ({"sex": tt.Fact(possible="same")}, "two attributes"),
    "equal codes that there are none of": ({"place.state * sex": tt.Fact(possible="same")}, "nothing is possible"),
}


@pytest.mark.parametrize("what", STATED)
def test_what_cannot_be_a_fact_is_refused(what: str) -> None:
    stated, message = STATED[what]
    with pytest.raises(FactError, match=message):
        read_facts(SPINE, stated)


FACTS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "says nothing"),
    "exact counts and a bound": ({"exact": {}, "at_most": {}}, "keep one"),
    "both lists": ({"possible": [], "impossible": []}, "keep one"),
    "an invariant and counts": ({"exact": {}, "invariant": True}, "keep one"),
    "an unchecked invariant": ({"invariant": True, "unchecked": True}, "leave unchecked out"),
    "a flag in words": ({"invariant": "yes"}, "true or false"),
}


@pytest.mark.parametrize("what", FACTS)
def test_a_fact_says_one_thing(what: str) -> None:
    stated, message = FACTS[what]
    with pytest.raises(FactError, match=message):
        tt.Fact(**stated)
