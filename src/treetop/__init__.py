"""Treetop: hierarchical counts under differential privacy.

The names below are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treetop.counts import Counts
    from treetop.data.source import Source
    from treetop.errors import TreetopError
    from treetop.hierarchy import Hierarchy
    from treetop.plan import Plan
    from treetop.privacy import Loss, Split, Unit
    from treetop.release import Release
    from treetop.spine import Spine

_HOME = {
    "Counts": "treetop.counts",
    "Hierarchy": "treetop.hierarchy",
    "Loss": "treetop.privacy",
    "Plan": "treetop.plan",
    "Release": "treetop.release",
    "Source": "treetop.data.source",
    "Spine": "treetop.spine",
    "Split": "treetop.privacy",
    "TreetopError": "treetop.errors",
    "Unit": "treetop.privacy",
}

__all__ = ["Counts", "Hierarchy", "Loss", "Plan", "Release", "Source", "Spine", "Split", "TreetopError", "Unit"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("treetop")
    if name not in _HOME:
        raise AttributeError(f"module 'treetop' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
