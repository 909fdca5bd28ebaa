"""Kernels: cached where that is safe, and compiled anew when any of them changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from treetop.basics import kernel as kernels
from treetop.repair.settle import mix

# A kernel in a module that imports little else.
PROGRAM = """
import numpy as np
from treetop.basics.siphash import siphash_word
siphash_word(np.uint64(1), np.uint64(2), np.uint64(3))
print(sum(siphash_word.stats.cache_hits.values()))
"""


def run(cache: Path, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a kernel with a cache, and a home for another one; by default a home that others can write."""
    if home is None:
        home = cache.parent / "home"
        home.mkdir(exist_ok=True)
        home.chmod(0o777)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "XDG_CACHE_HOME": str(home)}
    return subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, env=environment)


def cache_hits(cache: Path) -> int:
    return int(run(cache).stdout)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which there is a kernel."""
    cache = tmp_path_factory.mktemp("filled") / "cache"
    assert cache_hits(cache) == 0
    return cache


def test_a_kernel_is_compiled_once(filled: Path) -> None:
    assert cache_hits(filled) == 1


def test_the_stamp_covers_every_module_with_kernels() -> None:
    names = {name for name, _, _ in kernels._stamp()}
    assert {"repair/sweep.py", "repair/state.py", "measure/measure.py", "noise/table.py", "noise/block.py"} <= names
    assert mix._cache._cache_file._source_stamp == kernels._stamp()  # type: ignore[attr-defined]


OPEN = ["the cache", "what is kept in it", "a file in it", "a folder above it"]


@pytest.mark.parametrize("what", OPEN)
def test_a_cache_that_others_can_write_is_not_used(what: str, filled: Path, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(filled, tmp_path / "above" / "cache"))
    (kept,) = (folder for folder in cache.iterdir() if folder.name.startswith("basics_"))
    path = dict(zip(OPEN, [cache, kept, next(kept.glob("*.nbi")), cache.parent], strict=True))[what]
    mode = path.stat().st_mode
    path.chmod(0o777)
    again = run(cache)
    assert again.stdout == "0\n"
    assert again.stderr.count("because others can write") == 1
    path.chmod(mode)
    assert cache_hits(cache) == 1


def test_a_folder_above_may_be_open_where_nobody_can_exchange_what_is_in_it(filled: Path, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(filled, tmp_path / "above" / "cache"))
    cache.parent.chmod(0o1777)  # as /tmp is
    assert cache_hits(cache) == 1


def test_what_another_user_owns_is_open_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels._open_to_others(tmp_path) is None
    monkeypatch.setattr("os.geteuid", lambda: 1 + tmp_path.stat().st_uid)
    expected = None if tmp_path.stat().st_uid == 0 else tmp_path  # what belongs to root is trusted
    assert kernels._open_to_others(tmp_path) == expected


def test_a_group_of_others_may_not_write_and_a_group_of_ones_own_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o775)
    monkeypatch.setattr("os.geteuid", lambda: tmp_path.stat().st_uid)
    if tmp_path.stat().st_gid == 0:
        os.chown(tmp_path, -1, 1)
    monkeypatch.setattr(kernels, "_is_private_group", lambda number: False)
    assert kernels._open_to_others(tmp_path) == tmp_path
    monkeypatch.setattr(kernels, "_is_private_group", lambda number: True)
    assert kernels._open_to_others(tmp_path) is None


def test_where_a_cache_is_open_to_others_ones_own_is_used(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for hits in ("0\n", "1\n"):
        done = run(tmp_path / "open", tmp_path / "home")
        assert (done.stdout, done.stderr) == (hits, "")
    assert not list((tmp_path / "open").rglob("*.nb?"))
    assert list((tmp_path / "home" / "treetop" / "kernels").rglob("*.nbc"))
