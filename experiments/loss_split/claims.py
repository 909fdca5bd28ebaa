"""What the paper says, claim by claim, beside what was measured; the words are in `claims.md`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from statistics import median

import numpy as np

from experiments.kit.pages import Claim, Claims
from experiments.loss_split.measure import LAW, WEIGHTINGS, Errors, closed_form, leaves_only
from experiments.loss_split.shares import SkewedBias, Weighting, majorises, skewed_bias
from experiments.loss_split.study import EPSILONS, FIXED, TAUS, WAYS, WEIGHTS, Study, Way

ASKED = 3.0
"""By how much the best split must cut the total error at the fixed epsilon."""
SPREADS = {
    2: ((50, 50), (70, 30), (90, 10), (100, 0)),
    3: ((34, 33, 33), (50, 30, 20), (80, 10, 10), (100, 0, 0)),
}
"""A hundred people over two and three regions, each more uneven than the one before."""

_judge = partial(Claims("loss_split/claims.md").judge, fixed=FIXED)


def threefold(studies: Sequence[Study]) -> Claim:
    """The best split cuts the total error."""
    rows, ratios = [], []
    for study in studies:
        for epsilon in EPSILONS:
            flat, best = (study.outcomes[epsilon, way].separate.total for way in WAYS)
            if epsilon == FIXED:
                ratios.append(flat / best)
            rows.append((study.title, f"{epsilon:g}", number(flat), number(best), f"{flat / best:.2f} ×"))
    return _judge("threefold", min(ratios) >= ASKED, rows, asked=ASKED, ratios=times(ratios))


def bias_and_variance(studies: Sequence[Study]) -> Claim:
    """Ten times the bias, four times the variance."""
    rows, bias, variance, off = [], [], [], []
    for study in studies:
        flat, best = (study.outcomes[FIXED, way].separate for way in WAYS)
        bias.append(sum(flat.bias) / sum(best.bias))
        variance.append(sum(flat.variance) / sum(best.variance))
        for way in WAYS:
            off.append(abs(study.outcomes[FIXED, way].separate.total / study.formulas[FIXED, way].total - 1))
        cells = (sum(flat.bias), sum(best.bias), sum(flat.variance), sum(best.variance))
        rows.append((study.title, *map(number, cells), f"{bias[-1]:.1f} × · {variance[-1]:.1f} ×"))
    holds = False if min(bias + variance) <= 1 else min(bias) >= 9 or None
    numbers = {"bias": times(bias), "variance": times(variance), "off": 100 * max(off)}
    return _judge("bias_and_variance", holds, rows, **numbers)


def finer_levels_get_more(studies: Sequence[Study]) -> Claim:
    """Theorem 3 and figure 4."""
    rows, rises = [], []
    for study in studies:
        for epsilon in EPSILONS:
            budgets = study.outcomes[epsilon, "optimal"].budgets
            rises.append(list(budgets) == sorted(budgets))
            rows.append((study.title, f"{epsilon:g}", *(f"{budget:.3f}" for budget in budgets)))
    return _judge("finer_levels_get_more", all(rises), rows, held=cases(rises))


def consistent_too(studies: Sequence[Study]) -> Claim:
    """The optimal split is better by as much after program 8."""
    rows, better = [], []
    for study in studies:
        for epsilon in EPSILONS:
            flat, best = (study.outcomes[epsilon, way] for way in WAYS)
            ratios = (flat.separate.total / best.separate.total, flat.consistent.total / best.consistent.total)
            better.append(ratios[1] > 1)
            if epsilon in (1.0, FIXED):
                totals = map(number, (flat.consistent.total, best.consistent.total))
                rows.append((study.title, f"{epsilon:g}", *totals, *(f"{one:.2f} ×" for one in ratios)))
    return _judge("consistent_too", all(better), rows, held=cases(better))


def consistency_helps(studies: Sequence[Study]) -> Claim:
    """Program 8 lowers bias and variance a little."""
    rows, held, failed = [], [], {}
    for study in studies:
        for epsilon in EPSILONS:
            for way in WAYS:
                before, after = study.outcomes[epsilon, way].separate, study.outcomes[epsilon, way].consistent
                changes = [sum(after.bias) / sum(before.bias) - 1, sum(after.variance) / sum(before.variance) - 1]
                # Twice the standard error of the bias, most of which is the state's.
                held.append([change < 0.01 for change in changes])
                if not all(held[-1]):
                    failed[study.title] = (study.title, *_alone(study))
                if epsilon == FIXED:
                    rows.append((study.title, way, *(f"{100 * change:+.1f} %" for change in changes)))
    lower = [sum(ok) for ok in zip(*held, strict=True)]
    holds = min(lower) == len(held) or (None if max(lower) == len(held) else False)
    return _judge("consistency_helps", holds, rows, lower=lower, all=len(held), failed=failed.values())


def least_loss(studies: Sequence[Study]) -> Claim:
    """Figure 2."""
    rows, falls, most = [], [], []
    for study in studies:
        answers = [study.least[tau] for tau in TAUS]
        falls += [looser.total < tighter.total for tighter, looser in pairwise(answers)]
        most += [answer.budgets[2] > answer.total / 2 for answer in answers]
        for tau, answer in zip(TAUS, answers, strict=True):
            cells = (*(f"{budget:.3f}" for budget in answer.budgets), f"{answer.total:.3f}")
            rows.append((study.title, f"{tau:,.0f}", *cells))
    numbers = {"falls": sum(falls), "steps": len(falls), "most": sum(most), "all": len(most)}
    return _judge("least_loss", all(falls) and all(most), rows, **numbers)


def prediction(studies: Sequence[Study]) -> Claim:
    """What the prior predicts is what is seen."""
    rows, off = [], []
    for study in studies:
        answer = study.least[20_000.0]
        seen = closed_form(study.tree.truth, answer.budgets).total
        off.append(seen / 20_000 - 1)
        rows.append((study.title, f"{answer.total:.3f}", number(seen), f"{100 * off[-1]:+.1f} %"))
    return _judge("prediction", all(abs(one) < 0.25 for one in off), rows, off=[row[-1] for row in rows])


def weights(studies: Sequence[Study]) -> Claim:
    """Figure 5."""
    rows, falls, rises, least = [], [], [], []
    for study in studies:
        errors = [study.weighted_formulas[weight] for weight in WEIGHTS]
        for before, after in pairwise(errors):
            falls.append(after.mse[2] < before.mse[2])
            rises.append(after.mse[0] > before.mse[0] and after.mse[1] > before.mse[1])
        totals = [error.total for error in errors]
        least.append(totals.index(min(totals)) == WEIGHTS.index(1 / 3))
        for weight, error in zip(WEIGHTS, errors, strict=True):
            budgets = " / ".join(f"{budget:.3f}" for budget in study.weighted[weight].budgets)
            rows.append((study.title, f"{weight:.2f}", *map(number, error.mse), number(error.total), budgets))
    holds = (all(least) or None) if all(falls) and all(rises) else False
    numbers = {"falls": sum(falls), "rises": sum(rises), "steps": len(falls), "least": sum(least), "all": len(least)}
    return _judge("weights", holds, rows, **numbers)


def bottom_up(studies: Sequence[Study]) -> Claim:
    """Appendix C: when blocks weigh most, sums of blocks may be better."""
    rows, won, won_raw = [], [], []
    for study in studies:
        whole = [leaves_only(study.tree.truth, FIXED, clipped) for clipped in (True, False)]
        for weight in (1 / 3, 0.8, 0.9, 0.95):
            outcome = study.weighted[weight]
            ways = (outcome.consistent, outcome.bottom_up, whole[0], outcome.raw_sums, whole[1])
            down, *up = (_weighted(errors, weight) for errors in ways)
            if weight >= 0.9:
                won.append(min(up[:2]) < down)
                won_raw.append(min(up[2:]) < down)
            rows.append((study.title, f"{weight:.2f}", number(down), *map(number, up)))
    holds = all(won) or (None if any(won_raw) else False)
    return _judge("bottom_up", holds, rows, won=sum(won), won_raw=sum(won_raw), all=len(won))


def shares_better(studies: Sequence[Study]) -> Claim:
    """Figure 6: shares dealt out by released blocks."""
    rows, better, all_ = [], {"bias": 0, "variance": 0}, 0
    for study in studies:
        for weighting in WEIGHTINGS:
            cells = []
            for what in ("bias", "variance"):
                flat, best = (_shares(study, way, weighting, what) for way in WAYS)
                chance = _shares(study, "uniform", weighting, "variance")
                slack = 1 / study.size.runs if what == "bias" else 0.0
                better[what] += sum(
                    other < one + slack * spread for one, other, spread in zip(flat, best, chance, strict=True)
                )
                cells += [f"{flat[0]:.3g} → {best[0]:.3g}", f"{median(flat):.3g} → {median(best):.3g}"]
            all_ += len(study.tracts)
            rows.append((study.title, weighting, *cells))
    return _judge("shares_better", better["bias"] == better["variance"] == all_, rows, better=better, all=all_)


def log_gap(studies: Sequence[Study]) -> Claim:
    """The gap between the splits is smallest under log weighting."""
    rows, smallest = [], []
    for study in studies:
        gaps = []
        for weighting in WEIGHTINGS:
            flat, best = (_shares(study, way, weighting, "mse") for way in WAYS)
            gaps.append([one / other for one, other in zip(flat, best, strict=True)])
        smallest += [log < min(others) for log, *others in zip(*gaps, strict=True)]
        rows.append((study.title, *(f"{median(gap):.2f} ×" for gap in gaps)))
    return _judge("log_gap", all(smallest), rows, smallest=sum(smallest), all=len(smallest))


def shares_bias(studies: Sequence[Study]) -> Claim:
    """Bias is larger under non-linear weightings."""
    rows, under_log, under_square, all_ = [], 0, 0, 0
    for study in studies:
        for way in WAYS:
            log, linear, square = found = [_shares(study, way, weighting, "bias") for weighting in WEIGHTINGS]
            under_log += sum(one > other for one, other in zip(log, linear, strict=True))
            under_square += sum(one > other for one, other in zip(square, linear, strict=True))
            all_ += len(study.tracts)
            rows.append((study.title, way, *(f"{median(one):.3g}" for one in found)))
    some = sorted((under_log, under_square))
    holds = True if some[0] > all_ / 2 else None if some[1] > all_ / 2 else False
    return _judge("shares_bias", holds, rows, under_log=under_log, under_square=under_square, all=all_)


def shares_variance(studies: Sequence[Study]) -> Claim:
    """Log lowers the variance, quadratic raises it, except in skewed populations."""
    rows, lower, skews = [], [], {True: [], False: []}  # type: ignore[var-annotated]
    for study in studies:
        log, linear, square = found = [_shares(study, "optimal", weighting, "variance") for weighting in WEIGHTINGS]
        lower += [one < other for one, other in zip(log, linear, strict=True)]
        for tract, one, other in zip(study.tracts, square, linear, strict=True):
            skews[one > other].append(_tract_bias(study, tract).skewness)
        rows.append((study.title, *(f"{median(one):.3g}" for one in found)))
    raised, kept = (median(skews[up]) if skews[up] else None for up in (True, False))
    numbers = {"lower": sum(lower), "higher": len(skews[True]), "all": len(lower), "raised": raised, "kept": kept}
    return _judge("shares_variance", None, rows, **numbers)


def skewness(studies: Sequence[Study]) -> Claim:
    """Theorem 4 and figure 7."""
    rows, rises, above, ranks = [], [], [], []
    for spreads in SPREADS.values():
        biases = [[skewed_bias(LAW, epsilon, spread).bias for epsilon in (0.01, 0.1, 1.0)] for spread in spreads]
        for spread, some in zip(spreads, biases, strict=True):
            rows.append((" + ".join(map(str, spread)), *(f"{bias:.4g}" for bias in some)))
        assert all(majorises(uneven, even) for even, uneven in pairwise(spreads))
        for even, uneven in pairwise(biases):
            rises += [more >= less for more, less in zip(uneven, even, strict=True)]
    for study in studies:
        found = [_tract_bias(study, tract) for tract in range(len(study.tree.truth.first))]
        above += [one.bias >= one.least * (1 - 1e-12) for one in found]
        excess = [one.bias / one.least if one.least > 0 else np.inf for one in found]
        ranks.append(f"{_rank_correlation([one.skewness for one in found], excess):+.2f}")
    numbers = {"rises": sum(rises), "steps": len(rises), "above": sum(above), "all": len(above), "ranks": ranks}
    return _judge("skewness", all(above) and all(rises), rows, **numbers)


def truth_for_the_split(studies: Sequence[Study]) -> Claim:
    """The paper's privacy claim, which is wrong."""
    rows = []
    for study in studies:
        lost = study.by_prior / study.by_truth - 1
        reach = FIXED / study.neighbour if study.neighbour else float("inf")
        rows.append((study.title, f"{100 * lost:.2f} %", f"{study.neighbour:.2g}", f"{reach:.2g}"))
    return _judge("truth_for_the_split", False, rows)


