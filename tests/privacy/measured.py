"""Measurements that a test chooses: what a release makes of them, whatever table they are said to come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import treetop as tt
from treetop import Counts
from treetop.measure.level import Frontier
from treetop.noise import Key, Law, NoiseStream
from treetop.release.folder._tables import evidence_table, facts_table, margins_table, unresolved_table

from .engine import KEY, Engine, descents, noise_is
from .neighbours import Rows, table_of

levels: Any = import_module("treetop.measure.level")
blocks: Any = import_module("treetop.measure.blocks")
merged: Any = import_module("treetop.measure.merged")


@dataclass
class GivenNoise:
    """A stream that holds one noise after the other."""

    noise: NDArray[np.int64]

    def fill_runs(self, out: NDArray[np.int64], *_: object) -> None:
        out[:], self.noise = self.noise[: len(out)], self.noise[len(out) :]


@contextmanager
def noises(given: Iterable[NDArray[np.int64]]) -> Iterator[None]:
    """Let the streams that are filled hold one noise after the other."""
    left = iter(given)

    def fill(_: NoiseStream, out: NDArray[np.int64], *__: object) -> None:
        out[:] = next(left)

    with mock.patch.object(NoiseStream, "fill", fill), mock.patch.object(NoiseStream, "fill_runs", fill):
        yield


@dataclass
class Measured:
    """Measurements that are chosen for every node of a tree, whatever table they are said to come from."""

    plan: tt.Plan
    seed: int
    chosen: dict[tuple[int, ...], int] = field(default_factory=dict)
    """By level and node of every attribute."""

    def at(self, node: tuple[int, ...]) -> int:
        if node not in self.chosen:
            rng = np.random.default_rng([self.seed, *node])
            self.chosen[node] = int(rng.integers(-4, 7) if node[0] else rng.integers(0, 9))
        return self.chosen[node]

    def release(self, rows: Rows) -> dict[str, list[Any]]:
        """Release a table with the noise that makes it measure this, and return all that is public about it."""
        engine = Engine.without_laws(self.plan, rows)
        measure_total, begin = descents.measure_total, levels._Measuring.__init__

        def with_total(counts: Counts, law: Law | None, key: Key, *facts: Any) -> int:
            with noise_is(np.array([self.at((0,)) - counts.total])):
                return int(measure_total(counts, law, key, *facts))

        def with_children(measuring: Any, step: Any, counts: Counts, above: Frontier, *rest: Any) -> None:
            begin(measuring, step, counts, above, *rest)
            if measuring.noise is not None:
                measuring.noise = GivenNoise(self._noise(engine, step, above))

        measure_margins, measured = descents.measure_margins, blocks.measure_cells

        def with_margins(margins: Any, counts: Counts, *rest: Any) -> Any:
            with noises(self._of_margins(engine, margins)):
                return measure_margins(margins, counts, *rest)

        def with_cells(task: Any, slots: NDArray[np.int64]) -> Any:
            with noises([self._noise(engine, task.step, task.above)]):
                return measured(task, slots)

        with (
            mock.patch.object(descents, "measure_total", with_total),
            mock.patch.object(descents, "measure_margins", with_margins),
            mock.patch.object(blocks, "measure_cells", with_cells),
            mock.patch.object(merged, "measure_cells", with_cells),
            mock.patch.object(levels._Measuring, "__init__", with_children),
            # So that both tables have the same words for ties.
            mock.patch.object(Counts, "digest_under", return_value=bytes(32)),
        ):
            release = tt.make_release(
                self.plan,
                table_of(self.plan, rows),
                tt.RunOptions(keep_measurements=True, testing_key=KEY.secret, threads=1),
            )
        told = {level.name: release.level(level.name).to_pylist() for level in self.plan.spine.levels}
        told["the remainders"] = unresolved_table(release).to_pylist()
        told["the evidence"] = [] if release.evidence is None else evidence_table(release.evidence).to_pylist()
        told["the measurements"] = release.measurements.table().to_pylist()
        told["the margins"] = margins_table(release.margins, release.spine, release.confidence).to_pylist()
        told["the facts"] = [] if release.facts is None else facts_table(release.facts).to_pylist()
        return told

    def public(self, rows: Rows) -> set[int]:
        """The numbers that facts of the plan state, which are kept beside what was measured."""
        told = Engine.without_laws(self.plan, rows).told().values()
        return {number for bounds in told if isinstance(bounds, list) for bound in bounds for number in bound[1:]}

    def _of_margins(self, engine: Engine, margins: Any) -> Iterator[NDArray[np.int64]]:
        for table in margins.tables:
            about = [(tree, depth) for tree, depth in zip(margins.trees, table.depths, strict=True) if depth]
            true = engine.margin_counts(table.depths)
            cells = product(*(range(tree.sizes[depth - 1]) for tree, depth in about))
            yield np.array([self.at((100 + table.part, *cell)) - true.get(cell, 0) for cell in cells], np.int64)

    def _noise(self, engine: Engine, step: Any, above: Frontier) -> NDArray[np.int64]:
        level = step.level
        slots = level.fanout(above.nodes)
        slots = np.where(slots > 1, slots, 0)
        children = above.nodes.repeat(slots, axis=1)
        level.go_down(children, np.arange(len(children[0])) - np.repeat(np.cumsum(slots) - slots, slots))
        true: dict[tuple[int, ...], int] = {}
        for path, count in engine.paths:
            there = tuple(engine._node(path[: level.index]))
            true[there] = true.get(there, 0) + count
        every = map(tuple, children.T.tolist())
        return np.array([self.at((level.index, *there)) - true.get(there, 0) for there in every], np.int64)
