"""Mechanisms side by side on one table: every setting, several times, for the steward only.

Each run has a process to itself while it lasts, and one thread. So the time of a processor and the high-water mark of
memory are the run's own, however many runs go on at once. Threads would share both, and the interpreter as well, which
mechanisms that are not compiled would pay for. A process for every run would start Python more often than it measures:
a few processes that live for the whole comparison do the same, each with a copy of the table.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import TypeAlias

from treetop.basics.progress import Progress
from treetop.compare.comparison import Comparison, Refused
from treetop.compare.mechanisms import Mechanism, named, register
from treetop.compare.trial import Accounting, Case, Setting, Trial, run_trial
from treetop.errors import TreetopError
from treetop.noise import Key

Outcome: TypeAlias = Trial | Refused
Task: TypeAlias = tuple[Setting, int, Key]


def settings(
    mechanisms: Iterable[str],
    epsilons: Iterable[float],
    delta: float | None = 1e-8,
    accountings: Sequence[Accounting] = ("tight",),
    options: Mapping[str, Mapping[str, object]] | None = None,
) -> list[Setting]:
    """Return every mechanism at every epsilon under every accounting; `options` are by mechanism.

    >>> [(one.mechanism, one.epsilon) for one in settings(["inftda", "sh"], [0.1, 1])]
    [('inftda', 0.1), ('inftda', 1), ('sh', 0.1), ('sh', 1)]
    """
    more = options or {}
    return [
        Setting(mechanism, epsilon, delta, accounting, more.get(mechanism, {}))
        for accounting in (accountings if delta is not None else ("pure",))
        for mechanism in mechanisms
        for epsilon in epsilons
    ]


def compare(
    case: Case,
    chosen: Sequence[Setting],
    repeats: int | Mapping[str, int] = 10,
    *,
    key: Key,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Comparison:
    """Run every setting `repeats` times (a number, or one by mechanism), and gather errors, times and memory.

    What a mechanism refuses is listed with its reason. Noise is derived from the key, and nothing of a release is kept:
    results are private, and nothing is spent. With several `jobs`, the calling script needs the usual
    `if __name__ == "__main__"`.
    """
    refused: list[Refused] = []
    tasks: list[Task] = []
    for setting in chosen:
        reason = _refusal(case, setting)
        if reason is not None:
            refused.append(Refused(setting, reason))
            continue
        number = repeats if isinstance(repeats, int) else repeats[setting.mechanism]
        tasks += [(setting, repeat, _key(key, setting, repeat)) for repeat in range(number)]
    trials: list[Trial] = []
    outcomes = _in_turn(case, tasks) if jobs <= 1 else _at_once(case, tasks, jobs)
    for done, outcome in enumerate(outcomes, start=1):
        if isinstance(outcome, Trial):
            trials.append(outcome)
        else:
            refused.append(outcome)
        if progress is not None:
            progress("comparing", done / len(tasks))
    place = {setting: number for number, setting in enumerate(chosen)}
    trials.sort(key=lambda trial: (place[trial.setting], trial.repeat))
    return Comparison(tuple(trials), tuple(dict.fromkeys(refused)), case.truth is not None, case.facts is not None)


def _refusal(case: Case, setting: Setting) -> str | None:
    """Say why a mechanism cannot serve the case, before anything private is looked at."""
    try:
        setting.make(case)
    except TreetopError as problem:
        return str(problem)
    return None


def _key(secret: Key, setting: Setting, repeat: int) -> Key:
    """A key for one run: runs of different mechanisms share no noise, since their errors are compared."""
    return secret.derive("trial", repr(setting).encode(), repeat)


def _in_turn(case: Case, tasks: Sequence[Task]) -> Iterator[Outcome]:
    for task in tasks:
        yield _attempt(case, task)


def _at_once(case: Case, tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    # Spawned, not forked: a forked process would inherit threads in unknown states, and the parent's memory.
    kinds = tuple(named(name) for name in dict.fromkeys(setting.mechanism for setting, _, _ in tasks))
    start = (case, kinds)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_start, initargs=start) as pool:
        waiting = [pool.submit(_work, task) for task in tasks]
        try:
            for finished in as_completed(waiting):
                yield finished.result()
        finally:
            for future in waiting:
                future.cancel()


def _attempt(case: Case, task: Task) -> Outcome:
    setting, repeat, key = task
    try:
        return run_trial(case, setting, repeat, key)
    except TreetopError as problem:  # a solver that gives up, for instance: said, and the rest goes on
        return Refused(setting, str(problem))


_case: Case | None = None


def _start(case: Case, kinds: Sequence[type[Mechanism]]) -> None:
    """Begin a process: it has imported the package's own mechanisms, and is told of others."""
    global _case
    _case = case
    Thread(target=_end_with_parent, daemon=True).start()
    for kind in kinds:
        register(kind)


def _end_with_parent() -> None:
    """End this process, which holds private counts, when its parent has ended, however it ended."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(task: Task) -> Outcome:
    assert _case is not None
    return _attempt(_case, task)
