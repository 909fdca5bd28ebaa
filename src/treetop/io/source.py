"""Sources: files or databases with their reading options, preparation rules, and the formats that read them."""

from __future__ import annotations

import codecs
import glob
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeGuard, get_args

import pyarrow as pa
import pyarrow.compute as pc

from treetop._util.choices import Choices
from treetop._util.lazy import FrozenMap
from treetop.errors import DataError, discreet
from treetop.io.row_batch import as_text, say_listed

PACKED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
"""How a file may be packed, by the last ending of its name."""

_MOST_ENTRIES = 100_000
"""How many entries of a folder are looked at: more are hardly those of one table."""


def files_at(location: str | Path, endings: Collection[str], names: Sequence[str]) -> list[Path]:
    """Return the file of a path, or those of a folder (by their endings) or a pattern in the order of their names."""
    path = Path(location)
    try:
        if path.is_dir():
            return refuse_twice(_in_folder(path, endings, names), str(path), endings)
        if path.exists():
            return [path]
        if re.match(r"(?i)\s*(select|with)\s", str(location)):
            raise DataError(
                f"{location}: a query goes beside its database: name that as the table, and give the query as "
                "`query` (under [data] in a plan file, or in Source('sqlite:///file', query='select …'))"
            )
        if glob.has_magic(str(path)):
            matches = [Path(one) for one in glob.glob(str(path), recursive=True)]  # noqa: PTH207 - absolute too
            if files := sorted(file for file in matches if file.is_file()):
                return refuse_twice(files, str(path), endings)
            raise DataError(f"{path}: no file matches this pattern")
    except (OSError, ValueError) as problem:
        raise DataError(f"cannot be read: {problem}") from problem
    raise DataError(f"{path}: no such file")


def refuse_twice(files: list[Path], where: str, endings: Collection[str]) -> list[Path]:
    """Refuse a file beside its own copy: each row would count twice, and so would everybody in it."""
    seen: dict[object, Path] = {}
    for file in files:
        about = file.stat()
        # A link to it, and a copy in another form.
        traits = ((about.st_dev, about.st_ino), _without_endings(file, endings))
        other = next((seen[trait] for trait in traits if trait in seen), None)
        if other is not None:
            raise DataError(
                f"{where}: holds {other.name} and {file.name}, which look like the same rows, and would be read twice: "
                "take one of them away, or name the file that is meant, or a pattern such as folder/*.csv"
            )
        seen |= dict.fromkeys(traits, file)
    return files


def _in_folder(folder: Path, endings: Collection[str], names: Sequence[str]) -> list[Path]:
    if folder.resolve() == Path(folder.resolve().anchor):
        raise DataError(f"{folder}: is a whole disk, not a table: name a file, or the folder of a table")
    files, seen = [], 0
    for place, folders, found in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        seen += len(folders) + len(found)
        if seen > _MOST_ENTRIES:
            raise DataError(
                f"{folder}: holds more than {_MOST_ENTRIES:,} files and folders: name a file, or the folder of a table"
            )
        paths = (Path(place, name) for name in found if not name.startswith((".", "_")))
        files += [path for path in paths if path.suffix.lower() in endings and path.is_file()]
    files.sort()
    if not files:
        raise DataError(f"{folder}: the folder holds no {' or '.join(names)} file")
    return files


def _without_endings(file: Path, endings: Collection[str]) -> Path:
    """Return the name of a file without the endings for compression and format."""
    if file.suffix.lower() in PACKED:
        file = file.with_suffix("")
    return file.with_suffix("") if file.suffix.lower() in endings else file


# Where the fields of fixed-width text stand: characters counted from 1, first and last included.

Piece = tuple[int, int]
"""The first and the last character of a piece of a field."""
Positions = Mapping[str, tuple[Piece, ...]]
"""The pieces of each field, in the order in which they are joined."""

_LONGEST = 1_000_000
_EXPECTED = (
    "give the first and the last character, [8, 13]; one character, 1; or pieces to be joined, [[5, 7], [9, 11]]"
)


