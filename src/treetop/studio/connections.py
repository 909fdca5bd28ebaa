"""HTTP connections of the studio: one on which no request arrives in time is closed, and none keeps the owner out."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

SECONDS = 10.0
"""How long a connection may take to send the headers of a request."""
MOST = 64
"""How many connections may wait for a request at once."""


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
