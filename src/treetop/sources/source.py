"""Where a table is, and the formats that it may have: files, standard input, or a database with a query."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa

from treetop.basics.choices import Choices
from treetop.basics.frozen import FrozenMap
from treetop.errors import DataError
from treetop.errors.showing import discreet
from treetop.sources.files import files_at, refuse_twice
from treetop.sources.positions import as_positions
from treetop.sources.prepare import Prepare

BlankLines = Literal["record", "skip"]
Shared = Iterator[tuple[pa.RecordBatch, float]]
"""Rows, with the share of the place that is read with them: 0 where it is not known."""

VIEW = "a table of a database may be a view that leaves rows out"
"""Why it is never known of a database whether all rows are read."""

HEAD = 16
"""How many bytes tell what a file is."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@dataclass(frozen=True, repr=False)
class Source:
    """A table by its location; it may stand wherever a table may.

    >>> Source("postgresql://ann:secret@db/census", query="trips")
    Source('postgresql://ann:***@db/census')
    """

    location: str | Path | Sequence[str | Path]
    """A file, a folder, a pattern, a list of files, "-" for standard input, or a database URL:
    `sqlite:///file`, `postgresql://user@host/database`."""
    query: str | None = None
    """For a database: a query, or the name of a table; it may be left out where there is only one table."""
    delimiter: str | None = None
    """The character between the fields of a CSV file; found from its header when None."""
    encoding: str | None = None
    """The encoding of a text file; UTF-8 when None."""
    fields: Mapping[str, Any] | None = None
    """For fixed-width text, where each field stands: its first and last character, counted from 1, as in
    `{"home": [8, 13]}`, or several such pieces, which are joined."""
    keep: Mapping[str, str | Sequence[str]] | None = None
    """The values of some columns that a row must have to be in the table at all, as in `{"year": "2008"}`. Decide them
    without looking at private data: the table is then the rows that are kept, and the others are no part of it."""
    header: bool | None = None
    """Whether the first line of a CSV file holds the names of its columns. None is yes, and a name that is a code of a
    hierarchy, a number or a date is refused; True vouches for it, False says that every line is a row."""
    names: Sequence[str] | None = None
    """The names of all columns, in order, of a CSV file without a header; column1, column2, … when None."""
    blank_lines: BlankLines = "record"
    """What a line with nothing in it is: a record in which everything is missing, or nothing. A record may then vanish
    by being emptied, so a plan that releases the total exactly does not take such a table."""
    prepare: Prepare | None = None
    """What is done to columns of text before they are read as codes; None for nothing."""
    drop: Mapping[str, str | Sequence[str]] | None = None
    """The values of some columns that leave a row out, as in `{"status": "test"}`: the opposite of `keep`, and decided
    as that is. A row of which the value is missing stays."""
    sheet: str | None = None
    """For a workbook of Excel: the name of the sheet; it may be left out where there is only one."""
    option_prefix: str = ""
    """What a plan file puts before the names of these options, as `edges_` for the edges of a graph; for messages."""

    def option(self, name: str) -> str:
        """Return where a plan file states an option of this table: "delimiter under [data]"."""
        return f"{self.option_prefix}{name} under [{'graph' if self.option_prefix else 'data'}]"

    def __post_init__(self) -> None:
        if not isinstance(self.location, str | Path):
            object.__setattr__(self, "location", tuple(self.location))
        elif isinstance(self.location, str) and _URL.match(self.location.lstrip()):
            object.__setattr__(self, "location", self.location.strip())
        if self.fields is not None:
            object.__setattr__(self, "fields", as_positions(self.fields))
            if self.delimiter is not None:
                raise DataError("fixed-width text has no delimiter: give fields or a delimiter, not both")
        for name in ("keep", "drop"):
            if (values := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_kept(values, name))
        refuse_both(self.keep, self.drop)
        if self.delimiter is not None and not re.fullmatch(r"[\t -~]", self.delimiter):
            raise DataError(f"the delimiter is {self.delimiter!r}: give one character, such as ';'")
        self._check_header()
        if self.blank_lines not in get_args(BlankLines):
            raise DataError(f'blank_lines is {self.blank_lines!r}: choose "record" or "skip"')
        if self.encoding is not None and not _is_encoding(self.encoding):
            raise DataError(f'{self.encoding!r} is not an encoding: name one, such as "utf-8" or "latin-1"')
        if self.scheme is not None and not any(self.scheme in one.schemes for one in FORMATS.values()):
            *urls, last = ["a file", *(one.url for one in FORMATS.values() if one.url)]
            raise DataError(f"{self}: cannot read from {self.scheme}://; give {', '.join(urls)}, or {last}")

    def _check_header(self) -> None:
        if self.names is not None:
            object.__setattr__(self, "names", as_names(self.names))
        if self.names is not None and self.header is not False:
            raise DataError("names are for a table without a line of names: say header = false as well")
        if self.fields is not None and self.header is not None:
            raise DataError("fixed-width text has no header line: its fields have their names already")

    def __repr__(self) -> str:
        return f"Source({str(self)!r})"

    def __str__(self) -> str:
        """Name the source as messages do: without a password."""
        if isinstance(self.location, tuple):
            return ", ".join(without_password(str(one)) for one in self.location)
        return "standard input" if self.location == "-" else without_password(str(self.location))

    @property
    def scheme(self) -> str | None:
        """The scheme of a database URL; None for anything else."""
        found = _URL.match(self.location) if isinstance(self.location, str) else None
        return None if found is None else found[1].lower()

    def files(self) -> list[Path]:
        """Return the files of the source, in order; those of a folder or a pattern by name."""
        # A workbook beside tables is more likely about them than one of them: it is named, and not taken from a folder.
        files = [one for one in FORMATS.values() if one.endings and not one.has_sheets]
        endings = {ending for one in files for ending in one.endings}
        if isinstance(self.location, str | Path):
            return files_at(self.location, endings, [one.name for one in files])
        if not self.location:
            raise DataError("the list of files is empty: name at least one")
        return refuse_twice([file for one in self.location for file in Source(one).files()], str(self), endings)

    def formats(self) -> Iterator[Format]:
        """Yield the format of the table, or of each of its files; what can be read only once is taken for text."""
        if self.scheme is not None:
            yield next(one for one in FORMATS.values() if self.scheme in one.schemes)
        elif reads_once(self.location):
            yield format_of(b"", self, only_text=True)
        else:
            for file in self.files():
                with file.open("rb") as stream:
                    yield format_of(stream.read(HEAD), self)


