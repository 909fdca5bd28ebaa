"""The state of a node's repair: a few integers that kernels can pass on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop._util.kernel import kernel_in_place, kernel_inlined

CHEBYSHEV, EUCLIDEAN = 0, 1
ASCENDING, DESCENDING = 1, -1

# The question.
KIND, ORDER, SIZE, COUNT = 0, 1, 2, 3
# The answer: the bounds, the threshold, and how the entries at the threshold are to be treated.
UP, DOWN, THRESHOLD, TIES, FULL, PART, SEED = 4, 5, 6, 7, 8, 9, 10
# Between sweeps.
PHASE, SUM, MIN, MAX, HIGHS, LOWS, ACTIVE, NEED, FLOOR, SHIFT, BUCKETS = range(11, 22)
# Where all measurements are there: the highest but one, which is as high where several are.
SECOND = 22
STATE_SIZE = 23

LOWEST, HIGHEST = np.int64(np.iinfo(np.int64).min), np.int64(np.iinfo(np.int64).max)


@kernel_in_place
def room_of(state: NDArray[np.int64], value: int | np.int64) -> int:
    """Return by how much an entry can be lowered."""
    return max(value + state[UP], 0) - max(value - state[DOWN], 0)


# The repair of a node by its highest measurements: mostly few are kept, and those are found without sorting.

MOST = 16
"""Up to this many distinct measurements, a scan from the top is faster."""
_FEW = 32
"""Up to this many measurements are scanned in one pass; above, two vectorised passes are faster."""

Ints = NDArray[np.int64]


@kernel_in_place
def look(state: Ints, x: Ints) -> int:
    """Take in measurements that are all here, and the bounds to start from; return which is highest, -1 if several."""
    total, low, high, second, which = np.int64(0), HIGHEST, LOWEST, LOWEST, 0
    if len(x) <= _FEW:
        for i in range(len(x)):
            total += x[i]
            low = min(low, x[i])
            second = max(second, min(high, x[i]))
            which = i if x[i] > high else which
            high = max(high, x[i])
    else:
        for i in range(len(x)):
            total += x[i]
            low = min(low, x[i])
            high = max(high, x[i])
        for i in range(len(x)):
            second = max(second, x[i] if x[i] < high else LOWEST)
        if _number_of(x, high) > 1:
            second = high
        while x[which] < high:
            which += 1
    rise = -((total - state[COUNT]) // len(x))  # ⌈(c − Σx)/b⌉
    state[MAX], state[SECOND] = high, second
    state[UP], state[DOWN] = rise, max(abs(rise), -low)
    return which if second < high else -1


@kernel_in_place
def takes_all(state: Ints) -> bool:
    """Whether the highest of measurements that were looked at, if it is one, gets the whole count: often it does.

    Where no other is above the largest change of the start, they can all vanish, and are lowered first: then the high
    bound of the highest must be enough. Else it must be ahead of the second by the count c, or, in ascending order, by
    c − 1: the low bounds exceed c then, and the water level is not below the second.
    """
    count, high, second = state[COUNT], state[MAX], state[SECOND]
    ascending = state[ORDER] == ASCENDING
    if state[KIND] == CHEBYSHEV and second <= state[DOWN]:
        return bool(ascending and high + state[UP] >= count)
    if state[KIND] == EUCLIDEAN or ascending:
        return bool(high - second >= (count - 1 if ascending else count))
    return False


@kernel_in_place
def find_from_top(state: Ints, scratch: Ints, x: Ints) -> bool:
    """Set bounds and threshold for scanned measurements; return False if that needs too many of them."""
    count, high = state[COUNT], state[MAX]
    up, down = state[UP], state[DOWN]
    _begin_list(scratch, x, high, state[SECOND])
    lows = _sum_above(x, high, down, count)
    if lows > count or state[KIND] == EUCLIDEAN:
        down = _water_level(scratch, x, count)
        if down == HIGHEST:
            return False
        up, lows = 1 - down, _sum_above(x, high, down, count)
    state[UP], state[DOWN] = up, down
    if state[ORDER] == ASCENDING:
        return _find_above(state, scratch, x, count - lows)
    need = -count
    for i in range(len(x)):
        need += max(x[i] + up, 0)
    return _find_below(state, scratch, x, need)


@kernel_in_place
def _find_above(state: Ints, scratch: Ints, x: Ints, spare: int | np.int64) -> bool:
    """Set the threshold below the entries that are not lowered; `spare` is the total that entries keep."""
    for i in range(MOST):
        value, equal = _listed(scratch, x, i)
        if equal == 0:  # nothing is lowered
            state[THRESHOLD] = LOWEST
            return True
        room = equal * room_of(state, value)
        if room > spare:
            _set_threshold(state, value, equal, room - spare)
            return True
        spare -= room
    return False


@kernel_in_place
def _find_below(state: Ints, scratch: Ints, x: Ints, need: int | np.int64) -> bool:
    """Set the threshold above the entries that are not lowered; `need` is the total to lower."""
    if need == 0:
        state[THRESHOLD] = HIGHEST
        return True
    for i in range(MOST):
        value, equal = _listed(scratch, x, i)
        room = equal * room_of(state, value)
        if need <= room:
            _set_threshold(state, value, equal, need)
            return True
        need -= room
    return False


@kernel_in_place
def _set_threshold(state: Ints, value: np.int64, equal: np.int64, lowered: int | np.int64) -> None:
    """Set the threshold, at which entries are lowered by so much in all."""
    room = room_of(state, value)
    state[THRESHOLD] = value
    state[TIES] = equal
    state[FULL] = lowered // room
    state[PART] = lowered % room


@kernel_in_place
def _sum_above(x: Ints, high: np.int64, level: int | np.int64, count: int) -> np.int64:
    """Return Σ max(x − level, 0); if it exceeds `count`, any value above `count`."""
    if high <= level:
        return np.int64(0)
    if high - level > count:
        return high - level
    total = np.int64(0)
    for i in range(len(x)):
        total += max(x[i] - level, 0)
    return total


@kernel_in_place
def _water_level(scratch: Ints, x: Ints, count: int) -> np.int64:
    """Return the least t with Σ max(x − t, 0) ≤ count; the highest number if that needs too many."""
    above, k = np.int64(0), np.int64(0)  # the entries above the level are the k largest
    for i in range(MOST):
        value, equal = _listed(scratch, x, i)
        if equal == 0 or above - k * value > count:
            return -((count - above) // k)  # ⌈(Σ of the k largest − c)/k⌉
        above += equal * value
        k += equal
    return HIGHEST


# The list of the highest values stands in the scratch memory: how many are known, the values, and how often each comes.


@kernel_in_place
def _begin_list(scratch: Ints, x: Ints, high: np.int64, second: np.int64) -> None:
    scratch[0] = 1
    scratch[1] = high
    scratch[1 + MOST] = 1 if second < high else _number_of(x, high)


@kernel_in_place
def _listed(scratch: Ints, x: Ints, rank: int) -> tuple[np.int64, np.int64]:
    """Return the highest value after skipping some, and its multiplicity: 0 if no values are left."""
    if rank == scratch[0]:
        last, value = scratch[rank], LOWEST
        for i in range(len(x)):
            value = max(value, x[i] if x[i] < last else LOWEST)
        scratch[0] += 1
        scratch[1 + rank] = value
        scratch[1 + MOST + rank] = _number_of(x, value)
    return scratch[1 + rank], scratch[1 + MOST + rank]


@kernel_in_place
def _number_of(x: Ints, value: np.int64) -> np.int64:
    number = np.int64(0)
    for i in range(len(x)):
        number += x[i] == value
    return number


# The repair of one node: measurements become non-negative integers that sum to the parent, in a few linear sweeps.

# What the next sweep is for.
RANGE, BOUNDS, SEARCH, DONE = 0, 1, 2, 3

LARGEST_BITS = 8
SCRATCH_SIZE = (1 << LARGEST_BITS) + 4
"""Buckets of the threshold search, and some for values outside its window."""


@kernel_in_place
def start_sweeping(state: NDArray[np.int64]) -> None:
    """Prepare the first sweep."""
    state[PHASE] = RANGE
    state[SUM] = 0
    state[MIN] = HIGHEST
    state[MAX] = LOWEST
    state[HIGHS] = 0
    state[LOWS] = 0
    state[ACTIVE] = 0


@kernel_in_place
def sweep(state: NDArray[np.int64], scratch: NDArray[np.int64], x: NDArray[np.int64]) -> None:
    """Add a block of measurements to the sums that the current phase needs."""
    phase = state[PHASE]
    if phase == RANGE:
        total, low, high = np.int64(0), state[MIN], state[MAX]
        for i in range(x.size):
            value = x[i]
            total += value
            low = min(low, value)
            high = max(high, value)
        state[SUM] += total
        state[MIN] = low
        state[MAX] = high
    elif phase == BOUNDS:
        up, down = state[UP], state[DOWN]
        highs, lows, active = np.int64(0), np.int64(0), np.int64(0)
        for i in range(x.size):
            value = x[i]
            highs += max(value + up, 0)
            lows += max(value - down, 0)
            active += value > down
        state[HIGHS] += highs
        state[LOWS] += lows
        state[ACTIVE] += active
    elif phase == SEARCH and state[SHIFT] == 0:
        floor, outside = state[FLOOR], np.uint64(state[BUCKETS])
        for i in range(x.size):
            # A value below the floor wraps around to a huge number, and so falls outside as well. There are several
            # buckets for values outside, or each addition would wait for the one before.
            bucket = min(np.uint64(x[i] - floor), outside + np.uint64(i & 3))
            scratch[bucket] += 1
    elif phase == SEARCH:
        floor, outside, shift = state[FLOOR], np.uint64(state[BUCKETS]), np.uint64(state[SHIFT])
        for i in range(x.size):
            bucket = min(np.uint64(x[i] - floor) >> shift, outside + np.uint64(i & 3))
            scratch[bucket] += room_of(state, x[i])


@kernel_in_place
def advance(state: NDArray[np.int64], scratch: NDArray[np.int64]) -> None:
    """Conclude a finished sweep, and set up the next one."""
    phase = state[PHASE]
    if phase == RANGE:
        rise = -((state[SUM] - state[COUNT]) // state[SIZE])  # ⌈(c − Σx)/b⌉
        state[PHASE] = BOUNDS
        if state[KIND] == CHEBYSHEV:
            state[UP] = rise
            state[DOWN] = max(abs(rise), -state[MIN])
        elif state[KIND] == EUCLIDEAN:
            state[DOWN] = -rise  # Σ max(x − down + 1, 0) ≥ Σx − b·(down − 1) > c: not above the water level
            state[UP] = 1 - state[DOWN]
    elif phase == BOUNDS:
        excess = state[LOWS] - state[COUNT]
        if excess > 0:
            # Towards the water level by Newton's method on a convex, piecewise linear function: never beyond it.
            state[DOWN] += -(-excess // state[ACTIVE])
            state[UP] = 1 - state[DOWN]
        else:
            state[NEED] = state[HIGHS] - state[COUNT]
            low, high = max(state[MIN], 1 - state[UP]), state[MAX]
            if state[ORDER] == ASCENDING and state[KIND] == CHEBYSHEV and low < state[DOWN]:
                # The threshold is mostly among the entries that can vanish: look there first.
                high = min(high, state[DOWN])
            _look_between(state, scratch, low, high)
        state[HIGHS] = 0
        state[LOWS] = 0
        state[ACTIVE] = 0
    elif phase == SEARCH:
        _narrow(state, scratch)


@kernel_in_place
def _look_between(state: NDArray[np.int64], scratch: NDArray[np.int64], low: int, high: int) -> None:
    """Look for the threshold between two values: by one bucket a value, or coarser if they are far apart."""
    if state[NEED] == 0:
        state[PHASE] = DONE
        state[THRESHOLD] = LOWEST if state[ORDER] > 0 else HIGHEST
        return
    bits = np.int64(3)
    while bits < LARGEST_BITS and (1 << bits) < state[SIZE]:
        bits += 1
    shift = np.int64(0)
    while (high - low) >> shift >= 1 << bits:
        shift += 1
    state[PHASE] = SEARCH
    state[FLOOR] = low
    state[SHIFT] = shift
    state[BUCKETS] = ((high - low) >> shift) + 1
    scratch[: state[BUCKETS]] = 0


@kernel_in_place
def _narrow(state: NDArray[np.int64], scratch: NDArray[np.int64]) -> None:
    """Find the bucket in which the need is met; a bucket of one value is the threshold."""
    buckets, step = state[BUCKETS], state[ORDER]
    bucket = 0 if step > 0 else buckets - 1
    need, shift = state[NEED], state[SHIFT]
    value, room = state[FLOOR], 1
    while 0 <= bucket < buckets:
        value = state[FLOOR] + (bucket << shift)
        if shift == 0:
            room = room_of(state, value)  # buckets of one value count entries, wider ones sum their room
        if scratch[bucket] * room >= need:
            break
        need -= scratch[bucket] * room
        bucket += step
    state[NEED] = need
    if bucket == buckets:
        _look_between(state, scratch, state[FLOOR] + (buckets << shift), state[MAX])
    elif shift > 0:
        _look_between(state, scratch, value, value + (1 << shift) - 1)
    else:
        state[PHASE] = DONE
        state[THRESHOLD] = value
        state[TIES] = scratch[bucket]
        state[FULL] = need // room
        state[PART] = need % room


# From the threshold to the answer: every measurement becomes its repaired count, equals are treated alike.


@kernel_in_place
def begin(state: NDArray[np.int64], size: int, count: int, kind: int, order: int, seed: np.uint64) -> None:
    """Start the repair of `size` measurements to the sum `count`; ties are broken by `seed`, any word."""
    if kind != CHEBYSHEV and kind != EUCLIDEAN:
        raise ValueError("no kernel has a repair of this kind")
    state[SIZE] = size
    state[COUNT] = count
    state[KIND] = kind
    state[ORDER] = order
    state[SEED] = np.int64(mix(seed))


@kernel_inlined
def solve(state: NDArray[np.int64], scratch: NDArray[np.int64], x: NDArray[np.int64]) -> None:
    """Find bounds and threshold for measurements that are all in memory."""
    look(state, x)
    solve_further(state, scratch, x)


@kernel_in_place
def solve_further(state: NDArray[np.int64], scratch: NDArray[np.int64], x: NDArray[np.int64]) -> None:
    """Find bounds and threshold for scanned measurements."""
    if find_from_top(state, scratch, x):
        return
    start_sweeping(state)
    while state[PHASE] != DONE:
        sweep(state, scratch, x)
        advance(state, scratch)


@kernel_in_place
def least_kept(state: NDArray[np.int64]) -> int:
    """Return a value below which every measurement becomes zero."""
    least = 1 - state[UP]
    if state[ORDER] == ASCENDING:
        least = max(least, min(state[THRESHOLD], state[DOWN] + 1))
    return least


@kernel_in_place
def settled(state: NDArray[np.int64], value: int) -> int:
    """Return the repaired count of the next measurement; they come in the order of the children."""
    threshold = state[THRESHOLD]
    if value == threshold:
        return _settle_tie(state, value)
    lowered = value < threshold if state[ORDER] > 0 else value > threshold
    return max(value - state[DOWN] if lowered else value + state[UP], 0)


@kernel_in_place
def _settle_tie(state: NDArray[np.int64], value: int) -> int:
    """Give one of the entries at the threshold its part, drawn without replacement."""
    high = max(value + state[UP], 0)
    drawn = below(state, state[TIES]) if state[TIES] > 1 else 0
    state[TIES] -= 1
    if drawn < state[FULL]:
        state[FULL] -= 1
        return max(value - state[DOWN], 0)
    if drawn == state[FULL]:
        part = state[PART]
        state[PART] = 0
        return high - part
    return high


@kernel_in_place
def below(state: NDArray[np.int64], bound: int) -> np.int64:
    """Return a pseudo-random integer in [0, bound) from the seed (splitmix64: Steele, Lea and Flood 2014).

    It decides who among equals is favoured, nothing else: it is independent of the noise, and the bias of the
    modulus is below bound/2^63.
    """
    state[SEED] += np.int64(-7046029254386353131)  # 2^64 divided by the golden ratio
    return np.int64((mix(np.uint64(state[SEED])) >> np.uint64(1)) % np.uint64(bound))


@kernel_in_place
def mix(word: np.uint64) -> np.uint64:
    """Return a word that looks unrelated to this one: a bijection."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
