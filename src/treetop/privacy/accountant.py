"""Exact accounting: delta from the law of the privacy loss of all levels together, and the rho that it allows.

A unit with one record moves each cell that it moves by one. With noise of variance v, a reader who sees such a cell
x away from its true count learns the loss (1 − 2x)/2v, and the losses of cells add up; if their sum is L, delta at
epsilon is the mean of max(0, 1 − e^(epsilon − L)) (Sommer, Meiser and Mohammadi 2019). A shift by −1 is the mirror
image of one by +1, so that signs and the order of the two tables do not matter.

The worst neighbours move every cell that they can. From what is seen of them, what is seen of neighbours that move
fewer cells is made by drawing the other cells anew, which is post-processing; so is what the engine does not measure.

Every step rounds delta up:

- A loss between two points of the grid is split over them so that the probabilities under both tables stay as they
  are (Doroshenko and others 2022, "Connect the dots"). Merging the two points gives the loss back, so that the split
  can only tell more.
- Losses beyond the grid are moved up to its lowest point, or counted in full as delta.
- Probabilities are multiplied by e^(t·L), with t such that epsilon is in the middle of what is summed up; there the
  rounding of the Fourier transform is small beside delta, however small that is, and its bound is added.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from treetop._util.choices import with_article
from treetop._util.dtypes import Floats
from treetop._util.numbers import Number, delta_between_0_and_1, positive
from treetop.domain.unit import Sensitivity, Unit
from treetop.errors import LossError
from treetop.noise import LAWS, Law
from treetop.privacy.loss import Loss, rho_from_epsilon

if TYPE_CHECKING:
    Vector = Floats

# Points of the grid within a standard deviation of the loss. The split over points adds at most a quarter of a squared
# step to the variance of each cell's loss, and so at most 1.6e-5 of itself to that of the sum of 64 cells.
_FINE = 1024
# Positions on the grid, in steps, are known to 1e-9: at most 2²² of them, in floats of 53 bits.
_MARGIN = 1e-8
# A probability is known to 1e-12 of itself: an exponent of some hundreds in floats, its exponential, and a sum.
_MASS = 1e-12
# A transform of 2ⁿ points is wrong by less than 7n·2⁻⁵³ of its norm (Higham 2002, Theorem 24.2); this is twice that.
_TRANSFORM = 16 * 2.0**-53
_MOST_POINTS = 2**22
_ENOUGH = 25.0
_LARGEST_EPSILON = 1000


def exact_delta(epsilon: Number, cells: Iterable[tuple[Fraction, int]]) -> float:
    """The delta at epsilon of discrete Gaussian noise on cells that all move by one, rounded up.

    The cells are given as pairs of a variance and the number of cells with it.

    >>> f"{exact_delta(1, [(Fraction(312), 12)]):.3g}"
    '1.01e-08'
    """
    import numpy as np

    target = _down(positive(epsilon, "epsilon"))
    number: Counter[Fraction] = Counter()
    for variance, count in cells:
        number[variance] += count
    grid = _Grid.over(target, number)
    groups = [(_Losses.of_cell(float(variance), grid), count) for variance, count in number.items()]

    points = sum(count * (len(one.tilted) - 1) for one, count in groups) + 1
    size = 1 << (points - 1).bit_length()
    _refuse_size(size)
    transform = np.ones(size // 2 + 1, np.complex128)
    for one, count in groups:
        transform *= np.fft.rfft(one.tilted, size) ** count
    together = np.maximum(np.fft.irfft(transform, size)[:points], 0.0)

    lowest = math.fsum(count * one.lowest for one, count in groups)
    log_scale = math.fsum(count * one.log_scale for one, count in groups)
    loss = lowest + grid.step * np.arange(points)
    over = loss + grid.step * _MARGIN - target
    above = over > 0
    worth = np.exp(log_scale - grid.tilt * loss[above]) * -np.expm1(-over[above])
    moved = sum(number.values())
    wrong = (moved + 2) * _TRANSFORM * size.bit_length() * float(np.linalg.norm(worth))
    beyond = math.fsum(count * one.beyond for one, count in groups)
    rounding = moved * (_MASS + grid.tilt * grid.step * _MARGIN)
    return min((float(together[above] @ worth) + wrong + beyond) * (1 + rounding), 1.0)


@lru_cache(maxsize=64)
def exact_rho(epsilon: Fraction, delta: Fraction, shares: tuple[Fraction, ...], shifts: tuple[int, ...]) -> Fraction:
    """The largest rho, rounded down to about six digits, at which all levels together keep delta at epsilon.

    A level has its share of rho, and `shifts` of its cells move by one: its variance is shifts/(2·rho·share). It is at
    least the rho by the conversion of zero-concentrated differential privacy.

    Raises `LossError` if the epsilon is above 1000, or the grid would be too large.

    >>> float(exact_rho(Fraction(1), Fraction(1, 10**8), (Fraction(1, 6),) * 6, (2,) * 6))
    0.0192212
    """
    known = rho_from_epsilon(epsilon, delta)
    if epsilon > _LARGEST_EPSILON:
        raise LossError(
            f"Exact accounting of an epsilon above {_LARGEST_EPSILON:,} takes long and gains next to nothing; give a "
            'less extreme epsilon or use accounting="zcdp".'
        )
    unit = Fraction(10) ** (math.floor(math.log10(known)) - 5)
    least = math.floor(known / unit)
    goal = math.log(delta_between_0_and_1(delta))

    @cache
    def excess(steps: int) -> float:
        delta_found = exact_delta(epsilon, level_cells(steps * unit, shares, shifts))
        height = math.log(delta_found) - goal if delta_found > 0 else -math.inf
        return max(height, 1e-15) if delta_found > delta else min(height, 0.0)  # exactly above delta, or not

    start, slope = _continuous(float(epsilon), goal, float(known))
    steps = _root(excess, max(math.floor(start / unit), least), slope)
    back = 1
    while steps > least and excess(steps) > 0:  # what is returned is certain, however it was found
        steps, back = steps - back, 2 * back
    last = steps + 3
    while steps < last and excess(steps + 1) <= 0:
        steps += 1
    return max(known, steps * unit)


def rho_of_levels(unit: Unit, loss: Loss, shares: Mapping[str, Fraction]) -> Fraction:
    """The rho that a loss with exact accounting leaves to levels with these shares of it."""
    assert loss.epsilon is not None and loss.delta is not None
    moves = [cells_moved(unit, level) for level in shares]
    return exact_rho(loss.epsilon, loss.delta, tuple(shares.values()), tuple(moves))


def is_exact_by_default(unit: Unit, loss: Loss) -> bool:
    """Whether a loss that does not say how it is kept is kept by exact accounting, for this unit."""
    return (loss.definition, loss.accounting, loss.noise) == ("approximate", None, None) and unit.moves_by_one


def cells_moved(unit: Unit, level: str) -> int:
    """How many cells of a level one unit moves, each by one.

    >>> cells_moved(Unit("trip", neighbours="replace"), "place.region")
    2
    """
    change = unit.sensitivity(level)
    if unit.contributions > 1 or change.l1 != change.l2_squared:  # some cell may move by more than one
        raise LossError(
            f"Exact accounting is for units of one record, and {with_article(unit.entity)} has up to "
            f"{unit.contributions}: they may fall into one cell or into several, differently at every level, and none "
            'of these ways is the worst for every loss. Use accounting="zcdp", which covers them all.'
        )
    return change.l1


def level_cells(rho: Fraction, shares: Sequence[Fraction], shifts: Sequence[int]) -> list[tuple[Fraction, int]]:
    """The cells that move in each level, with the variance that its share of rho gives them."""
    return [(count / (2 * rho * share), count) for share, count in zip(shares, shifts, strict=True)]


def _continuous(epsilon: float, goal: float, known: float) -> tuple[float, float]:
    """Find the rho of continuous noise, and the growth of log delta with log rho (Balle and Wang 2018, Theorem 8)."""

    def log_delta(log_rho: float) -> float:
        width = math.sqrt(2 * math.exp(log_rho))
        near, far = (math.erfc((epsilon / width + side * width / 2) / math.sqrt(2)) / 2 for side in (-1, 1))
        return math.log(max(near - math.exp(min(epsilon, 700.0)) * far, 1e-300))

    low = math.log(known)
    high = low + 1
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if log_delta(middle) < goal else (low, middle)
    return math.exp(low), max((log_delta(low + 1e-3) - log_delta(low)) / 1e-3, 1.0)


def _root(excess: Callable[[int], float], start: int, slope: float) -> int:
    """Find about where a rising function crosses zero, by secants on the logarithm."""
    steps, height = start, excess(start)
    for _ in range(12):
        if not math.isfinite(height):
            break
        ahead = math.floor(steps * math.exp(min(max(-height / slope, -0.5), 0.5)))
        if abs(ahead - steps) <= 1:
            return min(ahead, steps) if height > 0 else steps
        then = excess(ahead)
        rise = (then - height) / math.log(ahead / steps)
        slope = rise if math.isfinite(rise) and rise > 0.1 else slope
        steps, height = ahead, then
    return steps


@dataclass(frozen=True)
class _Grid:
    """The points at which losses are kept, and how they are weighed."""

    step: float
    tilt: float
    depth: float
    """How far from its middle the noise of a cell is followed, in standard deviations."""

    @staticmethod
    def over(epsilon: float, number: Counter[Fraction]) -> _Grid:
        cells = sum(number.values())
        rho = math.fsum(float(count / (2 * variance)) for variance, count in number.items())
        # The loss of a cell has steps of 1/v: where most of it comes from, losses shall fall on points.
        natural = float(1 / max(number, key=lambda variance: number[variance] / variance))
        wanted = math.sqrt(2 * rho / max(cells / 64, 1)) / _FINE
        step = natural / math.ceil(natural / wanted) if natural > wanted else natural * math.floor(wanted / natural)
        tilt = max((epsilon / rho - 1) / 2, 0.0)
        # About the logarithm of 1/delta, and far beyond.
        exponent = max(epsilon - rho, 0.0) ** 2 / (4 * rho) + math.log(cells) + _ENOUGH
        return _Grid(step, tilt, math.sqrt(2 * exponent))


@dataclass(frozen=True)
class _Losses:
    """The loss of one cell, on the points of a grid."""

    tilted: Vector
    """At each point its probability times e^(t·loss), divided by the sum of these."""
    lowest: float
    log_scale: float
    beyond: float
    """The probability that is not on the grid: its loss is above all points."""

    @staticmethod
    def of_cell(variance: float, grid: _Grid) -> _Losses:
        import numpy as np

        tilt, step = grid.tilt, grid.step
        if not grid.depth * math.sqrt(variance) + tilt < _MOST_POINTS:
            _refuse_size(_MOST_POINTS + 1)
        reach = math.ceil(grid.depth * math.sqrt(variance)) + 1
        far = reach + math.floor(tilt)
        near = np.arange(reach + 1)
        weights = np.exp(-near * near / (2 * variance))
        total = 2 * math.fsum(weights[1:]) + 1

        x = np.arange(-far, reach + 1)
        tilted = np.exp(-((x + tilt) ** 2) / (2 * variance))
        tilted[-1] += _tail(reach, variance) * math.exp(-(2 * reach * tilt + tilt * tilt) / (2 * variance))
        place = (reach - x) / (variance * step) + _MARGIN
        point = place.astype(np.int64)
        if point[0] >= _MOST_POINTS:
            _refuse_size(int(point[0]))
        over = (place - point) * step
        up = np.expm1(-over) / math.expm1(-step)
        down = np.exp(-tilt * (over - _MARGIN * step))
        on_grid = np.bincount(point, tilted * (1 - up) * down, point[0] + 2)
        on_grid += np.bincount(point + 1, tilted * up * down * math.exp(tilt * step), point[0] + 2)
        scale = float(on_grid.sum())
        return _Losses(
            tilted=on_grid / scale,
            lowest=(1 - 2 * reach) / (2 * variance),
            log_scale=math.log(scale / total) + (tilt * tilt + tilt) / (2 * variance),
            beyond=_tail(far, variance) / total,
        )


def _tail(reach: int, variance: float) -> float:
    """Bound the weights e^(−k²/2v) of all k > reach: each is at most e^(−(reach + 1)/v) of the one before."""
    first = reach + 1
    return math.exp(-first * first / (2 * variance)) / -math.expm1(-first / variance)


def _down(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0.0)


def _refuse_size(size: int) -> None:
    if size > _MOST_POINTS:
        raise LossError(
            "Exact accounting would need over four million points for this epsilon and split; give a less extreme "
            'epsilon or a more even split, or use accounting="zcdp".'
        )


# The exact noise of each level, and the way back from the noise to what it costs.

WHOLE = Fraction(1)


def law_of(loss: Loss) -> type[Law]:
    """The law that a loss is kept with: the one that it names, or else Laplace if it is pure and Gaussian if not."""
    if loss.noise is None:
        return next(law for law in LAWS.values() if law.currency == loss.currency)
    law = LAWS[loss.noise]
    if law.currency != loss.currency:
        raise LossError(f"The noise {law.name!r} does not keep such a loss: its cost is stated as {law.currency}.")
    return law


def noise_for(change: Sensitivity, loss: Loss, share: Fraction = WHOLE) -> Law:
    """The noise with which such a change costs a share of the loss; shares add up (Bun and Steinke 2016, Lemma 1.7)."""
    return law_of(loss).costing(change.l1, change.l2_squared, loss.budget * share)


def cost_of(change: Sensitivity, law: Law) -> Fraction:
    """Cost of counts with this noise, computed from the noise: rho, or pure epsilon."""
    return law.cost(change.l1, change.l2_squared)


def level_noise(unit: Unit, loss: Loss, level: str, share: Number) -> Law:
    """The law of the noise of a level that is given this share of the loss."""
    part = positive(share, f"The share of level {level}")
    if part > WHOLE:
        raise LossError(f"The share of level {level} is {share}, more than the whole loss; give at most 1.")
    return noise_for(unit.sensitivity(level), loss, part)


def cost(unit: Unit, level: str, law: Law) -> Fraction:
    """Cost of a level with this noise: rho for the Gaussian, pure epsilon for the Laplace."""
    return cost_of(unit.sensitivity(level), law)
