"""The audits of joint fits: what one unit moves in the measured tables, and that nothing else of the data is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import combinations_with_replacement, product
from unittest import mock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import treetop as tt
from treetop.measure import joint
from treetop.noise import Law, NoiseStream
from treetop.privacy import Neighbours

from .audits import Audit, audit
from .divergence import TOLERANCE, loss_of
from .engine import KEY

TREES = {
    "place": tt.Hierarchy.from_prefixes(["A1", "A2", "B1"], widths=[1], levels=["region", "town"]),
    "age": tt.Hierarchy.flat(["0", "1"]),
    "sex": tt.Hierarchy.flat(["f", "m"]),
}
LEAVES = tuple(product(["A1", "A2", "B1"], ["0", "1"], ["f", "m"]))
Leaf = tuple[str, str, str]
Rows = tuple[Leaf, ...]
Tables = list[tuple[Law, NDArray[np.int64]]]


UNEVEN = {"place.town * age * sex": 5, "age": 2, "place.region * sex": 1, "sex": 3}
"""Tables with shares such as a design gives, one of which is that of the leaves."""


def plan_of(neighbours: Neighbours, loss: tt.Loss, *, uneven: bool = False) -> tt.Plan:
    unit = tt.Unit("person", contributions=1, neighbours=neighbours)
    if not uneven:
        return tt.joint_plan(TREES, unit, loss)
    split = {f"margin {name}": weight for name, weight in UNEVEN.items()} | (
        {} if neighbours == "replace" else {"total": 1}
    )
    return tt.joint_plan(TREES, unit, loss, margins=list(UNEVEN), split=split)


def release_of(plan: tt.Plan, rows: Iterable[Leaf]) -> tt.Release:
    columns = zip(*rows, strict=True) if (rows := tuple(rows)) else ((), (), ())
    table = pa.table({name: pa.array(own, pa.string()) for name, own in zip(TREES, columns, strict=True)})
    return tt.make_release(plan, table, tt.RunOptions(testing_key=KEY.secret, threads=1))


@contextmanager
def tables_measured() -> Iterator[Tables]:
    """Note the law of every stream that is filled, without noise, so that true cells can be told from measurements."""
    seen: Tables = []
    opened: dict[int, tuple[NoiseStream, Law]] = {}
    begin = NoiseStream.__init__

    def note(self: NoiseStream, law: Law, *rest: object, **more: object) -> None:
        opened[id(self)] = (self, law)
        begin(self, law, *rest, **more)  # type: ignore[arg-type]

    def fill(self: NoiseStream, out: NDArray[np.int64], *_: object) -> None:
        out[:] = 0
        seen.append((opened[id(self)][1], out))

    with mock.patch.object(NoiseStream, "__init__", note), mock.patch.object(NoiseStream, "fill", fill):
        yield seen


def measured(plan: tt.Plan, rows: Rows) -> Tables:
    """The laws that noise is really drawn from, and the true cells that it hides, table by table."""
    with tables_measured() as seen:
        release = release_of(plan, rows)
    evidence = release.tables.evidence  # type: ignore[union-attr]
    total = [] if evidence.total_law is None else [np.array([evidence.total])]
    values = [*total, *evidence.measured]
    if [len(value) for value in values] != [len(noise) for _, noise in seen]:
        raise AssertionError("a table was measured without noise of its own")
    return [(law, value) for (law, _), value in zip(seen, values, strict=True)]


def neighbours_of(rows: Rows, neighbours: Neighbours) -> Iterator[Rows]:
    for at in range(len(rows)):
        less = rows[:at] + rows[at + 1 :]
        yield from ([less] if neighbours == "add-remove" else [(*less, leaf) for leaf in LEAVES])


@audit
def the_loss_of_a_joint_fit(neighbours: Neighbours, loss: tt.Loss, *, uneven: bool = False) -> str | None:
    """Add up what all tables tell of one record, in all tables of at most two records and their neighbours."""
    plan = plan_of(neighbours, loss, uneven=uneven)
    every = [rows for number in range(3) for rows in combinations_with_replacement(LEAVES, number)]
    cells = {rows: measured(plan, rows) for rows in every}
    largest = max(
        loss_of(
            [(law, one - two) for (law, one), (_, two) in zip(cells[rows], cells[tuple(sorted(other))], strict=True)]
        )
        for rows in every
        for other in neighbours_of(rows, neighbours)
    )
    return None if largest <= plan.budget * (1 + TOLERANCE) else f"the tables cost {largest}, not {plan.budget}"


@audit
def a_joint_fit_follows_from_its_measurements(neighbours: Neighbours) -> str | None:
    """Give two tables that are no neighbours the same measurements: they must have the same release."""
    plan = plan_of(neighbours, tt.Loss(rho=1))
    rng = np.random.default_rng(5)
    chosen = [rng.integers(-2, 9, margin.nodes) for margin in plan.margin_tables]
    told = []
    others = len(LEAVES) if neighbours == "replace" else 7
    nothing = [np.zeros(len(one), np.int64) for one in chosen]
    for rows in (LEAVES, tuple([LEAVES[0]] * others)):
        with (
            mock.patch.object(joint, "_true_tables", return_value=nothing),
            _noises([np.array([17 - len(rows)]), *chosen] if plan.levels[0].is_measured else chosen),
        ):
            release = release_of(plan, rows)
        told.append((release.table().to_pylist(), [one.count.tolist() for one in release.margins]))
    return None if told[0] == told[1] else "two tables with the same measurements have other releases"


@contextmanager
def _noises(given: list[NDArray[np.int64]]) -> Iterator[None]:
    left = iter(given)

    def fill(_: NoiseStream, out: NDArray[np.int64], *__: object) -> None:
        out[:] = next(left)

    with mock.patch.object(NoiseStream, "fill", fill):
        yield


@audit
def joint_tables_have_noise_of_their_own() -> str | None:
    """No two tables of a joint fit, and no two runs on other data, share a key."""
    keys: list[bytes] = []
    begin = NoiseStream.__init__

    def note(self: NoiseStream, law: Law, key: object, *rest: object) -> None:
        keys.append(key.secret)  # type: ignore[attr-defined]
        begin(self, law, key, *rest)  # type: ignore[arg-type]

    plan = plan_of("add-remove", tt.Loss(rho=1))
    with mock.patch.object(NoiseStream, "__init__", note):
        release_of(plan, LEAVES[:3])
        release_of(plan, LEAVES[:4])
    return None if len(set(keys)) == len(keys) else "two tables are measured with the same noise"


def joint_audits() -> dict[str, Audit]:
    audits: dict[str, Audit] = {}
    for neighbours in ("replace", "add-remove"):
        for name, loss in (("rho", tt.Loss(rho=1)), ("pure", tt.Loss(epsilon=1))):
            audits[f"joint fit, loss, {neighbours}, {name}"] = partial(the_loss_of_a_joint_fit, neighbours, loss)
            uneven = partial(the_loss_of_a_joint_fit, neighbours, loss, uneven=True)
            audits[f"joint fit, loss, uneven shares, {neighbours}, {name}"] = uneven
        audits[f"joint fit, same measurements, {neighbours}"] = partial(
            a_joint_fit_follows_from_its_measurements, neighbours
        )
    audits["joint fit, keys"] = joint_tables_have_noise_of_their_own
    return audits