def engine(studies: Sequence[Study]) -> Claim:
    """Treetop's own releases."""
    rows, ratios = [], []
    for study in studies:
        for repair in ("euclidean", "chebyshev"):
            flat, best = (study.engine[repair, way] for way in WAYS)
            ratios.append(flat / best)
            rows.append((study.title, repair, number(flat), number(best), f"{flat / best:.2f} ×"))
    return _judge("engine", min(ratios) > 1, rows, ratios=times(ratios))


JUDGES = (
    *(threefold, bias_and_variance, finer_levels_get_more, consistent_too, consistency_helps, least_loss, prediction),
    *(weights, bottom_up, shares_better, log_gap, shares_bias, shares_variance, skewness, truth_for_the_split, engine),
)
"""One for each claim, in the order of the page."""


def _weighted(errors: Errors, weight: float) -> float:
    state, tracts, blocks = errors.mse
    return (1 - weight) / 2 * (state + tracts) + weight * blocks


def _alone(study: Study) -> tuple[int, int]:
    """How many tracts are empty, and how many have one block."""
    population = study.tree.truth
    blocks = np.bincount(population.tract)
    return int((population.levels[1] == 0).sum()), int((blocks == 1).sum())


def _shares(study: Study, way: Way, weighting: Weighting, what: str) -> list[float]:
    """Return an error of shares in every tract that was drawn, at the fixed epsilon."""
    shares = study.outcomes[FIXED, way].shares
    return [float(getattr(shares[tract, weighting], what)) for tract in study.tracts]


def _tract_bias(study: Study, tract: int) -> SkewedBias:
    return skewed_bias(LAW, 1.0, study.tree.truth.blocks[study.tree.truth.inside(tract)])


def _rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    ranks = [np.argsort(np.argsort(values)).astype(float) for values in (one, other)]
    return float(np.corrcoef(np.array(ranks))[0, 1])


def cases(held: Sequence[bool]) -> str:
    """Say in how many cases something holds."""
    return f"In all {len(held)} cases." if all(held) else f"In {sum(held)} of {len(held)} cases."


def times(ratios: Sequence[float]) -> str:
    """Say between which factors some ratios lie."""
    return f"{min(ratios):.1f} to {max(ratios):.1f} times"


def number(value: float) -> str:
    """Write a number for people."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
