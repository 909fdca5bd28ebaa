"""A release in the background: it goes on when its tab is closed, can be cancelled, and is complete or absent."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from treetop.errors import TreetopError, Unfinished, visible
from treetop.plan.file import PlanFile
from treetop.publishing.publish import publish, release_summary
from treetop.publishing.releasing import RunOptions

State = Literal["running", "done", "cancelled", "failed"]


@dataclass
class Job:
    """One release and its progress."""

    file: PlanFile
    out: Path
    run: RunOptions
    state: State = "running"
    stage: str = "starting"
    share: float = 0.0
    """Finished part of the step, from 0 to 1."""
    charged: bool = False
    """Whether the loss may have been charged: from then on it stays spent."""
    placing: bool = False
    """Whether it is too late to cancel: the folder is being put in its place."""
    problem: str | None = None
    summary: dict[str, Any] | None = None
    told: list[str] = field(default_factory=list)
    """Messages of the run: for the steward only."""
    _stop: threading.Event = field(default_factory=threading.Event, repr=False)
    _thread: threading.Thread | None = field(default=None, repr=False)

    def start(self) -> Job:
        """Begin."""
        self._thread = threading.Thread(target=self._run, name="release", daemon=False)
        self._thread.start()
        return self

    def cancel(self) -> None:
        """Ask it to stop, which it does at a point that leaves nothing half done."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for it to end; return whether it has."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self.state != "running"

    @property
    def cancelling(self) -> bool:
        """Whether it was asked to stop, and has not yet."""
        return self._stop.is_set() and self.state == "running" and not self.placing

    def _check(self) -> None:
        if self._stop.is_set() and not self.placing:
            raise KeyboardInterrupt  # the way of the command line, through which everything is cleaned up

    def _progress(self, stage: str, done: float) -> None:
        self._check()
        self.stage, self.share = stage, done

    def _before_charging(self) -> None:
        self._check()
        self.charged = True

    def _before_placing(self) -> None:
        self._check()
        self.placing = True

    def _run(self) -> None:
        try:
            run = replace(
                self.run,
                progress=self._progress,
                before_measuring=None if self.run.ledger is None else self._before_charging,
            )
            done = publish(self.file, None, self.out, run, before_placing=self._before_placing)
            self.summary, self.state = release_summary(self.file, done), "done"
        except KeyboardInterrupt:
            self.state = "cancelled"
        except TreetopError as problem:
            self.problem, self.state = visible(str(problem)), "failed"
            self.charged = isinstance(problem, Unfinished)
        except MemoryError:
            self.problem, self.state = (
                "There is not enough memory for this. Close other programs and try again",
                "failed",
            )
        except OSError as problem:
            self.problem, self.state = f"{problem.filename or self.out}: {problem.strerror or problem}", "failed"
        except BaseException as problem:
            # Its text may hold private data: report its kind only.
            self.problem = f"Something went wrong that should not: {type(problem).__name__}. Please report it"
            self.state = "failed"
