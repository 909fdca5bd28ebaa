"""The environments of the peers, made when they are missing: each has only its own tool, at a fixed version."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).resolve().parents[2] / ".bench"
"""Ignored by git, and removed by `make clean`."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment for one tool."""

    folder: Path
    """Where it is."""
    packages: tuple[str, ...]
    """What it has."""

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def make(self) -> str | None:
        """Make it unless it is there; return why it cannot be made."""
        ready = self.folder / ".ready"
        if ready.exists():
            return None
        commands: list[list[str | Path]] = [
            [sys.executable, "-m", "venv", self.folder],
            [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *self.packages],
        ]
        for command in commands:
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode:
                return (made.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        ready.touch()
        return None


REFERENCE = Environment(HOME, ("inf-tda==0.1", "opendp==0.12.1"))
OPENDP = Environment(HOME / "opendp", ("opendp[polars]==0.16.0",))
MBI = Environment(HOME / "mbi", ("mbi==2.0.0",))
