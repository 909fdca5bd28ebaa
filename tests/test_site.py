"""The site: it is built without a warning or a network, and every public name is on it with an example."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import treetop

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
API = DOCS / "api.md"
LOADED = re.compile(r'<(?:script|img|iframe|source)[^>]+src="https?:|<link[^>]+rel="stylesheet"[^>]+href="https?:')
IMPORTED = re.compile(r"@import|url\(\s*['\"]?https?:")


def build(out: Path) -> None:
    if find_spec("sphinx") is None:
        pytest.skip('the site needs Sphinx: pip install -e ".[docs]"')
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(DOCS), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"a dead link, or a page that stands nowhere in the navigation:\n{done.stderr}"


def test_the_site_is_built_without_a_warning_loads_nothing_from_elsewhere_and_is_searched_from_a_folder(
    tmp_path: Path,
) -> None:
    build(tmp_path)
    pages = {page.name: page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")}
    assert {path.with_suffix(".html").name for path in DOCS.glob("*.md")} <= pages.keys()
    assert [name for name, text in pages.items() if LOADED.search(text)] == []
    styles = [path.name for path in tmp_path.rglob("*.css") if IMPORTED.search(path.read_text(encoding="utf-8"))]
    assert styles == []
    assert 'action="search.html"' in pages["index.html"]
    assert (tmp_path / "searchindex.js").read_text(encoding="utf-8").startswith("Search.setIndex(")


def test_what_would_be_loaded_from_elsewhere_is_seen() -> None:
    assert LOADED.search('<script defer src="https://example.org/x.js">')
    assert LOADED.search('<link rel="stylesheet" href="https://example.org/x.css">')
    assert not LOADED.search('<a href="https://example.org/">')


def test_every_public_name_is_on_the_page_of_the_api() -> None:
    named = re.findall(r"^\.\. auto\w+:: treetop\.(\w+)$", API.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(treetop.__all__)


@pytest.mark.parametrize("name", treetop.__all__)
def test_every_public_name_has_an_example_that_is_run(name: str) -> None:
    explained = inspect.getdoc(getattr(treetop, name)) or ""
    shown = "\n".join(re.findall(r"^```python\n(.*?)^```$", API.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    assert ">>> " in explained or re.search(rf"\btt\.{name}\b", shown), (
        "doctests and blocks of pages run with all tests"
    )
