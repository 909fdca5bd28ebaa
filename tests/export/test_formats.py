"""A format of somebody else's: one file, one registration, and the library and the command line offer it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import treetop as tt
from treetop import cli, export, register_export
from treetop.errors import ReleaseError
from treetop.exporting import FORMATS, Content, Format, Request, Sheet, counts_at


def largest_first(request: Request) -> Content:
    table = counts_at(request.release, request.depths, list(request.release.spine.attributes))
    return Content([Sheet.of("ranking.csv", table.sort_by([("count", "descending")]), "count")])


RANKING = Format("ranking", "a ranking for newspapers: the largest count first", ("ranking.csv",), largest_first)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    towns = tt.Hierarchy.flat(["A", "B", "C"], level="town")
    plan = tt.Plan(tt.Spine(["town"], {"town": towns}), tt.Unit("person", neighbours="replace"), tt.Loss(rho=100))
    release = tt.make_release(
        plan, pa.table({"town": ["A"] + ["B"] * 50 + ["C"] * 20}), tt.RunOptions(testing_key=bytes(32))
    )
    release.save(tmp_path / "release")
    return tmp_path / "release"


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(FORMATS):
        monkeypatch.setitem(FORMATS, name, FORMATS[name])
    register_export(RANKING)
    monkeypatch.setitem(FORMATS, "ranking", FORMATS.pop("ranking"))


def test_a_format_from_outside_is_written(folder: Path, tmp_path: Path) -> None:
    done = export(folder, "ranking", tmp_path / "ranking.csv")
    assert (tmp_path / "ranking.csv").read_text().split() == ["town,count", '"B",50', '"C",20', '"A",1']
    assert (done.rows, done.total) == (3, 71)


def test_the_command_line_offers_it_in_its_words(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["export", "--help"])
    assert "a ranking for newspapers" in capsys.readouterr().out
    cli.main(["export", str(folder), "--to", "ranking", "--out", str(tmp_path / "out"), "--json"])
    assert json.loads(capsys.readouterr().out)["total"] == 71
    with pytest.raises(SystemExit) as leaving:
        cli.main(["export", str(folder), "--to", "rank", "--out", str(tmp_path / "out")])
    assert leaving.value.code == 2 and "'ranking'" in capsys.readouterr().err


def test_a_format_without_words_or_with_the_name_of_another_is_not_registered() -> None:
    assert register_export(RANKING) is RANKING
    for wrong, why in (
        (replace(RANKING, name="mute", about=" "), "a line about it"),
        (replace(RANKING, name="od"), "'od' already"),
        (replace(RANKING, name="other", aliases=("csv",)), "'csv' already"),
    ):
        with pytest.raises(ReleaseError, match=why):
            register_export(wrong)
