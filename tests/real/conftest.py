"""Real origin/destination tables, read where they lie: beside the repository, never copied into it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from treetop.cli import main

HERE = Path(__file__).parent
DATA = HERE.parents[1].parent / "shared" / "data"


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended."""

    out: str
    err: str
    code: object

    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Said]


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder with the real tables; what needs it is skipped where it is not."""
    if not DATA.is_dir():
        pytest.skip(f"the real tables are not here: {DATA} does not exist")
    return DATA


@pytest.fixture(scope="session")
def treetop() -> Command:
    """Run a command as on the command line; it must end with the exit code that is expected."""

    def run(*arguments: object, expect: int = 0) -> Said:
        out, err, code = io.StringIO(), io.StringIO(), 0
        with redirect_stdout(out), redirect_stderr(err):
            try:
                main([str(argument) for argument in arguments])
            except SystemExit as leaving:
                code = int(leaving.code or 0)
        said = Said(out.getvalue(), err.getvalue(), code)
        assert code == expect, f"treetop {' '.join(map(str, arguments))} ended with {code}:\n{said.err}{said.out}"
        return said

    return run