def as_positions(fields: Mapping[str, Any]) -> Positions:
    """Return the pieces of each field, refusing positions that cannot be meant.

    A field may lie inside another (a province inside a municipality's code). Two that overlap in part, or that are the
    same, are a miscount.

    >>> as_positions({"record": 1, "home": [[5, 7], [9, 11]]})
    {'record': ((1, 1),), 'home': ((5, 7), (9, 11))}
    """
    if not fields:
        raise DataError("fields: none is given; name each field with its positions, such as home = [8, 13]")

    def meet(piece: Piece, other: Piece) -> bool:
        return piece[0] <= other[1] and other[0] <= piece[1]

    def inside(piece: Piece, other: Piece) -> bool:
        return other[0] <= piece[0] and piece[1] <= other[1]

    pieces = {str(name): _pieces(str(name), given) for name, given in fields.items()}
    for name, positions in pieces.items():
        for piece, other in combinations(positions, 2):
            if meet(piece, other):
                raise DataError(f"field {name!r} takes characters twice: {say((piece, other))} overlap")
    for (name, positions), (other_name, others) in combinations(pieces.items(), 2):
        if positions == others:
            raise DataError(
                f"fields {name!r} and {other_name!r} both stand at {say(positions)}: correct one, or leave it out"
            )
        for piece in positions:
            for other in others:
                if meet(piece, other) and not (inside(piece, other) or inside(other, piece)):
                    raise DataError(
                        f"fields {name!r} at {say((piece,))} and {other_name!r} at {say((other,))} overlap: check the "
                        "positions against the description of the file"
                    )
    return FrozenMap(pieces)


def parse(text: str) -> list[list[int]]:
    """Read positions as a command line gives them.

    >>> parse("5-7,9-11"), parse("1")
    ([[5, 7], [9, 11]], [[1, 1]])
    """
    found = []
    for piece in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,7})\s*(?:-\s*([0-9]{1,7})\s*)?", piece)
        if match is None:
            raise DataError(f"{text!r} is no position: write 8-13, or 5-7,9-11 for pieces to be joined")
        found.append([int(match[1]), int(match[2] or match[1])])
    return found


def say(pieces: Iterable[Piece]) -> str:
    """Write positions as a command line gives them.

    >>> say([(1, 1), (5, 7)])
    '1,5-7'
    """
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in pieces)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def _pieces(name: str, given: Any) -> tuple[Piece, ...]:
    if is_whole(given):
        given = [given, given]
    if not _is_list(given) or not given:
        raise DataError(f"field {name!r} is {given!r}: {_EXPECTED}")
    pieces = [given] if all(is_whole(piece) for piece in given) else given
    for piece in pieces:
        if not _is_list(piece) or len(piece) != 2 or not all(is_whole(number) for number in piece):
            raise DataError(f"field {name!r} has {piece!r}: {_EXPECTED}")
        if not 1 <= piece[0] <= piece[1] <= _LONGEST:
            raise DataError(
                f"field {name!r} goes from character {piece[0]} to {piece[1]}: count from 1, and give the first before "
                "the last"
            )
    return tuple((first, last) for first, last in pieces)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


# Preparing columns of text before they are read as codes: what stewards would otherwise do by a script.

_WIDEST = 64


