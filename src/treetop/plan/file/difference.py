"""What one plan file says otherwise than another: field by field, for a reviewer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from treetop.plan.file.describe import value
from treetop.plan.file.edit import parsed


@dataclass(frozen=True)
class Difference:
    """A field that two plan files state differently."""

    field: str
    """Its name, with its section."""
    before: str | None
    """What the earlier file says; None where it says nothing."""
    after: str | None
    """What the later file says; None where it says nothing."""


def differences(before: str, after: str) -> list[Difference]:
    """Return the fields that the texts of two plan files state differently; comments and order do not count.

    >>> [(one.field, one.before, one.after) for one in differences("[loss]\\nepsilon = 1.0", "[loss]\\nepsilon = 0.5")]
    [('loss.epsilon', '1', '0.5')]
    """
    old, new = dict(_fields(parsed(before, "the earlier plan"))), dict(_fields(parsed(after)))
    names = [*new, *(name for name in old if name not in new)]
    return [Difference(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def _fields(values: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, str]]:
    for name, item in values.items():
        if isinstance(item, Mapping) and item:
            yield from _fields(item, f"{section}{name}.")
        else:
            yield f"{section}{name}", value(item)
