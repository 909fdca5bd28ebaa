"""A worker process: it reads calls from its standard input, and writes results to its standard output.

It is started by its own name, and not by forking or by importing the main program again: a script that publishes a
release needs no guard around its last line. Keys come through the pipe and are never on a disk.

It ends with its parent, also in the middle of a task: a thread reads the pipe, which the system closes when the parent
ends, however it ends. (Linux can send a signal instead, but does so when the thread that started the worker ends.)
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

SIZE = 8


def send(stream: BinaryIO, content: object) -> None:
    """Write an object with its length before it."""
    data = pickle.dumps(content, protocol=5)
    stream.write(len(data).to_bytes(SIZE, "little"))
    stream.write(data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read an object; raise EOFError if there is none any more."""
    return pickle.loads(_read(stream))  # from our own worker, through its own pipe


def _read(stream: BinaryIO) -> bytes:
    length = stream.read(SIZE)
    if len(length) < SIZE:
        raise EOFError
    size = int.from_bytes(length, "little")
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _listen(calls: BinaryIO, asked: SimpleQueue[bytes]) -> None:
    """Pass calls on until the parent closes the pipe or is gone; then end the process at once."""
    try:
        while True:
            asked.put(_read(calls))
    finally:
        os._exit(0)


def main() -> None:
    """Serve until the parent closes the pipe, or is no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it hears of Ctrl-C as well, and ends it
    answers, asked = os.fdopen(os.dup(1), "wb"), SimpleQueue[bytes]()
    os.dup2(2, 1)  # whatever prints does not get between the answers
    Thread(target=_listen, args=(sys.stdin.buffer, asked), daemon=True).start()
    while True:
        try:
            function, task = pickle.loads(asked.get())  # from our own parent, through its own pipe
            answer: tuple[bool, object] = (True, function(task))
        except Exception as problem:  # told to the parent, who raises it
            answer = (False, problem)
        try:
            send(answers, answer)
        except OSError:  # nobody reads it: the parent is no more
            os._exit(0)


if __name__ == "__main__":
    try:
        main()
    finally:  # an answer that cannot be sent, for instance: Python cannot wait for a thread that reads a pipe
        traceback.print_exc()
        os._exit(1)
