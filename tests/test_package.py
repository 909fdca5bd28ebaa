"""The package: light to import, and everything that it promises is there."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

import treetop

HEAVY = ("numba", "numpy", "pyarrow", "duckdb", "flint", "cryptography", "rich", "jinja2", "scipy")


def imported_by(code: str) -> set[str]:
    program = (
        f"import sys, contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n {code}\nprint(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "code",
    ["import treetop", "from treetop.cli import main\n try: main(['--help'])\n except SystemExit: pass"],
    ids=["import treetop", "treetop --help"],
)
def test_nothing_heavy_is_imported_before_it_is_used(code: str) -> None:
    assert imported_by(code).isdisjoint(HEAVY)


def test_every_public_name_is_there() -> None:
    for name in treetop.__all__:
        assert getattr(treetop, name).__name__ == name
    assert sorted(treetop.__all__) == dir(treetop)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        treetop.Nothing  # noqa: B018


def test_the_version_is_that_of_the_package_and_of_its_citation() -> None:
    assert treetop.__version__ == version("treetop")
    citation = (Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {treetop.__version__}\n" in citation


def test_types_are_shipped() -> None:
    assert files("treetop").joinpath("py.typed").is_file()


def test_no_module_needs_what_only_unix_has() -> None:
    unix = {"fcntl", "grp", "pty", "pwd", "resource", "termios"}
    for path in Path(treetop.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import):
                assert unix.isdisjoint(one.name for one in node.names), path
            elif isinstance(node, ast.ImportFrom):
                assert node.module not in unix, path
