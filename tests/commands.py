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


def said(words: Sequence[object], folder: Path = Path()) -> Said:
    """Run a command of Treetop in a folder, as on the command line."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(word) for word in words])
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    return Said(out.getvalue(), err.getvalue(), code)
