"""Telling how far something is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Told what is being done, and how much of it is done, from 0 to 1."""
