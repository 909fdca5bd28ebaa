"""The progress bar of long commands: on a terminal only, on standard error."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from treetop.cli.interrupts import check_interrupt

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """A bar that is told what is being done, and how much of it, from 0 to 1."""

    def __init__(self, shown: bool = True) -> None:
        self._shown = shown and sys.stderr.isatty()
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._stage = ""

    def __enter__(self) -> Bar:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._progress.start()
            self._task = self._progress.add_task("starting", total=None)
        return self

    def __call__(self, stage: str, done: float) -> None:
        """Show that this much of a stage is done; a Ctrl-C that was lost in between ends it here."""
        check_interrupt()
        if self._progress is None or self._task is None:
            return
        if stage != self._stage:
            self._stage = stage
            self._progress.reset(self._task, total=1.0, description=stage)
        self._progress.update(self._task, completed=done)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
