"""How far a release is from the truth, level by level: for the steward, since it is computed from private data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from treetop.counts import Counts, Digit, layout, pack
from treetop.errors import ReleaseError
from treetop.release import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = ((0, 0), (1, 4), (5, 10), (11, 24), (25, 99), (100, None))
"""The classes of true counts for which the bias is told apart."""


@dataclass(frozen=True)
class Bias:
    """How far the nodes of one size are off on average, and in which direction."""

    size: str
    """The true counts, such as "5–10"."""
    nodes: int
    """How many public nodes have such a count."""
    bias: float | None
    """The mean of released less true count; None where there is no such node."""


@dataclass(frozen=True)
class LevelErrors:
    """The errors of one level."""

    level: int
    """The position in the spine; the total is 0."""
    name: str
    """The name of the level."""
    nodes: int
    """How many public nodes it has."""
    largest: int
    """The largest absolute error."""
    mean: float
    """The mean absolute error of the nodes that are above zero in truth or in the release."""
    mean_of_all: float
    """The mean absolute error of all public nodes."""
    false_discoveries: float
    """The share of the released nodes above zero that are truly zero."""
    false_negatives: float
    """The share of the nodes truly above zero that are released as zero."""
    biases: tuple[Bias, ...]
    """The bias by size of true count."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def measure_errors(release: Release, truth: Counts) -> tuple[LevelErrors, ...]:
    """Compare a release with the true counts of the same spine, at the total and at every level."""
    released = pack(release.spine, release.nodes)
    digits = layout(release.spine)
    rows = [_compare(0, "total", 1, np.array([release.total]), np.array([truth.total]))]
    for level, digit in zip(release.spine.levels, digits, strict=True):
        ours = _sums([_cut(word, i, digit) for i, word in enumerate(released[: digit.word + 1])], release.count)
        true_count = np.diff(truth.before)
        theirs = _sums([_cut(word, i, digit) for i, word in enumerate(truth.keys[: digit.word + 1])], true_count)
        rows.append(_compare(level.index, level.name, level.nodes, *_align(ours, theirs)))
    return tuple(rows)


_Nodes = tuple[list[NDArray[np.uint64]], NDArray[np.int64]]


def _cut(word: NDArray[np.uint64], index: int, digit: Digit) -> NDArray[np.uint64]:
    """Keep of a word what leads down to the digit's level."""
    return word >> np.uint64(digit.shift) if index == digit.word and digit.shift < 64 else word


def _sums(words: list[NDArray[np.uint64]], count: NDArray[np.int64]) -> _Nodes:
    """Sum consecutive leaves with the same path."""
    if len(count) == 0:
        return words, count
    starts = np.zeros(len(count), dtype=bool)
    starts[0] = True
    for word in words:
        starts[1:] |= word[1:] != word[:-1]
    first = np.flatnonzero(starts)
    return [word[first] for word in words], np.add.reduceat(count, first)


def _align(ours: _Nodes, theirs: _Nodes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return released and true counts of the nodes that either has, side by side."""
    place = np.zeros(len(ours[1]) + len(theirs[1]), dtype=np.int64)
    for one, other in zip(ours[0], theirs[0], strict=True):
        _, rank = np.unique(np.concatenate([one, other]), return_inverse=True)
        _, place = np.unique(place * (rank.max(initial=0) + 1) + rank, return_inverse=True)
    size = int(place.max(initial=-1)) + 1
    released, true = np.zeros(size, np.int64), np.zeros(size, np.int64)
    released[place[: len(ours[1])]] = ours[1]
    true[place[len(ours[1]) :]] = theirs[1]
    return released, true


def _compare(index: int, name: str, nodes: int, released: NDArray[np.int64], true: NDArray[np.int64]) -> LevelErrors:
    error = released - true
    absolute = np.abs(error)
    found, there = released > 0, true > 0
    return LevelErrors(
        level=index,
        name=name,
        nodes=nodes,
        largest=int(absolute.max(initial=0)),
        mean=float(absolute.mean()) if len(error) else 0.0,
        mean_of_all=float(absolute.sum() / nodes),
        false_discoveries=float((found & ~there).sum() / max(found.sum(), 1)),
        false_negatives=float((there & ~found).sum() / max(there.sum(), 1)),
        biases=tuple(_bias(low, high, nodes, error, true) for low, high in SIZES),
    )


def _bias(low: int, high: int | None, nodes: int, error: NDArray[np.int64], true: NDArray[np.int64]) -> Bias:
    inside = (true >= low) & (true <= (np.iinfo(np.int64).max if high is None else high))
    # Public nodes that are in neither table are zeros without error.
    size = nodes - int((true > 0).sum()) if low == 0 else int(inside.sum())
    label = f"{low}+" if high is None else f"{low}–{high}" if high > low else str(low)
    return Bias(label, size, float(error[inside].sum() / size) if size else None)


def plot_errors(rows: tuple[LevelErrors, ...], file: Path, title: str) -> None:
    """Draw errors, rates and biases by level, marked as private, to a file of the steward's choice."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ReleaseError(
            "a plot needs matplotlib, which is not installed: pip install 'treetop[plot]', or leave --plot out"
        ) from None
    names = [row.name for row in rows]
    figure = Figure(figsize=(11, 4 + 0.15 * len(rows)), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _bars(left, names, {"largest": [row.largest for row in rows], "mean": [row.mean for row in rows]})
    left.set(title="absolute error", xscale="symlog")
    rates = {"false discoveries": [row.false_discoveries for row in rows]}
    _bars(middle, names, {**rates, "false negatives": [row.false_negatives for row in rows]})
    middle.set(title="rates", xlim=(0, 1), yticklabels=[])
    for row in rows[1:]:
        known = [(bias.size, bias.bias) for bias in row.biases if bias.bias is not None]
        right.plot([size for size, _ in known], [bias for _, bias in known], marker="o", label=row.name)
    right.axhline(0, color="grey", linewidth=0.8)
    right.set(title="bias by true count", xlabel="true count")
    right.legend(fontsize="small")
    figure.suptitle(f"{title}: for the steward only, not for release")
    try:
        figure.savefig(file)
    except (OSError, ValueError) as problem:
        raise ReleaseError(f"{file}: the plot cannot be written: {problem}") from problem


def _bars(axes: Axes, names: list[str], series: dict[str, list[Any]]) -> None:
    height = 0.8 / len(series)
    for i, (label, values) in enumerate(series.items()):
        axes.barh([at + i * height for at in range(len(names))], values, height, label=label)
    axes.set_yticks([at + 0.4 - height / 2 for at in range(len(names))], names)
    axes.invert_yaxis()
    axes.legend(fontsize="small")
