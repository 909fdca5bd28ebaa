"""Spark: the release of one process, whoever fails on the way, and nothing private in what Spark keeps."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import treetop as tt
from tests.engines.descents import IN_TURN, KEY, KINDS, PLACE, cut_small, descended
from tests.engines.sparks import SOCKETS, Place, Through, assert_no_traces, leave_traces, started, written
from tests.engines.worker_tasks import PRIVATE, Dying, Slow, die, echo, process
from treetop.addons.clusters import spark as sparks
from treetop.addons.clusters import task_files
from treetop.addons.clusters.spark import _Settings, check, session, settings_for
from treetop.errors import DataError, EngineError

pytestmark = pytest.mark.filterwarnings(SOCKETS)
CLUSTER = "local-cluster[2,1,1024]"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One session for all tests; when it has ended, what it left is searched once more."""
    with started(tmp_path_factory.mktemp("spark"), "local[2]") as made:
        yield made
    assert_no_traces(made)


@pytest.fixture(autouse=True)
def _small_trees_are_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)


def test_workers_prove_that_they_can_do_it(place: Place) -> None:
    place.spark.prove()


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_is_that_of_one_process(kind: str, place: Place) -> None:
    expected = descended(kind)
    assert descended(kind, place.spark) == expected
    assert list(place.staging.iterdir()) == []


@pytest.mark.parametrize("while_writing", [False, True], ids=["in the middle", "while it writes"])
def test_a_python_worker_that_ends_changes_nothing(while_writing: bool, place: Place, tmp_path: Path) -> None:
    marker = tmp_path / "died"
    dying = Through(place.spark, lambda function: Dying(function, str(marker), while_writing))
    assert descended("plain", dying) == descended("plain")
    assert marker.exists()
    assert list(place.staging.iterdir()) == []


def test_one_that_always_ends_is_told_of_in_one_sentence(place: Place) -> None:
    with pytest.raises(EngineError, match=r"^Spark gave up on a job: .*lack memory") as told:
        list(place.spark.map(die, [PRIVATE]))
    assert PRIVATE not in str(told.value) and "\n" not in str(told.value)
    assert list(place.staging.iterdir()) == []


def test_tasks_are_not_done_by_the_driver_and_nothing_is_done_for_none(place: Place) -> None:
    assert os.getpid() not in set(place.spark.map(process, range(3)))
    assert list(place.spark.map(echo, [])) == []


def test_a_folder_that_workers_do_not_see_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(folder: Path, *rest: Any) -> Any:
        context, number = task_files.pack(folder, *rest)
        folder.rename(folder.with_name("elsewhere"))
        return context, number

    monkeypatch.setattr(sparks, "pack", elsewhere)
    with pytest.raises(EngineError, match="does not see the staging folder"):
        place.spark.prove()
    shutil.rmtree(place.staging / "elsewhere")


def test_more_keys_than_a_closure_carries_are_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparks, "LARGEST_CLOSURE", 1_000)
    with pytest.raises(EngineError, match="more keys"):
        list(place.spark.map(echo, [KEY.derive("one", number) for number in range(30)]))


def test_settings_that_come_late_do_not_count(place: Place) -> None:
    running = place.running
    with session() as there:
        assert there is running
    with pytest.raises(EngineError, match=r"a Spark session on local\[2,4\] is running"), session(CLUSTER):
        pass
    name = "spark.ssl.enabled"
    type(running).builder.config(name, "true").getOrCreate()
    assert running.conf.get(name) == "true"
    assert _Settings(running).get(name) == ""


