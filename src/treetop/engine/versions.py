"""Versions: driver and workers are to have the same, as what is computed may depend on them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import version

from treetop.basics.distribution import DISTRIBUTION, VERSION
from treetop.engine.executor import Executor
from treetop.errors import EngineError


def versions() -> dict[str, str]:
    """Return the versions that are installed here."""
    found = {name: version(name) for name in ("numpy", "numba")}
    return {"Python": f"{sys.version_info.major}.{sys.version_info.minor}", DISTRIBUTION: VERSION, **found}


def versions_there(_: int) -> dict[str, str]:
    """Return the versions where a task is run."""
    return versions()


def prove(executor: Executor) -> None:
    """Run a few small tasks, and refuse workers that have other versions."""
    here = versions()
    for there in executor.map(versions_there, range(2)):
        compare(here, there)


def compare(here: Mapping[str, str], there: Mapping[str, str]) -> None:
    """Refuse workers with other versions than the driver has."""
    for name, own in here.items():
        if there.get(name) != own:
            raise EngineError(f"workers have {name} {there.get(name)}, and the driver {own}: install the same on both")
