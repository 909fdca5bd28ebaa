"""Work on several threads: nothing is lost, the first error is the one that is raised, and nothing works on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from treetop._util import system as threads
from treetop._util.system import as_they_come


def several(number: int) -> Iterator[int]:
    yield from range(10 * number, 10 * number + 3)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_all_results_come_whoever_makes_them(workers: int) -> None:
    found = sorted(as_they_come(workers, several, range(7)))
    assert found == [result for number in range(7) for result in several(number)]


def test_results_of_one_item_come_in_order() -> None:
    found = list(as_they_come(3, several, range(40)))
    assert all([one for one in found if one // 10 == item] == list(several(item)) for item in range(40))


def test_the_error_of_the_first_item_is_raised_however_late_it_comes() -> None:
    later_failed = threading.Event()

    def work(number: int) -> Iterator[int]:
        yield number
        if number == 1:
            later_failed.set()
            raise ValueError("the second")
        assert later_failed.wait(60)
        raise ValueError("the first")

    with pytest.raises(ValueError, match="the first"):
        list(as_they_come(2, work, range(100)))


def test_items_after_an_error_are_not_begun() -> None:
    begun: list[int] = []

    def work(number: int) -> Iterator[int]:
        begun.append(number)
        if number == 1:
            raise ValueError("of the second")
        yield number

    with pytest.raises(ValueError, match="of the second"):
        list(as_they_come(1, work, range(1000)))
    assert begun == [0, 1]


def test_whoever_wants_no_more_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())
    coming = as_they_come(3, several, range(10**6))
    next(coming)
    coming.close()
    assert set(threading.enumerate()) == before


def test_results_are_made_only_a_few_ahead() -> None:
    made: list[int] = []

    def work(number: int) -> Iterator[int]:
        for result in range(1000):
            made.append(result)
            yield result

    coming = as_they_come(2, work, range(2))
    next(coming)
    time.sleep(0.2)
    assert len(made) < 20
    coming.close()


@pytest.mark.parametrize("most", [0, 1])
def test_fewer_threads_do_where_there_are_no_more(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []

    class Scarce(threading.Thread):
        def start(self) -> None:
            if len(started) == most:
                raise RuntimeError("can't start new thread")
            started.append(self)
            super().start()

    monkeypatch.setattr(threads, "Thread", Scarce)
    assert sorted(as_they_come(4, several, range(5))) == [result for number in range(5) for result in several(number)]
