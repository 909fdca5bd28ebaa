"""Codes are found by what they are, letter by letter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from treetop.intake import codebook
from treetop.intake.codebook import Codebook


@given(st.lists(st.text(max_size=20), unique=True, min_size=1), st.lists(st.none() | st.text(max_size=20)))
def test_every_code_is_found_and_no_other(codes: list[str], asked: list[str | None]) -> None:
    book = Codebook(pa.array(codes, pa.string()))
    everything = [*asked, *codes]
    expected = [codes.index(code) if code in codes else -1 for code in everything]
    assert book.find(pa.array(everything, pa.string())).tolist() == expected


def test_slices_of_arrays_are_read_from_where_they_start() -> None:
    codes = pa.array(["x", "a", "b", "c"])[1:]
    assert Codebook(codes).find(pa.array(["x", "c", None, "a", "b"])[1:4]).tolist() == [2, -1, 0]


def test_long_codes_whose_hashes_agree_are_told_apart() -> None:
    codes = pa.array([f"{number:032d}" for number in range(10)])
    book = Codebook(codes)
    # As if all codes had the hash of the last one, the search goes on from one slot to the next.
    slots = book._slots.reshape(-1, 3)
    one, two, _ = slots[np.flatnonzero(slots[:, 2] == 10)[0]]
    slots[:] = 0
    first = int(codebook._first_slot(one, two, book._shift))
    for step in range(10):
        slots[(first + step) % len(slots)] = one, two, step + 1
    assert book.find(codes.take([9, 9])).tolist() == [9, 9]


def test_short_codes_are_told_apart_by_all_their_bytes_and_their_length() -> None:
    codes = ["", "a", "a\0", "a\0\0", "b", "0000000a", "0000000a\0", "000000000000001", "0000000000000010"]
    book = Codebook(pa.array(codes))
    assert book.find(pa.array([*codes, "\0", "000000000000002"])).tolist() == [*range(len(codes)), -1, -1]


def test_many_codes_are_found() -> None:
    codes = pa.array([f"{number:07d}" for number in range(200_000)])
    order = np.random.default_rng(1).permutation(200_000)
    assert (Codebook(codes).find(codes.take(pa.array(order))) == order).all()
