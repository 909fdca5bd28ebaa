"""Runs of a study: releases of public counts with keys of their own, kept as lines of JSON if that is asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from experiments.kit.cases import Table
from experiments.kit.stamp import SEEN, Stamp, now
from treetop import Plan
from treetop.advice.coverage import release_on_trial
from treetop.measure.measure import run_key
from treetop.noise import Key
from treetop.release.release import Release

T = TypeVar("T")


def key(*parts: object) -> bytes:
    """Derive a key from the name of a run: the tables are public, so the noise may be too, and a run be repeated."""
    return hashlib.sha256(" ".join(map(str, parts)).encode()).digest()


def release(plan: Plan, table: Table, testing_key: bytes) -> Release:
    """Release a table as `Plan.release` does with a testing key, from its counts."""
    bound = run_key(Key(testing_key), plan.digest, table.truth)
    return release_on_trial(plan, table.truth, bound)


class Kept:
    """The results of runs by their names: what this version of Treetop has on file is not run again.

    A line has the name, the result, and what measured it: version, day and load.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.found: dict[str, Any] = {}
        self.made: dict[str, Stamp] = {}
        if file is not None and file.is_file():
            for line in file.read_text(encoding="utf-8").splitlines():
                name, value, made = json.loads(line)
                stamp = Stamp(**made)
                if stamp.version == now().version:
                    self.found[name] = value
                    self.made[name] = stamp

    def run(self, kind: Any, name: str, make: Callable[[], T]) -> T:
        """Return the result of a run, of a type that `as_json` can write; make it, unless it is kept."""
        if name in self.found:
            SEEN.add(self.made[name])
            kept: T = from_json(kind, self.found[name])
            return kept
        result = make()
        SEEN.add(stamp := now())
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps([name, as_json(result), stamp.to_json()]) + "\n")
        return result


def as_json(value: Any) -> Any:
    """Return a result in plain values: dataclasses by field, tuples and arrays as lists, other maps as pairs."""
    if is_dataclass(value):
        return {one.name: as_json(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        if all(isinstance(name, str) for name in value):
            return {name: as_json(one) for name, one in value.items()}
        return [[as_json(name), as_json(one)] for name, one in value.items()]
    if isinstance(value, (tuple, list)):
        return [as_json(one) for one in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def from_json(kind: Any, value: Any) -> Any:
    """Return plain values as what they were, by their type."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is tuple:
        kinds = [parts[0]] * len(value) if parts[-1] is ... else parts
        return tuple(from_json(one, part) for one, part in zip(kinds, value, strict=True))
    if origin in (Union, type(int | None)):
        return None if value is None else from_json(next(one for one in parts if one is not type(None)), value)
    if origin is Mapping and isinstance(value, list):
        return {from_json(parts[0], name): from_json(parts[1], one) for name, one in value}
    if origin is np.ndarray:
        return np.array(value, get_args(parts[1])[0])
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**{name: from_json(one, value[name]) for name, one in _hints(kind).items()})
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] for one in fields(kind)}
