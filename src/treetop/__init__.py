"""Treetop: hierarchical counts under differential privacy.

The names below are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treetop.domain.hierarchy import Hierarchy
    from treetop.domain.spine import Spine
    from treetop.errors import TreetopError
    from treetop.privacy import Loss, Split, Unit
    from treetop.publish.plans import Plan
    from treetop.read.counts import Counts
    from treetop.release.release import Release
    from treetop.tables.source import Source

_HOME = {
    "Counts": "treetop.read.counts",
    "Hierarchy": "treetop.domain.hierarchy",
    "Loss": "treetop.privacy",
    "Plan": "treetop.publish.plans",
    "Release": "treetop.release.release",
    "Source": "treetop.tables.source",
    "Spine": "treetop.domain.spine",
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
