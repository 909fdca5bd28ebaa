"""(e) From nothing to a release: the first run, which compiles, and the next ones."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TREETOP = [sys.executable, "-c", "from treetop.cli import main; main()"]


def seconds(command: list[str], cache: str) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "NUMBA_CACHE_DIR": cache})
    return time.perf_counter() - start


def rows() -> list[tuple[str, str, str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        cache = str(Path(folder) / "cache")
        first, warm = seconds([*TREETOP, "demo"], cache), seconds([*TREETOP, "demo"], cache)
        helps = min(seconds([*TREETOP, "--help"], cache) for _ in range(5))
    return [
        ("(e) treetop demo", f"{warm:.1f} s", f"first run, compiling: {first:.1f} s", f"{first / warm:.1f} ×"),
        ("(e) treetop --help", f"{helps:.2f} s", "", ""),
    ]
