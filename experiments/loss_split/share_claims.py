"""What the paper says of shares dealt out by released counts, and of uneven populations, beside what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median

import numpy as np

from experiments.kit.tables import Claim, lines
from experiments.loss_split.measure import LAW, WEIGHTINGS, Shared
from experiments.loss_split.shares import SkewedBias, Weighting, majorises, skewed_bias
from experiments.loss_split.study import FIXED, WAYS, Study, Way

SPREADS = {
    2: ((50, 50), (70, 30), (90, 10), (100, 0)),
    3: ((34, 33, 33), (50, 30, 20), (80, 10, 10), (100, 0, 0)),
}
"""A hundred people over two and three regions, each more uneven than the one before."""


def shares_better(studies: Sequence[Study]) -> Claim:
    """Figure 6: shares dealt out by released blocks."""
    rows, better, all_ = [], {"bias": 0, "variance": 0}, 0
    for study in studies:
        for weighting in WEIGHTINGS:
            cells = []
            for what in ("bias", "variance"):
                flat, best = (_shares(study, FIXED, way, weighting, what) for way in WAYS)
                chance = _shares(study, FIXED, "uniform", weighting, "variance")
                slack = 1 / study.size.runs if what == "bias" else 0.0
                better[what] += sum(
                    other < one + slack * spread for one, other, spread in zip(flat, best, chance, strict=True)
                )
                cells.append(f"{flat[0]:.3g} → {best[0]:.3g}")
                cells.append(f"{median(flat):.3g} → {median(best):.3g}")
            all_ += len(study.tracts)
            rows.append((study.tree.title, weighting, *cells))
    return Claim(
        "Shares of a sum that are dealt out in a tract have less bias and less variance with the optimal split, under "
        "every weighting (figure 6)",
        better["bias"] == better["variance"] == all_,
        f"Less variance in {better['variance']} of {all_} cases (tracts × weightings), no more squared bias, but for "
        f"chance, in {better['bias']}. Squared percent of the sum at epsilon {FIXED:g}, uniform → optimal; first the "
        "one tract of the figure, then the median of all that were drawn:",
        lines(("population", "weighting", "bias²", "bias², median", "variance", "variance, median"), rows),
    )


def log_gap(studies: Sequence[Study]) -> Claim:
    """The gap between the splits is smallest under log weighting."""
    rows, smallest, all_ = [], 0, 0
    for study in studies:
        gaps = []
        for weighting in WEIGHTINGS:
            flat, best = (_shares(study, FIXED, way, weighting, "mse") for way in WAYS)
            gaps.append([one / other for one, other in zip(flat, best, strict=True)])
        smallest += sum(log < min(others) for log, *others in zip(*gaps, strict=True))
        all_ += len(study.tracts)
        rows.append((study.tree.title, *(f"{median(gap):.2f} ×" for gap in gaps)))
    return Claim(
        "The gap between the splits is smallest under log weighting",
        smallest == all_,
        f"In {smallest} of {all_} tracts. A block has a small part of its tract, and log(p + 1) is about p for small "
        "p: log and linear weighting give nearly the same shares. Uniform over optimal, mean squared error of shares, "
        "median of the tracts:",
        lines(("population", *WEIGHTINGS), rows),
    )


def shares_bias(studies: Sequence[Study]) -> Claim:
    """Bias is larger under non-linear weightings."""
    rows, under_log, under_square, all_ = [], 0, 0, 0
    for study in studies:
        for way in WAYS:
            log, linear, square = (_shares(study, FIXED, way, weighting, "bias") for weighting in WEIGHTINGS)
            under_log += sum(one > other for one, other in zip(log, linear, strict=True))
            under_square += sum(one > other for one, other in zip(square, linear, strict=True))
            all_ += len(study.tracts)
            rows.append((study.tree.title, way, *(f"{median(one):.3g}" for one in (log, linear, square))))
    return Claim(
        "The squared bias is generally larger under non-linear weightings than under the linear one",
        True if min(under_log, under_square) > all_ / 2 else None if max(under_log, under_square) > all_ / 2 else False,
        f"Under log weighting in {under_log} of {all_} cases (tracts × splits), under quadratic in {under_square}. "
        f"Squared bias at epsilon {FIXED:g}, median of the tracts:",
        lines(("population", "split", *WEIGHTINGS), rows),
    )


def shares_variance(studies: Sequence[Study]) -> Claim:
    """Log lowers the variance, quadratic raises it, except in skewed populations."""
    rows, lower, higher, all_ = [], 0, 0, 0
    skews: list[float] = []
    order: list[bool] = []
    for study in studies:
        log, linear, square = (_shares(study, FIXED, "optimal", weighting, "variance") for weighting in WEIGHTINGS)
        lower += sum(one < other for one, other in zip(log, linear, strict=True))
        higher += sum(one > other for one, other in zip(square, linear, strict=True))
        all_ += len(study.tracts)
        for tract, one, other in zip(study.tracts, square, linear, strict=True):
            skews.append(_skewness(study, tract))
            order.append(one > other)
        rows.append((study.tree.title, *(f"{median(one):.3g}" for one in (log, linear, square))))
    raised, kept = ([skew for skew, up in zip(skews, order, strict=True) if up is side] for side in (True, False))
    said = ""
    if raised and kept:
        said = (
            f" Where it does the median skewness of the blocks is {median(raised):.1f}, elsewhere {median(kept):.1f}: "
            + ("the exception for skewed populations holds." if median(raised) < median(kept) else "not as it says.")
        )
    return Claim(
        "Log weighting often lowers the variance and quadratic weighting raises it, less so in skewed populations",
        None,
        f"Against linear weighting, log has the smaller variance in {lower} of {all_} tracts, and quadratic the larger "
        f"one in {higher}.{said} Variance with the optimal split, epsilon {FIXED:g}, median of the tracts:",
        lines(("population", *WEIGHTINGS), rows),
    )


def skewness(studies: Sequence[Study]) -> Claim:
    """Theorem 4 and figure 7."""
    rows, rises, steps = [], 0, 0
    for spreads in SPREADS.values():
        for spread in spreads:
            biases = [skewed_bias(LAW, epsilon, spread).bias for epsilon in (0.01, 0.1, 1.0)]
            rows.append((" + ".join(map(str, spread)), *(f"{bias:.4g}" for bias in biases)))
        for even, uneven in pairwise(spreads):
            assert majorises(uneven, even)
            for epsilon in (0.01, 0.1, 1.0):
                steps += 1
                rises += skewed_bias(LAW, epsilon, uneven).bias >= skewed_bias(LAW, epsilon, even).bias
    above, all_ = 0, 0
    ranks = []
    for study in studies:
        found = [_tract_bias(study, tract) for tract in range(len(study.tree.truth.first))]
        above += sum(one.bias >= one.least * (1 - 1e-12) for one in found)
        all_ += len(found)
        excess = [one.bias / one.least if one.least > 0 else np.inf for one in found]
        ranks.append(_rank_correlation([one.skewness for one in found], excess))
    said = ", ".join(f"{rank:+.2f}" for rank in ranks)
    return Claim(
        "The bias is least where people are spread evenly, and rises as they are spread less so (Theorem 4, figure 7)",
        above == all_ and rises == steps,
        f"Of two spreads of which one majorises the other, it has at least the bias in {rises} of {steps} cases, and "
        f"{above:,} of {all_:,} tracts have at least the bias of an even one (at epsilon 1). Skewness is another thing "
        f"than majorising: its rank correlation with the bias over the least is {said}. Bias of all regions "
        "together at epsilon 0.01, 0.1 and 1:",
        lines(("people by region", "ε = 0.01", "ε = 0.1", "ε = 1"), rows),
    )


_READ: dict[str, Callable[[Shared], float]] = {
    "bias": lambda shared: shared.bias,
    "variance": lambda shared: shared.variance,
    "mse": lambda shared: shared.bias + shared.variance,
}


def _shares(study: Study, epsilon: float, way: Way, weighting: Weighting, what: str) -> list[float]:
    """Return an error of shares in every tract that was drawn."""
    return [_READ[what](study.outcomes[epsilon, way].shares[tract, weighting]) for tract in study.tracts]


def _tract_bias(study: Study, tract: int) -> SkewedBias:
    return skewed_bias(LAW, 1.0, study.tree.truth.blocks[study.tree.truth.inside(tract)])


def _skewness(study: Study, tract: int) -> float:
    return float(_tract_bias(study, tract).skewness)


def _rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    ranks = [np.argsort(np.argsort(values)).astype(float) for values in (one, other)]
    return float(np.corrcoef(np.array(ranks))[0, 1])