@dataclass(frozen=True)
class Part:
    """One place of a source, to be read: a file, standard input or a URL."""

    source: Source
    """The source, with all that is said about how it is read."""
    where: str
    """The place, as messages name it."""
    columns: Sequence[str] | None
    """The columns that are wanted, in order; all when None."""
    dictionaries: bool
    """Whether text that is stored as a dictionary is left so."""
    rows: int
    """The most rows that are dealt with at once."""
    path: Path | None = None
    """The file; None for standard input and for a URL."""
    stream: io.BufferedReader[Any] | None = None
    """The bytes of the file or of standard input; None for a URL."""
    groups: tuple[int, ...] | None = None
    """Of a file that has groups of rows, which of them are read; all when None."""

    def wanted(self, present: Sequence[str]) -> list[str]:
        """Return the columns that are wanted, of those that there are."""
        return list(present if self.columns is None else self.columns)


@dataclass(frozen=True)
class Format:
    """A format of tables: how it is told apart, how it is read, and its words."""

    name: str
    """What it is called."""
    words: str
    """What a table of it is, as in "a Parquet file"."""
    read: Callable[[Part], Shared]
    """Yields the rows of one place in order, at least one batch."""
    recognises: Callable[[bytes, Source], bool] = lambda head, source: False
    """Tells a file from its first bytes, whatever its name claims."""
    endings: tuple[str, ...] = ()
    """The endings of the names of its files, in small letters: those that are taken from a folder."""
    schemes: tuple[str, ...] = ()
    """The schemes of its URLs."""
    url: str = ""
    """What such a URL looks like, in messages."""
    is_text: bool = False
    """Whether it is text: then it may come from standard input, and have positions of fields or a header."""
    is_database: bool = False
    """Whether it takes a query."""
    leaves_out: str | None = None
    """What it may leave out by itself, as a sentence goes on; None where every row of a table is read."""
    has_header: bool = False
    """Whether a table has a first line that may hold names, as text has."""
    has_sheets: bool = False
    """Whether a file has several tables, of which one is named."""


FORMATS: Choices[Format] = Choices("format of tables")
"""The formats that there are, by name; of several that recognise a file, the last one is taken."""


def register_format(format: Format) -> Format:
    """Add a format, before all others that recognise the same files."""
    taken = {scheme for other in FORMATS.values() for scheme in other.schemes}
    if taken & set(format.schemes) or bool(format.schemes) != bool(format.url.strip()):
        raise DataError(f"the URLs of {format.name!r} need schemes of their own, and words for what they look like")
    return FORMATS.register(format)


