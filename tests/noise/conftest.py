"""What the tests of the noise share."""

from __future__ import annotations

import pytest

from treetop.noise import Key


@pytest.fixture
def key() -> Key:
    """A key that everybody knows."""
    return Key(bytes(range(32)))
