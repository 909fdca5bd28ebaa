"""Dask: the release of one process, also where a worker is killed, and keys are not sent in clear."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.engines.descents import KEY, KINDS, cut_small, descended
from tests.engines.sparks import ROOT, Through, written
from tests.engines.worker_tasks import PRIVATE, Dying, die, echo, private_error, process
from treetop.addons.clusters.dask import Dask, check, client
from treetop.errors import EngineError

CLUSTER = """
import sys
import dask, distributed
dask.config.set({"distributed.scheduler.allowed-failures": 1})
with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""
"""Its workers, and those that come in their place, are no children of the tests."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if find_spec("distributed") is None:
        pytest.skip("Dask is not installed: pip install 'treetop-dp[dask]'")
    folder = tmp_path_factory.mktemp("dask")
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))  # workers find these modules
    environment = {**os.environ, "PYTHONPATH": paths, "DASK_TEMPORARY_DIRECTORY": str(folder)}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen([sys.executable, "-c", CLUSTER], env=environment, stderr=log, **pipes) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        try:
            with client(process.stdout.readline().strip()) as made:
                Dask(made, folder).prove()  # the threads of a client begin with the first task
                yield made
        finally:
            process.stdin.close()
    left = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not any(needle in content for content in left for needle in (*written(KEY), PRIVATE.encode()))


@pytest.fixture(autouse=True)
def _small_trees_are_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)


@pytest.fixture
def staging(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "staging"
    path.mkdir()
    yield path
    assert list(path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_is_that_of_one_process(kind: str, running: Any, staging: Path) -> None:
    dask = Dask(running, staging)
    dask.prove()
    assert descended(kind, dask) == descended(kind)


@pytest.mark.parametrize("while_writing", [False, True], ids=["in the middle", "while it writes"])
def test_a_worker_that_ends_changes_nothing(while_writing: bool, running: Any, staging: Path, tmp_path: Path) -> None:
    marker = tmp_path / "died"
    dying = Through(Dask(running, staging), lambda function: Dying(function, str(marker), while_writing))
    assert descended("plain", dying) == descended("plain")
    assert marker.exists()


def test_one_that_always_ends_is_told_of_in_one_sentence(running: Any, staging: Path) -> None:
    with pytest.raises(EngineError, match="^Dask gave up on a task: KilledWorker") as told:
        list(Dask(running, staging).map(die, [PRIVATE]))
    assert PRIVATE not in str(told.value)


def test_errors_are_raised_here_and_told_nowhere(
    running: Any, staging: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=f"{PRIVATE} is unknown"):
        list(Dask(running, staging).map(private_error, [PRIVATE]))
    logs = str(running.get_worker_logs()) + str(running.get_scheduler_logs()) + "".join(capfd.readouterr())
    assert PRIVATE not in logs


def test_keys_are_not_in_files(running: Any, staging: Path) -> None:
    answers = Dask(running, staging).map(echo, [(KEY, PRIVATE), (KEY, PRIVATE)])
    next(answers)
    files = [path.read_bytes() for path in staging.rglob("*") if path.is_file()]
    assert any(PRIVATE.encode() in content for content in files)
    assert not any(needle in content for content in files for needle in written(KEY))
    answers.close()  # type: ignore[attr-defined]


def test_tasks_are_not_done_by_the_driver_and_nothing_is_done_for_none(running: Any, staging: Path) -> None:
    assert os.getpid() not in set(Dask(running, staging).map(process, range(3)))
    assert list(Dask(running, staging).map(echo, [])) == []


def cluster(*addresses: str) -> Any:
    """A client of a scheduler and workers, as far as it is looked at."""
    workers = {"workers": dict.fromkeys(addresses[1:])}
    return SimpleNamespace(scheduler=SimpleNamespace(address=addresses[0]), scheduler_info=lambda n_workers: workers)


def test_a_cluster_that_sends_in_clear_is_refused() -> None:
    for address in ("tls://10.0.0.1:8786", "inproc://10.0.0.1/1/1", "tcp://127.0.0.1:8786"):
        check(cluster(address, "tls://10.0.0.2:41"))
    with pytest.raises(EngineError, match="--protocol tls"):
        check(cluster("tcp://10.0.0.1:8786"))
    with pytest.raises(EngineError, match="--protocol tls"):
        check(cluster("tcp://127.0.0.1:8786", "tcp://10.0.0.1:41"))


def test_without_the_packages_their_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(EngineError, match=r"pip install 'treetop-dp\[dask\]'"), client("tcp://127.0.0.1:1"):
        pass
