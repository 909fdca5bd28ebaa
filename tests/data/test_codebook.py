"""Codes are found by what they are, letter by letter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treetop._util.arrays import buffers
from treetop.counts import codebook
from treetop.counts.codebook import Codebook


@given(st.lists(st.text(max_size=20), unique=True, min_size=1), st.lists(st.none() | st.text(max_size=20)))
def test_every_code_is_found_and_no_other(codes: list[str], asked: list[str | None]) -> None:
    book = Codebook(pa.array(codes, pa.string()))
    everything = [*asked, *codes]
    expected = [codes.index(code) if code in codes else -1 for code in everything]
    assert book.find(pa.array(everything, pa.string())).tolist() == expected


def test_slices_of_arrays_are_read_from_where_they_start() -> None:
    codes = pa.array(["x", "a", "b", "c"])[1:]
    assert Codebook(codes).find(pa.array(["x", "c", None, "a", "b"])[1:4]).tolist() == [2, -1, 0]


@pytest.mark.parametrize("width", [6, 12, 20])
def test_codes_without_a_slot_of_their_own_are_found_in_the_next_ones(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(codebook, "_MANY", 0)
    codes = pa.array([f"{number:0{width}d}" for number in range(3_000)])
    found = Codebook(codes.take(pa.array(np.arange(0, 3_000, 2)))).find(codes)
    assert found.tolist() == [number // 2 if number % 2 == 0 else -1 for number in range(3_000)]


def test_nearly_every_code_has_a_slot_of_its_own() -> None:
    codes = pa.array([f"{number:07d}" for number in range(20_000)])
    book = Codebook(codes)
    one, two, mixed = np.empty((3, 20_000), np.uint64)
    codebook._fingerprints(*buffers(codes), 0, book._seed, one, two)
    codebook._mix_all(one, two, book._seed[0], mixed)
    own = book._displacement[mixed >> book._shift]
    slots = book._slots.reshape(-1, 4)
    first = [int(codebook._slot(*moved, np.uint64(len(slots)))) for moved in zip(mixed, own.astype("u8"), strict=True)]
    assert (slots[first, 2] == np.arange(20_000)).mean() > 0.99


@pytest.mark.parametrize("width", [5, 30])
def test_of_a_code_that_is_there_twice_the_first_is_found(width: int) -> None:
    codes = [f"{number % 7:0{width}d}" for number in range(40)]
    assert Codebook(pa.array(codes)).find(pa.array(codes)).tolist() == [number % 7 for number in range(40)]


def test_no_codes_are_a_book_too() -> None:
    assert Codebook(pa.array([], pa.string())).find(pa.array(["a", ""])).tolist() == [-1, -1]


def test_short_codes_are_told_apart_by_all_their_bytes_and_their_length() -> None:
    codes = ["", "a", "a\0", "a\0\0", "b", "0000000a", "0000000a\0", "000000000000001", "0000000000000010"]
    book = Codebook(pa.array(codes))
    assert book.find(pa.array([*codes, "\0", "000000000000002"])).tolist() == [*range(len(codes)), -1, -1]


def test_many_codes_are_found() -> None:
    codes = pa.array([f"{number:07d}" for number in range(200_000)])
    order = np.random.default_rng(1).permutation(200_000)
    assert (Codebook(codes).find(codes.take(pa.array(order))) == order).all()
