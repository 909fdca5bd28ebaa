"""A studio for the tests of its pages: one server a module, spoken to as a browser without scripts does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import everyday
from tests.studio.visitor import Visitor, visiting


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a private table of trips and a public file of places, and no plan."""
    folder = everyday.write(tmp_path_factory.mktemp("room"))
    (folder / "plan.toml").unlink()
    return folder


@pytest.fixture(scope="module")
def visitor(room: Path) -> Iterator[Visitor]:
    """Somebody who has opened the studio of the room by its link."""
    with visiting(room) as one:
        yield one


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Visitor]:
    """The same with a folder of the test's own, and the everyday plan in it."""
    everyday.write(tmp_path, everyday.plan_file(data='source = "trips.csv"\n'))
    with visiting(tmp_path) as one:
        yield one
