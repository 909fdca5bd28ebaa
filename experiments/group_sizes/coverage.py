"""How often the intervals of group releases hold the truth: by level and class of sizes, and of what is derived."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import treetop as tt
from experiments.group_sizes.tables import Table, census_like
from experiments.kit.runs import Kept, key
from treetop.plan.group_unit import Form, GroupUnit
from treetop.plan.region_histograms import Public, region_tree
from treetop.privacy import Loss
from treetop.release.derived import Derived, GroupTables
from treetop.release.release import Release

Ints = NDArray[np.int64]

EPSILONS = (0.1, 1.0)
RUNS = 20
FEW = 1_000
"""Tables with fewer counts are released far more often."""
MANY = 100_000
"""Tables with more counts than this are released less often."""
WAYS: Mapping[str, tuple[Form, Public]] = {
    "M_c^r+dp, regions": ("cumulative", "regions"),
    "M_c^r+dp": ("cumulative", "total"),
    "M_H^dp": ("direct", "total"),
}
"""The default with a public list, the default without, and the direct form."""
DERIVED: tuple[Derived, ...] = ("cumulative", "people", "mean-size", "share-of-one")
WIDEST = 10_000
"""Tables of more sizes are left out: all cumulative tables of all regions would take too long."""
UNIT = GroupUnit("person", event="join-leave")


@dataclass(frozen=True)
class Held:
    """Of some intervals of 95 %, how many held the truth."""

    what: str
    """A class of sizes, or what is derived."""
    level: int
    """Of which level: 1 is all regions together."""
    intervals: int
    """How many there are."""
    held: int
    """How many held the truth."""
    widths: float
    """The sum of upper less lower bound."""


@dataclass(frozen=True)
class Covered:
    """The intervals of one release."""

    table: str
    """Of which table."""
    way: str
    """By which mechanism."""
    epsilon: float
    """At which loss."""
    found: tuple[Held, ...]
    """What was found."""


def run_coverage(
    tables: Sequence[Table],
    classes: Mapping[str, tuple[int, int | None]],
    runs: int,
    say: Callable[[str], object],
    kept: Callable[[str], Kept],
) -> list[Covered]:
    """Release every table in every way at every epsilon, and ask its intervals."""
    keep, found = kept("coverage"), []
    for table in tables:
        for way, epsilon, run in product(WAYS, EPSILONS, range(releases_of(table, runs))):
            make = partial(cover_once, table, classes, way, epsilon, run)
            found.append(keep.run(Covered, f"{table.name} {way} {epsilon:g} {run}", make))
        say(f"coverage of {table.name}: done")
    return found


def tiny() -> Table:
    """Return a table of four counties, whose releases take no time."""
    return census_like(groups=200_000, largest=7, states=2, counties=4, name="census-like, tiny")


def releases_of(table: Table, runs: int) -> int:
    """Return how often a table is released: a large one has so many intervals that two releases will do.

    At the root there is one of each a release: what they hold is to be told from many releases of a tiny table.
    """
    if table.sizes.number.size < FEW:
        return 30 * runs
    return min(runs, max(2, runs * MANY // table.sizes.number.size))


def cover_once(
    table: Table, classes: Mapping[str, tuple[int, int | None]], way: str, epsilon: float, run: int
) -> Covered:
    """Release a table, and compare every interval with the truth."""
    sizes, (form, public) = table.sizes, WAYS[way]
    plan = tt.group_plan(
        sizes.regions,
        sizes.largest,
        UNIT,
        Loss(epsilon=epsilon),
        rows="histogram",
        number=table.groups,
        form=form,
        public=public,
    )
    release = tt.make_release(
        plan, sizes, tt.RunOptions(threads=1, testing_key=key("coverage", table.name, way, epsilon, run))
    )
    truth = region_tree(plan.regions).sum_up(sizes.number.T).T
    found: list[Held] = []
    for level, own in enumerate(region_tree(plan.regions).levels, start=1):
        found += _cells(release, level, truth[own], classes)
        found += _derived(release, level, truth[own])
    return Covered(table.name, way, epsilon, tuple(found))


def _cells(release: Release, level: int, truth: Ints, classes: Mapping[str, tuple[int, int | None]]) -> Iterator[Held]:
    assert release.cells is not None
    for name, (first, stop) in classes.items():
        size, place = np.meshgrid(np.arange(truth.shape[1])[first:stop], np.arange(len(truth)))
        if size.size == 0:
            continue
        lower, upper = release.cells.ranges(level, size.ravel(), size.ravel() + 1, place.ravel(), 0.95)
        true = truth[:, first:stop].ravel()
        held = (lower <= true) & (true <= upper)
        yield Held(name, level, len(true), int(held.sum()), float((upper - lower).sum()))


def _derived(release: Release, level: int, truth: Ints) -> Iterator[Held]:
    """Compare what is derived; a cumulative table holds where all its sizes do."""
    name = None if level == 1 else release.spine.splits[level - 1]
    codes = None if level == 1 else release.spine.trees[1].codes[level - 2]
    size, inside = np.arange(truth.shape[1]), truth[:, 1:].sum(axis=1)
    true = {
        "people": truth @ size,
        "mean-size": (truth @ size) / np.maximum(inside, 1),
        "share-of-one": truth[:, 1] / np.maximum(inside, 1),
    }
    tables = GroupTables(release)
    for what in DERIVED:
        table = tables.table(what, name)
        lower, upper = (table[bound].to_numpy() for bound in ("lower", "upper"))
        place = np.zeros(len(lower), np.int64) if codes is None else _places(table[str(name)], codes)
        if what == "cumulative":
            at = np.tile(size, len(lower) // len(size))
            own = truth.cumsum(axis=1)[place, at]
            held = ((lower <= own) & (own <= upper)).reshape(-1, len(size)).all(axis=1)
            widths = float((upper - lower).sum()) / len(size)
        else:
            asked = (inside > 0)[place] if what != "people" else np.full(len(place), True)
            lower, upper, own = lower[asked], upper[asked], true[what][place][asked]
            held = (lower <= own) & (own <= upper)
            widths = float((upper - lower).sum())
        yield Held(what, level, len(held), int(held.sum()), widths)


def _places(column: pa.ChunkedArray, codes: pa.StringArray) -> Ints:
    found: Ints = pc.index_in(column.combine_chunks(), value_set=codes).to_numpy(zero_copy_only=False).astype(np.int64)
    return found
