"""Serving the studio: on this machine only, at a port that is free, until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from treetop.addons.studio.app import address, make_app
from treetop.addons.studio.guard import RedirectFile
from treetop.addons.studio.workspace import Telling, Workspace
from treetop.errors import DataError

# HTTP connections of the studio: one on which no request arrives in time is closed, and none keeps the owner out.

SECONDS = 10.0
"""Seconds that a connection may take to send the headers of a request."""
MOST = 64
"""Most connections that may wait for a request at once."""


def http_protocol(seconds: float = SECONDS, most: int = MOST) -> type[H11Protocol]:
    """Return the protocol class of one server.

    A connection waits from when it opens, or its last response ends, until all headers of its next request are there.
    After `seconds` of waiting it is closed, even if bytes still drip in. If more than `most` connections wait, the
    one that has waited longest is closed; a new one is never refused. A limit on all connections would let silent
    ones of any local process keep the owner out.
    """
    waiting: dict[H11Protocol, asyncio.TimerHandle] = {}

    class _Protocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end_waiting()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            super().handle_events()
            cycle: RequestResponseCycle | None = self.cycle  # None before the first request
            if cycle is not None and not cycle.response_complete:
                self._end_waiting()

        def on_response_complete(self) -> None:
            self._wait()  # first, since the next request may be here already
            super().on_response_complete()

        def _wait(self) -> None:
            self._end_waiting()
            waiting[self] = self.loop.call_later(seconds, self.transport.close)
            if len(waiting) > most:
                oldest = next(iter(waiting))
                waiting.pop(oldest).cancel()
                oldest.transport.close()

        def _end_waiting(self) -> None:
            if (timer := waiting.pop(self, None)) is not None:
                timer.cancel()

    return _Protocol


HOST = "127.0.0.1"
"""No other machine of the network reaches it."""


@contextmanager
def opened(
    folder: str | Path, plan: str | None = None, port: int = 0, header_seconds: float = SECONDS
) -> Iterator[tuple[uvicorn.Server, str, Workspace]]:
    """Yield a server that is ready to run, the link that opens it once, and its workspace; all ends with it.

    A connection that takes longer than `header_seconds` to send the headers of a request is closed.
    """
    workspace = Workspace(folder, plan)
    with _listening(port) as listener, _told(workspace):
        own = f"{HOST}:{listener.getsockname()[1]}"
        hosts = (own, own.replace(HOST, "localhost"))
        config = uvicorn.Config(
            make_app(workspace, hosts),
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
            proxy_headers=False,
            ws="none",
            http=http_protocol(header_seconds),
        )
        server = uvicorn.Server(config)
        run = server.run
        server.run = lambda sockets=None: run([listener])  # type: ignore[method-assign]
        workspace.open()
        try:
            yield server, address(workspace, own), workspace
        finally:
            workspace.close()


def serve(
    folder: str | Path,
    plan: str | None = None,
    port: int = 0,
    ready: Callable[[str], object] = lambda _: None,
    launch: Callable[[str], object] | None = None,
) -> None:
    """Serve until Ctrl-C.

    Args:
        folder: The folder that the studio works in.
        plan: The plan file in it; plan.toml, or the first one, if None.
        port: The port; a free one if 0.
        ready: Called with the link that opens the studio once.
        launch: Called with the address of a file that leads a browser to the link. Other users may see the address,
            and cannot read the file. It is removed once the link is used, or at the end.
    """
    with opened(folder, plan, port) as (server, link, workspace):
        ready(link)
        if launch is None:
            server.run()
            return
        file = RedirectFile(link)
        workspace.keys.on_entry = file.remove
        try:
            launch(file.path.as_uri())
            server.run()
        finally:
            file.remove()


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as problem:
            raise DataError(
                f"port {port} cannot be used: {problem.strerror or problem}. Give another `port`, or none"
            ) from problem
        listener.listen(64)
        yield listener


@contextmanager
def _told(workspace: Workspace) -> Iterator[None]:
    """Show the package's log messages on pages, and on no terminal: a number of dropped records is private."""
    log, telling = logging.getLogger("treetop"), Telling(workspace)
    before, spreads = log.handlers[:], log.propagate
    log.handlers, log.propagate = [telling], False
    try:
        yield
    finally:
        log.handlers, log.propagate = before, spreads
