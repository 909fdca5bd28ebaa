"""What a card states that its plan does not decide: which run it was, on which data, and with which software."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from treetop._util.distribution import DISTRIBUTION, VERSION
from treetop.card.schema import FORMAT

if TYPE_CHECKING:
    from treetop.plan.file import PlanFile

DERIVATION = 2
"""The version of the way from a run's key to the noise of each count."""

SINCE = (0, 4)
"""The first version that wrote this format."""
_LIBRARIES = ("numpy", "numba", "pyarrow", "python-flint", "cryptography")


def _today() -> str:
    """Return the day only: how long a release took, which the data decide, must not be read off its cards."""
    return datetime.now(UTC).date().isoformat()


@cache
def _software() -> Mapping[str, str]:
    return {DISTRIBUTION: VERSION, "python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}}


def misfit(made_by: str) -> str | None:
    """Say why a card of this format cannot be held to the words of this version; None where it can.

    A version that differs in its last number writes the same words; one of another number may not.
    """
    made = _number(made_by)
    if made < SINCE:
        return f"version {made_by}, which wrote no card of format {FORMAT}: this is no card of it"
    if made > max(SINCE, _number(VERSION)):
        return f"version {made_by}, which is later than this one, {VERSION}: check it with that version"
    return None


def _number(text: str) -> tuple[int, ...]:
    """Return the first two numbers of a version that fits the schema."""
    return tuple(int(re.match("[0-9]*", part)[0] or 0) for part in text.split(".")[:2])  # type: ignore[index]


@dataclass(frozen=True)
class RunInfo:
    """What a card states of one run. Nothing here is private: no path, no key, no count of records."""

    private: bool = True
    """False when the noise came from a testing key."""
    description: str = ""
    period: str | None = None
    columns: Mapping[str, str] | None = None
    count: str | None = None
    keep: Mapping[str, Sequence[str]] | None = None
    """The values that a row must have to be in the data at all, by column."""
    drop: Mapping[str, Sequence[str]] | None = None
    """The values that leave a row out of the data, by column."""
    prepared: Sequence[str] = ()
    """What was done to columns of text before they were read as codes, in short words."""
    composition: Mapping[str, Any] | None = None
    """What the ledger says; None when no ledger was used."""
    coverage: Mapping[str, Any] | None = None
    """How often intervals held the counts of a public twin; None when none was tried."""
    id: str = field(default_factory=lambda: str(uuid4()))
    """A random name for this release."""
    time: str = field(default_factory=_today)
    software: Mapping[str, str] = field(default_factory=_software)

    @staticmethod
    def of_file(file: PlanFile, *, private: bool = True, composition: Mapping[str, Any] | None = None) -> RunInfo:
        """Take what a plan file says about the data."""
        stated = {name: getattr(file, name) for name in ("description", "period", "count", "keep", "drop", "prepared")}
        return RunInfo(private=private, columns=dict(file.columns), composition=composition, **stated)

    def again(self) -> RunInfo:
        """Return it for another release of the same measurements, made now; nothing is spent on it."""
        now = RunInfo()
        return replace(self, id=now.id, time=now.time, software=now.software)

    @staticmethod
    def of_card(card: Mapping[str, Any]) -> RunInfo:
        """Read it back from a card that fits its schema."""
        data, composition = card["data"], dict(card["composition"])
        composition.pop("sentence")
        tried = card["accuracy"].get("coverage", {})
        return RunInfo(
            **{name: card[name] for name in ("private", "description", "id", "time", "software")},
            **{name: data.get(name) for name in ("period", "columns", "keep", "drop")},
            count=data["count_column"],
            prepared=tuple(data.get("prepared", ())),
            composition=composition if composition["ledger"] else None,
            coverage={"twin": tried["twin"], "runs": tried["runs"]} if "twin" in tried else None,
        )
