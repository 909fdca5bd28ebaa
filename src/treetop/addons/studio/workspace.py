"""The workspace of one studio: its folder, the open plan file, the ledger, and the running release."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from treetop.addons.studio.background import Work, report_share
from treetop.addons.studio.folder import LEDGERS, PLANS, Folder
from treetop.addons.studio.guard import Keys
from treetop.addons.studio.job import Job
from treetop.addons.studio.made_up import MadeUp, made_up
from treetop.addons.studio.plan_state import History, PlanText
from treetop.domain.spine import Spine
from treetop.errors import DataError, LedgerError, PlanError, PlanFileError, TreetopError, visible
from treetop.inspection import Inspection, inspect_table
from treetop.io.source import Source
from treetop.ledger import Ledger
from treetop.release.release import Release

T = TypeVar("T")
PLAN = "plan.toml"
_KEPT = 8
_THREADS = 4


class NoPlan(TreetopError):
    """There is no plan file yet."""


class Workspace:
    """The state that is not in files: the open plan, and the running release."""

    def __init__(self, folder: str | Path, plan: str | None = None, keys: Keys | None = None) -> None:
        self.folder = Folder(folder)
        self.keys = keys or Keys()
        self.lock = threading.RLock()
        self.pool = ThreadPoolExecutor(_THREADS, "studio")
        self.job: Job | None = None
        self.works: list[Work[Any]] = []
        """Other work in the background that may still run."""
        self.notices: list[str] = []
        """Messages to show once on the next page."""
        self.ledger_name: str | None = None
        self.histories: defaultdict[str, History] = defaultdict(History)
        """By plan file, its saved versions."""
        self._kept: OrderedDict[Any, Any] = OrderedDict()
        self.plan_name = self._first_plan() if plan is None else plan
        self.folder.find(self.plan_name, PlanFileError)

    def _first_plan(self) -> str:
        found = [one.name for one in self.folder.files(PLANS)]
        return PLAN if PLAN in found or not found else found[0]

    @property
    def plan_path(self) -> Path:
        """Path of the plan file, which may not exist yet."""
        return self.folder.find(self.plan_name, PlanFileError)

    @property
    def has_plan(self) -> bool:
        """Whether there is a plan file."""
        return self.plan_path.is_file()

    def plan(self) -> PlanText:
        """Return the plan file as it is now."""
        if not self.has_plan:
            raise NoPlan("There is no plan yet: choose a table first")
        return PlanText.read(self.plan_path, self.folder)

    def ledgers(self) -> list[str]:
        """List the ledgers of the folder."""
        return [one.name for one in self.folder.files(LEDGERS)]

    def ledger(self) -> Ledger | None:
        """Return the selected ledger: the one that was chosen, or the only one."""
        names = self.ledgers()
        name = self.ledger_name if self.ledger_name in names else names[0] if len(names) == 1 else None
        return None if name is None else Ledger.open(self.folder.file(name))

    def source(self, plan: PlanText) -> Source:
        """Return the private table of a plan, prepared by the plan."""
        file = plan.draft
        if file.source is None:
            raise PlanError("The plan names no table: choose one")
        refuse_database(file.source)
        if file.graph is not None or file.groups is not None:
            raise PlanError(
                "The studio prepares tables of records. This plan counts a graph, or groups: change it in an editor; "
                "review, release and everything after it work here"
            )
        table = file.table(file.source)
        if not isinstance(table, Source):
            raise PlanError("The table of this plan cannot be shown here: look at it with treetop inspect")
        return table

    def inspect(
        self, source: Source, hierarchies: Mapping[str, Mapping[str, str]] | None = None, count: str | None = None
    ) -> Inspection:
        """Inspect the private table, beside public files, each with how it is read.

        The last few inspections are kept in memory while nothing changes.
        """
        public = {self.folder.file(name): reading for name, reading in (hierarchies or {}).items()}
        key = ("inspect", repr(vars(source)), tuple(map(_stamp, [Path(str(source.location)), *public])), count)
        files = [Source(path, **reading) for path, reading in public.items()]  # type: ignore[arg-type]
        return self.kept(
            (*key, repr(hierarchies)),
            lambda: inspect_table(source, files or None, count, detects=False, progress=report_share),
        )

    def twin(self, spine: Spine, total: int) -> MadeUp:
        """Return the made-up twin of a spine."""
        return self.kept(("twin", spine.digest, total), lambda: made_up(spine, total))

    def release(self, name: str) -> Release:
        """Load a release below the folder."""
        path = self.folder.release(name)
        return self.kept(("release", str(path), _stamp(path / "card.json")), lambda: Release.load(path))

    def kept(self, key: Any, make: Callable[[], T]) -> T:
        """Return the cached value of a key, or make it; only the last few are kept."""
        with self.lock:
            if key not in self._kept:
                self._kept[key] = make()
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            found: T = self._kept[key]
            return found

    def start(self, job: Job) -> None:
        """Start a release, unless one runs."""
        with self.lock:
            if self.job is not None and self.job.state == "running":
                raise PlanError("A release is running: wait for it, or cancel it")
            self.job = job.start()

    def open(self) -> None:
        """Start all threads that make pages."""
        together = threading.Barrier(_THREADS + 1)
        for _ in range(_THREADS):
            self.pool.submit(together.wait)
        together.wait()

    def close(self) -> None:
        """End running work: a release that is not being put in its place leaves nothing."""
        if self.job is not None:
            self.job.cancel()
            self.job.wait()
        for work in self.works:
            work.stop()
        self.pool.shutdown(cancel_futures=True)

    def choose_ledger(self, name: str) -> None:
        """Use another ledger of the folder."""
        if name not in self.ledgers():
            raise LedgerError(f"{name}: is not a ledger of this folder: choose one that is listed")
        self.ledger_name = name


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        about = path.stat()
    except (OSError, ValueError):
        return str(path), 0, 0
    return str(path), about.st_mtime_ns, about.st_size


def refuse_database(source: str) -> None:
    """Refuse to show a source that is no file of the folder."""
    if "://" in source:
        raise DataError(
            "The table is in a database: look at it with treetop inspect, and prepare it in an editor. Review, release "
            "and everything after it work here"
        )


class Telling(logging.Handler):
    """Sends the package's log messages to the page, and nowhere else: they may contain private data."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(logging.WARNING)
        self.workspace = workspace

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message for the steward."""
        job, text = self.workspace.job, visible(record.getMessage())
        if job is not None and job.state == "running":
            job.told.append(text)
        elif text not in self.workspace.notices:
            self.workspace.notices = [*self.workspace.notices[-4:], text]
