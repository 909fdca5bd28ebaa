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


def test_codes_whose_hashes_agree_are_told_apart() -> None:
    codes = pa.array([f"{number:02d}" for number in range(10)])
    book = Codebook(codes)
    # As if all codes shared half of a hash and a slot, the search goes on from one to the next.
    hashes = np.full(10, 5, np.uint64)
    book._slots[:] = 0
    codebook._enter_all(hashes, book._shift, book._slots)
    found = np.empty(10, np.int64)
    codebook._guess_all(hashes, book._shift, book._slots, found)
    assert set(found.tolist()) == {0}
    known = book._start, book._letters
    codebook._verify_all(*known, *known, hashes, book._shift, book._slots, found)
    assert found.tolist() == list(range(10))


def test_many_codes_are_found() -> None:
    codes = pa.array([f"{number:07d}" for number in range(200_000)])
    order = np.random.default_rng(1).permutation(200_000)
    assert (Codebook(codes).find(codes.take(pa.array(order))) == order).all()
