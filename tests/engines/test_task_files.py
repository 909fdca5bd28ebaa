"""Tasks as files: without keys, signed, gone afterwards, and with errors that tell no private thing on the way."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import pytest

from tests.engines.descents import KEY, KINDS, cut_small, descended
from tests.engines.worker_tasks import PRIVATE, echo, private_error, unsendable_error
from treetop.addons.clusters import task_files
from treetop.addons.clusters.task_files import (
    WorkerContext,
    compare,
    exchange_dir,
    explain,
    pack,
    unpack,
    versions,
    work,
)
from treetop.errors import EngineError
from treetop.noise import Key

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Here:
    """Sends tasks through files, and does them here."""

    staging: Path
    sent: int = 0
    largest: int = 0

    def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        with exchange_dir(self.staging) as folder:
            context, number = pack(folder, function, tasks)
            self.sent += number
            self.largest = max(self.largest, task_files.count_bytes(context))
            for path in folder.iterdir():
                assert all(key.secret not in path.read_bytes() for key in (*context.keys, context.seal))
            for one in range(number):
                assert work(context, one) == ""
            for one in range(number):
                yield unpack(context, one)


@pytest.mark.parametrize("kind", KINDS)
def test_a_journey_through_files_changes_nothing(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)
    here = Here(tmp_path)
    assert descended(kind, here) == descended(kind)
    assert here.sent > 1
    assert here.largest < 1_000
    assert list(tmp_path.iterdir()) == []


def sent(folder: Path, function: Callable[[Any], Any], *tasks: Any) -> WorkerContext:
    context, number = pack(folder, function, tasks)
    assert number == len(tasks)
    return context


def test_keys_come_back_where_they_were(tmp_path: Path) -> None:
    one, other = KEY, KEY.derive("other")
    context = sent(tmp_path, echo, [one, {"there": other}], other)
    assert [work(context, 0), work(context, 1)] == ["", ""]
    assert unpack(context, 0) == [one, {"there": other}]
    assert unpack(context, 1) == other
    assert len(context.keys) == 2


def test_a_key_of_ones_own_does_not_come_back(tmp_path: Path) -> None:
    context = sent(tmp_path, derived, KEY)
    work(context, 0)
    with pytest.raises(EngineError, match="failed with PicklingError"):
        unpack(context, 0)


def derived(key: Key) -> Key:
    return key.derive("below")


def test_an_errand_does_not_show_its_secrets(tmp_path: Path) -> None:
    context = sent(tmp_path, echo, KEY)
    assert repr(context) == f"WorkerContext(folder={str(tmp_path)!r})"


@pytest.mark.parametrize("change", ["bit", "cut", "other task", "other context"])
@pytest.mark.parametrize("kind", ["task", "answer"])
def test_another_content_is_never_loaded(kind: str, change: str, tmp_path: Path) -> None:
    context = sent(tmp_path, echo, 1, 2)
    assert [work(context, 0), work(context, 1)] == ["", ""]
    path = tmp_path / f"{kind}-0"
    if change == "bit":
        data = bytearray(path.read_bytes())
        data[-3] ^= 1
        path.write_bytes(data)
    elif change == "cut":
        path.write_bytes(path.read_bytes()[:20])
    elif change == "other task":
        path.write_bytes((tmp_path / f"{kind}-1").read_bytes())
    else:
        context = replace(context, seal=Key.fresh())
    if kind == "task":
        assert work(context, 0) == task_files.CHANGED
    else:
        with pytest.raises(EngineError, match="is not the one that was put there"):
            unpack(context, 0)


def test_large_arrays_are_written_once_and_come_back_as_they_were(tmp_path: Path) -> None:
    large = np.arange(40_000).reshape(200, 200)
    frozen = large[::-1].copy()
    frozen.flags.writeable = False
    tasks: list[tuple[Any, ...]] = [
        (number, large, np.asfortranarray(large), large[3:150], frozen, large[:, 1]) for number in range(5)
    ]
    context = sent(tmp_path, echo, *tasks)
    assert len(list(tmp_path.glob("task-*"))) == 5
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 5 * large.nbytes
    for number, task in enumerate(tasks):
        assert work(context, number) == ""
        for one, other in zip(task, unpack(context, number), strict=True):
            assert np.array_equal(one, other)
            assert isinstance(one, int) or one.flags.writeable == other.flags.writeable


def test_another_array_is_never_loaded(tmp_path: Path) -> None:
    context = sent(tmp_path, echo, np.arange(40_000))
    (path,) = (path for path in tmp_path.iterdir() if path.name != "task-0")
    data = bytearray(path.read_bytes())
    data[8] ^= 1
    path.write_bytes(data)
    assert work(context, 0) == task_files.CHANGED


def test_an_error_is_raised_where_its_words_are_not_public(tmp_path: Path) -> None:
    context = sent(tmp_path, private_error, PRIVATE)
    assert work(context, 0) == ""
    with pytest.raises(ValueError, match=f"{PRIVATE} is unknown"):
        unpack(context, 0)


def test_an_error_that_cannot_be_sent_is_told_by_its_name(tmp_path: Path) -> None:
    context = sent(tmp_path, unsendable_error, PRIVATE)
    assert work(context, 0) == ""
    with pytest.raises(EngineError, match="^a worker failed with Unsendable$"):
        unpack(context, 0)


def test_what_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="must be in a module"):
        pack(tmp_path, lambda task: task, [1])
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_lacks_a_module_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ModuleType("ours")
    exec("def function(task): return task", ours.__dict__)
    monkeypatch.setitem(sys.modules, "ours", ours)
    context = sent(tmp_path, ours.function, 1)
    monkeypatch.delitem(sys.modules, "ours")
    assert work(context, 0) == ""
    with pytest.raises(EngineError, match="No module named 'ours'.*installed on every worker"):
        unpack(context, 0)


def test_a_worker_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    context = replace(sent(tmp_path, echo, 1), folder=str(tmp_path / "elsewhere"))
    word = work(context, 0)
    assert word == task_files.MISSING
    assert "does not see the staging folder" in explain(word, context.folder)


@pytest.mark.parametrize(("problem", "says"), [
    (PermissionError(13, PRIVATE), "run as the same user"), (OSError(28, PRIVATE), "is full"),
    (OSError(5, PRIVATE), "EIO"), (RuntimeError(PRIVATE), "RuntimeError"),
])  # fmt: skip
def test_what_goes_wrong_on_the_way_is_told_in_public_words(
    problem: Exception, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = sent(tmp_path, echo, PRIVATE)

    def failing(*_: Any) -> None:
        raise problem

    monkeypatch.setattr(task_files, "_write", failing)
    word = work(context, 0)
    assert says in explain(word, context.folder)
    assert PRIVATE not in explain(word, context.folder)


def test_an_answer_that_cannot_be_seen_is_waited_for_and_then_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_files, "_PATIENCE", 0.2)
    with pytest.raises(EngineError, match="cannot be seen here"):
        unpack(sent(tmp_path, echo, 1), 0)


def test_files_are_their_owners_alone_and_gone_with_the_drafts_of_others(tmp_path: Path) -> None:
    with exchange_dir(tmp_path) as folder:
        context = sent(folder, echo, 1)
        (folder / ".draft-answer-0-killed").write_text(PRIVATE)
        assert folder.stat().st_mode & 0o077 == 0
        assert (folder / "task-0").stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == []
    assert work(context, 0) == task_files.MISSING  # and a late attempt finds no place
    assert list(tmp_path.iterdir()) == []


def test_attempts_beside_each_other_give_the_same(tmp_path: Path) -> None:
    with exchange_dir(tmp_path) as folder:
        context = sent(folder, slowly, *range(4))
        with ThreadPoolExecutor(12) as pool:
            words = list(pool.map(work, [context] * 12, [0, 1, 2, 3] * 3))
            written = [(folder / f"answer-{one}").read_bytes() for one in range(4)]
        assert words == [""] * 12
        assert [unpack(context, one) for one in range(4)] == [0, 10, 20, 30]
        assert work(context, 2) == ""  # which nobody waits for any more
        assert (folder / "answer-2").read_bytes() == written[2]
    assert list(tmp_path.iterdir()) == []


def slowly(task: int) -> int:
    time.sleep(0.01 * task)
    return 10 * task


def test_a_draft_is_gone_where_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = sent(tmp_path, echo, 1)

    def failing(*_: Any) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", failing)
    assert work(context, 0) == "ENOSPC"
    assert [path.name for path in tmp_path.iterdir()] == ["task-0"]


def test_workers_with_other_versions_are_refused() -> None:
    compare(versions(), versions())
    with pytest.raises(EngineError, match="workers have numpy 1.0, and the driver"):
        compare(versions(), {**versions(), "numpy": "1.0"})


def test_an_errand_is_sent_with_its_keys(tmp_path: Path) -> None:
    context = sent(tmp_path, echo, KEY)
    assert pickle.loads(pickle.dumps(context)).keys == (KEY,)
