"""Kernels: cached where that is safe, and compiled anew when any of them changes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from treetop._util import kernel as kernels
from treetop._util.arrays import writable

# A kernel in a module that imports little else.
PROGRAM = """
import numpy as np
from treetop._util.arrays import siphash_word
siphash_word(np.uint64(1), np.uint64(2), np.uint64(3))
print(sum(siphash_word.stats.cache_hits.values()))
"""


def test_a_kernel_is_compiled_once_by_all_processes(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for hits in ("0\n", "1\n"):
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        assert (done.stdout, done.stderr) == (hits, "")


def twice(number: int) -> int:
    return 2 * number


@dataclass
class Process:
    """What a process does when it starts and calls a kernel, in this one: whatever it remembers is forgotten first."""

    monkeypatch: pytest.MonkeyPatch
    caplog: pytest.LogCaptureFixture

    def run(self, cache: Path, home: Path | None = None) -> tuple[int, int]:
        """Run a kernel with a cache, and a home for another one; by default a home that others can write.

        Return how often the cache had it, and how many warnings there were.
        """
        if home is None:
            home = cache.parent / "home"
            home.mkdir(exist_ok=True)
            home.chmod(0o777)
        self.monkeypatch.setattr(kernels._SETTINGS, "CACHE_DIR", str(cache))
        self.monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        for remembered in (kernels._opening, kernels._warn):
            remembered.cache_clear()
        self.caplog.clear()
        compiled: Any = kernels.kernel(twice)
        assert compiled(21) == 42
        hits = sum(compiled.stats.cache_hits.values())
        return hits, self.caplog.text.count("because others can write")


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Process:
    return Process(monkeypatch, caplog)


@pytest.fixture
def cache(process: Process, tmp_path: Path) -> Path:
    """A cache in which there is a kernel, in a folder of its own."""
    (tmp_path / "above").mkdir()
    cache = tmp_path / "above" / "cache"
    assert process.run(cache) == (0, 0)
    assert process.run(cache) == (1, 0)
    return cache


SOURCE = """
from typing import NamedTuple
from treetop._util.kernel import kernel
import {constants} as constants

class Pair(NamedTuple):
    first: int
    second: int

@kernel
def add(a, b):
    return a + b

@kernel
def total(pair: Pair):
    return add(pair.first, constants.FACTOR * pair.second)

def run():
    return total(Pair(1, 2)), sum(total.stats.cache_hits.values())
"""


@pytest.fixture
def run_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, int]]:
    """Import a module with kernels as a new process does, and run one: its result, and how often the cache had it."""
    monkeypatch.setattr(kernels._SETTINGS, "CACHE_DIR", str(tmp_path / "cache"))

    def run(source: str = SOURCE, factor: int = 10) -> tuple[int, int]:
        constants: Any = ModuleType("treetop_constants")
        constants.FACTOR = factor
        monkeypatch.setitem(sys.modules, constants.__name__, constants)
        path = tmp_path / "with_kernels.py"
        path.write_text(source.format(constants=constants.__name__))
        spec = spec_from_file_location("with_kernels", path)
        assert spec and spec.loader
        module = module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "with_kernels", module)
        exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
        return module.run()  # type: ignore[no-any-return]

    return run


def test_a_kernel_is_not_compiled_again_if_its_code_is_the_same(run_source: Callable[..., tuple[int, int]]) -> None:
    assert run_source() == (21, 0)
    assert run_source() == (21, 1)
    assert run_source("# A comment.\n\n" + SOURCE.replace("    return a", '    """Add."""\n    return a')) == (21, 1)


@pytest.mark.parametrize(
    ("changed", "factor", "result"),
    [
        (SOURCE.replace("a + b", "a - b"), 10, -19),  # a kernel that it calls
        (SOURCE.replace("a + b", "a + b + 1"), 10, 22),
        (SOURCE.replace("first: int\n    second: int", "second: int\n    first: int"), 10, 12),
        (SOURCE, 100, 201),  # a constant of another module
    ],
)
def test_a_kernel_is_compiled_again_if_code_that_it_uses_changes(
    changed: str, factor: int, result: int, run_source: Callable[..., tuple[int, int]]
) -> None:
    assert run_source() == (21, 0)
    assert run_source(changed, factor) == (result, 0)
    assert run_source() == (21, 0)


def test_the_fingerprint_covers_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernels.fingerprint(kernels.kernel(twice))
    monkeypatch.setitem(kernels._HOW, "error_model", "python")
    assert kernels.fingerprint(kernels.kernel(twice)) != before


OPEN = ["the cache", "what is kept in it", "a file in it", "a folder above it"]


@pytest.mark.parametrize("what", OPEN)
def test_a_cache_that_others_can_write_is_not_used(what: str, cache: Path, process: Process) -> None:
    (kept,) = cache.iterdir()
    path = dict(zip(OPEN, [cache, kept, next(kept.glob("*.nbi")), cache.parent], strict=True))[what]
    mode = path.stat().st_mode
    path.chmod(0o777)
    assert process.run(cache) == (0, 1)
    path.chmod(mode)
    assert process.run(cache) == (1, 0)


def test_a_folder_above_may_be_open_where_nobody_can_exchange_what_is_in_it(cache: Path, process: Process) -> None:
    cache.parent.chmod(0o1777)  # as /tmp is
    assert process.run(cache) == (1, 0)


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


def test_where_a_cache_is_open_to_others_ones_own_is_used(tmp_path: Path, process: Process) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for hits in (0, 1):
        assert process.run(tmp_path / "open", tmp_path / "home") == (hits, 0)
    assert not list((tmp_path / "open").rglob("*.nb?"))
    assert list((tmp_path / "home" / "treetop" / "kernels").rglob("*.nbc"))


def test_arrays_that_nobody_may_write_to_are_copied_and_others_are_not() -> None:
    own = np.arange(5)
    assert writable(own) is own
    own.flags.writeable = False
    copied = writable(own)
    assert copied.flags.writeable and np.array_equal(copied, own)
