"""Where a path leads, whatever it holds: a ring of links or a zero byte is no reason to fail before it is opened."""

from __future__ import annotations

import os
from pathlib import Path


def resolved(path: str | Path) -> Path:
    """Return the path without links and relative parts; links that go in a ring are left as they are."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return Path(path)
