"""A damaged release folder: `check` finds every bit of every file, and `load` reads what was written or nothing.

Bits are flipped and files cut short at places that a fixed seed chooses: with TREETOP_AUDIT=deep, at many more.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from treetop.checking.check import check_folder
from treetop.cli import main
from treetop.errors import ReleaseError
from treetop.release.folder import drafted

FLIPS = 400 if os.environ.get("TREETOP_AUDIT") == "deep" else 16
NAMES = [
    "card.html",
    "card.json",
    "counts.parquet",
    "evidence.parquet",
    "hierarchies/place",
    "hierarchies/sex",
    "measurements.parquet",
    "nodes.parquet",
    "places/place",
    "plan.toml",
    "unresolved.parquet",
]
NOT_READ = ("card.html", "nodes.parquet", "places/place")
"""What a load does not need: damage there, if it is noticed at all, changes nothing that was loaded."""

PLACE = tt.Hierarchy.from_prefixes(["N1", "N2", "S1", "S2", "S3"], widths=[1], levels=["region", "town"])
SEX = tt.Hierarchy.flat(["f", "m"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small release with everything that a folder can hold; every test leaves it as it was."""
    spine = tt.Spine(["place.region", "sex", "place.town"], {"place": PLACE, "sex": SEX})
    plan = tt.Plan(
        spine, tt.Unit("trip", neighbours="add-remove"), tt.Loss(rho=1), resolve={"sigmas": 6}, margins="none"
    )
    table = pa.table({"place": ["N1", "N2", "S1", "S1", "S3"] * 8, "sex": ["f", "m", "m", "f", "f"] * 8})
    towns = {"code": PLACE.codes[-1], "latitude": [45.0, 46, 40, 41, 42], "longitude": [9.0, 10, 11, 12, 13]}
    release = tt.make_release(plan, table, tt.RunOptions(testing_key=bytes(32)))
    out = tmp_path_factory.mktemp("damaged") / "out"
    with drafted(release, out, nodes=True, places={spine.trees[0].digest: pa.table(towns)}) as draft:
        draft.place()
    return out


def file_of(name: str, folder: Path) -> Path:
    kind, _, attribute = name.partition("/")
    trees = {"place": PLACE.digest, "sex": SEX.digest}
    return folder / kind / f"{trees[attribute]}.parquet" if attribute else folder / kind


def damages(content: bytes, name: str) -> Iterator[tuple[str, bytes]]:
    """Contents that differ by one bit, or end too early."""
    rng = random.Random(name)
    edges = {*range(min(8, len(content))), *range(max(len(content) - 8, 0), len(content))}
    for place in sorted(edges | set(rng.sample(range(len(content)), min(FLIPS, len(content))))):
        flipped = bytearray(content)
        flipped[place] ^= 1 << rng.randrange(8)
        yield f"a bit of byte {place}", bytes(flipped)
    for length in sorted({0, 1, 4, len(content) // 3, len(content) // 2, len(content) - 8, len(content) - 1}):
        yield f"cut to {length} bytes", content[:length]
    yield "one byte more", content + b"\0"


def told(release: tt.Release) -> list[Any]:
    """All that a loaded release knows."""
    evidence, left = release.evidence, release.left
    assert evidence is not None and left is not None
    arrays = [release.nodes, release.count, left.level, left.nodes, left.count]
    for level in evidence.levels:
        arrays += [level.measured, level.highest, level.slots]
    numbers = [np.asarray(array).tolist() for array in arrays]
    kept = release.measurements.table().to_pylist()
    return [*numbers, kept, evidence.total, evidence.laws, release.spine.digest, release.card, release.plan_toml]


@pytest.mark.parametrize("name", NAMES)
def test_damage_anywhere_is_found_by_check_and_never_changes_what_is_loaded(name: str, folder: Path) -> None:
    path = file_of(name, folder)
    whole, before = path.read_bytes(), told(tt.Release.load(folder))
    refused = 0
    try:
        for what, content in damages(whole, name):
            path.write_bytes(content)
            assert any(verdict.findings for verdict in check_folder(folder)), f"{name}: {what} is not found"
            try:
                assert told(tt.Release.load(folder)) == before, f"{name}: {what} changes what is loaded"
            except ReleaseError:
                refused += 1
    finally:
        path.write_bytes(whole)
    assert refused > 0 or name in NOT_READ
    assert told(tt.Release.load(folder)) == before


def test_the_folder_holds_all_kinds_of_files(folder: Path) -> None:
    there = {path for path in folder.rglob("*") if path.is_file()}
    assert there == {file_of(name, folder) for name in NAMES}
    left = tt.Release.load(folder).left
    assert left is not None and len(left)


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_ends_the_command_with_1_and_one_that_is_gone_as_well(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file_of(name, folder)
    whole = path.read_bytes()
    main(["check", str(folder)])
    try:
        for content in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[: len(whole) // 2], b"", None):
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content)
            with pytest.raises(SystemExit) as leaving:
                main(["check", str(folder)])
            captured = capsys.readouterr()
            gone = content is None and name == "card.json"  # then it is no release folder at all
            assert leaving.value.code == (2 if gone else 1)
            assert gone or "NOT match its card" in captured.out
            assert "Traceback" not in captured.out + captured.err
            if name not in NOT_READ:
                with pytest.raises(ReleaseError):
                    tt.Release.load(folder)
    finally:
        path.write_bytes(whole)
    main(["check", str(folder)])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"law": "discrete Gaussian"', '"law": "discreet Gaussian"'),
        ('"variance": "2"', '"variance": "0/0"'),
        ('"variance": "2"', '"variance": null'),
        ('"confidence": 0.95', '"confidence": 9.95'),
        ('"levels"', '"level"'),
        ('"files"', '"file"'),
    ],
)
def test_a_card_that_makes_no_sense_is_refused_in_one_way(old: str, new: str, folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    text = (copy / "card.json").read_text(encoding="utf-8")
    assert old in text
    (copy / "card.json").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ReleaseError):
        tt.Release.load(copy)
    assert any(verdict.findings for verdict in check_folder(copy))


def test_a_file_that_the_card_does_not_name_is_not_read(folder: Path, tmp_path: Path) -> None:
    plan = tt.Plan(
        tt.Release.load(folder).spine,
        tt.Unit("trip", neighbours="replace"),
        tt.Loss(rho=1),
        confidence=None,
        margins="none",
    )
    tt.make_release(plan, pa.table({"place": ["N1"], "sex": ["f"]})).save(tmp_path / "out")
    assert tt.Release.load(tmp_path / "out").left is None
    (tmp_path / "out" / "unresolved.parquet").write_bytes((folder / "unresolved.parquet").read_bytes())
    with pytest.raises(ReleaseError, match="unresolved.parquet is not the one that card.json names"):
        tt.Release.load(tmp_path / "out")
