"""A small plan file for group sizes, with its tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "households"

HISTOGRAM = """
[attributes.place]
column = "county"
hierarchy = "places.csv"
levels = ["state", "county"]

[groups]
rows = "histogram"
size = "persons"
largest = 3
number = 3000
event = "join-leave"

[unit]
entity = "person"

[loss]
epsilon = 2

[data]
source = "sizes.csv"
count = "homes"
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a plan file of histograms with its tables; each change is a text and what stands in its place."""
    (tmp_path / "places.csv").write_text("state,county\na,a1\na,a2\nb,b1\n", encoding="utf-8")
    (tmp_path / "sizes.csv").write_text(
        "county,persons,homes\na1,0,300\na1,1,600\na1,9,100\na2,2,1000\nb1,1,400\nb1,3,600\n", encoding="utf-8"
    )

    def written(*changes: tuple[str, str], name: str = "plan.toml") -> Path:
        text = HISTOGRAM
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return written


@pytest.fixture
def households(tmp_path: Path) -> Path:
    """A copy of the example."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "households"))
