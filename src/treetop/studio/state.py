"""The plan file as the state: read anew for every page, changed field by field, never overwritten blindly."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from treetop.errors import IncompletePlan, PlanFileError, TreetopError
from treetop.plan.file import parse_plan, plan_text
from treetop.plan.file.edit import Changes, changed, parsed
from treetop.publishing.plans import PlanFile, read_plan, runnable_file

_STAND_INS: Mapping[str, Mapping[str, Any]] = {
    "unit": {"entity": "record", "contributions": 1, "neighbours": "replace"},
    "loss": {"epsilon": Decimal(1), "delta": Decimal("1e-8")},
}
"""What stands in for questions that are still open, so that hierarchies and codes can be shown before."""


class Stale(TreetopError):
    """The plan file was changed by somebody else since a page was shown."""


@dataclass(frozen=True)
class PlanText:
    """A plan file as it is on disk now."""

    path: Path
    """Where it is."""
    text: str
    """What it says, word for word."""

    @staticmethod
    def read(path: Path) -> PlanText:
        """Read it."""
        return PlanText(path, plan_text(path))

    @property
    def version(self) -> str:
        """What tells this text from any other."""
        return sha256(self.text.encode()).hexdigest()

    @cached_property
    def values(self) -> dict[str, Any]:
        """What it says, as plain values."""
        return parsed(self.text, self.path.name)

    def get(self, *names: str, default: Any = None) -> Any:
        """Return one field."""
        inner: Any = self.values
        for name in names:
            if not isinstance(inner, Mapping) or name not in inner:
                return default
            inner = inner[name]
        return inner

    @cached_property
    def _read(self) -> PlanFile | IncompletePlan:
        try:
            return read_plan(self.path)
        except IncompletePlan as problem:
            return problem

    @cached_property
    def whole(self) -> PlanFile | None:
        """The plan, where nothing is left open; None otherwise."""
        return self._read if isinstance(self._read, PlanFile) else None

    @cached_property
    def open(self) -> str | None:
        """What is still asked; None where nothing is."""
        return str(self._read) if isinstance(self._read, IncompletePlan) else None

    @cached_property
    def sketch(self) -> PlanFile:
        """The plan, with something in the place of who is protected and of the loss where these are left open."""
        if self.whole is not None:
            return self.whole
        stated = {name: self.values.get(name, {}) for name in _STAND_INS}
        lacking: dict[tuple[tuple[str, ...], str], Any] = {
            ((section,), field): value
            for section, values in _STAND_INS.items()
            for field, value in values.items()
            if field not in stated[section] and not (section == "loss" and "rho" in stated[section])
        }
        if "epsilon" in stated["loss"]:  # without a delta it is a pure one
            lacking.pop((("loss",), "delta"), None)
        return runnable_file(parse_plan(changed(self.text, lacking, self.path.name), self.path))

    def change(self, changes: Changes, seen: str) -> PlanText:
        """Write some fields, and return what is there then; `seen` is the version that the page was made of."""
        return self.replace(changed(self.text, changes, self.path.name), seen)

    def replace(self, text: str, seen: str) -> PlanText:
        """Write another text, unless the file is no longer the one that the page was made of."""
        if seen != self.version:
            raise Stale(
                f"{self.path.name} was changed since this page was shown, in another tab or in an editor. Nothing was "
                "overwritten: what the file says now is below. Look at it, and save again"
            )
        write(self.path, text)
        return PlanText(self.path, text)


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    try:
        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".plan-", delete=False) as draft:
            draft.write(text)
        try:
            if path.exists():
                shutil.copymode(path, draft.name)
            Path(draft.name).replace(path)
        except BaseException:
            Path(draft.name).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise PlanFileError(f"{path.name}: cannot be written: {problem.strerror or problem}") from problem
