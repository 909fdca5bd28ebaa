"""What made a page: the version of Treetop, the day, and how busy the machine was meanwhile.

The load is seen at the start of a study, after every run and when a page is written, and is kept with the runs.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from treetop._util.distribution import VERSION

_LINE = re.compile(
    r"Measured with Treetop (?P<version>\d+\.\d+\.\d+\S*?), written on (?P<date>\d{4}-\d\d-\d\d)"
    r"(?:; load of the machine (?P<load>[^,]+), (?P<machine>.+))?\.$"
)
_NOTICE = re.compile(r"^> \*\*Old numbers\*\*, measured with Treetop (?P<version>\S+)\. ", re.MULTILINE)


@dataclass(frozen=True)
class Stamp:
    """Which version measured, when, and under which load."""

    version: str
    """Of Treetop."""
    date: str
    """Year, month and day, in Greenwich."""
    load: float | None = None
    """How many processes wanted a processor, over a minute; None where the system cannot tell."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def now() -> Stamp:
    """Return the stamp of what is measured here and now."""
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    return Stamp(VERSION, f"{datetime.now(UTC):%Y-%m-%d}", load)


class Seen:
    """The stamps of all that a page is made from."""

    def __init__(self) -> None:
        self.stamps: list[Stamp] = []

    def begin(self) -> None:
        """Forget what was seen: another study begins."""
        self.stamps = [now()]

    def add(self, stamp: Stamp) -> None:
        """Take note of a run."""
        self.stamps.append(stamp)

    def line(self) -> str:
        """Return the last line of a page."""
        own = now()
        loads = [one.load for one in (*self.stamps, own) if one.load is not None]
        span = f"{min(loads):.1f} to {max(loads):.1f}" if loads else "not known"
        return f"Measured with Treetop {own.version}, written on {own.date}; load of the machine {span}, {machine()}."


SEEN = Seen()
"""Of the study that runs in this process: one at a time."""


def machine() -> str:
    """Say what this is run on."""
    return f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}"


def stamped(page: str) -> str | None:
    """Return the version that measured a page, by its last line; None where it does not say."""
    found = _LINE.match(page.rstrip().rpartition("\n")[2])
    return found["version"] if found else None


def noticed(page: str) -> str | None:
    """Return the version of which a page says at its top that its numbers are old; None where it says no such thing."""
    found = _NOTICE.search(page.partition("\n## ")[0])
    return found["version"] if found else None


def is_old(measured: str | None, code: str) -> bool:
    """Whether what a version measured is older than the code by more than a minor version; of no version, it is."""
    if measured is None:
        return True
    (major, minor), (new_major, new_minor) = ([int(part) for part in one.split(".")[:2]] for one in (measured, code))
    return major != new_major or new_minor - minor > 1
