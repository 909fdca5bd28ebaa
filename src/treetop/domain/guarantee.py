"""What a guarantee is conditional on: what neighbours must agree on, and what is declared about units."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

_DIGITS = 16


@dataclass(frozen=True)
class GuaranteeCondition:
    """One condition of a guarantee, public like the plan that states it."""

    words: str
    """The condition, as a clause that follows "only if"."""
    trees: Mapping[str, str] = field(default_factory=dict)
    """By attribute that it is about, the SHA-256 of the hierarchy."""
    states: Any = None
    """What else tells it from a condition in the same words, as plain values."""


def only_if(conditions: Sequence[GuaranteeCondition]) -> str:
    """Join the clauses of conditions; empty if there are none.

    >>> only_if([GuaranteeCondition("it rains"), GuaranteeCondition("it is cold")])
    'only if it rains and it is cold'
    """
    return f"only if {' and '.join(one.words for one in conditions)}" if conditions else ""


def fingerprint(conditions: Sequence[GuaranteeCondition], reading: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits of a SHA-256 over conditions and how the table that they are about is read.

    `reading` holds plain values; of its `columns`, by attribute, only those that the conditions are about count.
    """
    columns: Mapping[str, str] = reading.get("columns") or {}
    told = [
        [one.words, [[name, tree, columns.get(name, name)] for name, tree in sorted(one.trees.items())], one.states]
        for one in conditions
    ]
    read = {name: value for name, value in reading.items() if name != "columns"}
    return sha256(json.dumps([told, read], sort_keys=True).encode()).hexdigest()[:_DIGITS]
