"""A release that is loaded and saved again, in one file or in parts, is verified as the first one was."""

from __future__ import annotations

from pathlib import Path

import pytest

import treetop as tt
from tests.forging import findings

from . import folders
from .conftest import people

SPINE = tt.Spine(["place.region", "sex", "place.town"], {"place": folders.PLACE, "sex": folders.SEX})


@pytest.mark.parametrize("kind", folders.KINDS)
def test_a_loaded_release_can_be_saved_in_parts_of_any_size(kind: str, tmp_path: Path) -> None:
    folder = folders.make(kind, tmp_path / "first")
    release = tt.Release.load(folder)
    for part in (None, 1, (3, 20)[folders.KINDS.index(kind) % 2]):
        again = tmp_path / f"parts of {part}"
        tt.Release.load(folder).save(again, part=part)
        assert findings(again) == [], part
        loaded = tt.Release.load(again)
        assert loaded.table().equals(release.table())
        if release.confidence is not None:
            assert loaded.measurements.table().equals(release.measurements.table())


@pytest.mark.parametrize("seed", range(8))
def test_counts_of_lower_error_keep_all_their_measurements(seed: int, tmp_path: Path) -> None:
    plan = tt.Plan(SPINE, folders.PERSON, tt.Loss(rho=2), prefer="lower-error", margins="none")
    tt.make_release(plan, people(60), tt.RunOptions(testing_key=bytes([seed] * 32))).save(tmp_path / "first")
    assert findings(tmp_path / "first") == []
    tt.Release.load(tmp_path / "first").save(tmp_path / "again", part=1)
    assert findings(tmp_path / "again") == []
