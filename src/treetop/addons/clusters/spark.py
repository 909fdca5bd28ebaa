"""Spark: tasks run on a cluster, and no private data go through Spark itself.

Tasks and answers are files of a staging folder that driver and executors share (`task_files`). The keys travel in the
closure of the function that Spark runs, so a session must encrypt its files and messages (`sessions`). Only the
DataFrame interface is used, which Spark Connect and managed platforms have too.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from treetop._util.choices import nearest
from treetop._util.distribution import install_extra
from treetop.addons.clusters.task_files import (
    WorkerContext,
    count_bytes,
    exchange_dir,
    explain,
    pack,
    prove,
    unpack,
    work,
)
from treetop.errors import DataError, EngineError

# Sessions of Spark: which are safe for keys, and how one is started that is.

OLDEST = (4, 1)
ATTEMPTS = 4
"""Attempts at a task in local mode, as many as a cluster makes by default."""

_ENCRYPTED = {"spark.io.encryption.enabled": "true"}
_GUARDED = {**_ENCRYPTED, "spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
_LOG = logging.getLogger("treetop")


def check(session: Any) -> None:
    """Refuse a session that would write or send keys in clear, and warn of an untested version."""
    settings = _Settings(session)
    master = settings.get("spark.master")
    needed = _ENCRYPTED if _is_local(master) else _GUARDED
    missing = [f"{name}={value}" for name, value in needed.items() if settings.get(name).lower() != value]
    if missing:
        listed = " ".join(f"--conf {one}" for one in missing)
        raise EngineError(
            "this Spark session would write or send the key of the noise in clear. Stop it, and start one with "
            f"{listed}; a session that runs cannot be changed"
        )
    if settings.is_open_connection:
        raise EngineError(
            "the connection to the Spark Connect server is not encrypted, and the key of the noise would be sent over "
            "it: connect to sc://HOST:PORT/;use_ssl=true"
        )
    if _number(session.version) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        _LOG.warning(
            "Spark %s is older than all that Treetop was tried with: take %s or later", session.version, oldest
        )


@contextmanager
def session(master: str | None = None, settings: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Yield the Spark session of this process, or a temporary one with the settings of a private run.

    An existing session stays as it is: Spark would note late settings, and not follow them.
    """
    builder = _builder()
    there = builder.getActiveSession()
    if there is not None:
        now = _Settings(there).get("spark.master")
        if master is not None and _without_attempts(now) != _without_attempts(master):
            raise EngineError(f"a Spark session on {now} is running in this process: stop it, or leave out `master`")
        yield there
        return
    made = _start(builder, master, dict(settings or {}))
    try:
        yield made
    finally:
        made.stop()


def settings_for(master: str | None) -> dict[str, str]:
    """Return the settings for a session on a master, unless the steward chooses others."""
    chosen = {**_GUARDED, "spark.ui.showConsoleProgress": "false"}
    if master is not None and master.startswith("local"):  # nobody but us is there to look at its pages
        chosen["spark.ui.enabled"] = "false"
    if master is not None and master.startswith("local-cluster"):  # which makes no secret itself
        chosen["spark.authenticate.secret"] = secrets.token_hex(32)
    return chosen


def _builder() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as problem:
        raise EngineError(f"Spark needs more packages: {install_extra('spark')}") from problem
    return SparkSession


def _start(of: Any, master: str | None, settings: dict[str, str]) -> Any:
    builder = of.builder.appName("treetop")
    if master is not None and master.startswith("sc://"):
        builder = builder.remote(master)  # whose settings are the server's
    else:
        settings = {**settings_for(master), **settings}
        if master is not None:
            builder = builder.master(_with_attempts(master))
        if master is None or master.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # where Treetop is
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _own_interrupts():
        try:
            return builder.getOrCreate()
        except Exception as problem:
            raise EngineError(
                f"Spark does not start: {first_line(problem)}. It needs Java 17 or later (JAVA_HOME); what it wrote "
                "above may say more"
            ) from problem


