"""A Spark session of tests: it logs all it does, into folders that can be searched afterwards."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.engines.descents import KEY, descended
from tests.engines.worker_tasks import PRIVATE, echo, private_error
from treetop.addons.clusters.spark import Spark, session
from treetop.engine.engine import Executor
from treetop.noise import Key

T = TypeVar("T")
R = TypeVar("R")

ROOT = Path(__file__).parents[2]
SOCKETS = "ignore:.*socket:pytest.PytestUnraisableExceptionWarning"
"""PySpark leaves some open until they are collected."""
OTHER = KEY.derive("other")
LOGGING = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {folder}/log.txt
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %m%n%ex
"""


@dataclass
class Place:
    """A session, and all folders that it and its tasks write to."""

    folder: Path
    running: Any = None
    stack: ExitStack = field(default_factory=ExitStack)

    @property
    def staging(self) -> Path:
        return self.folder / "staging"

    @property
    def spark(self) -> Spark:
        return Spark(self.running, self.staging)

    def start(self, master: str, settings: dict[str, str]) -> None:
        for name in ("staging", "events", "logs", "local", "work"):
            (self.folder / name).mkdir(mode=0o700)
        (self.folder / "log4j2.properties").write_text(LOGGING.format(folder=self.folder / "logs"))
        java = f"-Dlog4j2.configurationFile=file:{self.folder}/log4j2.properties"
        java += " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # no time to become fast
        searched = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file:{self.folder}/events",
            "spark.eventLog.compress": "false",
            "spark.local.dir": str(self.folder / "local"),
            "spark.driver.extraJavaOptions": java,
            "spark.executor.extraJavaOptions": java,
            "spark.driver.memory": "512m",
        }
        self.running = self.stack.enter_context(session(master, {**searched, **settings}))

    def stop(self) -> None:
        """End the session, and the machine that it ran on, with all processes that this has started."""
        from pyspark import SparkContext

        self.stack.close()
        gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(60)

    def holding(self, *needles: bytes) -> set[str]:
        """Tell which files of all folders hold one of these."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        found = (path for path in files if any(needle in path.read_bytes() for needle in needles))
        return {str(path.relative_to(self.folder)) for path in found}


def skip_without_spark() -> None:
    """Skip, with a word, where there is no Spark."""
    if find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed: pip install 'treetop-dp[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Java is not installed: apt-get install default-jre-headless")


@contextmanager
def started(folder: Path, master: str, **settings: str) -> Iterator[Place]:
    """Run a session; or skip, with a word."""
    skip_without_spark()
    place = Place(folder)
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(ROOT), os.environ.get("PYTHONPATH")]  # workers find these modules
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        patch.setenv("SPARK_WORKER_DIR", str(folder / "work"))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        try:
            place.start(master, settings)
            yield place
        finally:
            place.stop()


def written(key: Key) -> list[bytes]:
    """A key in the forms in which it could be written somewhere."""
    secret = key.secret
    return [secret, secret.hex().encode(), secret.hex().upper().encode(), base64.b64encode(secret)[:42]]


def leave_traces(spark: Spark) -> None:
    """Do all that could leave something: keys and private codes in tasks, in answers and in errors."""
    tasks = [(KEY, PRIVATE), (OTHER, PRIVATE)]
    assert list(spark.map(echo, tasks)) == tasks
    with pytest.raises(ValueError, match=f"{PRIVATE} is unknown"):
        list(spark.map(private_error, [PRIVATE]))
    descended("plain", spark)


def assert_no_traces(place: Place) -> None:
    """Look at everything that Spark and the staging folder keep."""
    assert place.holding(b"SparkListenerTaskEnd"), "there is no log of events"
    assert place.holding(b"Starting task"), "there is no log"
    keys = place.holding(*written(KEY), *written(OTHER))
    assert not keys, f"a key is in {keys}"
    codes = place.holding(PRIVATE.encode())
    assert not codes, f"a private code is in {codes}"
    left = list(place.staging.iterdir())
    assert not left, f"these are left: {left}"


@dataclass
class Through:
    """Has an executor run other functions than those it is asked to."""

    executor: Executor
    instead: Callable[[Any], Any]

    def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        return self.executor.map(self.instead(function), tasks)