@dataclass(frozen=True)
class Prepare:
    """Cleaning of text columns, by name.

    >>> rows = pa.record_batch({"home": [" 1001", "NA"]})
    >>> Prepare(trim=["home"], pad={"home": 5}, missing=["NA"]).rows(rows).to_pylist()
    [{'home': '01001'}, {'home': None}]
    """

    trim: bool | Sequence[str] = ()
    """The columns that are stripped of blanks at both ends; True for all text."""
    missing: Sequence[str] = ()
    """Texts that stand for a missing value, such as "NA"."""
    replace: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By column, codes that are counted as others: those of districts that were merged."""
    pad: Mapping[str, int] = field(default_factory=dict)
    """By column, how long codes are: shorter ones get zeros in front."""
    thousands: Mapping[str, str] = field(default_factory=dict)
    """By column of numbers, the thousands separator: "," makes 1,234 the number 1234. Text that is not a number with
    such separators, such as 1,23, stays unchanged, and is then no count and no code."""

    def __post_init__(self) -> None:
        if not isinstance(self.trim, bool):
            object.__setattr__(self, "trim", tuple(self.trim))
        object.__setattr__(self, "missing", tuple(self.missing))
        for name in ("thousands", "replace", "pad"):
            object.__setattr__(self, name, FrozenMap(getattr(self, name)))
        for column, mark in self.thousands.items():
            if len(mark) != 1 or mark in "+-0123456789" or mark.isalpha():
                raise DataError(
                    f'thousands: {column!r} has {mark!r} between its thousands: give one character, such as ","'
                )
        for column, width in self.pad.items():
            if type(width) is not int or not 0 < width <= _WIDEST:
                raise DataError(f"pad: {column!r} has the width {width!r}: give a whole number from 1 to {_WIDEST}")

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that are named."""
        trim = self.trim if isinstance(self.trim, tuple) else ()
        return tuple(dict.fromkeys((*trim, *self.thousands, *self.replace, *self.pad)))

    def __bool__(self) -> bool:
        return bool(self.trim or self.missing or self.thousands or self.replace or self.pad)

    def rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with their columns prepared."""
        columns = []
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            if not self._changes(name, column.type):
                columns.append(column)
            elif pa.types.is_dictionary(column.type):
                columns.append(self._text(name, as_text(column.dictionary, name)).take(column.indices))
            else:
                columns.append(self._text(name, as_text(column, name)))
        return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)

    def _changes(self, name: str, kind: pa.DataType) -> bool:
        text = kind.value_type if pa.types.is_dictionary(kind) else kind
        is_text = pa.types.is_string(text) or pa.types.is_large_string(text) or pa.types.is_string_view(text)
        if not is_text and name in self.thousands and name not in (*self.replace, *self.pad):
            return False  # a number that is stored as one has no separators
        return name in self.named or (is_text and bool(self.missing or self.trim is True))

    def _text(self, name: str, text: Any) -> Any:
        if self.trim is True or (isinstance(self.trim, tuple) and name in self.trim):
            text = pc.utf8_trim_whitespace(text)
        if self.missing:
            text = pc.if_else(pc.is_in(text, pa.array(self.missing, pa.string())), pa.scalar(None, pa.string()), text)
        if name in self.thousands:
            text = _without_thousands(text, self.thousands[name])
        if name in self.replace:  # each text once
            codes = self.replace[name]
            position = pc.index_in(text, pa.array(list(codes), pa.string()))
            text = pc.coalesce(pa.array(list(codes.values()), pa.string()).take(position), text)
        if name in self.pad:
            text = pc.utf8_lpad(text, width=self.pad[name], padding="0")
        return text

    def words(self) -> list[str]:
        """Describe the preparation in short words."""
        phrases = []
        if self.trim:
            columns = "all text" if self.trim is True else say_listed(self.trim)
            phrases.append(f"blanks at the ends of {columns} do not count")
        if self.missing:
            listed = say_listed([repr(code) for code in self.missing])
            phrases.append(f"{listed} stand{'s' * (len(self.missing) == 1)} for a missing value")
        for column, mark in self.thousands.items():
            phrases.append(f"{mark!r} between the thousands of {column} does not count")
        for column, codes in self.replace.items():
            become = "code of {} is counted as another" if len(codes) == 1 else "codes of {} are counted as others"
            phrases.append(f"{len(codes):,} {become.format(column)}")
        phrases += [
            f"codes of {column} have zeros in front up to {width} characters" for column, width in self.pad.items()
        ]
        return phrases


def _without_thousands(text: Any, mark: str) -> Any:
    """Return numbers without their separators, which stand before every three digits; a fraction of zeros goes too.

    >>> _without_thousands(pa.array(["1,234", "1,234.0", "12,34", "1234", "1.0"]), ",").to_pylist()
    ['1234', '1234', '12,34', '1234', '1.0']
    >>> _without_thousands(pa.array(["1.234", "1.234,00", "1.0"]), ".").to_pylist()
    ['1234', '1234', "1.0 ('.' between thousands)"]
    """
    between = re.escape(mark)
    point = "".join(sign for sign in ".," if sign != mark)
    written = rf"^[+-]?[0-9]{{1,3}}({between}[0-9]{{3}})+([{re.escape(point)}]0*)?$"
    bare = pc.replace_substring_regex(text, rf"[{re.escape(point)}]0*$", "")
    if mark == ".":  # elsewhere 1.0 is the number 1: here it is neither that nor ten, and must not be read
        doubtful = pc.binary_join_element_wise(text, f" ({mark!r} between thousands)", "")
        left = pc.if_else(pc.match_substring(text, mark), doubtful, text)
    else:
        left = text
    return pc.if_else(pc.match_substring_regex(text, written), pc.replace_substring(bare, mark, ""), left)


# Where a table is, and the formats that it may have: files, standard input, or a database with a query.

BlankLines = Literal["record", "skip"]
Shared = Iterator[tuple[pa.RecordBatch, float]]
"""Rows, with the share of the place that is read with them: 0 where it is not known."""

VIEW = "a table of a database may be a view that leaves rows out"
"""Why it is never known of a database whether all rows are read."""

HEAD = 16

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
    """The values of some columns that a row must have to be in the table at all, as in `dict(year="2008")`. Decide them
    without looking at private data. Other rows are no part of the table."""
    header: bool | None = None
    """Whether the first line of a CSV file holds the names of its columns. None is yes, and a name that is a code of a
    hierarchy, a number or a date is refused; True vouches for it, False says that every line is a row."""
    names: Sequence[str] | None = None
    """The names of all columns, in order, of a CSV file without a header; column1, column2, … when None."""
    blank_lines: BlankLines = "record"
    """Meaning of an empty line: a record in which everything is missing, or nothing. A record may then vanish by being
    emptied, so a plan that releases the total exactly does not take such a table."""
    prepare: Prepare | None = None
    """Cleaning of text columns before they are read as codes; None for nothing."""
    drop: Mapping[str, str | Sequence[str]] | None = None
    """The values of some columns that leave a row out, as in `dict(status="test")`. It is the opposite of `keep`, and
    decided likewise. A row without a value stays."""
    sheet: str | None = None
    """For a workbook of Excel: the name of the sheet; it may be left out where there is only one."""
    comment: str | None = None
    """The character with which the lines above the table begin that are no part of a CSV file, such as "#"."""
    option_prefix: str = ""
    """Prefix of these options in a plan file, such as `nodes_` for the people of a graph; for messages."""

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
        for column, kept in (self.keep or {}).items():
            if both := [value for value in kept if value in (self.drop or {}).get(column, ())]:
                raise DataError(
                    f"keep and drop both list the value {both[0]!r} of {column!r}: leave it out of one of them"
                )
        if self.delimiter is not None and not re.fullmatch(r"[\t -~]", self.delimiter):
            raise DataError(f"the delimiter is {self.delimiter!r}: give one character, such as ';'")
        if self.comment is not None and not re.fullmatch(r"[!-~]", self.comment):
            raise DataError(f"the comment is {self.comment!r}: give the character that begins such lines, as in '#'")
        if self.names is not None:
            object.__setattr__(self, "names", as_names(self.names))
            if self.header is not False:
                raise DataError("names are for a table without a line of names: say header = false as well")
        if self.fields is not None and self.header is not None:
            raise DataError("fixed-width text has no header line: its fields have their names already")
        if self.blank_lines not in get_args(BlankLines):
            raise DataError(f'blank_lines is {self.blank_lines!r}: choose "record" or "skip"')
        if self.encoding is not None:
            try:
                is_text = codecs.lookup(self.encoding)._is_text_encoding
            except (LookupError, ValueError):
                is_text = False
            if not is_text:
                raise DataError(f'{self.encoding!r} is not an encoding: name one, such as "utf-8" or "latin-1"')
        if self.scheme is not None and not any(self.scheme in known.schemes for known in FORMATS.values()):
            *urls, last = ["a file", *(known.url for known in FORMATS.values() if known.url)]
            raise DataError(f"{self}: cannot read from {self.scheme}://; give {', '.join(urls)}, or {last}")

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
        url = _URL.match(self.location) if isinstance(self.location, str) else None
        return None if url is None else url[1].lower()

    def files(self) -> list[Path]:
        """Return the files of the source, in order; those of a folder or a pattern by name."""
        # A workbook beside tables is more likely about them than one of them: it is named, and not taken from a folder.
        files = [known for known in FORMATS.values() if known.endings and not known.has_sheets]
        endings = {ending for file in files for ending in file.endings}
        if isinstance(self.location, str | Path):
            return files_at(self.location, endings, [file.name for file in files])
        if not self.location:
            raise DataError("the list of files is empty: name at least one")
        return refuse_twice([file for one in self.location for file in Source(one).files()], str(self), endings)

    def formats(self) -> Iterator[SourceFormat]:
        """Yield the format of the table, or of each of its files; a source that is read only once counts as text."""
        if self.scheme is not None:
            yield next(known for known in FORMATS.values() if self.scheme in known.schemes)
        elif reads_once(self.location):
            yield format_of(b"", self, only_text=True)
        else:
            for file in self.files():
                with file.open("rb") as stream:
                    yield format_of(stream.read(HEAD), self)


OPTIONS = (
    "query", "delimiter", "encoding", "sheet", "fields", "keep", "drop", "comment", "header", "names", "blank_lines"
)  # fmt: skip
"""The options of a source that a plan file states under their own names."""


@dataclass(frozen=True)
class ReadRequest:
    """One place of a source, to be read: a file, standard input or a URL."""

    source: Source
    where: str
    columns: Sequence[str] | None
    """The columns that are wanted, in order; all when None."""
    dictionaries: bool
    rows: int
    path: Path | None = None
    stream: io.BufferedReader[Any] | None = None
    """The bytes of the file or of standard input; None for a URL."""
    groups: tuple[int, ...] | None = None
    """Of a file that has groups of rows, which of them are read; all when None."""

    def wanted(self, present: Sequence[str]) -> list[str]:
        """Return the columns that are wanted, of those that there are."""
        return list(present if self.columns is None else self.columns)


@dataclass(frozen=True)
class SourceFormat:
    """A format of tables: how it is told apart, how it is read, and its words."""

    name: str
    words: str
    """The noun phrase for a table of this format, such as "a Parquet file"."""
    read: Callable[[ReadRequest], Shared]
    """Yields the rows of one place in order, at least one batch."""
    recognises: Callable[[bytes, Source], bool] = lambda head, source: False
    """Recognises a file by its first bytes, despite its name."""
    endings: tuple[str, ...] = ()
    """The endings of the names of its files, in small letters: those that are taken from a folder."""
    schemes: tuple[str, ...] = ()
    url: str = ""
    is_text: bool = False
    """Whether it is text: then it may come from standard input, and have positions of fields or a header."""
    is_database: bool = False
    leaves_out: str | None = None
    """Records that the format may leave out by itself, as the end of a sentence; None if every row is read."""
    has_header: bool = False
    """Whether a table has a first line that may hold names, as text has."""
    has_sheets: bool = False
    """Whether a file has several tables, of which one is named."""


FORMATS: Choices[SourceFormat] = Choices("format of tables")
"""The formats that there are, by name; of several that recognise a file, the last one is taken."""


def register_format(format: SourceFormat) -> SourceFormat:
    """Add a format, before all others that recognise the same files."""
    taken = {scheme for other in FORMATS.values() for scheme in other.schemes}
    if taken & set(format.schemes) or bool(format.schemes) != bool(format.url.strip()):
        raise DataError(f"the URLs of {format.name!r} need schemes of their own, and words for what they look like")
    return FORMATS.register(format)


def format_of(head: bytes, source: Source, only_text: bool = False) -> SourceFormat:
    """Recognise the format of a file by its first bytes."""
    formats = reversed([*FORMATS.values()])
    return next(known for known in formats if known.recognises(head, source) and (known.is_text or not only_text))


def claimed_format(path: Path) -> SourceFormat | None:
    """Return the format that the name of a file claims, if it is one that is no text."""
    named = (known for known in FORMATS.values() if path.suffix.lower() in known.endings and not known.is_text)
    return next(named, None)


def as_source(table: Any) -> Source | None:
    """Return a path or a list of paths as a source, and None for an object that holds its rows itself."""
    if isinstance(table, Source):
        return table
    listed = isinstance(table, list | tuple) and all(isinstance(path, str | Path) for path in table)
    return Source(table) if listed or isinstance(table, str | Path) else None


def as_public(table: Any) -> Any:
    """Return a public table as one that is read kindly: blank lines are nothing, the first line may say anything."""
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


def leaves_out(source: Source) -> str | None:
    """Describe the records that the format of a table may leave out; a file is recognised by its first bytes."""
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


def selected(source: Source, format_may: str | None = None) -> str | None:
    """Say what selects the rows of a table; None where all of them are taken.

    `format_may` says what its format may leave out by itself, as a view of a database does.

    >>> selected(Source("trips.csv", keep={"year": ["2008"]})), selected(Source("trips.csv"))
    ('only rows with certain values of year are kept', None)
    >>> selected(Source("sqlite:///trips.db", query="trips"))
    'a query may leave rows out'
    """
    if source.keep:
        return f"only rows with certain values of {', '.join(source.keep)} are kept"
    if source.drop:
        return f"rows with certain values of {', '.join(source.drop)} are dropped"
    if source.query is not None:
        return "a query may leave rows out"
    if source.comment is not None:
        return f"lines above the table that begin with {source.comment!r} are no rows"
    return format_may or ("blank lines are skipped" if source.blank_lines == "skip" else None)
