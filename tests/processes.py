"""Processes of their own without the second that Python takes to import Treetop: forked from one that has done so.

A program runs as `python -c` runs it: as `__main__`, with arguments, folder, environment, output and end of its own; it
can be killed and interrupted. Only the imports are there already, and at its end nobody takes them apart again. Where
imports are the subject, a test starts Python.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import treetop as tt
from tests.plugins.child import sitecustomize as noise

ROOT = Path(__file__).parents[1]
SERVER = """
import sys
from tests.processes import ends_at_once, serve
with ends_at_once():
    exec(serve(int(sys.argv[1])))
"""
PATIENCE = 240.0

Ended = subprocess.CompletedProcess[str]


class Running:
    """A process that runs a program."""

    def __init__(self, server: Server, arguments: tuple[str, ...], pid: int, out: IO[str], err: IO[str]) -> None:
        self._server, self._arguments, self._out, self._err = server, arguments, out, err
        self.pid = pid

    def kill(self) -> None:
        """End it at once. It stays until it is waited for, so that nobody else has its number."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> Ended:
        """Wait for its end, and return how that was and what it said."""
        try:
            code = self._server.ask({"wait": self.pid})
        except TimeoutError:
            self.kill()
            raise
        said = []
        for file in (self._out, self._err):
            with file:
                file.seek(0)
                said.append(file.read())
        return Ended(self._arguments, code, *said)


class Talking:
    """A process that runs a program, and is talked to by lines meanwhile."""

    def __init__(self, server: Server, pid: int, given: IO[str], said: IO[str]) -> None:
        self._server, self._given, self._said = server, given, said
        self.pid = pid

    def tell(self, text: str) -> None:
        """Write a line to it."""
        self._given.write(text + "\n")
        self._given.flush()

    def line(self) -> str:
        """Wait for a line from it."""
        return self._said.readline().strip()

    def is_silent(self, seconds: float) -> bool:
        """Whether it neither says anything nor ends for so long."""
        return not select.select([self._said], [], [], seconds)[0]

    def kill(self) -> str:
        """End it at once, and return what it said that was not read yet."""
        os.kill(self.pid, signal.SIGKILL)
        code, said = self.end()
        assert code == -signal.SIGKILL
        return said

    def end(self) -> tuple[int, str]:
        """Wait for its end, and return how that was and what it said that was not read yet."""
        with self._given, self._said:
            try:
                code = self._server.ask({"wait": self.pid})  # what it says until then is little
            except TimeoutError:
                os.kill(self.pid, signal.SIGKILL)
                raise
            return code, self._said.read()


class Server:
    """The process that has imported Treetop, from here."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        line.settimeout(PATIENCE)

    def start(self, program: str, *arguments: object, folder: Path, also: Mapping[str, str] | None = None) -> Running:
        """Start a program with arguments, in a folder, with something more in its environment."""
        words = tuple(map(str, arguments))
        out, err = (tempfile.TemporaryFile("w+", encoding="utf-8") for _ in range(2))  # noqa: SIM115
        pid = self._fork(program, words, folder, also, out.fileno(), err.fileno())
        return Running(self, words, pid, out, err)

    def talk(self, program: str, *arguments: object, folder: Path) -> Talking:
        """Start a program that reads and writes lines; what it says of errors is said where the tests say it."""
        hears, given = os.pipe()
        said, says = os.pipe()
        try:
            pid = self._fork(program, tuple(map(str, arguments)), folder, None, says, 2, hears)
        finally:
            os.close(hears)
            os.close(says)
        return Talking(self, pid, open(given, "w", encoding="utf-8"), open(said, encoding="utf-8"))  # noqa: PTH123

    def _fork(
        self, program: str, words: tuple[str, ...], folder: Path, also: Mapping[str, str] | None, *files: int
    ) -> int:
        environment = {**os.environ, **(also or {})}
        request = {"program": program, "arguments": words, "folder": str(folder), "environment": environment}
        return self.ask(request, *files)

    def run(self, program: str, *arguments: object, folder: Path, also: Mapping[str, str] | None = None) -> Ended:
        """Run a program to its end."""
        return self.start(program, *arguments, folder=folder, also=also).wait()

    def ask(self, request: dict[str, Any], *files: int) -> int:
        socket.send_fds(self._line, [json.dumps(request).encode() + b"\n"], files)
        return int(_line(self._line)[0])


@contextmanager
def served() -> Iterator[Server]:
    """Start the process that imports Treetop, and end it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-c", SERVER, str(theirs.fileno())]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()
        with process:
            yield Server(ours)
            ours.close()


def _line(line: socket.socket) -> tuple[bytes, list[int]]:
    """Return what comes up to the end of a line, and the files that come with it."""
    text = b""
    files: list[int] = []
    while not text.endswith(b"\n"):
        part, more, _, _ = socket.recv_fds(line, 1 << 16, 3)
        if not part:
            raise EOFError
        text, files = text + part, files + more
    return text, files


@contextmanager
def ends_at_once() -> Iterator[None]:
    """Let a program that has ended leave as it is: to free all that was imported takes a third of a second.

    Its own threads and callbacks come first, as ever; one that ends by an error ends as it always does.
    """
    codes: list[int] = []

    def end() -> None:
        for code in codes:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    atexit.register(end)  # what is registered first is called last
    try:
        yield
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            codes.append((leaving.code or 0) & 0xFF)
        raise
    codes.append(0)


def _warm_up() -> None:
    """Make a release: kernels are loaded when they are first called. It starts no threads, which forks do not keep."""
    import pyarrow as pa

    from tests.everyday import plan

    with tempfile.TemporaryDirectory() as folder:
        tt.make_release(plan(), pa.table({"origin": ["n1"], "destination": ["s1"]})).save(Path(folder, "out"))


def serve(number: int) -> str:
    """Import Treetop and fork for every program that is asked for; return in the child alone, with its program."""
    from treetop.cli import COMMANDS

    for name in COMMANDS:
        import_module(f"treetop.cli.{name}")
    _warm_up()
    noise.install()
    with socket.socket(fileno=number) as line:
        while True:
            try:
                text, files = _line(line)
            except EOFError:
                return ""
            request = json.loads(text)
            if "wait" in request:
                _, status = os.waitpid(request["wait"], 0)
                line.send(f"{os.waitstatus_to_exitcode(status)}\n".encode())
                continue
            if pid := os.fork():
                line.send(f"{pid}\n".encode())
                for file in files:
                    os.close(file)
                continue
            break
    for standard, file in zip((1, 2, 0), files, strict=False):  # without a third, nothing is read
        os.dup2(file, standard)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["-c", *request["arguments"]]
    random.seed()
    program: str = request["program"]
    return program
