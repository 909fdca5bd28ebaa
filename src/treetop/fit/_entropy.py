"""Non-negative fit: the table of largest entropy that honours every measured table by its variance.

It minimises Σ_t ‖A_t x − ŷ_t‖²/(2σ_t²) + λ KL(x ‖ prior) over x ≥ 0 with exact tables. The dual separates by table:
x = prior · exp(Σ_t A_tᵀ θ_t), and for one table the best change D of θ solves m·e^D + λσ²(θ + D) = ŷ in each cell,
where m is the current sum of x (soft iterative proportional fitting). An exact table has σ = 0 and takes D = log(ŷ/m).

The duality gap is Σ_t ‖ŷ_t − A_t x − λσ_t²θ_t‖²/(2σ_t²), plus λθ·(A_t x − ŷ_t) for exact tables. It bounds
Σ_t ‖A_t (x − x*)‖²/(2σ_t²), the distance to the minimum x* in the noise of the measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from treetop._util.kernel import kernel
from treetop.errors import NumberError
from treetop.fit.combine import NormalEquations, combine
from treetop.fit.noisy_tables import Depths, Grid, NoisyTable, Reals

STRENGTH = 0.1
"""λ in units of 1/σ: a multiplier of 1 moves a cell by this share of a standard deviation."""
PRECISION = 0.05
"""The fit stops if its tables are this near to the minimum, as root mean square in standard deviations of the noise."""
MOST_SWEEPS = 2000
_SHARED = 4
_VIOLATION = 0.5
"""Exact tables may be off by this many records, as root mean square, while the fit goes on."""
_AGREES = 1e-6
_LAST_SWEEPS = 100
_NEWTON_STEPS = 60

_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""The logarithm of 2; products of the first with whole numbers below 2¹¹ are exact."""

_Index = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class FittedTable:
    """A non-negative table of real numbers."""

    value: Reals = field(repr=False)
    """One axis per attribute, at the depths of the trunk."""
    gap: float
    """The duality gap: half the summed squares of the distance to the minimum, in standard deviations."""
    sweeps: int
    """How often all tables were passed over."""


@dataclass(frozen=True, eq=False)
class _Block:
    """A table, its multipliers, and the cell of each trunk cell: a base by leading cell plus a step by last code."""

    target: Reals
    variance: float
    base: _Index
    step: _Index
    theta: Reals = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", np.zeros(len(self.target)))


def fit(
    grid: Grid,
    trunk: Depths,
    tables: Sequence[NoisyTable],
    exact: Sequence[NoisyTable] = (),
    prior: Reals | None = None,
    *,
    strength: float = STRENGTH,
    precision: float = PRECISION,
) -> FittedTable:
    """Fit a table at the depths of the trunk to noisy tables, and to exact ones that have one common total.

    Args:
        grid: The attributes.
        trunk: The depths of the fitted table.
        tables: The tables to come near to.
        exact: The tables to agree with, which must agree with each other; at least the total.
        prior: Relative sizes of the cells; 0 for a structural zero. All equal if not given.
        strength: λ times the largest standard deviation of a table.
        precision: How near to the minimum to stop.

    Raises:
        NumberError: If an exact table needs counts where the prior has none, or the precision is not reached.
    """
    agreed = combine(grid, [*tables, *exact])  # which changes the objective by a constant
    every = [*(NoisyTable(t.depths, agreed.values[t.depths], t.variance) for t in tables), *exact]
    blocks = [_block(grid, trunk, table) for table in every]
    equations = NormalEquations(grid, every)
    total = float(np.sum(exact[0].value))
    x = np.ones(grid.cells(trunk)) if prior is None else np.array(prior, np.float64).ravel()
    if total <= 0:
        return FittedTable(np.zeros(grid.sizes(trunk)), 0.0, 0)
    if not x.sum() > 0:
        raise NumberError("every cell is a structural zero, and the total is not")
    x *= total / x.sum()
    soft = [block for block in blocks if block.variance]
    penalty = strength / math.sqrt(max((block.variance for block in soft), default=1.0))
    allowed = 0.5 * precision**2 * sum(len(block.target) for block in soft)
    gap, sweeps = 0.0, 0
    while soft:
        gap, violation = _sweep(x, blocks, penalty)
        sweeps += 1
        if sweeps <= _SHARED or sweeps % _SHARED == 0:
            _share(equations, every, blocks)
        if gap <= allowed and violation <= 2 * _VIOLATION and sweeps > 1:
            gap, violation = _gap(x, blocks, penalty)
            if gap <= allowed and violation <= _VIOLATION:
                break
        if sweeps >= MOST_SWEEPS:
            raise NumberError(f"the fit did not reach its precision in {MOST_SWEEPS} sweeps: its gap is {gap:g}")
    hard = [block for block in blocks if not block.variance]
    for _ in range(_LAST_SWEEPS):
        if _sweep(x, hard, penalty)[1] <= _AGREES:
            break
    return FittedTable(x.reshape(grid.sizes(trunk)), gap, sweeps)


