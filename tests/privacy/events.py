"""Events that tell two tables apart, found by looking at releases only, and what they prove about epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

RISK = 1e-8
"""The chance that one bound of Clopper and Pearson is wrong."""

PROOF_RISK = 2 * RISK
"""The chance that a proof is wrong: it takes two bounds."""

_LOOKING = 1e-2
"""The same while events are only being compared: it keeps events of a few lucky runs from being chosen."""

Samples = NDArray[np.int64]


@dataclass(frozen=True)
class Event:
    """A side of a threshold of one statistic, under the table named first."""

    statistic: int
    threshold: int
    above: bool
    swapped: bool
    """Whether it is more likely under the other table."""

    def count(self, samples: Samples) -> int:
        values = samples[:, self.statistic]
        return int(np.count_nonzero(values >= self.threshold if self.above else values < self.threshold))

    def __str__(self) -> str:
        return f"statistic {self.statistic} {'at least' if self.above else 'below'} {self.threshold}"


def proven_epsilon(likely: int, unlikely: int, runs: int, delta: float, risk: float = RISK) -> float:
    """The epsilon below which an event seen so often under one table and the other refutes the guarantee."""
    return float(_proven(np.array([likely]), np.array([unlikely]), runs, delta, risk)[0])


def _proven(likely: Samples, unlikely: Samples, runs: int, delta: float, risk: float) -> NDArray[np.float64]:
    """The same of many events; bounds of Clopper and Pearson."""
    low = np.where(likely == 0, 0.0, beta.ppf(risk, np.maximum(likely, 1), runs - likely + 1))
    high = np.where(unlikely == runs, 1.0, beta.ppf(1 - risk, unlikely + 1, np.maximum(runs - unlikely, 1)))
    with np.errstate(divide="ignore"):
        return np.log(np.where(low > delta, low - delta, 0.0) / high)


def best_event(one: Samples, other: Samples, delta: float) -> Event:
    """Choose the event that would prove most."""
    best, chosen = -math.inf, Event(0, 0, True, False)
    runs = len(one)
    for statistic in range(one.shape[1]):
        values = np.unique(np.concatenate([one[:, statistic], other[:, statistic]]))
        if len(values) > 64:
            values = values[:: len(values) // 64]
        below = np.array([np.searchsorted(np.sort(samples[:, statistic]), values) for samples in (one, other)])
        seen = np.stack([below, runs - below], axis=-1)  # by table, threshold and whether above
        likely, unlikely = np.stack([seen, seen[::-1]], axis=-1)
        proves = _proven(likely, unlikely, runs, delta, _LOOKING)
        proves[likely <= unlikely] = -math.inf
        threshold, above, swapped = np.unravel_index(proves.argmax(), proves.shape)
        if proves.max() > best:
            best = float(proves.max())
            chosen = Event(statistic, int(values[threshold]), bool(above), bool(swapped))
    return chosen


def epsilon_at_least(one: Samples, other: Samples, delta: float) -> tuple[float, Event]:
    """Choose an event on one half of the runs, and prove an epsilon with the other half."""
    half = len(one) // 2
    event = best_event(one[:half], other[:half], delta)
    counts = [event.count(samples[half : 2 * half]) for samples in (one, other)]
    likely, unlikely = counts[::-1] if event.swapped else counts
    return proven_epsilon(likely, unlikely, half, delta), event
