"""Reading from databases in batches: DuckDB files, and SQLite and PostgreSQL through their Arrow drivers.

A query may come from a plan file that someone else wrote. It can only read: it is one statement, and the database is
opened so that it can change nothing, reach no other file, and load nothing.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from treetop._util.choices import nearest
from treetop._util.distribution import install_extra
from treetop.errors import DataError
from treetop.io.row_batch import require
from treetop.io.source import ReadRequest, Shared, SourceFormat

Run = Callable[[str], pa.RecordBatchReader]

_ROWS = 1 << 16
_CLOSED: dict[str, Any] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}
"""How DuckDB is opened: no other file, no extension, no variable of Python's, and none of it to be set back."""
_SQLITE_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^]]*]|--[^\n]*|/\*.*?(?:\*/|$)|.""", re.DOTALL
)


def sqlite_path(url: str) -> Path:
    """Return the file of `sqlite:///file`; one more slash, or one that is meant, makes it absolute."""
    path = Path(unquote(re.sub(r"^sqlite:///?", "", url, flags=re.IGNORECASE)))
    absolute = Path("/") / path
    return absolute if not path.exists() and absolute.exists() else path


@dataclass(frozen=True)
class _Database:
    run: Run
    is_one_query: Callable[[str], bool]
    """Tells whether a text is one statement that reads. A query is put in parentheses: it must not close them itself,
    and go on with statements of its own."""
    list_tables: str


def _read(connected: Callable[[ReadRequest], AbstractContextManager[_Database]], part: ReadRequest) -> Shared:
    where = part.where
    with connected(part) as database:
        query = _query(part.source.query, database, where)
        with _explained(where, "the query failed"):
            if not database.is_one_query(query):
                raise DataError(f"{where}: the query failed: it is not one statement that only reads: give one select")
            names = database.run(f"select * from ({query}\n) as t limit 0").schema.names
        require(part.columns, names, where)
        wanted = ", ".join(map(_quoted, part.wanted(names)))
        with _explained(where, "the query failed"):
            reader = database.run(f"select {wanted} from ({query}\n) as t")
            empty = True
            for batch in reader:
                empty = False
                yield batch, 0.0
            if empty:
                yield pa.RecordBatch.from_pylist([], reader.schema), 0.0


@contextmanager
def _duckdb(part: ReadRequest) -> Iterator[_Database]:
    duckdb = _driver("duckdb", "DuckDB")
    with _explained(part.where, "cannot be opened"):
        database = duckdb.connect(str(part.path), read_only=True, config=_CLOSED)
    with database:

        def is_one(query: str) -> bool:
            kinds = [statement.type.name for statement in database.extract_statements(query)]
            return kinds in (["SELECT"], ["MULTI"])  # the second is what DuckDB calls a pivot

        yield _Database(
            lambda query: database.sql(query).to_arrow_reader(_ROWS),
            is_one,
            "select table_name from information_schema.tables order by 1",
        )


@contextmanager
def _sqlite(part: ReadRequest) -> Iterator[_Database]:
    path = sqlite_path(str(part.source.location)) if part.path is None else part.path
    if not path.is_file():
        raise DataError(f"{part.where}: no such file")
    driver = _driver("adbc_driver_sqlite.dbapi", "SQLite")
    with _explained(part.where, "cannot be opened", str(path)):
        connection = driver.connect(f"file:{quote(str(path))}?mode=ro", autocommit=True)
    with connection, connection.cursor() as cursor:
        # It takes a column's type from its first batch.
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(_ROWS)})
        with _explained(part.where, "cannot be read"):
            cursor.execute("pragma query_only = on")
            cursor.execute("pragma trusted_schema = off")
        yield _Database(
            partial(_run, cursor),
            _is_one_of_sqlite,
            "select name from sqlite_master where type in ('table', 'view') and name not like 'sqlite_%' order by 1",
        )


@contextmanager
def _postgresql(part: ReadRequest) -> Iterator[_Database]:
    driver, url = _driver("adbc_driver_postgresql.dbapi", "PostgreSQL"), str(part.source.location)
    with _explained(part.where, "cannot be reached", url):
        connection = driver.connect(url, autocommit=False)
    with connection, connection.cursor() as cursor:
        with _explained(part.where, "cannot be read"):
            # A transaction that has begun to read can then never write again, and all is one transaction.
            cursor.execute("set transaction read only")

        def is_prepared(query: str) -> bool:  # the server refuses to prepare several statements
            cursor.adbc_prepare(query)
            return True

        yield _Database(
            partial(_run, cursor),
            is_prepared,
            "select table_name::text from information_schema.tables "
            "where table_schema not in ('pg_catalog', 'information_schema') order by 1",
        )


def _run(cursor: Any, query: str) -> pa.RecordBatchReader:
    cursor.execute(query)
    return cursor.fetch_record_batch()


def _is_one_of_sqlite(query: str) -> bool:
    """Find a second statement, or a parenthesis too many, outside of texts, names and comments."""
    depth = 0
    for token in _SQLITE_TOKEN.findall(query):
        depth += (token == "(") - (token == ")")
        if token == ";" or depth < 0:
            return False
    return True


def _driver(module: str, database: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        raise DataError(
            f"reading from {database} needs a package that is not installed: {install_extra('sql')}"
        ) from problem


def _query(query: str | None, database: _Database, where: str) -> str:
    if query is not None and not query.strip():
        raise DataError(f"{where}: the query is blank: give a query, or the name of a table")
    if query is not None and re.search(r"[\s(]", query.strip()):
        return query.strip().rstrip(";")
    with _explained(where, "cannot be read"):
        present = [name for batch in database.run(database.list_tables) for name in batch.column(0).to_pylist()]
    if query is None:
        if len(present) != 1:
            held = f"the tables are {', '.join(present)}" if present else "there are no tables"
            raise DataError(f"{where}: give a query, or the name of a table; {held}")
        return f"select * from {_quoted(present[0])}"
    name = query.strip()
    if name in present:
        return f"select * from {_quoted(name)}"
    if "." in name:  # schema.table
        return "select * from " + ".".join(map(_quoted, name.split(".")))
    raise DataError(
        f"{where}: there is no table {name!r}{nearest(name, present)}; the tables are {', '.join(present) or 'none'}"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _explained(where: str, what: str, url: str = "") -> Iterator[None]:
    """Turn any exception of a driver into an error, without a traceback that might show a password."""
    try:
        yield
    except (DataError, GeneratorExit):
        raise
    except Exception as problem:
        message = " ".join(str(problem).split())
        hint = ""
        if "type" in message.lower() and "expected" in message.lower():
            hint = ". A column that holds several types is read with cast(… as text) in the query"
        raise DataError(f"{where}: {what}: {_discreet(message, url)}{hint}") from None


def _discreet(message: str, url: str) -> str:
    """Leave out a message that may quote a password: of a URL that is misread, parts turn up anywhere."""
    secrets = re.findall(r"^[^:]+://[^:@/?#]*:(.*)@", url, flags=re.DOTALL)
    secrets += re.findall(r"(?i)(?:password|passphrase|pwd)=(.*)", url, flags=re.DOTALL)
    if any(re.search(r"[@:/?#%&\s]", secret) or secret in message for secret in secrets):
        return (
            "check host, port, user and password; in a URL, the signs @ : / ? # of a password are written %40 %3A "
            "%2F %3F %23"
        )
    return message


SQLITE = SourceFormat(
    "SQLite",
    "an SQLite database",
    partial(_read, _sqlite),
    recognises=lambda head, source: head[:16] == b"SQLite format 3\0",
    schemes=("sqlite",),
    url="sqlite:///file",
    is_database=True,
)
DUCKDB = SourceFormat(
    "DuckDB",
    "a DuckDB file",
    partial(_read, _duckdb),
    recognises=lambda head, source: head[8:12] == b"DUCK",
    is_database=True,
)
POSTGRESQL = SourceFormat(
    "PostgreSQL",
    "a PostgreSQL database",
    partial(_read, _postgresql),
    schemes=("postgresql", "postgres"),
    url="postgresql://user@host/database",
    is_database=True,
)
