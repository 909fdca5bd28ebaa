"""A guard: planning takes public tables only, and refuses the private one when it is handed over by mistake.

A split that depends on the private counts makes the noise depend on them. Then no finite epsilon holds, whether or not
the split is published: with scales 1/e and 1/e′ on neighbouring tables the ratio of two Laplace densities,
(e/e′)·exp(−(e − e′)·|z|), has no bound.

The guard finds the same object, file, content (also inside gzip) or database query, without reading a row. Then it
compares records: both tables are read as the plan reads its own, all records of every unit, and are the same where
every leaf has as many. So a copy in another format, order, compression or database is found, with other ids or none,
and whether or not contributions are bounded. It is against accidents: a table from which one record was taken, or in
which one was changed, is not recognised, nor is one with its attributes under other names or codes.
"""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any, Literal, TypeAlias

from treetop.basics.resolved import resolved
from treetop.errors import DataError, PrivatePrior
from treetop.intake.counts import Counts
from treetop.sources.database import sqlite_path
from treetop.sources.source import Source, as_source, reads_once, without_password
from treetop.sources.table import Table

Role: TypeAlias = Literal["prior", "twin"]
"""What a public table is for: to choose a split by, or to try a plan on."""

_WHY = (
    "noise whose size depends on the private counts has no guarantee, even if the sizes are kept secret; "
    "plan from an earlier release, a public table, a synthetic one, or from no table at all"
)
_WHY_TWIN = (
    "trials draw noise that anybody can compute, and print the errors of what they are given; try the plan on an "
    "earlier release, a public table, or a synthetic one"
)
_PIECE = 1 << 20
"""How many bytes of two files are compared at a time."""


def refuse_counts(table: object) -> None:
    """Refuse private counts where a public table is expected."""
    if isinstance(table, Counts):
        raise PrivatePrior(f"a prior cannot be made from Counts, which are private: {_WHY}")


def refuse_private(prior_source: Table, plan_source: Table | None, role: Role = "prior") -> None:
    """Refuse a prior or twin whose table is the plan's own; None where the plan does not say what it will read."""
    refuse_counts(prior_source)
    if plan_source is None:
        return
    if (what := _same(prior_source, plan_source)) is not None:
        raise PrivatePrior(f"the {role} is the private table itself ({what}): {_WHY if role == 'prior' else _WHY_TWIN}")


def refuse_same_records(public: bytes | None, private: Counts, role: Role = "prior") -> None:
    """Refuse a prior or twin with the same records as the private table, before contributions are bounded.

    `public` is the digest of its counts (`Prior.records`); None where there is no table.
    """
    if public is not None and public == private.digest:
        raise PrivatePrior(
            f"the {role} has the same records as the private table, whatever its file is: "
            f"{_WHY if role == 'prior' else _WHY_TWIN}"
        )


def _same(one: Any, other: Any) -> str | None:
    """Say in what two tables are the same, or None where they are not known to be."""
    if one is other and not isinstance(one, str | Path):
        return "the same object"
    here, there = as_source(one), as_source(other)
    if here is None or there is None:
        return _same_content(one, other) if here is None and there is None else None
    if here.scheme or there.scheme or here.query or there.query:
        return _same_query(here, there)
    if reads_once(here.location) or reads_once(there.location):
        return f"both are {there}" if here.location == there.location else None
    return _same_file(_files(here), _files(there))


def _same_content(one: Any, other: Any) -> str | None:
    import pyarrow as pa

    alike = isinstance(one, pa.Table) and isinstance(other, pa.Table) and one.equals(other)
    return "the same rows in memory" if alike else None


def _same_query(here: Source, there: Source) -> str | None:
    if _database(here) != _database(there):
        return None
    ours, theirs = (" ".join((source.query or "").split()).rstrip("; ").lower() for source in (here, there))
    # Without a query the database's only table is read, whatever its name is.
    return f"the same query to {there}" if ours == theirs or not ours or not theirs else None


def _database(source: Source) -> str:
    location = str(source.location)
    if source.scheme == "sqlite":
        return str(resolved(sqlite_path(location)))
    return without_password(location) if source.scheme is not None else str(resolved(location))


def _files(source: Source) -> list[Path]:
    try:
        return [resolved(file) for file in source.files()]
    except DataError:  # not there, or not yet: its name can still be compared
        location = source.location
        return [resolved(one) for one in (location if isinstance(location, tuple) else (location,))]


def _same_file(ours: list[Path], theirs: list[Path]) -> str | None:
    for file in ours:
        for private in theirs:
            if file == private:
                return f"the file {private}"
            if file.is_file() and private.is_file():
                if file.samefile(private):
                    return f"{file} is another name of {private}"
                if _same_bytes(file, private):
                    return f"{file} has the content of {private}"
    return None


def _same_bytes(one: Path, other: Path) -> bool:
    """Tell whether two files hold the same bytes, of gzip files those inside."""
    if not (_is_gzip(one) or _is_gzip(other)) and one.stat().st_size != other.stat().st_size:
        return False
    with _opened(one) as ours, _opened(other) as theirs:
        try:
            while (piece := ours.read(_PIECE)) == theirs.read(_PIECE):
                if not piece:
                    return True
        except (EOFError, gzip.BadGzipFile, zlib.error):  # damaged: reading it as a table will say so
            pass
    return False


def _is_gzip(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


def _opened(file: Path) -> io.BufferedIOBase:
    return gzip.open(file, "rb") if _is_gzip(file) else file.open("rb")
