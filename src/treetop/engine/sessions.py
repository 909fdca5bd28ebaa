"""Sessions of Spark: which are safe for keys, and how one is started that is."""

from __future__ import annotations

import logging
import os
import re
import secrets
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from treetop.basics.distribution import install_extra
from treetop.errors import EngineError

OLDEST = (4, 1)
"""The oldest version of Spark that was tried."""
ATTEMPTS = 4
"""So often a task is begun in local mode, as it is by default on a cluster."""

_ENCRYPTED = {"spark.io.encryption.enabled": "true"}
_GUARDED = {**_ENCRYPTED, "spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
_LOG = logging.getLogger("treetop")


def check(session: Any) -> None:
    """Refuse a session that would write or send keys in clear, and warn of a version that was not tried."""
    settings = _Settings(session)
    master = settings.get("spark.master")
    needed = _ENCRYPTED if _is_local(master) else _GUARDED
    missing = [f"{name}={value}" for name, value in needed.items() if settings.get(name).lower() != value]
    if missing:
        listed = " ".join(f"--conf {one}" for one in missing)
        raise EngineError(
            "this Spark session would write or send the key of the noise in clear. Stop it, and start one with "
            f"{listed}; a session that runs cannot be changed"
        )
    if settings.is_open_connection:
        raise EngineError(
            "the connection to the Spark Connect server is not encrypted, and the key of the noise would be sent over "
            "it: connect to sc://HOST:PORT/;use_ssl=true"
        )
    if _number(session.version) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        _LOG.warning(
            "Spark %s is older than all that Treetop was tried with: take %s or later", session.version, oldest
        )


@contextmanager
def session(master: str | None = None, settings: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Give the Spark session of this process, or one for as long as it is needed, with what a private run has to set.

    A session that is there already stays as it is: Spark would note settings that come late, and not follow them.
    """
    builder = _builder()
    there = builder.getActiveSession()
    if there is not None:
        now = _Settings(there).get("spark.master")
        if master is not None and _without_attempts(now) != _without_attempts(master):
            raise EngineError(f"a Spark session on {now} is running in this process: stop it, or leave out --master")
        yield there
        return
    made = _start(builder, master, dict(settings or {}))
    try:
        yield made
    finally:
        made.stop()


def settings_for(master: str | None) -> dict[str, str]:
    """Return what a session on a master is started with, unless the steward says otherwise."""
    chosen = {**_GUARDED, "spark.ui.showConsoleProgress": "false"}
    if master is not None and master.startswith("local"):  # nobody but us is there to look at its pages
        chosen["spark.ui.enabled"] = "false"
    if master is not None and master.startswith("local-cluster"):  # which makes no secret itself
        chosen["spark.authenticate.secret"] = secrets.token_hex(32)
    return chosen


def _builder() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as problem:
        raise EngineError(f"Spark needs more packages: {install_extra('spark')}") from problem
    return SparkSession


def _start(of: Any, master: str | None, settings: dict[str, str]) -> Any:
    builder = of.builder.appName("treetop")
    if master is not None and master.startswith("sc://"):
        builder = builder.remote(master)  # whose settings are the server's
    else:
        settings = {**settings_for(master), **settings}
        if master is not None:
            builder = builder.master(_with_attempts(master))
        if master is None or master.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # where Treetop is
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _own_interrupts():
        try:
            return builder.getOrCreate()
        except Exception as problem:
            raise EngineError(
                f"Spark does not start: {first_line(problem)}. It needs Java 17 or later (JAVA_HOME); what it wrote "
                "above may say more"
            ) from problem


class _Settings:
    """The settings of a session as they are: not what was asked for too late."""

    def __init__(self, session: Any) -> None:
        self._conf, self._client = session.conf, None
        if type(session).__module__.startswith("pyspark.sql.connect"):
            self._client = session.client
            return
        with suppress(Exception):  # a platform without it
            # What a running session is told of such settings stands in `session.conf` as well, and has no effect.
            self._conf = session.sparkContext.getConf()

    def get(self, name: str) -> str:
        try:
            found = self._conf.get(name, None)
        except Exception:  # a platform that hides it
            found = None
        return str(found or "")

    @property
    def is_open_connection(self) -> bool:
        """Whether the driver talks to a server of Spark Connect on another machine, unencrypted."""
        if self._client is None:
            return False
        builder = getattr(self._client, "_builder", None)
        host = str(getattr(builder, "host", ""))
        return host not in ("localhost", "127.0.0.1", "::1") and not getattr(builder, "secure", False)


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep the handler of Ctrl-C, which Spark replaces by one of its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


def first_line(problem: BaseException) -> str:
    """Return what an error says first: Java says much more."""
    return next(iter(str(problem).splitlines()), type(problem).__name__)[:200].rstrip(". ")


def _is_local(master: str) -> bool:
    """Whether everything runs in the process that Spark was started in, and its children."""
    return re.fullmatch(r"local(\[[^]]*\])?", master) is not None


def _with_attempts(master: str) -> str:
    """Return a local master that begins a task again, as clusters do, where a Python worker ends."""
    if master == "local":
        return f"local[1,{ATTEMPTS}]"
    return re.sub(r"^local\[([^],]+)\]$", rf"local[\1,{ATTEMPTS}]", master)


def _without_attempts(master: str) -> str:
    return re.sub(r"^local\[([^],]+),\d+\]$", r"local[\1]", master)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
