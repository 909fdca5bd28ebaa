"""A folder with a public hierarchy, and plans written into it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

PLACES = "region,province,municipality,town,lat,lon\nN,NA,NA1,Agra,45,9\nN,NA,NA2,Bra,45,8\nS,SA,SA1,Cto,40,16\n"

DESIGN = """
title = "Commuting in Italy, 2011"

[attributes.origin]
column = "home"                       # in the private table
hierarchy = "comuni.csv"              # public; relative to this file
levels = ["region", "province", "municipality"]

[attributes.destination]
column = "work"
same_as = "origin"

[spine]
order = "destination-first"           # or "origin-first", or a list of "attribute.level"

[unit]
entity = "trip"                       # required: no default for what is protected
contributions = 1
neighbours = "replace"                # required
# id = "person"                       # with it, contributions are enforced, not declared

[loss]
epsilon = 1.0
delta = 1e-8
split = "uniform"                     # or a table level = weight

[data]
# source = "trips.parquet"            # may be given on the command line instead
# count = "flow"                      # rows are counts, not records
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Write a plan file beside the hierarchy `comuni.csv`."""
    (tmp_path / "comuni.csv").write_text(PLACES)

    def write_plan(text: str) -> Path:
        path = tmp_path / "plan.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_plan


@pytest.fixture
def design() -> str:
    """The example of a plan file in the design."""
    return DESIGN