def _share(equations: NormalEquations, tables: Sequence[NoisyTable], blocks: Sequence[_Block]) -> None:
    """Share the multipliers among the tables so that Σ σ_t²‖θ_t‖² is least: x stays, and the dual rises.

    At the least, all σ_t²θ_t are sums of one table: another least squares problem over the same tables.
    """
    block_of = {table.depths: block for table, block in zip(tables, blocks, strict=True)}
    theta = {t.depths: block_of[t.depths].theta.reshape(t.value.shape) for t in tables if t.variance}
    shared = equations.tables(equations.solve(equations.components(theta)))
    shared = {own: value * equations.weight[own] for own, value in shared.items()}
    # What exact tables tell costs nothing there.
    moved = equations.fixed_components({own: value - shared[own] for own, value in theta.items()})
    for own, component in moved.items():
        exact = equations.fixed[own]
        assert exact is not None
        block_of[exact].theta[:] += equations.grid.copy_to(component, own, exact).ravel()
    for own, value in shared.items():
        block_of[own].theta[:] = value.ravel()


def _block(grid: Grid, trunk: Depths, table: NoisyTable) -> _Block:
    base, step = index_of(grid, trunk, table.depths)
    return _Block(np.ravel(table.value).astype(np.float64), table.variance, base, step)


def index_of(grid: Grid, trunk: Depths, depths: Depths) -> tuple[_Index, _Index]:
    """Return the cell of a table that each trunk cell lies in: by the leading codes, and a step by the last."""
    base: _Index = np.zeros(1, np.uint32)
    sizes = grid.sizes(depths)
    steps = []
    for axis, (size, depth) in enumerate(zip(sizes, depths, strict=True)):
        stride = math.prod(sizes[axis + 1 :]) if size > 1 else 0
        steps.append((grid.ancestors(axis, depth, trunk[axis]) * stride).astype(np.uint32))
    for step in steps[:-1]:
        base = (base[:, np.newaxis] + step).ravel()
    return base, steps[-1]


def _sweep(x: Reals, blocks: Sequence[_Block], penalty: float) -> tuple[float, float]:
    """Update every table once; return in passing the gap, and by how much exact tables were violated."""
    gap, squares, cells = 0.0, 0.0, 0
    sums = np.zeros(len(blocks[0].target))
    _add_up(x, blocks[0].base, blocks[0].step, sums)
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        factor = np.empty_like(sums)
        if block.variance:
            gap += _soften(sums, block.target, block.theta, penalty * block.variance, factor) / (2 * block.variance)
        elif (missed := _match(sums, block.target, block.theta, factor)) < 0:
            raise NumberError("an exact table needs counts in cells where no count may be")
        else:
            squares, cells = squares + missed, cells + len(sums)
        if following is None:
            _scale(x, factor, block.base, block.step)
        else:
            sums = np.zeros(len(following.target))
            _scale_and_add(x, factor, block.base, block.step, following.base, following.step, sums)
    return gap, math.sqrt(squares / max(cells, 1))


def _gap(x: Reals, blocks: Sequence[_Block], penalty: float) -> tuple[float, float]:
    """Return the duality gap, and by how much exact tables are violated (root mean square)."""
    gap, squares, cells = 0.0, 0.0, 0
    for block in blocks:
        sums = np.zeros(len(block.target))
        _add_up(x, block.base, block.step, sums)
        if block.variance:
            left = block.target - sums - penalty * block.variance * block.theta
            gap += float((left**2).sum()) / (2 * block.variance)
        else:
            left = sums - block.target
            gap += penalty * abs(float((block.theta * left).sum()))
            squares += float((left**2).sum())
            cells += len(left)
    return gap, math.sqrt(squares / max(cells, 1))


