"""How far a long piece of work has come, as it is told to whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, float], None]
"""Told what is being done, and how much of it is done, from 0 to 1."""