class _Settings:
    """The settings of a session that are in effect, rather than settings that came too late."""

    def __init__(self, session: Any) -> None:
        self._conf, self._client = session.conf, None
        if type(session).__module__.startswith("pyspark.sql.connect"):
            self._client = session.client
            return
        with suppress(Exception):  # a platform without it
            # What a running session is told of such settings stands in `session.conf` as well, and has no effect.
            self._conf = session.sparkContext.getConf()

    def get(self, name: str) -> str:
        try:
            found = self._conf.get(name, None)
        except Exception:  # a platform that hides it
            found = None
        return str(found or "")

    @property
    def is_open_connection(self) -> bool:
        """Whether the driver talks to a server of Spark Connect on another machine, unencrypted."""
        if self._client is None:
            return False
        builder = getattr(self._client, "_builder", None)
        host = str(getattr(builder, "host", ""))
        return host not in ("localhost", "127.0.0.1", "::1") and not getattr(builder, "secure", False)


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep the handler of Ctrl-C, which Spark replaces by one of its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def first_line(problem: BaseException) -> str:
    """Return the first line of an error: Java adds many more."""
    return next(iter(str(problem).splitlines()), type(problem).__name__)[:200].rstrip(". ")


def _is_local(master: str) -> bool:
    """Whether everything runs in the process in which Spark was started, and its children."""
    return re.fullmatch(r"local(\[[^]]*\])?", master) is not None


def _with_attempts(master: str) -> str:
    """Return a local master that repeats a task, as clusters do, if a Python worker ends."""
    if master == "local":
        return f"local[1,{ATTEMPTS}]"
    return re.sub(r"^local\[([^],]+)\]$", rf"local[\1,{ATTEMPTS}]", master)


def _without_attempts(master: str) -> str:
    return re.sub(r"^local\[([^],]+),\d+\]$", r"local[\1]", master)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


# DataFrames of Spark as private tables: executors write the columns that a plan reads into the staging folder.

GROUP = 1 << 18
"""Rows written together: Spark hands out a few thousand at a time."""

_FRAME_ROW = "file string, problem string"


def refuse_missing(frame: Any, columns: Sequence[str]) -> None:
    """Refuse a DataFrame that lacks a column."""
    for name in columns:
        if name not in frame.columns:
            raise DataError(f"the DataFrame has no column {name!r}{nearest(name, frame.columns)}")


def written(frame: Any, columns: Sequence[str], folder: Path) -> list[Path]:
    """Have executors write columns of a DataFrame as Parquet files into a private folder; return the files."""
    folder.mkdir(mode=0o700)
    # Spark takes a name with a dot for a path into a structure, here and there even where it is quoted.
    quoted = (name.replace("`", "``") for name in columns)
    plain = frame.selectExpr(*(f"`{name}` AS column{number}" for number, name in enumerate(quoted)))
    rows = plain.mapInArrow(_Write(str(folder), tuple(columns)), _FRAME_ROW).collect()
    for row in rows:
        if row.problem:
            raise EngineError(f"a worker could not write to the staging folder: {row.problem}")
    return sorted(folder / row.file for row in rows)