@kernel
def _add_up(x: Reals, base: _Index, step: _Index, sums: Reals) -> None:
    width = len(step)
    for row in range(len(base)):
        for last in range(width):
            sums[base[row] + step[last]] += x[row * width + last]


@kernel
def _scale(x: Reals, factor: Reals, base: _Index, step: _Index) -> None:
    width = len(step)
    for row in range(len(base)):
        for last in range(width):
            x[row * width + last] *= factor[base[row] + step[last]]


@kernel
def _scale_and_add(
    x: Reals, factor: Reals, base: _Index, step: _Index, next_base: _Index, next_step: _Index, sums: Reals
) -> None:
    width = np.uint64(len(step))
    if next_step[-1] == 0:  # the next table does not tell the last attribute: its sum stays in a register
        for row in range(np.uint64(len(base))):
            own, total = base[row], 0.0
            for last in range(width):
                at = row * width + last
                value = x[at] * factor[own + step[last]]
                x[at] = value
                total += value
            sums[next_base[row]] += total
        return
    for row in range(np.uint64(len(base))):
        own, following = base[row], next_base[row]
        for last in range(width):
            at = row * width + last
            value = x[at] * factor[own + step[last]]
            x[at] = value
            sums[following + next_step[last]] += value


@kernel
def _exp(x: float) -> float:
    """Return e^x from sums and products alone, which have the same bits on every processor; libraries' do not."""
    doublings = math.floor(min(max(x, -740.0), 709.0) * 1.4426950408889634 + 0.5)
    rest = min(max(x, -740.0), 709.0) - doublings * _LN2_HIGH - doublings * _LN2_LOW
    found = 1.0
    for power in range(13, 0, -1):
        found = 1.0 + found * rest / power
    return float(math.ldexp(found, int(doublings)))


@kernel
def _log(x: float) -> float:
    """Return the logarithm of a positive number, alike."""
    mantissa, exponent = math.frexp(x)
    if mantissa < 0.7071067811865476:
        mantissa, exponent = 2.0 * mantissa, exponent - 1
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square, found = ratio * ratio, 0.0
    for power in range(23, 0, -2):
        found = found * square + 1.0 / power
    return exponent * _LN2_HIGH + (2.0 * ratio * found + exponent * _LN2_LOW)


@kernel
def _match(sums: Reals, target: Reals, theta: Reals, factor: Reals) -> float:
    """Scale to exact targets; return the summed squares of what was missed, or -1 if there is nothing to scale."""
    squares = 0.0
    for cell in range(len(sums)):
        factor[cell] = 1.0
        squares += (sums[cell] - target[cell]) ** 2
        if sums[cell] > 0.0:
            factor[cell] = target[cell] / sums[cell]
            if target[cell] > 0.0:
                theta[cell] += _log(factor[cell])
        elif target[cell] > 0.0:
            return -1.0
    return squares


@kernel
def _soften(sums: Reals, target: Reals, theta: Reals, slack: float, factor: Reals) -> float:
    """Solve m·e^D + s(θ + D) = y for D in every cell; return the summed squares of y − m − sθ.

    The left side increases and is convex in D, so Newton steps from the right of the solution stay there and converge.
    Starts to the right are D = (y − sθ)/s, and log((y − sθ)/m) or 0, by whether y − sθ is at least m.
    """
    squares = 0.0
    for cell in range(len(sums)):
        mass, rest = sums[cell], target[cell] - slack * theta[cell]
        squares += (rest - mass) ** 2
        factor[cell] = 1.0
        change = rest / slack
        if mass > 0.0:
            change = min(change, _log(rest / mass) if rest >= mass else 0.0)
            for _ in range(_NEWTON_STEPS):
                grown = mass * _exp(change)
                step = (grown + slack * change - rest) / (grown + slack)
                change -= step
                if step <= 1e-12 * (1.0 + abs(change)):
                    break
            factor[cell] = _exp(change)
        theta[cell] += change
    return squares
