"""What a release costs, as a line through measurements; and what it would cost where nobody has measured.

Processor seconds are those of a start, of every record and of every released leaf. Some of them, in the driver, cannot
be shared: they are a start's and the leaves'. So is the driver's memory. Whatever this says of other sizes and other
machines is a prediction: no network, no slow disk and no slow machine is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Taken:
    """What one release took."""

    records: int
    leaves: int
    wall: float
    """Seconds on the clock."""
    processor: float
    """Seconds of all processors."""
    workers: int
    driver: float
    """The most memory of the driver, in bytes."""

    @property
    def serial(self) -> float:
        """The seconds in which one processor worked alone, if the others were shared evenly."""
        return max((self.workers * self.wall - self.processor) / max(self.workers - 1, 1), 0.0)


@dataclass(frozen=True)
class Line:
    """A start, and so much for each record and each leaf."""

    start: float
    record: float
    leaf: float

    def at(self, records: float, leaves: float) -> float:
        """Return what so many records and leaves take."""
        return self.start + self.record * records + self.leaf * leaves


@dataclass(frozen=True)
class Model:
    """What releases cost."""

    processor: Line
    serial: Line
    driver: Line

    def seconds(self, records: float, leaves: float, cores: int, factor: float = 1.0) -> float:
        """Return the seconds on the clock with so many cores, on an engine that takes a factor more of them."""
        alone = self.serial.at(records, leaves)
        return alone + max(factor * self.processor.at(records, leaves) - alone, 0.0) / cores


def fit(taken: Sequence[Taken]) -> Model:
    """Return the model that is closest to measurements, each by its relative error; three sizes at least."""
    if len({one.records for one in taken}) < 3:
        raise ValueError("a model of three numbers takes measurements of three sizes")
    return Model(
        _line(taken, [one.processor for one in taken], records=True),
        _line(taken, [one.serial for one in taken], records=False),
        _line(taken, [one.driver for one in taken], records=False),
    )


def _line(taken: Sequence[Taken], found: Sequence[float], records: bool) -> Line:
    columns = np.array([[1.0, one.records if records else 0.0, one.leaves] for one in taken])
    start, record, leaf = _no_less_than_nothing(columns, np.asarray(found, float))
    return Line(start, record, leaf)


def _no_less_than_nothing(columns: NDArray[np.float64], found: NDArray[np.float64]) -> list[float]:
    """Solve least squares of relative errors; what would come out negative costs nothing."""
    used = [column for column in range(columns.shape[1]) if columns[:, column].any()]
    weight = 1 / np.maximum(found, 1e-9)
    while True:
        scale = columns[:, used].max(axis=0)
        solved, *_ = np.linalg.lstsq(columns[:, used] / scale * weight[:, None], found * weight, rcond=None)
        if (solved >= 0).all():
            answer = [0.0] * columns.shape[1]
            for column, value in zip(used, solved / scale, strict=True):
                answer[column] = float(value)
            return answer
        used.pop(int(solved.argmin()))


def say(model: Model, taken: Sequence[Taken], records: float, leaves: float, cores: int, factor: float) -> list[str]:
    """Say in sentences what was fitted, how well, and what it predicts."""
    p, s, d = model.processor, model.serial, model.driver
    worst = max(abs(p.at(one.records, one.leaves) / one.processor - 1) for one in taken)
    return [
        f"Fitted: {p.start:.1f} processor seconds, {p.record * 1e9:.0f} ns a record, {p.leaf * 1e6:.2f} us a leaf "
        f"(at most {worst:.0%} off)",
        f"of which {s.start:.1f} s and {s.leaf * 1e6:.2f} us a leaf are the driver's alone; "
        f"its memory: {d.start / 1e9:.2f} GB and {d.leaf:.0f} bytes a leaf.",
        f"Prediction, not measured: {records:,.0f} records and {leaves:,.0f} leaves on {cores} cores at {factor:g} "
        f"times the processor seconds: {model.seconds(records, leaves, cores, factor) / 60:.0f} minutes, "
        f"{factor * p.at(records, leaves) / 3600:.1f} processor hours, "
        f"{d.at(records, leaves) / 1e9:.0f} GB in the driver.",
    ]
