"""Whatever stands in a CSV file, it is read or refused: nothing else happens."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import treetop as tt
from treetop import Source
from treetop.counts.reading import read_counts
from treetop.errors import TreetopError
from treetop.io import _csv_file as csv_file
from treetop.io import table as tables

SPINE = tt.Spine(["place"], {"place": tt.Hierarchy.flat(["01", "02"])})
FIELD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@pytest.fixture(scope="module")
def file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "table"


def read(file: Path, content: bytes, encoding: str | None = None, delimiter: str | None = None) -> None:
    file.write_bytes(content)
    with suppress(TreetopError):
        read_counts(Source(file, encoding=encoding, delimiter=delimiter), SPINE, count="n")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
@example(b'"')
@example(b"\xef\xbb\xbf")
@example(b"place,n\r")
@example(b"PAR1PAR1")
def test_bytes_are_read_or_refused(file: Path, content: bytes) -> None:
    read(file, content)
    read(file, b"place,n\n" + content)
    read(file, gzip.compress(content))
    read(file, gzip.compress(b"place,n\n01,2\n" * 9)[:-3] + content)


@settings(max_examples=200, deadline=None)
@given(
    st.text(st.sampled_from('placen01,;"\n\r\t| \ufeffé'), max_size=80),
    st.sampled_from([None, "latin-1", "utf-16", "utf-16-le", "utf-7", "cp1252", "shift-jis", "utf-8"]),
    st.sampled_from([None, ",", '"', " ", "\t"]),
)
def test_text_is_read_or_refused(file: Path, content: str, encoding: str | None, delimiter: str | None) -> None:
    for text in (content, "place,n\n" + content):
        read(file, text.encode("utf-8"), encoding=encoding, delimiter=delimiter)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(FIELD, FIELD), max_size=20),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["utf-8", "utf-16"]),
)
def test_what_was_written_is_read(file: Path, rows: list[tuple[str, str]], delimiter: str, encoding: str) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerows([("place", "n"), *rows])
    file.write_bytes(text.getvalue().encode(encoding))
    found = tables.read(Source(file, encoding=encoding, header=True))
    expected = [(place or None, number or None) for place, number in rows]
    assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["01", "02", '"01"', '"0\n2"', '"0,1"']), max_size=30), st.integers(24, 64))
def test_where_blocks_end_does_not_matter(file: Path, codes: list[str], block: int) -> None:
    file.write_text("place,n\n" + "".join(f"{code},1\n" for code in codes), encoding="utf-8")
    expected = tables.read(file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_file, "BLOCK", block)
        assert tables.read(file).equals(expected)
