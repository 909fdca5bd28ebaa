"""A worker process: it reads calls from its standard input, and writes what they give to its standard output.

It is started by its own name, and not by forking or by importing the main program again: a script that publishes a
release needs no guard around its last line. Keys come through the pipe and are never on a disk.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import Any, BinaryIO

SIZE = 8
"""How many bytes tell the length of what follows."""


def send(stream: BinaryIO, content: object) -> None:
    """Write an object with its length before it."""
    data = pickle.dumps(content, protocol=5)
    stream.write(len(data).to_bytes(SIZE, "little"))
    stream.write(data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read an object; raise EOFError where there is none any more."""
    length = stream.read(SIZE)
    if len(length) < SIZE:
        raise EOFError
    size = int.from_bytes(length, "little")
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)  # from our own parent, through its own pipe


def main() -> None:
    """Serve until the parent closes the pipe, or is no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it hears of Ctrl-C as well, and ends it
    calls, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints does not get between the answers
    while True:
        try:
            function, task = receive(calls)
        except EOFError:
            return
        try:
            answer: tuple[bool, object] = (True, function(task))
        except Exception as problem:  # told to the parent, who raises it
            answer = (False, problem)
        send(answers, answer)


if __name__ == "__main__":
    main()
