"""A guard: planning takes public tables only, and refuses the private one when it is handed over by mistake.

A split that depends on the private counts makes the noise depend on them. Then no finite epsilon holds, whether or not
the split is published: with scales 1/e and 1/e′ on neighbouring tables the ratio of two Laplace densities,
(e/e′)·exp(−(e − e′)·|z|), has no bound.

The guard finds the same object, file, content, or database query. It is against accidents: a private table that was
copied into another format or database, read into memory, or asked for by another query, is not recognised.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from treetop.counts import Counts
from treetop.data.source import Source, as_source, without_password
from treetop.data.table import Table
from treetop.errors import DataError, PrivatePrior

_WHY = (
    "noise whose size depends on the private counts has no guarantee, even if the sizes are kept secret; "
    "plan from an earlier release, a public table, a synthetic one, or from no table at all"
)


def refuse_counts(table: object) -> None:
    """Refuse private counts where a public table is expected."""
    if isinstance(table, Counts):
        raise PrivatePrior(f"a prior cannot be made from Counts, which are private: {_WHY}")


def refuse_private(prior_source: Table, plan_source: Table | None) -> None:
    """Refuse a prior whose table is the plan's own; None where the plan does not say what it will read."""
    refuse_counts(prior_source)
    if plan_source is None:
        return
    if (what := _same(prior_source, plan_source)) is not None:
        raise PrivatePrior(f"the prior is the private table itself ({what}): {_WHY}")


def _same(one: Any, other: Any) -> str | None:
    """Say in what two tables are the same, or None where they are not known to be."""
    if one is other and not isinstance(one, str | Path):
        return "the same object"
    here, there = as_source(one), as_source(other)
    if here is None or there is None:
        return _same_content(one, other) if here is None and there is None else None
    if here.scheme or there.scheme or here.query or there.query:
        return _same_query(here, there)
    if "-" in (here.location, there.location):
        return "both are standard input" if here.location == there.location else None
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
        from treetop.data.database import sqlite_path

        return str(sqlite_path(location).resolve())
    return without_password(location) if source.scheme is not None else str(Path(location).resolve())


def _files(source: Source) -> list[Path]:
    try:
        return [file.resolve() for file in source.files()]
    except DataError:  # not there, or not yet: its name can still be compared
        location = source.location
        return [Path(one).resolve() for one in (location if isinstance(location, tuple) else (location,))]


def _same_file(ours: list[Path], theirs: list[Path]) -> str | None:
    for file in ours:
        for private in theirs:
            if file == private:
                return f"the file {private}"
            if file.is_file() and private.is_file():
                if file.samefile(private):
                    return f"{file} is another name of {private}"
                if file.stat().st_size == private.stat().st_size and _hash(file) == _hash(private):
                    return f"{file} has the content of {private}"
    return None


def _hash(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
