"""Serving the studio: on this machine only, at a port that is free, until it is stopped."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from treetop.errors import DataError
from treetop.studio.app import address, make_app
from treetop.studio.bench import Bench, Telling

HOST = "127.0.0.1"
"""Nothing else on the network reaches it."""


@contextmanager
def opened(folder: str | Path, plan: str | None = None, port: int = 0) -> Iterator[tuple[uvicorn.Server, str, Bench]]:
    """Yield a server that is ready to run, the link that opens it once, and what it works on; all ends with it."""
    bench = Bench(folder, plan)
    with _listening(port) as listener, _told(bench):
        own = f"{HOST}:{listener.getsockname()[1]}"
        hosts = (own, own.replace(HOST, "localhost"))
        config = uvicorn.Config(
            make_app(bench, hosts),
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
            proxy_headers=False,
            ws="none",
            limit_concurrency=64,
        )
        server = uvicorn.Server(config)
        run = server.run
        server.run = lambda sockets=None: run([listener])  # type: ignore[method-assign]
        bench.open()
        try:
            yield server, address(bench, own), bench
        finally:
            bench.close()


def serve(
    folder: str | Path, plan: str | None = None, port: int = 0, ready: Callable[[str], object] = lambda _: None
) -> None:
    """Serve until Ctrl-C; `ready` is told the link that opens the studio once."""
    with opened(folder, plan, port) as (server, link, _):
        ready(link)
        server.run()


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as problem:
            raise DataError(
                f"port {port} cannot be used: {problem.strerror or problem}. Give another one with --port, or none"
            ) from problem
        listener.listen(64)
        yield listener


@contextmanager
def _told(bench: Bench) -> Iterator[None]:
    """Bring what the package logs to pages, and to no terminal: a number of dropped records is private."""
    log, telling = logging.getLogger("treetop"), Telling(bench)
    before, spreads = log.handlers[:], log.propagate
    log.handlers, log.propagate = [telling], False
    try:
        yield
    finally:
        log.handlers, log.propagate = before, spreads
