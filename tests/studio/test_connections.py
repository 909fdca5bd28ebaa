"""Connections on which no request arrives: they are closed in time, and never keep the owner out."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.studio.visitor import Visitor
from treetop.addons.studio import opened

LATE = 600.0
"""A limit that no test reaches."""
SOON = 1.0


@contextmanager
def studio(folder: Path, header_seconds: float) -> Iterator[Visitor]:
    with opened(folder, header_seconds=header_seconds) as (server, link, _):
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            visitor = Visitor(folder, link)
            assert visitor.enter().status == 303
            yield visitor
        finally:
            server.should_exit = True
            thread.join()


def connect(visitor: Visitor, sent: bytes = b"") -> socket.socket:
    host, port = visitor.host.split(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.sendall(sent)
    return connection


def ended(connection: socket.socket) -> bytes:
    """What was answered until the studio closed the connection."""
    answer = b""
    try:
        while part := connection.recv(1 << 16):
            answer += part
    except ConnectionResetError:
        pass
    return answer


def test_silent_and_half_sent_requests_do_not_keep_the_owner_out(tmp_path: Path) -> None:
    with studio(tmp_path, LATE) as visitor, ExitStack() as stack:
        for number in range(150):
            stack.enter_context(connect(visitor, b"GET / HTTP/1.1\r\nHost: x" if number % 2 else b""))
        for _ in range(3):
            assert visitor.see("table").status == 200


def test_of_too_many_that_wait_the_oldest_is_closed(tmp_path: Path) -> None:
    with studio(tmp_path, LATE) as visitor, ExitStack() as stack:
        first = stack.enter_context(connect(visitor))
        for _ in range(70):
            stack.enter_context(connect(visitor))
        assert ended(first) == b""
        last = stack.enter_context(connect(visitor, f"GET / HTTP/1.1\r\nHost: {visitor.host}\r\n\r\n".encode()))
        assert last.recv(12) == b"HTTP/1.1 403"


def test_a_request_that_takes_too_long_to_arrive_is_closed(tmp_path: Path) -> None:
    with studio(tmp_path, SOON) as visitor:
        for sent in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n"):
            with connect(visitor, sent) as silent:
                assert ended(silent) == b""
        with connect(visitor, b"GET / HTTP/1.1\r\n") as dripping:  # bytes that drip in do not begin the time anew
            dripping.settimeout(SOON / 8)
            closed = False
            while not closed:
                try:
                    dripping.sendall(b"X-A: b\r\n")
                    closed = dripping.recv(1) == b""
                except TimeoutError:
                    continue
                except OSError:
                    closed = True
        body = f"POST / HTTP/1.1\r\nHost: {visitor.host}\r\nContent-Length: 9\r\n\r\nabc"
        with connect(visitor, body.encode()) as half:
            assert ended(half).startswith(b"HTTP/1.1 403")
        with connect(visitor, f"GET / HTTP/1.1\r\nHost: {visitor.host}\r\n\r\nGET / HT".encode()) as second:
            assert ended(second).count(b"HTTP/1.1 403") == 1
        assert visitor.see("table").status == 200


def test_a_page_that_takes_longer_than_a_request_may_is_not_cut_off(tmp_path: Path) -> None:
    rows = "".join(f"{number}\r\n" for number in range(20_000))
    with studio(tmp_path, SOON) as visitor:
        body = (
            '--xyz\r\nContent-Disposition: form-data; name="file"; filename="slow.csv"\r\n'
            f"Content-Type: text/csv\r\n\r\nnumber\r\n{rows}--xyz--\r\n"
        ).encode()
        head = (
            f"POST {visitor.room}/upload HTTP/1.1\r\nHost: {visitor.host}\r\nOrigin: http://{visitor.host}\r\n"
            f"Cookie: {visitor.cookie}\r\nContent-Type: multipart/form-data; boundary=xyz\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        with connect(visitor, head.encode() + body[: len(body) // 2]) as slow:
            time.sleep(2 * SOON)
            slow.sendall(body[len(body) // 2 :])
            assert ended(slow).startswith(b"HTTP/1.1 303")
    assert (tmp_path / "slow.csv").is_file()
