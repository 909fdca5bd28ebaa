"""Kernels: cached where that is safe, and compiled anew when any of them changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from treetop import kernel as kernels
from treetop.repair.settle import mix

PROGRAM = """
import numpy as np
from treetop.repair.settle import mix
mix(np.uint64(1))
print(sum(mix.stats.cache_hits.values()))
"""


def cache_hits(cache: Path) -> int:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    run = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, env=environment)
    return int(run.stdout)


def test_a_kernel_is_compiled_once(tmp_path: Path) -> None:
    assert cache_hits(tmp_path) == 0
    assert cache_hits(tmp_path) == 1


def test_the_stamp_covers_every_module_with_kernels() -> None:
    names = {name for name, _, _ in kernels._stamp()}
    assert {"repair/sweep.py", "repair/state.py", "topdown/measure.py", "noise/table.py", "noise/block.py"} <= names
    assert mix._cache._cache_file._source_stamp == kernels._stamp()  # type: ignore[attr-defined]
