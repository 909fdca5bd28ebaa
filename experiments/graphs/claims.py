"""What the paper says, claim by claim, beside what was measured; the words are in `claims.md`.

Biases are means over runs. One counts as such where it is further from zero than `SURE` standard errors: with as many
settings as there are here, less would be found where there is nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from experiments.graphs.measure import AS_PUBLISHED, PURE, QUESTIONS, SHARED, Study
from experiments.graphs.rebalanced import AVERAGE, EVEN, FIRST, HALF, PUBLIC, REPAIRED, Rebalancing
from experiments.graphs.tradeoff import DELTAS, PAPER_DELTA, RANGES
from experiments.kit.pages import Claim, Claims
from experiments.kit.tables import number
from experiments.kit.verdicts import standing, tally

SURE = 3.5
BEST = (0.3, 0.5)
"""Where the paper finds the best epsilon."""
PEOPLE = 20_000
"""How many people the paper's sample has."""

_CLAIMS = Claims("graphs", delta=PAPER_DELTA)
_judge = _CLAIMS.judge


def claims(study: Study) -> Iterator[Claim]:
    """Judge all claims by what was measured."""
    yield from _CLAIMS.all(study)


@_CLAIMS.verdict
def conversion(study: Study) -> Claim:
    """Equation 1 turns epsilon and delta into rho."""
    found = study.tradeoff.conversions
    right = all(one.kept <= one.epsilon * (1 + 1e-9) for one in found)
    gain = [one.ours / one.published for one in found]
    rows = [
        (f"{one.epsilon:g}", f"{one.delta:g}", f"{one.published:.3g}", f"{one.kept:.3g}", f"{one.ours:.3g}")
        for one in found
    ]
    return _judge("conversion", right, rows, right=right, least=min(gain), most=max(gain))


@_CLAIMS.verdict
def best_epsilon(study: Study) -> Claim:
    """The best trade-off is at an epsilon of 0.3 to 0.5."""
    knees = study.tradeoff.knees[PAPER_DELTA]
    inside = [BEST[0] <= one <= BEST[1] for one in knees]
    rows = [
        (f"{low:g} to {high:g}", *(f"{study.tradeoff.knees[delta][at]:.2f}" for delta in DELTAS))
        for at, (low, high) in enumerate(RANGES)
    ]
    needed = [
        f"{name} (median {count:,.0f}) {_epsilon(epsilon, study.tradeoff.epsilons)}"
        for name, (count, epsilon) in study.tradeoff.needed.items()
    ]
    return _judge(
        "best_epsilon",
        all(inside),
        rows,
        inside=sum(inside),
        all=len(inside),
        knees=knees,
        needed=", ".join(needed),
        delta=PAPER_DELTA,
        exposed=PAPER_DELTA * PEOPLE,
        people=PEOPLE,
    )


@_CLAIMS.verdict
def degree_noise(study: Study) -> Claim:
    """The higher the degree, the higher the noise, and the lower the utility."""
    higher, lower_use, rows = [], [], []
    for network, row in study.degrees.items():
        higher.append(_above(row.absolute[2] - row.absolute[0]))
        lower_use.append(_above(row.relative[2] - row.relative[0]))
        people = [f"{mean:,.3g}" for mean in row.absolute.mean(axis=1)]
        shares = [f"{100 * mean:,.3g} %" for mean in row.relative.mean(axis=1)]
        rows.append((network.title, f"{row.theta:,}", " · ".join(people), " · ".join(shares)))
    return _judge(
        "degree_noise", all(higher), rows, higher=sum(higher), lower=sum(lower_use), all=len(higher), epsilon=1
    )


@_CLAIMS.verdict
def more_questions(study: Study) -> Claim:
    """More questions and a lower epsilon need more noise."""
    table = study.noise[AS_PUBLISHED]
    held = bool((np.diff(table, axis=0) > 0).all() and (np.diff(table, axis=1) < 0).all())
    rows = [(str(k), *map(number, row)) for k, row in zip(QUESTIONS, table, strict=True)]
    return _judge("more_questions", held, rows, held=held, losses=_losses(study), delta=PAPER_DELTA)


@_CLAIMS.verdict
def shares_of_epsilon(study: Study) -> Claim:
    """Of k questions each must have epsilon / k."""
    at = _nearest(study.epsilons, 1.0)
    pure, shared = study.noise[PURE], study.noise[SHARED]
    better = shared < pure
    rows = [
        (str(k), *(f"{number(pure[i, j])} · {number(shared[i, j])}" for j in range(len(study.epsilons))))
        for i, k in enumerate(QUESTIONS)
    ]
    first = [str(k) for k, row in zip(QUESTIONS, better, strict=True) if row[at]]
    return _judge(
        "shares_of_epsilon",
        not better.any(),
        rows,
        losses=_losses(study),
        better=int(better.sum()),
        all=better.size,
        most=QUESTIONS[-1],
        times=float(pure[-1, at] / shared[-1, at]),
        epsilon=study.epsilons[at],
        first=first[0] if first else None,
    )


@_CLAIMS.verdict
def first_noise(study: Study) -> Claim:
    """The first noise is impartial."""
    settings, off = 0, 0
    rows: list[tuple[str, ...]] = []
    for network, row in study.balanced.items():
        mean, error = row.shift(FIRST)
        settings, off = settings + mean.size, off + int((np.abs(mean) > SURE * error).sum())
        rows += _by_quarter(network.title, study.epsilons, mean, error)
    return _judge("first_noise", off == 0, rows, off=off, all=settings, sure=SURE)


