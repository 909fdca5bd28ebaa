"""PostgreSQL through its Arrow driver, on a private server; and passwords that never show."""

from __future__ import annotations

import pyarrow as pa
import pytest

import treetop as tt
from treetop import Source
from treetop.counts.reading import read_counts
from treetop.errors import DataError

SPINE = tt.Spine(["place"], {"place": tt.Hierarchy.flat(["01001", "None", "7"])})
SECRET = "hunter2"  # the password of the shared server


@pytest.fixture(scope="module")
def url(server: str) -> str:
    from adbc_driver_postgresql import dbapi  # type: ignore[import-untyped]

    with dbapi.connect(server, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("create table trips (place text, number integer, n numeric)")
        cursor.execute("insert into trips values ('01001', 7, 2), ('None', 7, 1), ('01001', 7, 1)")
    return server


def test_codes_from_postgresql_stay_text(url: str) -> None:
    expected = read_counts(pa.table({"place": ["01001", "None", "01001"]}), SPINE).digest
    for query in (None, "trips", "public.trips", "select place from trips;"):
        assert read_counts(Source(url, query), SPINE).digest == expected


def test_whole_numbers_and_sums_are_read(url: str) -> None:
    assert read_counts(Source(url, "trips"), SPINE, {"place": "number"}).total == 3
    query = "select place, sum(n) as n from trips group by place"
    assert read_counts(Source(url, query), SPINE, count="n").total == 4


def test_what_postgresql_refuses_is_told(url: str) -> None:
    for query, message in {
        "trps": r"no table 'trps' \(did you mean 'trips'\?\)",
        "select nope from trips": 'the query failed: .*column "nope" does not exist',
        "select n as plce from trips": r"no column 'place' \(did you mean 'plce'\?\)",
    }.items():
        with pytest.raises(DataError, match=message) as refused:
            read_counts(Source(url, query), SPINE)
        assert SECRET not in str(refused.value)


def test_a_wrong_password_is_refused_and_not_shown(server: str) -> None:
    with pytest.raises(DataError, match="cannot be reached: .*password authentication failed") as refused:
        read_counts(Source(server.replace(SECRET, "swordfish")), SPINE)
    assert "swordfish" not in str(refused.value)


@pytest.mark.parametrize("sign", ["", "/", "@", ":", "?", "#", "%", " ", "&"])
def test_an_unreachable_database_is_told_without_the_password(sign: str) -> None:
    password = f"xyzzy{sign}plugh"
    for url in (
        f"postgresql://ann:{password}@127.0.0.1:1/db",
        f"postgresql://ann@127.0.0.1:1/db?password={password}",
        f"postgres://ann:{password}@127.0.0.1:port/db",
    ):
        source = Source(url, "trips")
        with pytest.raises(DataError, match=r"127.0.0.1.*: cannot be reached") as refused:
            read_counts(source, SPINE)
        for shown in (str(refused.value), repr(source), str(source)):
            assert "xyzzy" not in shown
            assert "plugh" not in shown
        assert refused.value.__cause__ is None
        assert refused.value.__suppress_context__
