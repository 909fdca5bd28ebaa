"""Spark: tasks run on a cluster, and nothing private goes through Spark itself.

Tasks and answers are files of a staging folder that driver and executors share (`parcel`). The keys travel in the
closure of the function that Spark runs, which is why a session must encrypt what it writes and sends (`sessions`). Only
the DataFrame interface is used, which Spark Connect and managed platforms have too.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from treetop.engine.frames import refuse_missing, written
from treetop.engine.parcel import Errand, count_bytes, explain, journey, pack, unpack, work
from treetop.engine.sessions import check, first_line
from treetop.engine.versions import prove
from treetop.errors import EngineError

T = TypeVar("T")
R = TypeVar("R")

LARGEST_CLOSURE = 1 << 19
"""PySpark writes closures of a megabyte and more to disks, as broadcast variables: keys stay far below that."""

_PATIENCE = 30.0
"""The seconds that Spark has to end a job."""
_ROW = "task long, problem string"


class Spark:
    """Runs tasks on the executors of a Spark session. One that is done again gives the same: it is a pure function."""

    def __init__(self, session: Any, staging: str | Path) -> None:
        """Take a session and a private folder, which its executors see at the same path and may write to."""
        check(session)
        self._session, self._staging = session, Path(staging)

    def prove(self) -> None:
        """Run a small job, and refuse where executors do not see the staging folder or have other versions."""
        prove(self)

    def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        """Yield what the function gives for each task, in the order of the tasks: when all of them are done."""
        with journey(self._staging) as folder:
            errand, number = pack(folder, function, tasks)
            if number:
                self._run(errand, number)
            for one in range(number):
                yield unpack(errand, one)

    def files(self, frame: Any, columns: Sequence[str], folder: Path) -> list[Path]:
        """Write columns of a DataFrame into a private folder that executors see, and return the files."""
        check(frame.sparkSession)
        refuse_missing(frame, columns)
        with _told():
            return _Job(self._session, lambda: written(frame, columns, folder)).result()

    def _run(self, errand: Errand, number: int) -> None:
        if count_bytes(errand) > LARGEST_CLOSURE:
            raise EngineError(
                "the tasks have more keys than a closure of Spark can carry without being written to disks"
            )
        with _told():
            rows = _Job(self._session, lambda: self._rows(errand, number)).result()
        for row in rows:
            if row.problem:
                raise EngineError(explain(row.problem, errand.folder))
        if sorted(row.task for row in rows) != list(range(number)):
            raise EngineError("Spark ended the job without having done all tasks: run it again")

    def _rows(self, errand: Errand, number: int) -> list[Any]:
        found: list[Any] = self._session.range(0, number, 1, number).mapInArrow(_Work(errand), _ROW).collect()
        return found


@dataclass(frozen=True)
class _Work:
    """What Spark runs on each executor; it goes there with the keys, and is shown nowhere."""

    errand: Errand = field(repr=False)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Do the tasks whose numbers come in, and say of each what went wrong, if something did."""
        import pyarrow

        for batch in batches:
            numbers = batch.column(0).to_pylist()
            problems = [work(self.errand, number) for number in numbers]
            yield pyarrow.RecordBatch.from_arrays(
                [pyarrow.array(numbers, pyarrow.int64()), pyarrow.array(problems, pyarrow.string())],
                ["task", "problem"],
            )


class _Job(threading.Thread, Generic[R]):
    """A job of Spark in a thread of its own: Ctrl-C is not to come into the middle of what Python and Java exchange."""

    def __init__(self, session: Any, work: Callable[[], R]) -> None:
        super().__init__(name="treetop-spark", daemon=True)
        self._session, self._work = session, work
        self._done = threading.Event()  # a thread whose `join` was interrupted passes for one that has ended
        self._found: list[R] = []
        self._problem: Exception | None = None

    def run(self) -> None:
        """Run the job, and keep what it gives or raises."""
        try:
            self._found.append(self._work())
        except Exception as problem:
            self._problem = problem
        finally:
            self._done.set()

    def result(self) -> R:
        """Wait for what the job gives; on Ctrl-C, end all jobs of the session, as Spark itself does."""
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
    """Say in one sentence what Spark says in a hundred lines."""
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