def format_of(head: bytes, source: Source, only_text: bool = False) -> Format:
    """Tell what a file is from its first bytes."""
    formats = reversed([*FORMATS.values()])
    return next(one for one in formats if one.recognises(head, source) and (one.is_text or not only_text))


def claimed_format(path: Path) -> Format | None:
    """Return the format that the name of a file claims, if it is one that is no text."""
    return next((one for one in FORMATS.values() if path.suffix.lower() in one.endings and not one.is_text), None)


def as_source(table: Any) -> Source | None:
    """Return a path or a list of paths as a source, and None for what holds its rows itself."""
    if isinstance(table, Source):
        return table
    if isinstance(table, str | Path):
        return Source(table)
    if isinstance(table, list | tuple) and all(isinstance(one, str | Path) for one in table):
        return Source(table)
    return None


def as_public(table: Any) -> Any:
    """Return a public table as one that is read kindly: blank lines are nothing, and its first line may say anything.

    Nobody is protected in it, and a plan names the columns that it takes from it.
    """
    source = as_source(table)
    if source is None:
        return table
    vouched = True if source.header is None and source.fields is None else source.header
    return replace(source, blank_lines="skip", header=vouched)


def as_names(names: Any) -> tuple[str, ...]:
    """Return the names of the columns of a file that does not hold them.

    >>> as_names(["home", "work"])
    ('home', 'work')
    """
    listed = tuple(names) if isinstance(names, list | tuple) else ()
    if not listed or not all(isinstance(name, str) and name.strip() for name in listed):
        raise DataError(f'names is {names!r}: list the names of all columns in order, as in ["origin", "destination"]')
    if len(set(listed)) < len(listed):
        raise DataError("names: two columns have the same name: give each a name of its own")
    return listed


def as_kept(keep: Mapping[str, Any], what: str = "keep") -> Mapping[str, tuple[str, ...]] | None:
    """Return the values that rows must have, or must not, by column; None where nothing is asked.

    >>> as_kept({"record": "S", "year": ["2007", "2008"]})
    {'record': ('S',), 'year': ('2007', '2008')}
    """
    kept: dict[str, tuple[str, ...]] = {}
    for column, values in keep.items():
        listed = (values,) if isinstance(values, str) else tuple(values) if isinstance(values, list | tuple) else ()
        if not listed or not all(isinstance(value, str) and value for value in listed):
            raise DataError(
                f"{what}: the values of {column!r} are {values!r}: give a text, or a list of texts, as in "
                f'{what} = {{ {column} = ["2007", "2008"] }}'
            )
        kept[column] = listed
    return FrozenMap(kept) if kept else None


def refuse_both(keep: Mapping[str, Any] | None, drop: Mapping[str, Any] | None) -> None:
    """Refuse a value that is kept and dropped."""
    for column, values in (keep or {}).items():
        both = [value for value in values if value in (drop or {}).get(column, ())]
        if both:
            raise DataError(f"keep and drop both list the value {both[0]!r} of {column!r}: leave it out of one of them")


def leaves_out(source: Source) -> str | None:
    """Say what the format of a table may leave out; of a file, its first bytes say which that is."""
    try:
        for format in source.formats():
            if format.leaves_out or format.is_database:
                return format.leaves_out or VIEW
        return None
    except (DataError, OSError, ValueError):  # what is not there is said where it is read
        return None


def reads_once(location: Any) -> bool:
    """Tell whether a table can be read only once: standard input, a pipe, or a device.

    >>> reads_once("-"), reads_once("sqlite:///trips.db"), reads_once("no such file")
    (True, False, False)
    """
    if isinstance(location, list | tuple):
        return any(map(reads_once, location))
    if location is None or (isinstance(location, str) and _URL.match(location)):
        return False
    if location == "-":
        return True
    try:
        path = Path(location)
        return path.exists() and not (path.is_file() or path.is_dir())
    except (OSError, ValueError):
        return False


def without_password(url: str) -> str:
    """Return a URL with its password, and anything that might be part of it, blotted out."""
    scheme = _URL.match(url)
    if scheme is None:
        return discreet(url)
    if scheme[1].lower() == "sqlite":
        return url
    # An unescaped password may hold any of /?#@: so it reaches to the last @.
    url = re.sub(r"^([^:]+://[^:@/?#]*):.*@", r"\1:***@", url, flags=re.DOTALL)
    return re.sub(r"(?i)(password|passphrase|pwd)=.*", r"\1=***", url, flags=re.DOTALL)


def _is_encoding(name: str) -> bool:
    try:
        return codecs.lookup(name)._is_text_encoding
    except (LookupError, ValueError):
        return False
