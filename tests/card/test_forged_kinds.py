"""The forger's edits of tables, in the kinds of folders that are not edited in every run."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import folders
from .test_forged_tables import SHORT, unexplained


@pytest.mark.usefixtures("hierarchies_are_read_once", "pages_are_hashes", "who_found_something_looks_first")
@pytest.mark.parametrize("kind", [kind for kind in folders.KINDS if kind not in SHORT])
def test_no_edit_of_a_table_passes(kind: str, tmp_path: Path) -> None:
    assert unexplained(kind, tmp_path) == []
