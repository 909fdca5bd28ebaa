"""A small public table of people by place and sex, with empty places and an only child, for the tests of planning."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import treetop as tt
from tests.everyday import TRIP


@pytest.fixture(scope="session")
def spine() -> tt.Spine:
    codes = [f"{state}{county}" for state in "ABCD" for county in "1234567"] + ["E1"]
    place = tt.Hierarchy.from_prefixes(codes, widths=[1], levels=["state", "county"])
    return tt.Spine(["place.state", "sex", "place.county"], {"place": place, "sex": tt.Hierarchy.flat(["f", "m"])})


@pytest.fixture(scope="session")
def people() -> pa.Table:
    rng = np.random.default_rng(5)
    places = np.array([f"{state}{county}" for state in "ABC" for county in "12345"] + ["E1"])
    chance = 1 / np.arange(1, len(places) + 1)
    chosen = rng.choice(places, 4_000, p=chance / chance.sum())
    return pa.table({"place": chosen, "sex": rng.choice(["f", "m"], len(chosen), p=[0.6, 0.4])})


@pytest.fixture(scope="session")
def trip() -> tt.Unit:
    return TRIP
