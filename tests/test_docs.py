"""The documentation: every command and every line of Python in it runs, and prints what it says it prints.

Noise differs from run to run, so numbers are compared by their place and not by their value, except in blocks whose
output is the same for everyone.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import Said, said
from tests.processes import Server

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DATA = ROOT.parent / "shared" / "data"
NEEDS_DATA = "<!-- The real tables stand in `data`. -->"
PRINTED = "# >"
REGISTERS = "tt.register_"
WHERE = re.compile(r"<!-- The commands run in `examples/(\w+)`. -->")
LONGEST = 45
"""Words of the longest sentence, or part of one before a colon or semicolon."""
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def shape(text: str) -> str:
    """Text with its numbers, hashes, paths' times and column widths taken out."""
    text = re.sub(r"\b[0-9a-f]{12,}\b", "#", text)
    text = re.sub(r"\d+([.,:-]\d+)*(e[+-]?\d+)?", "#", text)
    text = re.sub(r"[─ ]+", " ", text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def matches(printed: str, shown: str) -> bool:
    """Whether what is shown was printed; a line "…" stands for any lines, and blank lines do not count."""
    waiting = [line for line in shape(printed).splitlines() if line]
    skipping = False
    for line in filter(None, shape(shown).splitlines()):
        if line == "…":
            skipping = True
        elif line in waiting if skipping else waiting[:1] == [line]:
            del waiting[: waiting.index(line) + 1]
            skipping = False
        else:
            return False
    return skipping or not waiting


def test_what_was_not_printed_does_not_match() -> None:
    assert matches("one 1\n\ntwo 22\nthree\n", "one 5\n…\nthree")
    assert matches("one 1\ntwo\n", "…")
    assert not matches("one 1\ntwo\n", "one 1")
    assert not matches("one 1\ntwo\n", "two")
    assert not matches("one 1\ntwo\n", "one 1\n…\nthree\n…")


def run_console(block: str, folder: Path) -> None:
    for command, _, expected in _commands(block):
        words = shlex.split(command)
        done = said(words[1:], folder) if words[0] == "treetop" else _said_by_another(words, folder)
        assert done.code == 0, f"$ {command}\n{done.out}{done.err}"
        if expected.strip():
            assert matches(done.out, expected), f"$ {command}\n{done.out}"


def _said_by_another(words: list[str], folder: Path) -> Said:
    words = [sys.executable if word == "python" else word for word in words]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return Said(done.stdout, done.stderr, done.returncode)


def _commands(block: str) -> list[tuple[str, str, str]]:
    """Split a block into commands, each with the output that follows it."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [part.replace("\\\n", " ").partition("\n") for part in parts]


def run_python(block: str, names: dict[str, object], folder: Path) -> None:
    """Run a block; the lines that start with `# >` are what it prints."""
    code: list[str] = []
    expected: list[str] = []
    for line in block.splitlines():
        (expected if line.startswith(PRINTED) else code).append(line.removeprefix(PRINTED))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.chdir(folder):
        exec(compile("\n".join(code), "<documentation>", "exec"), names)
    if expected:
        assert matches(printed.getvalue(), "\n".join(expected)), printed.getvalue()


def run_apart(block: str, folder: Path, processes: Server) -> None:
    """Run a block in a process of its own: what it registers is for nobody else."""
    done = processes.run(block, folder=folder)
    assert done.returncode == 0, done.stderr
    expected = [line.removeprefix(PRINTED) for line in block.splitlines() if line.startswith(PRINTED)]
    assert matches(done.stdout, "\n".join(expected)), done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_everything_that_a_page_shows_runs(page: Path, tmp_path: Path, processes: Server) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    where = WHERE.search(page.read_text(encoding="utf-8"))
    folder = tmp_path / "examples" / ("flights" if where is None else where[1])
    if NEEDS_DATA in page.read_text(encoding="utf-8"):
        if not DATA.is_dir():
            pytest.skip(f"the real tables are not here: {DATA} does not exist")
        (folder / "data").symlink_to(DATA, target_is_directory=True)
    names: dict[str, object] = {}
    for kind, block in blocks(page):
        if kind == "console":
            run_console(block, folder)
        elif REGISTERS in block:
            run_apart(block, folder, processes)
        else:
            run_python(block, names, folder)


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def sentences(text: str) -> list[str]:
    """Sentences of a page, and parts before a colon or semicolon; no code, tables, headings or targets of links."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"^[#|].*$|^ {4,}[^-* ].*$", "", text, flags=re.MULTILINE))
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*>]|\d+\.) )", text)
    return [part for one in paragraphs for part in re.split(r"(?<=[.!?;:]) ", " ".join(one.split())) if part]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_sentence_is_too_long_to_be_read_once(page: Path) -> None:
    long = [one for one in sentences(page.read_text(encoding="utf-8")) if len(one.split()) > LONGEST]
    assert long == [], "make two of it"


def test_a_long_sentence_is_seen_and_code_is_none() -> None:
    assert [len(one.split()) for one in sentences("# A title\n\nOne two; three.\n\n- " + "word " * 50)] == [2, 1, 51]
    assert sentences("```python\nx = 1\n```\n\n| a | b |\n") == []


TERMS = {
    "what-goes-in": r"spine|invariants?|contribution bounds?|leaf",
    "protection": r"ledger|rho|neighbours|sensitivity",
    "measuring-and-estimating": r"margins?|twin|workload",
    "what-comes-out": r"steward|shards?",
}
"""Terms that a reader may not know, by their section of the glossary."""
_HIDDEN = re.compile(
    r"^```.*?^```|^#.*?$|^\|.*?$|^<!--.*?-->|`[^`\n]*`|^ {4}.*?$|!\[[^\]]*\]", re.MULTILINE | re.DOTALL
)
_LINKS = re.compile(r"\[[^\]]*\]\([^)]*\)", re.DOTALL)


def unlinked(text: str) -> list[str]:
    """Return the terms whose first use in prose is in no link; code, headings, tables and pictures are no prose."""
    prose = _HIDDEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    links = [found.span() for found in _LINKS.finditer(prose)]
    found = []
    for terms in TERMS.values():
        for term in terms.split("|"):
            first = re.search(rf"\b{term}\b", prose, re.IGNORECASE)
            if first is not None and not any(start <= first.start() < stop for start, stop in links):
                found.append(first[0])
    return found


def test_a_first_use_without_a_link_is_seen() -> None:
    assert unlinked("# The spine\n\nThe `spine` is [the spine](glossary.md#what-goes-in), and the spine again.") == []
    assert unlinked("The spine, later [the spine](glossary.md#what-goes-in).") == ["spine"]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem not in ("glossary", "index")], ids=lambda page: page.stem
)
def test_the_first_use_of_a_term_is_a_link(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert unlinked(text) == []
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    anchors = {re.sub(r"[^a-z]+", "-", line[3:].lower()) for line in glossary.splitlines() if line.startswith("## ")}
    assert set(re.findall(r"glossary\.md#([\w-]+)", text)) <= anchors
