"""A release folder made again from its own measurements, with counts of lower error; nothing is spent."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from treetop.basics.resolved import resolved
from treetop.errors import ReleaseError
from treetop.release.folder import NODES, PLACES, check_place, drafted
from treetop.release.release import Release


def reestimate(folder: str | Path, out: str | Path, *, force: bool = False) -> Release:
    """Write what `Release.reestimated` gives to a new folder, with the levels and coordinates that the old one has."""
    old, new = Path(folder), Path(out)
    if resolved(new) == resolved(old):
        raise ReleaseError(f"{new} is the release itself, and is never replaced by another: name a new folder")
    check_place(new, force)
    again = Release.load(old).reestimated()
    places = {path.stem: pq.read_table(path) for path in sorted((old / PLACES).glob("*.parquet"))}
    with drafted(again, new, force=force, nodes=(old / NODES).is_file(), places=places) as draft:
        draft.place()
    return again
