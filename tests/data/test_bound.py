"""Contribution bounds: so many records of each unit, a uniform choice, whoever else is in the table."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chisquare

import treetop as tt
from treetop import Counts
from treetop._util.arrays import siphash, siphash_word
from treetop.counts import contribution_cap as bounds
from treetop.counts.contribution_cap import ContributionCap
from treetop.counts.reading import read_counts
from treetop.errors import DataError
from treetop.io import table as tables
from treetop.noise import Key

CODES = [f"{number:03d}" for number in range(400)]
SPINE = tt.Spine(["place"], {"place": tt.Hierarchy.flat(CODES)})
KEY = Key(bytes(range(32)))


def kept(rows: Any, most: int, key: Key = KEY, count: str | None = None, **options: Any) -> dict[str, int]:
    """Bound a table and return the counts by code."""
    table = (
        rows if isinstance(rows, pa.Table) else pa.table({"who": [r[0] for r in rows], "place": [r[1] for r in rows]})
    )
    return by_code(read_counts(table, SPINE, count=count, cap=ContributionCap("who", most, key), **options))


def by_code(counts: Counts) -> dict[str, int]:
    leaf = (counts.keys[0] >> np.uint64(64 - 9)).tolist()
    return {CODES[at]: number for at, number in zip(leaf, np.diff(counts.before).tolist(), strict=True)}


def records(units: int, seed: int = 1) -> list[tuple[str, str]]:
    """Units with 0 to 9 records each at places of their own, some of them twice at one place."""
    rng = np.random.default_rng(seed)
    return [
        (f"p{unit}", CODES[(4 * unit + place) % 400])
        for unit in range(units)
        for place in rng.integers(0, 4, rng.integers(0, 10))
    ]


def test_the_hash_is_siphash() -> None:
    # The reference's vectors: key 00 … 0f, messages of the bytes 00, 01, 02, …
    expected = {0: 0x726FDB47DD0E0E31, 1: 0x74F839C593DC67FD, 7: 0xAB0200F58B01D137, 8: 0x93F5F5799A932462}
    expected |= {15: 0xA129CA6149BE45E5, 16: 0x3F2ACC7F57C29BDB, 63: 0x958A324CEB064572}
    key = np.frombuffer(bytes(range(16)), "<u8")
    data = np.arange(64, dtype=np.uint8)
    for length, value in expected.items():
        assert siphash(key[0], key[1], data, np.uint64(0), np.uint64(length)) == value
    assert siphash_word(key[0], key[1], data[:8].view("<u8")[0]) == expected[8]


@pytest.mark.parametrize("most", [1, 2, 3, 5, 9, 10**30])
def test_each_unit_keeps_as_many_as_it_has_or_may(most: int) -> None:
    rows = records(100)
    has = Counter(who for who, _ in rows)
    counts = kept(rows, most)
    for unit in range(100):
        places = CODES[4 * unit : 4 * unit + 4]
        assert sum(counts.get(place, 0) for place in places) == min(has[f"p{unit}"], most)
        for place in places:
            assert counts.get(place, 0) <= rows.count((f"p{unit}", place))


def test_the_order_of_rows_and_the_size_of_batches_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = records(100)
    expected = kept(rows, 3)
    for seed in range(3):
        shuffled = [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))]
        monkeypatch.setattr(tables, "ROWS", 7 + 50 * seed)
        assert kept(shuffled, 3) == expected


def test_another_key_keeps_other_records() -> None:
    rows = records(100)
    assert kept(rows, 2) != kept(rows, 2, KEY.derive("other"))


def test_what_is_kept_of_a_unit_does_not_depend_on_others() -> None:
    rows = records(100)
    together = kept(rows, 2)
    for unit in range(100):
        alone = kept([row for row in rows if row[0] == f"p{unit}"], 2)
        assert alone == {place: together[place] for place in CODES[4 * unit : 4 * unit + 4] if place in together}


@pytest.mark.parametrize("shift", [0, 3, 4])
def test_units_are_kept_apart_where_half_of_their_hashes_agree(shift: int) -> None:
    high = np.array([7, 7, 7, 7, 9, 7], np.uint64)
    low = np.array([1, 2, 1, 2, 1, 1], np.uint64)
    weight, number = np.ones(6, np.int64), np.zeros(6, np.int64)
    letters = np.arange(6, dtype=np.uint64).view(np.uint8)
    near = high >> np.uint64(shift)
    order = np.argsort(near, kind="stable")
    bounds._keep_some(order, near[order], high, low, letters, weight, 1, number)
    assert number[[0, 2, 5]].sum() == 1
    assert number[[1, 3]].sum() == 1
    assert number[4] == 1


@pytest.mark.parametrize(("has", "most"), [(5, 1), (5, 2), (5, 3), (5, 4), (2, 1), (17, 8)])
def test_the_choice_is_uniform_over_records(has: int, most: int) -> None:
    units = 4000
    rows = [(f"p{unit}", CODES[place]) for unit in range(units) for place in range(has)]
    counts = kept(rows, most)
    assert sum(counts.values()) == units * most
    # Without replacement the places' totals vary less than in a multinomial, by (1 - most / has) · has / (has - 1).
    observed = np.array([counts.get(place, 0) for place in CODES[:has]])
    shrunk = observed.mean() + (observed - observed.mean()) / np.sqrt((has - most) / (has - 1))
    assert chisquare(shrunk).pvalue > 1e-4
    if most == 1:
        assert chisquare(observed).pvalue > 1e-4


def test_every_pair_of_records_is_as_likely_as_any() -> None:
    pairs: Counter[tuple[int, ...]] = Counter()
    rows = [(f"p{unit}", CODES[4 * unit + place]) for unit in range(100) for place in range(4)]
    for seed in range(30):
        counts = kept(rows, 2, KEY.derive("seed", seed))
        pairs.update(tuple(i for i in range(4) if CODES[4 * unit + i] in counts) for unit in range(100))
    assert len(pairs) == 6
    assert chisquare(list(pairs.values())).pvalue > 1e-4


def test_a_record_that_occurs_often_is_kept_more_often() -> None:
    rows = [(f"p{unit}", place) for unit in range(3000) for place in ("000", "000", "000", "001")]
    counts = kept(rows, 1)
    assert chisquare([counts["000"], counts["001"]], [2250, 750]).pvalue > 1e-4


def test_rows_with_counts_are_bounded_like_the_records_they_stand_for() -> None:
    rows = records(100)
    tally = Counter(rows)
    table = pa.table({"who": [w for w, _ in tally], "place": [p for _, p in tally], "n": list(tally.values())})
    for most in (1, 2, 5):
        assert kept(table, most, count="n") == kept(rows, most)
    split = pa.concat_tables([table, table.set_column(2, "n", pa.array([0] * len(table)))])
    assert kept(split, 2, count="n") == kept(rows, 2)


def test_huge_counts_are_bounded_without_unfolding_them() -> None:
    table = pa.table({"who": ["a", "a", "b"], "place": ["000", "001", "002"], "n": [2**50, 2**50, 1]})
    counts = kept(table, 1000, count="n")
    assert sum(counts.values()) == 1001
    assert counts["002"] == 1
    assert 400 < counts["000"] < 600


def test_one_unit_may_have_all_the_rows() -> None:
    rows = pa.table({"who": ["x"] * 200_000, "place": CODES * 500})
    assert sum(kept(rows, 10).values()) == 10
    assert sum(kept(rows, 150_000).values()) == 150_000


def test_whole_numbers_are_ids_too_and_empty_tables_have_none() -> None:
    rows = records(20)
    table = pa.table({"who": [int(who[1:]) for who, _ in rows], "place": [place for _, place in rows]})
    assert kept(table, 2) == kept([(who[1:], place) for who, place in rows], 2)
    assert kept(table[:0], 2) == {}


def test_paths_of_several_words_are_bounded_too() -> None:
    wide = tt.Hierarchy.flat([f"{number:05d}" for number in range(40_000)])
    spine = tt.Spine([f"a{i}" for i in range(5)], {f"a{i}": wide for i in range(5)})
    table = pa.table({"who": ["p", "p", "p", "q"]} | {f"a{i}": ["00001", "00001", "39999", "00002"] for i in range(5)})
    counts = read_counts(table, spine, cap=ContributionCap("who", 2, KEY))
    assert len(counts.keys) == 2
    assert counts.total == 3
    assert read_counts(table, spine).total == 4
    reverse = read_counts(table.take([3, 2, 1, 0]), spine, cap=ContributionCap("who", 2, KEY))
    assert reverse.digest == counts.digest


@pytest.mark.parametrize("missing", [None, ""])
def test_a_missing_id_is_refused_or_dropped(missing: str | None) -> None:
    table = pa.table({"who": ["a", missing, "a"], "place": ["000", "001", "002"]})
    for unknown in ("error", {"place": "000"}):
        with pytest.raises(DataError, match="column 'who', row 2: the id is missing"):
            kept(table, 1, unknown=unknown)
    assert sum(kept(table, 5, unknown="drop").values()) == 2


def test_rows_with_unknown_codes_are_dropped_before_the_choice() -> None:
    table = pa.table({"who": ["a"] * 50, "place": ["000"] + ["?"] * 49})
    assert kept(table, 1, unknown="drop") == {"000": 1}


def test_an_id_column_that_is_not_there_is_named() -> None:
    with pytest.raises(DataError, match="no column 'who'"):
        kept(pa.table({"whom": ["a"], "place": ["000"]}), 1)


def test_a_plan_with_an_id_enforces_it() -> None:
    table = pa.table({"who": [who for who, _ in records(50)], "place": [place for _, place in records(50)]})
    people = len(set(table["who"].to_pylist()))
    plan = tt.Plan(SPINE, tt.Unit("person", 1, "replace", id="who"), tt.Loss(rho=10))
    told: list[str] = []
    release = tt.make_release(
        plan, table, tt.RunOptions(testing_key=bytes(32), progress=lambda stage, share: told.append(stage))
    )
    assert sum(release.level("place")["count"].to_pylist()) == people
    assert "reading" in told
    again = tt.make_release(
        plan, table.take(np.random.default_rng(1).permutation(len(table))), tt.RunOptions(testing_key=bytes(32))
    )
    assert again.level("place").equals(release.level("place"))


def test_a_table_that_is_read_twice_keeps_its_limit_if_units_have_an_id() -> None:
    rows = records(50)
    once, twice = kept(rows, 3), kept(rows * 2, 3)
    units = {who for who, _ in rows}
    assert sum(twice.values()) <= 3 * len(units)
    assert sum(once.values()) <= sum(twice.values())
    unbounded = read_counts(pa.table({"place": [place for _, place in rows * 2]}), SPINE)
    assert unbounded.total == 2 * len(rows)  # without an id, everybody counts twice


def test_ids_that_share_a_hash_are_bounded_as_one_and_how_likely_that_is(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = pa.array([f"p{number}" for number in range(1000)])
    hashes = bounds.ContributionCap("id", 1, KEY).hashes(ids)
    secret = np.frombuffer(KEY.secret, "<u8")
    assert len({(high, low) for high, low in hashes.T.tolist()}) == 1000
    # Two keyed words of 64 bits, by two keys: 128 bits, so the birthday bound is n² / 2 · 2^-128.
    name = np.frombuffer(b"p7", np.uint8)
    for row, key in enumerate((secret[:2], secret[2:])):
        assert hashes[row, 7] == siphash(key[0], key[1], name, np.uint64(0), np.uint64(2))
    assert 2.0**-70 < (10**9) ** 2 / 2**129 < 2.0**-69

    def same(key0: Any, key1: Any, start: Any, letters: Any, hashes: Any) -> None:
        hashes[:] = 7

    rows = [("ann", "001"), ("bob", "002")]
    assert kept(rows, 1) == {"001": 1, "002": 1}
    monkeypatch.setattr(bounds, "siphash_texts", same)
    assert sum(kept(rows, 1).values()) == 1