def saved(release: tt.Release, folder: Path) -> dict[str, bytes]:
    """The tables of a release; the card and the plan have its number."""
    release.save(folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


def frame_and_table(place: Place) -> tuple[Any, pa.Table]:
    """The same rows twice: on the cluster, in several partitions of which some are empty, and here."""
    rng, ends = np.random.default_rng(3), np.array(PLACE.codes[-1].to_pylist())
    table = pa.table(
        {
            "from": ends[rng.integers(0, len(ends), 500)],
            "destination": ends[rng.integers(0, len(ends), 500)],
            "who cares": rng.random(500),
            "a.person": [f"p{number}" for number in rng.integers(0, 90, 500)],
            "n": rng.integers(1, 5, 500),
        }
    )
    return place.running.createDataFrame(table).repartition(7, "destination"), table


@pytest.mark.parametrize("count", [None, "n"])
@pytest.mark.parametrize("bounded", [False, True])
def test_a_dataframe_is_read_where_it_is(count: str | None, bounded: bool, place: Place, tmp_path: Path) -> None:
    frame, table = frame_and_table(place)
    unit = tt.Unit("person", 2, "add-remove", id="a.person") if bounded else tt.Unit("trip", neighbours="replace")
    plan = tt.Plan(IN_TURN, unit, tt.Loss(rho=1))
    how: dict[str, Any] = {"columns": {"origin": "from"}, "count": count, "testing_key": bytes(32)}
    here = tt.make_release(plan, table, tt.RunOptions(**how))
    there = tt.make_release(plan, frame, tt.RunOptions(engine=tt.Engine(staging=place.staging), **how))
    assert saved(there, tmp_path / "there") == saved(here, tmp_path / "here")
    assert list(place.staging.iterdir()) == []


def test_a_dataframe_without_rows_is_a_table_like_any_other(place: Place) -> None:
    frame, _ = frame_and_table(place)
    plan = tt.Plan(IN_TURN, tt.Unit("trip", neighbours="add-remove"), tt.Loss(rho=1))
    release = tt.make_release(
        plan, frame.limit(0), tt.RunOptions(columns={"origin": "from"}, engine=tt.Engine("spark", place.staging))
    )
    assert release.total >= 0


def test_dataframes_that_cannot_be_read_are_refused_before_they_are(place: Place) -> None:
    frame, _ = frame_and_table(place)
    plan = tt.Plan(IN_TURN, tt.Unit("trip", neighbours="replace"), tt.Loss(rho=1))
    with pytest.raises(DataError, match="no column 'origin'"):
        tt.make_release(plan, frame, tt.RunOptions(engine=tt.Engine("spark", place.staging)))
    with pytest.raises(EngineError, match=r'engine "spark".*toArrow'):
        tt.make_release(plan, frame, tt.RunOptions(engine="local", columns={"origin": "from"}))
    assert list(place.staging.iterdir()) == []


def test_rows_of_a_dataframe_lie_in_files_that_others_cannot_read_and_in_none_that_was_overtaken(
    place: Place, tmp_path: Path
) -> None:
    frame, table = frame_and_table(place)
    files = place.spark.files(frame, ["from", "n"], tmp_path / "frame")
    for path in files[:1]:
        path.with_name("overtaken.parquet").write_bytes(path.read_bytes())  # as a second attempt would leave
    assert {path.stat().st_mode & 0o077 for path in [*files, tmp_path / "frame"]} == {0}
    assert sorted(pq.read_table(files).to_pylist(), key=str) == sorted(table.select(["from", "n"]).to_pylist(), key=str)


@pytest.fixture
def hears() -> Iterator[None]:
    """Ctrl-C is heard, which a background job would have ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears")
def test_ctrl_c_ends_the_job_and_leaves_nothing(place: Place) -> None:
    interrupt = threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    interrupt.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(place.spark.map(Slow(echo, 60), range(4)))
    interrupt.join()
    assert list(place.staging.iterdir()) == []
    assert list(place.spark.map(echo, range(2))) == [0, 1]  # workers are free again
    assert time.monotonic() - begun < 50


def test_ctrl_c_stays_whose_it_was(place: Place) -> None:
    assert place.running is not None
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)  # as pytest was started


def test_nothing_private_is_left_anywhere(place: Place) -> None:
    answers = place.spark.map(echo, [(KEY, PRIVATE), (KEY, PRIVATE)])
    next(answers)
    # In the middle of a run private data is in the staging folder, and only there; the key is not.
    there = place.holding(PRIVATE.encode())
    assert there and all(name.startswith("staging/exchange-") for name in there)
    assert place.holding(*written(KEY)) == set()
    answers.close()  # type: ignore[attr-defined]
    leave_traces(place.spark)
    assert_no_traces(place)


def stub(master: str, started: Mapping[str, str], version: str = "4.3.0", late: Mapping[str, str] | None = None) -> Any:
    """A session that was started with settings, as far as it is looked at, and was told others when it was too late."""
    conf = {"spark.master": master, **started}
    context = SimpleNamespace(getConf=lambda: conf)
    return SimpleNamespace(version=version, conf={**conf, **(late or {})}, sparkContext=context)


ENCRYPTED = {"spark.io.encryption.enabled": "true"}
GUARDED = {**ENCRYPTED, "spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,4]"])
def test_a_local_session_must_encrypt_what_it_writes(master: str) -> None:
    check(stub(master, ENCRYPTED))
    with pytest.raises(EngineError, match="start one with --conf spark.io.encryption.enabled=true; a session"):
        check(stub(master, {}))
    with pytest.raises(EngineError, match="would write or send the key of the noise in clear"):
        check(stub(master, {}, late=ENCRYPTED))


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077", "k8s://https://host:443", CLUSTER, ""])
def test_a_cluster_must_also_encrypt_what_it_sends(master: str) -> None:
    check(stub(master, GUARDED))
    for name in GUARDED:
        with pytest.raises(EngineError, match=f"start one with --conf {name}=true; a session"):
            check(stub(master, {**GUARDED, name: "false"}))
    with pytest.raises(EngineError, match="io.encryption.*authenticate.*network.crypto"):
        check(stub(master, {}))


def connected(host: str, secure: bool) -> Any:
    class Session(SimpleNamespace):
        pass

    Session.__module__ = "pyspark.sql.connect.session"
    client = SimpleNamespace(_builder=SimpleNamespace(host=host, secure=secure))
    return Session(version="4.3.0", conf={"spark.master": "yarn", **GUARDED}, client=client)


def test_a_connection_to_another_machine_must_be_encrypted() -> None:
    check(connected("localhost", False))
    check(connected("spark.example", True))
    with pytest.raises(EngineError, match="use_ssl=true"):
        check(connected("spark.example", False))


def test_an_old_version_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "treetop"):
        check(stub("local", ENCRYPTED, "4.1.0"))
        assert caplog.text == ""
        check(stub("local", ENCRYPTED, "3.5.4"))
    assert "Spark 3.5.4 is older than all that Treetop was tried with: take 4.1 or later" in caplog.text


def test_a_session_that_we_start_is_one_that_we_accept() -> None:
    for master in ("local[2]", CLUSTER, "yarn", "spark://host:7077"):
        check(stub(master, settings_for(master)))
    assert "spark.ui.enabled" not in settings_for("yarn")
    assert settings_for(CLUSTER)["spark.authenticate.secret"] != settings_for(CLUSTER)["spark.authenticate.secret"]


def test_without_the_packages_their_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(EngineError, match=r"pip install 'treetop-dp\[spark\]'"), session("local"):
        pass