@_CLAIMS.verdict
def second_noise(study: Study) -> Claim:
    """The second noise loses accuracy."""
    ratios = {
        (network.title, method): row.ratio(method)
        for network, row in study.balanced.items()
        for method in (HALF, AVERAGE)
    }
    every = np.concatenate(list(ratios.values()))
    rows = [(*name, *(f"{one:.2f} ×" for one in own)) for name, own in ratios.items()]
    moved = max(float(one.max()) for row in study.balanced.values() for one in row.moved.values())
    return _judge(
        "second_noise",
        bool((every > 1).all()),
        rows,
        losses=_losses(study),
        worse=int((every > 1).sum()),
        all=len(every),
        least=every.min(),
        most=every.max(),
        moved=moved,
    )


@_CLAIMS.verdict
def big_bigger(study: Study) -> Claim:
    """With the second noise big regions become bigger, and small ones smaller."""
    held: dict[str, list[bool]] = {HALF: [], AVERAGE: []}
    rows = []
    for network, row in study.balanced.items():
        for method, found in held.items():
            mean, error = row.shift(method, FIRST)
            sure = SURE * error
            found += [bool(here) for here in (mean[:, 0] < -sure[:, 0]) & (mean[:, 3] > sure[:, 3])]
            ends = [f"{low:+.3g} / {high:+.3g}" for low, high in mean[:, [0, 3]]]
            rows.append((network.title, method, *ends))
    every = [one for found in held.values() for one in found]
    return _judge(
        "big_bigger",
        None if any(every) and not all(every) else all(every),  # what the paper leaves open may decide
        rows,
        losses=_losses(study),
        half=sum(held[HALF]),
        average=sum(held[AVERAGE]),
        all=len(held[HALF]),
    )


@_CLAIMS.verdict
def no_migration(study: Study) -> Claim:
    """The migration from large to small, which rebalancing is for, is not there in the graph."""
    there, back, rows, settings, furthest = 0, 0, [], 0, 0.0
    for network, row in study.balanced.items():
        mean, error = row.shift(REPAIRED)
        moved = _moved(row, REPAIRED)
        furthest = max(furthest, *(-row.moved_to_small(REPAIRED)[0] * (moved < 0)))
        there, back, settings = there + int((moved > 0).sum()), back + int((moved < 0).sum()), settings + len(moved)
        rows += list(_by_quarter(network.title, study.epsilons, mean, error))
    return _judge("no_migration", there == 0, rows, there=there, back=back, furthest=furthest, all=settings, sure=SURE)


@_CLAIMS.verdict
def private_variant(study: Study) -> Claim:
    """Beside it, rebalancing privately: no claim of the paper."""
    ratios = {
        method: {network.title: row.ratio(method) for network, row in study.balanced.items()}
        for method in (EVEN, PUBLIC)
    }
    rows = [
        (title, method, *(f"{one:.2f} ×" for one in own), _bias(study, title, method))
        for method, networks in ratios.items()
        for title, own in networks.items()
    ]
    gains = {method: np.concatenate(list(networks.values())) for method, networks in ratios.items()}
    inflated = [bool(_moved(row, EVEN)[0] > 0) for row in study.balanced.values()]
    lower = (tally((gains[method] < 1).tolist()) for method in (EVEN, PUBLIC))
    return _judge(
        "private_variant",
        standing(*lower),
        rows,
        inflated=sum(inflated),
        networks=len(inflated),
        losses=_losses(study),
        first=f"ε {study.epsilons[0]:g}",
        even=gains[EVEN],
        public=gains[PUBLIC],
        even_gains=int((gains[EVEN] < 1).sum()),
        public_gains=int((gains[PUBLIC] < 1).sum()),
        all=len(gains[EVEN]),
    )


def _bias(study: Study, title: str, method: str) -> str:
    """Say the bias of the smallest and of the largest quarter at the least epsilon."""
    (row,) = [row for network, row in study.balanced.items() if network.title == title]
    mean, _ = row.shift(method)
    return f"{mean[0, 0]:+.3g} / {mean[0, 3]:+.3g}"


def _moved(row: Rebalancing, method: str) -> NDArray[np.int64]:
    """Say by epsilon whether people move from the largest groups to the smallest (1), back (-1), or neither (0)."""
    mean, error = row.moved_to_small(method)
    found: NDArray[np.int64] = (mean > SURE * error).astype(np.int64) - (mean < -SURE * error)
    return found


def _by_quarter(
    title: str, epsilons: Sequence[float], mean: NDArray[np.float64], error: NDArray[np.float64]
) -> Iterator[tuple[str, ...]]:
    for at, epsilon in enumerate(epsilons):
        cells = (f"{one:+.2g} ± {off:.1g}" for one, off in zip(mean[at], error[at], strict=True))
        yield title, f"{epsilon:g}", *cells


def _above(runs: NDArray[np.float64]) -> bool:
    """Whether numbers are above zero on average, beyond doubt."""
    return bool(runs.mean() > SURE * runs.std(ddof=1) / np.sqrt(len(runs)))


def _epsilon(needed: float, tried: NDArray[np.float64]) -> str:
    """Say the epsilon that is needed, where it lies within those that were tried."""
    if np.isinf(needed):
        return f"none up to {tried[-1]:g}"
    return f"{needed:.2g}{' or less' if needed <= tried[0] else ''}"


def _nearest(epsilons: Sequence[float], wanted: float) -> int:
    return min(range(len(epsilons)), key=lambda at: abs(epsilons[at] - wanted))


def _losses(study: Study) -> str:
    return " | ".join(f"ε {epsilon:g}" for epsilon in study.epsilons)
