"""Real origin/destination tables, read where they lie: beside the repository, never copied into it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import Said, said

HERE = Path(__file__).parent
DATA = HERE.parents[1].parent / "shared" / "data"


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
        done = said(arguments)
        words = " ".join(map(str, arguments))
        assert done.code == expect, f"treetop {words} ended with {done.code}:\n{done.err}{done.out}"
        return done

    return run
