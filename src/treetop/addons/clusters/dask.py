"""Dask: tasks run by the workers of a client, as files of a staging folder (`task_files`); keys go beside them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from treetop._util.distribution import install_extra
from treetop.addons.clusters.task_files import WorkerContext, exchange_dir, explain, pack, prove, unpack, work
from treetop.errors import EngineError

T = TypeVar("T")
R = TypeVar("R")


class Dask:
    """Runs tasks on the workers of a Dask client. A task that is done again gives the same: it is a pure function."""

    def __init__(self, client: Any, staging: str | Path) -> None:
        """Take a client and a private folder, which its workers see at the same path and may write to."""
        check(client)
        self._client, self._staging = client, Path(staging)

    def prove(self) -> None:
        """Run a few small tasks, and refuse workers that do not see the staging folder or have other versions."""
        prove(self)

    def map(self, function: Callable[[T], R], tasks: Iterable[T], /) -> Iterator[R]:
        """Yield the results in the order of the tasks, each as soon as it is there."""
        with exchange_dir(self._staging) as folder:
            context, number = pack(folder, function, tasks)
            with self._running(context, number) as futures:
                for one, future in enumerate(futures):
                    problem = _result(future)
                    if problem:
                        raise EngineError(explain(problem, context.folder))
                    yield unpack(context, one)

    @contextmanager
    def _running(self, context: WorkerContext, number: int) -> Iterator[list[Any]]:
        run = f"treetop-{secrets.token_hex(8)}"  # results are never taken from another run
        futures = [self._client.submit(work, context, one, key=f"{run}-{one}", pure=False) for one in range(number)]
        try:
            yield futures
        finally:
            with suppress(Exception):
                self._client.cancel(futures)


def _result(future: Any) -> str:
    try:
        return str(future.result())
    except Exception as problem:
        raise EngineError(
            f"Dask gave up on a task: {type(problem).__name__}. Workers that end most often lack memory: give them "
            "more, or each of them fewer threads"
        ) from None


def check(client: Any) -> None:
    """Refuse a client that would send keys in clear to another machine."""
    address = str(client.scheduler.address)
    workers = client.scheduler_info(n_workers=-1)["workers"]
    for one in (address, *workers):
        if not _is_safe(str(one)):
            raise EngineError(
                "this Dask cluster sends what it is told in clear, and the key of the noise with it. Start scheduler "
                "and workers with --protocol tls, and give the client their certificates (distributed.Security)"
            )


def _is_safe(address: str) -> bool:
    """Whether messages to an address are encrypted or stay on this machine."""
    return re.match(r"(tls|wss|inproc)://|tcp://(127\.\d+\.\d+\.\d+|\[::1\]|localhost):", address) is not None


@contextmanager
def client(address: str) -> Iterator[Any]:
    """Yield a client of the scheduler at an address, then close it; Dask's own settings have certificates."""
    try:
        from distributed import Client
    except ImportError as problem:
        raise EngineError(f"Dask needs more packages: {install_extra('dask')}") from problem
    try:
        made = Client(address, set_as_default=False)
    except Exception as problem:
        raise EngineError(f"there is no Dask scheduler at {address}: {type(problem).__name__}") from problem
    with made:
        yield made
