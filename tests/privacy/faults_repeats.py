"""Deliberate faults of repeats: ties and choices that are decided by fresh randomness."""

from __future__ import annotations

import secrets
from importlib import import_module
from typing import Any

from treetop.noise import Key
from treetop.noise.gate import Gate

from .faults import Fault, Patch

degrees: Any = import_module("treetop.measure.vectors")


def ties_of_degrees_broken_afresh(patch: Patch) -> None:
    patch.setattr(degrees, "_seed", lambda measured: secrets.randbits(64))


def records_that_count_chosen_afresh(patch: Patch) -> None:
    patch.setattr(Gate, "choice", lambda gate, purpose, *bound: Key.fresh())


FAULTS_OF_REPEATS = [
    Fault(ties_of_degrees_broken_afresh, "repeats of repairs"),
    Fault(records_that_count_chosen_afresh, "repeats of"),
]