@dataclass(frozen=True)
class _Write:
    folder: str
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows of one partition, and yield the name of their file; none if there are no rows."""
        name, problem = f"{uuid4().hex}.parquet", None
        try:
            if not _write(Path(self.folder) / name, (batch.rename_columns(self.columns) for batch in batches)):
                return
        except OSError as found:  # its text is about the disk; that of others may be about a value
            problem = found.strerror or type(found).__name__
        except pa.ArrowException as found:
            problem = type(found).__name__
        yield pa.RecordBatch.from_pydict(
            {"file": pa.array([name], pa.string()), "problem": pa.array([problem], pa.string())}
        )


def _write(path: Path, batches: Iterable[pa.RecordBatch]) -> bool:
    """Write batches as one file that nobody else may read; return whether there was a row."""
    groups = _together(batches)
    first = next(groups, None)
    if first is None:
        return False
    with (
        os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream,
        closing(pq.ParquetWriter(stream, first.schema, use_dictionary=True)) as file,
    ):
        file.write_table(first)
        for group in groups:
            file.write_table(group)
    return True


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if len(batch):
            waiting.append(batch)
        if sum(map(len, waiting)) >= GROUP:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


T = TypeVar("T")
R = TypeVar("R")

LARGEST_CLOSURE = 1 << 19
"""PySpark writes closures of a megabyte and more to disks, as broadcast variables: keys stay far below that."""

_PATIENCE = 30.0
"""Seconds that Spark has to end a job."""
_ROW = "task long, problem string"


class Spark:
    """Runs tasks on the executors of a Spark session. One that is done again gives the same: it is a pure function."""

    def __init__(self, session: Any, staging: str | Path) -> None:
        """Take a session and a private folder, which its executors see at the same path and may write to."""
        check(session)
        self._session, self._staging = session, Path(staging)

    def prove(self) -> None:
        """Run a small job, and refuse executors that do not see the staging folder or have other versions."""
        prove(self)

    def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        """Yield the function's result for each task, in the order of the tasks, once all of them are done."""
        with exchange_dir(self._staging) as folder:
            context, number = pack(folder, function, tasks)
            if number:
                self._run(context, number)
            for one in range(number):
                yield unpack(context, one)

    def files(self, frame: Any, columns: Sequence[str], folder: Path) -> list[Path]:
        """Write columns of a DataFrame into a private folder that executors see, and return the files."""
        check(frame.sparkSession)
        refuse_missing(frame, columns)
        with _told():
            return _Job(self._session, lambda: written(frame, columns, folder)).result()

    def _run(self, context: WorkerContext, number: int) -> None:
        if count_bytes(context) > LARGEST_CLOSURE:
            raise EngineError(
                "the tasks have more keys than a closure of Spark can carry without being written to disks"
            )
        with _told():
            rows = _Job(self._session, lambda: self._rows(context, number)).result()
        for row in rows:
            if row.problem:
                raise EngineError(explain(row.problem, context.folder))
        if sorted(row.task for row in rows) != list(range(number)):
            raise EngineError("Spark ended the job without having done all tasks: run it again")

    def _rows(self, context: WorkerContext, number: int) -> list[Any]:
        found: list[Any] = self._session.range(0, number, 1, number).mapInArrow(_Work(context), _ROW).collect()
        return found


@dataclass(frozen=True)
class _Work:
    """Runs tasks on an executor; it carries the keys there, and is never displayed."""

    context: WorkerContext = field(repr=False)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Do the tasks with the incoming numbers, and yield the result of `work` for each."""
        import pyarrow

        for batch in batches:
            numbers = batch.column(0).to_pylist()
            problems = [work(self.context, number) for number in numbers]
            yield pyarrow.RecordBatch.from_arrays(
                [pyarrow.array(numbers, pyarrow.int64()), pyarrow.array(problems, pyarrow.string())],
                ["task", "problem"],
            )


class _Job(threading.Thread, Generic[R]):
    """A job of Spark in a thread of its own, so that Ctrl-C does not interrupt an exchange of Python and Java."""

    def __init__(self, session: Any, work: Callable[[], R]) -> None:
        super().__init__(name="treetop-spark", daemon=True)
        self._session, self._work = session, work
        self._done = threading.Event()  # a thread whose `join` was interrupted passes for one that has ended
        self._found: list[R] = []
        self._problem: Exception | None = None

    def run(self) -> None:
        """Run the job, and keep its result or exception."""
        try:
            self._found.append(self._work())
        except Exception as problem:
            self._problem = problem
        finally:
            self._done.set()

    def result(self) -> R:
        """Wait for the job's result; on Ctrl-C, end all jobs of the session, as Spark itself does."""
        self.start()
        try:
            self._done.wait()
        except BaseException:
            end = time.monotonic() + _PATIENCE
            while not self._done.wait(0.2) and time.monotonic() < end:
                with suppress(Exception):
                    self._session.interruptAll()  # more than once: it may not have begun yet
            raise
        if self._problem is not None:
            raise self._problem
        return self._found[0]


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except EngineError:
        raise
    except Exception as problem:
        text = str(problem)
        if found := re.search(r"No module named '(\w+)", text):
            raise EngineError(
                f"the Python of Spark's executors has no {found[1]}: install Treetop there, in the same version, and "
                "name that Python in PYSPARK_PYTHON"
            ) from None
        raise EngineError(
            f"Spark gave up on a job: {first_line(problem)}. Executors that end most often lack memory: give them "
            "more, or each of them fewer cores"
        ) from None
