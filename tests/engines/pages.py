"""The web pages of a running Spark session, and what its REST interface tells: everything that an operator can open."""

from __future__ import annotations

import html
import json
import re
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urljoin, urlsplit

SETTINGS = {"spark.ui.enabled": "true", "spark.ui.port": "0", "spark.ui.killEnabled": "false"}
"""Pages at a free port, of the address that SPARK_LOCAL_IP names; without links that end what one looks at."""

PARTS = (
    "jobs",
    "stages?details=true&withSummaries=true",
    "sql?details=true&planDescription=true&length=100000",
    "environment",
    "executors",
    "allexecutors",
    "executors/driver/threads",
    "storage/rdd",
)
"""What the REST interface tells of an application."""

_MOST = 5_000
_SKIPPED = re.compile(r"/static/|[?&][^&=]*(sort|desc)=")
"""What comes with Spark, and the same rows in another order."""


def pages(running: Any) -> dict[str, bytes]:
    """All pages of a session with their addresses, the REST interface among them, when all that was done is on them."""
    context = running.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    start = context.uiWebUrl.rstrip("/") + "/"
    assert urlsplit(start).hostname in ("127.0.0.1", "localhost"), start
    return {**_linked(start), **_told(urljoin(start, "api/v1/applications"), context.applicationId)}


def showing(found: dict[str, bytes], *needles: bytes) -> set[str]:
    """Tell which pages show one of these, also in the spelling of HTML."""
    return {address for address, content in found.items() if any(one in content + _plain(content) for one in needles)}


def _plain(content: bytes) -> bytes:
    return html.unescape(content.decode("utf-8", "replace")).encode()


def _linked(start: str) -> dict[str, bytes]:
    """Follow the links from the first page."""
    found: dict[str, bytes] = {}
    waiting, seen = [start], {start}
    while waiting:
        address = waiting.pop()
        content = _read(address)
        if content is None:
            continue
        found[address] = content
        assert len(found) < _MOST, "the pages have no end"
        for link in re.findall(r"""(?:href|src)=["']([^"'#]+)""", content.decode("utf-8", "replace")):
            to = urljoin(address, html.unescape(link))
            if to.startswith(start) and to not in seen and not _SKIPPED.search(to):
                seen.add(to)
                waiting.append(to)
    return found


def _told(applications: str, number: str) -> dict[str, bytes]:
    """Ask the REST interface for all that it has, down to single tasks."""
    found = {applications: _read(applications)}
    found |= {f"{applications}/{number}/{part}": _read(f"{applications}/{number}/{part}") for part in PARTS}
    missing = [address for address, content in found.items() if content is None]
    assert not missing, f"the REST interface does not have {missing}"
    for stage in json.loads(found[f"{applications}/{number}/{PARTS[1]}"] or b"[]"):
        tasks = f"{applications}/{number}/stages/{stage['stageId']}/{stage['attemptId']}/taskList?length=100000"
        found[tasks] = _read(tasks)
    return {address: content for address, content in found.items() if content is not None}


def _read(address: str) -> bytes | None:
    """Open a page; None where there is none, as of a stage that never began."""
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            content: bytes = answer.read()
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.read() if problem.code >= 500 else None
    return content
