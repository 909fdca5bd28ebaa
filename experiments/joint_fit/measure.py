"""Releases of plans with a joint fit, compared with the truth: errors by stage, intervals, and time."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import treetop as tt
from experiments.joint_fit.tables import Records, large
from treetop.fit import Depths, Grid, joint_fit
from treetop.release.intervals.nodes import risk_of
from treetop.release.intervals.table_evidence import TableEvidence

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]

EPSILONS = (0.1, 1.0, 10.0)
AT = 1.0
"""The epsilon of targets, intervals and other tools."""
CONFIDENCE = 0.95
REFITTED = 2_000_000
"""Tables of more cells are released once only, and not fitted again to see the stage before rounding."""
MBI_RUNS, MBI_LARGE = 2, 100_000
"""How often another tool fits a table, and beyond how many cells only once: it takes minutes."""
NORMAL = 1.959964
CLASSES = (0, 1, 10, 100, 1000)
"""Least counts of the classes of intervals."""
_SAMPLED = 6

Values = Mapping[Depths, NDArray[Any]] | NDArray[Any]
"""Some tables, or the cells of all attributes."""
Stage = Literal["measured", "combined", "fitted", "whole", "mbi"]
STAGES: tuple[Stage, ...] = ("measured", "combined", "fitted", "whole", "mbi")
NONE = float("nan")


@dataclass(frozen=True)
class Errors:
    """Mean absolute errors of one run at one stage, by how many attributes a table tells; NaN if it tells none."""

    epsilon: float
    stage: Stage
    one: float
    two: float
    worst_two: float
    """Of the table of two attributes with the largest mean error."""
    coarse_two: float
    """Of the tables of two attributes at their coarsest levels."""
    three: float = NONE
    """Of three attributes at their coarsest levels."""
    cells: float = NONE
    """Of the cells of all attributes."""
    invented: float = NONE
    """Share of the positive cells that are truly empty."""
    lost: float = NONE
    """Share of the truly positive cells that are empty."""


@dataclass(frozen=True)
class Held:
    """How many intervals there were of a kind, how many held the truth, and how many the released count."""

    what: Literal["measured", "cells"]
    """Cells of measured tables, or of all attributes."""
    by: Literal["true", "released"]
    """Which count decides about the class."""
    least: int
    """The least count of the class."""
    number: int
    truth: int
    released: int


@dataclass(frozen=True, eq=False)
class Study:
    """All runs of one table."""

    name: str
    title: str
    records: int
    cells: int
    filled: int
    tables: int
    """How many tables are measured."""
    tuned: bool
    runs: int
    errors: tuple[Errors, ...] = ()
    held: tuple[Held, ...] = ()
    widths: tuple[float, ...] = ()
    """By measured table, the mean width of intervals beside that of the best linear unbiased estimate."""
    seconds: tuple[float, ...] = ()
    """Processor seconds of each joint fit."""

    def mean(self, epsilon: float, stage: Stage, figure: str) -> float:
        """Return the mean of a figure over all runs; NaN if there is none."""
        own = [getattr(one, figure) for one in self.errors if (one.epsilon, one.stage) == (epsilon, stage)]
        return float(np.mean(own)) if own else NONE


@dataclass(frozen=True, eq=False)
class All:
    """What the page is made from."""

    studies: tuple[Study, ...]
    large_seconds: float = NONE
    """Processor seconds of the fit of about ten million cells and 21 tables."""

    def named(self, name: str) -> Study | None:
        """Return the study of a table; None if it was not run."""
        return next((one for one in self.studies if one.name == name), None)


@dataclass
class _Found:
    errors: list[Errors] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    widths: tuple[float, ...] = ()
    seconds: list[float] = field(default_factory=list)


def study(records: Records, runs: int, epsilons: Sequence[float], mbi: Path | None = None, mbi_runs: int = 3) -> Study:
    """Release a table several times; `mbi` is the interpreter of another tool, which gets the same noisy tables."""
    found, grid = _Found(), records.grid
    for epsilon in epsilons if records.truth.size <= REFITTED else [AT]:
        for run in range(runs):
            release = records.release(epsilon, run)
            evidence = _evidence(release)
            whole = _cells_of(records, release)
            noisy = {table.depths: np.asarray(table.value) for table in evidence.tables if any(table.depths)}
            combined = {depths: evidence.combined.value(depths) for depths in noisy}
            stages: dict[Stage, Values] = {
                "measured": noisy, "combined": combined, "whole": whole,
            }  # fmt: skip
            if whole.size <= REFITTED:
                start = time.process_time()
                fitted = joint_fit(evidence.grid, evidence.tables)
                found.seconds.append(time.process_time() - start)
                stages["fitted"] = fitted.fitted.value
            flat = all(len(tree.levels) == 1 for tree in grid.trees)
            if mbi is not None and epsilon == AT and flat and run < (MBI_RUNS if whole.size <= MBI_LARGE else 1):
                stages["mbi"] = _by_mbi(mbi, evidence)
            found.errors += [_errors(records, epsilon, stage, own, list(noisy)) for stage, own in stages.items()]
            if epsilon == AT:
                found.held += _held(records, evidence, whole, list(noisy))
                found.widths = found.widths or tuple(_widths(evidence, list(noisy)))
    return Study(
        records.name,
        records.title,
        int(records.truth.sum()),
        records.truth.size,
        int(np.count_nonzero(records.truth)),
        len(records.plan(AT).margin_tables),
        records.tuned,
        runs,
        tuple(found.errors),
        tuple(_summed(found.held)),
        found.widths,
        tuple(found.seconds),
    )


def seconds_of_large(make: Callable[[], Records] = large) -> float:
    """Return the processor seconds of one fit of a large made-up table."""
    evidence = _evidence(make().release(AT, 0))
    start = time.process_time()
    joint_fit(evidence.grid, evidence.tables)
    return time.process_time() - start


def _evidence(release: tt.Release) -> TableEvidence:
    assert release.tables is not None
    return release.tables.evidence


def _cells_of(records: Records, release: tt.Release) -> Ints:
    whole = np.zeros(records.truth.shape, np.int64)
    whole[tuple(release.nodes)] = release.count
    return whole


def _errors(records: Records, epsilon: float, stage: Stage, values: Values, measured: Sequence[Depths]) -> Errors:
    grid, truth = records.grid, records.truth
    finest = tuple(len(tree.levels) for tree in grid.trees)
    cells = values if isinstance(values, np.ndarray) else None

    def error(depths: Depths) -> float:
        value = values[depths] if cells is None else grid.sum_to(cells, finest, depths)
        return float(np.abs(value - _true(grid, truth, depths)).mean())

    one, two = ([error(depths) for depths in measured if np.count_nonzero(depths) == number] for number in (1, 2))
    coarse = [error(depths) for depths in coarsest(grid, 2)]
    sums = Errors(epsilon, stage, float(np.mean(one)), float(np.mean(two)), max(two), float(np.mean(coarse)))
    if cells is None:
        return sums
    three = float(np.mean([error(depths) for depths in coarsest(grid, 3)]))
    mean = float(np.abs(cells - truth).mean())
    lost = invented = NONE
    if stage == "whole":
        there, found = truth > 0, cells > 0
        invented = float((found & ~there).sum() / max(found.sum(), 1))
        lost = float((there & ~found).sum() / there.sum())
    return Errors(epsilon, stage, sums.one, sums.two, sums.worst_two, sums.coarse_two, three, mean, invented, lost)


def coarsest(grid: Grid, attributes: int) -> list[Depths]:
    """Return all tables of so many attributes at their coarsest levels."""
    every = range(len(grid.trees))
    return [tuple(int(axis in told) for axis in every) for told in combinations(every, attributes)]


def _true(grid: Grid, truth: Ints, depths: Depths) -> Ints:
    finest = tuple(len(tree.levels) for tree in grid.trees)
    return np.asarray(grid.sum_to(truth, finest, depths), np.int64)


def _held(records: Records, evidence: TableEvidence, whole: Ints, measured: Sequence[Depths]) -> Iterator[Held]:
    """Count the intervals that hold the truth, and the released count, by the class of either."""
    grid, finest = records.grid, tuple(len(tree.levels) for tree in records.grid.trees)
    every: list[tuple[Literal["measured", "cells"], Depths]] = [("measured", depths) for depths in measured]
    every += [("cells", finest)] if whole.size <= REFITTED and finest not in measured else []
    for what, depths in every:
        true, count = (_true(grid, table, depths).ravel() for table in (records.truth, whole))
        lower, upper = evidence.bounds(depths, np.arange(len(true)), risk_of(CONFIDENCE))
        holds, keeps = (lower <= true) & (true <= upper), (lower <= count) & (count <= upper)
        ways: list[tuple[Literal["true", "released"], Ints]] = [("true", true), ("released", count)]
        for by, deciding in ways:
            group = np.searchsorted(CLASSES, deciding, side="right") - 1
            for at, least in enumerate(CLASSES):
                own = group == at
                yield Held(what, by, least, int(own.sum()), int(holds[own].sum()), int(keeps[own].sum()))


def _summed(held: Iterable[Held]) -> Iterator[Held]:
    every = list(held)
    for what, by, least in dict.fromkeys((one.what, one.by, one.least) for one in every):
        own = [one for one in every if (one.what, one.by, one.least) == (what, by, least)]
        number, truth, released = (sum(getattr(one, name) for one in own) for name in ("number", "truth", "released"))
        yield Held(what, by, least, number, truth, released)


def _widths(evidence: TableEvidence, measured: Sequence[Depths]) -> Iterator[float]:
    """Yield the mean width of intervals of each table beside that of the best linear unbiased estimates.

    Some cells are looked at, whose interval does not end at zero.
    """
    for depths in measured:
        lower, upper = evidence.bounds(depths, np.arange(evidence.grid.cells(depths)), risk_of(CONFIDENCE))
        inside = np.flatnonzero(lower > 0)
        sampled = inside[np.unique(np.linspace(0, len(inside) - 1, min(_SAMPLED, len(inside))).astype(int))]
        ratios = []
        for cell in sampled.tolist():
            at = np.unravel_index(cell, evidence.grid.sizes(depths))
            best = 2 * NORMAL * np.sqrt(evidence.combined.cell_variance(depths, [int(one) for one in at]))
            ratios.append(float(upper[cell] - lower[cell]) / best)
        if ratios:
            yield float(np.mean(ratios))


def _by_mbi(python: Path, evidence: TableEvidence) -> Reals:
    """Return the cells that `mbi` fits to the noisy tables."""
    noisy = [table for table in evidence.tables if table.variance]
    arrays: dict[str, object] = {
        "sizes": np.array([tree.sizes[-1] for tree in evidence.grid.trees]), "total": evidence.total,
        "tables": len(noisy),
    }  # fmt: skip
    for at, table in enumerate(noisy):
        arrays[f"value{at}"] = np.asarray(table.value, np.float64).ravel()
        arrays[f"axes{at}"] = np.flatnonzero(table.depths)
        arrays[f"deviation{at}"] = np.sqrt(table.variance)
    with tempfile.TemporaryDirectory() as folder:
        given, fitted = Path(folder, "noisy.npz"), Path(folder, "fitted.npy")
        np.savez(given, **arrays)  # type: ignore[arg-type]
        subprocess.run([python, Path(__file__).with_name("mbi_fit.py"), given, fitted], check=True)
        return np.asarray(np.load(fitted), np.float64)
