"""A progress bar for long work: on a terminal, or in a notebook."""

from __future__ import annotations

import html
import sys
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class ProgressBar:
    """A bar that is called with the current stage and the finished share of it, from 0 to 1: give it as `progress`.

    In a notebook it is a bar below the cell, on a terminal one on standard error, and elsewhere nothing.

    >>> with ProgressBar(shown=False) as bar:
    ...     bar("measuring", 0.5)
    """

    def __init__(self, shown: bool = True) -> None:
        self._page = _notebook() if shown else None
        self._shown = shown and sys.stderr.isatty()
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._stage = ""

    def __enter__(self) -> Self:
        if self._page is None and self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._progress.start()
            self._task = self._progress.add_task("starting", total=None)
        return self

    def __call__(self, stage: str, done: float) -> None:
        if self._page is not None:
            self._page.show(f'<progress value="{done:.3f}"></progress> {html.escape(stage)} {done:.0%}')
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
        if self._page is not None:
            self._page.show("")


class _Page:
    """A place below a notebook cell whose content changes."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, page: str) -> None:
        content = self._display.HTML(page)
        if self._handle is None:
            self._handle = self._display.display(content, display_id=True)
        else:
            self._handle.update(content)


def _notebook() -> _Page | None:
    """Return a place in the notebook that runs this; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    return _Page(import_module("IPython.display"))
