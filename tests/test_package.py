"""The package: light to import, and everything that it promises is there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

import treetop
from treetop.cli import main

ROOT = Path(__file__).parents[1]
TEXTS = ("", ".py", ".md", ".toml", ".html", ".js", ".json", ".yml", ".cff", ".txt")
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


def test_the_version_is_that_of_the_citation() -> None:
    assert f"\nversion: {treetop.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_distribution_has_the_name_and_the_extras_that_messages_give() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (project["name"], list(project["scripts"])) == ("treetop-dp", ["treetop"])
    named = {extra for _, text in public_texts() for extra in re.findall(r"treetop-dp\[(\w+)\]", text)}
    called = {extra for _, text in public_texts() for extra in re.findall(r"install_extra\('(\w+)'\)", text)}
    assert {"excel", "studio"} <= named | called <= set(project["optional-dependencies"])


def test_the_command_names_its_version_and_its_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--version"])
    assert capsys.readouterr().out == f"treetop {treetop.__version__}, of the distribution treetop-dp\n"


def test_no_text_installs_the_package_of_another_project_that_has_the_name_treetop() -> None:
    """On PyPI `treetop` is a package of somebody else."""
    wrong = re.compile(r"pip3? install\b[^\n`]*?[\s'\"]treetop(?![\w-])|(?<![\w-])treetop\\?\[[a-z]+\\?\]")
    for spelling in ("pip install treetop", "pip install -U 'treetop[sql]'", '"treetop[plot]"'):
        assert wrong.search(spelling), spelling
    for spelling in ("pip install treetop-dp", "pip install 'treetop-dp[sql]'", "pip install .  # the command treetop"):
        assert not wrong.search(spelling) or "#" in spelling, spelling
    own = Path(__file__).relative_to(ROOT)
    found = {str(path): wrong.findall(text) for path, text in public_texts() if path != own and wrong.search(text)}
    assert found == {}


def public_texts() -> Iterator[tuple[Path, str]]:
    """Yield every text of the repository but its history of changes, with its path."""
    folders = ("src", "docs", "tests", "examples", "experiments", "benchmarks", "tools", ".github", ".ci")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in TEXTS]
    for path in (*files, *ROOT.glob("*.md"), ROOT / "pyproject.toml", ROOT / "Makefile", ROOT / "CITATION.cff"):
        if path.name != "CHANGELOG.md" and path.is_file():
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


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
