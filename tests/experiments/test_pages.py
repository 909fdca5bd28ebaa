"""The pages of results: which version measured each, and that none is older than the code without saying so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import treetop as tt
from experiments import __main__ as every
from experiments.kit import pages, stamp
from experiments.kit.cases import DOCS
from experiments.kit.runs import Kept
from experiments.kit.stamp import Stamp, is_old, noticed, stamped
from experiments.kit.verdicts import NOT_RUN, WORDS

CODE = tt.__version__
PAGES = sorted((DOCS / "results").glob("*.md"))
OLD: dict[str, str] = {}
"""Pages that could not be measured again, and why. They say at their top that they are old."""
UNJUDGED: dict[str, str] = {}
"""Studies whose pages were written before their templates computed verdicts, and why. They say so at their top."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_of_this_version_or_the_one_before_or_says_at_its_top_that_it_is_old(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    measured = stamped(text)
    assert measured is not None, "the last line says which version measured it: run its study again"
    if page.name in OLD:
        assert is_old(measured, CODE), f"{page.name} is new: take it off the list"
        assert noticed(text) == measured, "an old page says so at its top"
    else:
        assert not is_old(measured, CODE), f"measured with {measured}, and this is {CODE}: run its study again"
        assert noticed(text) is None


def test_every_study_has_a_page_and_every_page_is_of_a_study() -> None:
    assert {every.page_of(study, DOCS) for study in every.STUDIES} | {DOCS / "results" / "peers.md"} == set(PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_at_its_top_with_which_version_it_was_measured(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    top = re.search(
        r"^>.*?[Mm]easured\s+with (?:version|Treetop) (\d+\.\d+\.\d+)", text.partition("\n## ")[0], re.M | re.S
    )
    assert top is not None and top[1] == stamped(text)


def test_what_is_old_is_told_by_the_minor_version() -> None:
    assert [is_old(one, "0.3.0") for one in (None, "0.1.0", "0.1.9", "0.2.0", "0.3.0")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert is_old("0.9.0", "1.0.0") and not is_old("1.0.0", "1.1.5")


def test_runs_of_another_version_are_made_again_and_the_load_of_all_is_on_the_page(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    lines = [("old", 1, Stamp("0.0.1", "2020-01-01", 99.0)), ("new", 2, Stamp(CODE, "2026-01-01", 77.5))]
    file.write_text("".join(json.dumps([name, value, made.to_json()]) + "\n" for name, value, made in lines))
    stamp.SEEN.begin()
    kept = Kept(file)
    assert kept.run(int, "old", lambda: 3) == 3 and kept.run(int, "new", lambda: 4) == 2
    text = pages.write(tmp_path / "page.md", "# A page").read_text(encoding="utf-8")
    assert " to 77.5, " in text and "99" not in text.rpartition("load")[2].split(",")[0]
    assert Kept(file).run(int, "old", lambda: 5) == 3  # made again, and kept


def test_a_study_that_this_version_has_finished_is_skipped_and_others_go_on_where_they_were(tmp_path: Path) -> None:
    asked = ["facts", "--quick", "--data", str(tmp_path), "--docs", str(tmp_path), "--out", str(tmp_path / "runs")]
    first = CliRunner().invoke(every.command, asked)
    assert first.exit_code == 0, first.output
    (kept,) = (tmp_path / "runs" / "facts").glob("*.jsonl")
    page, runs = every.page_of("facts", tmp_path), kept.read_text(encoding="utf-8")
    assert "finished with this version already" in CliRunner().invoke(every.command, asked).output
    page.unlink()  # as if it had been stopped before its page was written
    again = CliRunner().invoke(every.command, asked)
    assert again.exit_code == 0 and page.is_file() and kept.read_text(encoding="utf-8") == runs
    page.write_text("# Of another version\n\nMeasured with Treetop 0.0.1, written on 2020-01-01.\n", encoding="utf-8")
    assert not every.is_finished("facts", tmp_path)


@pytest.mark.parametrize("page", ["inftda", "loss-split"])
def test_what_is_said_of_a_paper_is_what_its_page_found(page: str) -> None:
    text = (DOCS / "results" / f"{page}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d+ \| (.+) \| (Holds|In part|Does not hold|Not run) \|$", text, re.MULTILINE)
    words = [word for title, word in rows if not title.startswith("Not in the paper")]
    found = [words.count(word) for word in ("Holds", "In part", "Does not hold")]
    (line,) = (
        one for one in (DOCS / "papers.md").read_text(encoding="utf-8").splitlines() if f"results/{page}.md" in one
    )
    said = re.search(r"Of (\d+) claims (\d+) holds?, (\d+) holds? in part, (\d+) do(?:es)? not", line)
    assert said is not None and [*map(int, said.groups())] == [len(words), *found]


@pytest.mark.parametrize("study", every.STUDIES)
def test_a_page_has_every_verdict_that_its_template_computes(study: str) -> None:
    template = Path(every.__file__).parent / study / "page.md"
    computed = re.findall(r"\*\*\{\{ (?:\w+|\w+\.(?:word|by_itself)) \}\}\.?\*\*", template.read_text(encoding="utf-8"))
    words = "|".join([*WORDS.values(), NOT_RUN])
    text = every.page_of(study, DOCS).read_text(encoding="utf-8")
    stated = re.findall(rf"\*\*(?:{words})\.?\*\*", text)
    if study in UNJUDGED:
        assert len(stated) < len(computed), f"{study} has its verdicts: take it off the list"
        assert "> **No verdicts yet.**" in text.partition("\n## ")[0], "a page without verdicts says so at its top"
    else:
        assert len(stated) >= len(computed), f"the page is older than its template: python -m experiments {study}"
