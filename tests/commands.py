"""Commands run in the process of the tests, where a process of their own is not the subject: it takes seconds."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treetop.cli import main


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended."""

    out: str
    err: str
    code: int

    def json(self) -> Any:
        return json.loads(self.out)


def said(words: Sequence[object], folder: Path = Path(), terminal: bool = False) -> Said:
    """Run a command of Treetop in a folder, as on the command line; it prints to a file, or to a terminal."""
    written = [io.BytesIO(), io.BytesIO()]
    out, err = (io.TextIOWrapper(stream, "utf-8", newline="", write_through=True) for stream in written)
    out.isatty = lambda: terminal  # type: ignore[method-assign]
    code = 0
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(word) for word in words])
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    texts = [stream.getvalue().decode() for stream in written]
    return Said(texts[0], texts[1], code)


@dataclass(frozen=True)
class Command:
    """A command of Treetop, to be run with other words after its own."""

    words: tuple[object, ...]
    warning: str = ""
    """What it says on standard error all the same."""

    @staticmethod
    def of(*words: object, warning: str = "") -> Command:
        return Command(words, warning)

    def __call__(self, *words: object, terminal: bool = False) -> str:
        """What it prints, doing what it is asked."""
        done = said((*self.words, *words), terminal=terminal)
        assert done.code == 0 and self.warning in done.err, done.err
        return done.out

    def json(self, *words: object) -> Any:
        return json.loads(self(*words, "--json"))

    def fails(self, *words: object, code: int = 2) -> str:
        """What it says when it refuses."""
        ended, message = refused(*self.words, *words)
        assert ended == code, message
        return message


def printed(*words: object, terminal: bool = False) -> str:
    """What a command prints that does what it is asked."""
    done = said(words, terminal=terminal)
    assert done.code == 0, done.err
    return done.out


def refused(*words: object) -> tuple[int, str]:
    """How a command ends that refuses, and what it says: one message for people, and nothing else."""
    done = said(words)
    assert done.code != 0 and done.out == "" and "Traceback" not in done.err, done
    return done.code, done.err
