"""What the paper says, claim by claim, beside what was measured; the words are in `claims.md`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

import numpy as np

from experiments.kit.pages import Claim, Claims
from experiments.kit.verdicts import Tally, standing, tally
from experiments.loss_split.measure import LAW, WEIGHTINGS, Errors, closed_form, leaves_only
from experiments.loss_split.shares import SkewedBias, Weighting, majorises, skewed_bias
from experiments.loss_split.study import EPSILONS, FIXED, TAUS, TUNED, WAYS, WEIGHTS, Study, Way

ABOUT = 1.25
"""What is within this factor of a number of the paper is called about that much; the paper names no bounds."""
TIMES = (10.0, 4.0)
"""How many times the squared bias and the variance of the optimal split the paper finds with the uniform one."""
LITTLE = 0.01
"""A gain that is no larger is none: as much is due to the runs."""
TAU, EPSILON = 20_000.0, 2.0
"""The total error that the paper gives an epsilon for, and which."""
SPREADS = {2: ((50, 50), (70, 30), (90, 10), (100, 0)), 3: ((34, 33, 33), (50, 30, 20), (80, 10, 10), (100, 0, 0))}
"""A hundred people over two and three regions, each more uneven than the one before."""

_CLAIMS = Claims("loss_split", fixed=FIXED, tau=TAU, epsilon=EPSILON, about=ABOUT)
_judge = _CLAIMS.judge


def claims(studies: Sequence[Study]) -> Iterator[Claim]:
    """Judge all claims by what was measured."""
    yield from _CLAIMS.all(studies)


@_CLAIMS.verdict
def lower_error(studies: Sequence[Study]) -> Claim:
    """The best split has the lower total error."""
    rows, ratios, fixed = [], [], []
    for study in studies:
        for epsilon in EPSILONS:
            flat, best = (study.outcomes[epsilon, way].separate.total for way in WAYS)
            ratios.append(flat / best)
            if epsilon == FIXED:
                fixed.append(flat / best)
            rows.append((study.title, f"{epsilon:g}", number(flat), number(best), f"{flat / best:.2f} ×"))
    lower = tally(ratio > 1 for ratio in ratios)
    return _judge("lower_error", standing(lower), rows, lower=lower, ratios=times(fixed))


@_CLAIMS.verdict
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
    found = zip((bias, variance), TIMES, strict=True)
    near = tally(is_about(one, paper) for some, paper in found for one in some)
    more = tally(one > 1 for one in (*bias, *variance))
    holds = False if not more.held else standing(near, more)
    numbers = {"bias": times(bias), "variance": times(variance), "off": 100 * max(off), "near": near}
    return _judge("bias_and_variance", holds, rows, paper=TIMES, **numbers)


@_CLAIMS.verdict
def finer_levels_get_more(studies: Sequence[Study]) -> Claim:
    """Theorem 3 and figure 4."""
    rows, rises = [], []
    for study in _distinct(studies):
        for epsilon in EPSILONS:
            budgets = study.outcomes[epsilon, "optimal"].budgets
            rises.append(list(budgets) == sorted(budgets))
            rows.append(
                (" and ".join(_sharing(studies, study)), f"{epsilon:g}", *(f"{budget:.3f}" for budget in budgets))
            )
    found = tally(rises)
    return _judge("finer_levels_get_more", standing(found), rows, found=found, shared=_shared(studies))


@_CLAIMS.verdict
def consistent_too(studies: Sequence[Study]) -> Claim:
    """The optimal split is better by as much after program 8."""
    rows, better, similar = [], [], []
    for study in studies:
        for epsilon in EPSILONS:
            flat, best = (study.outcomes[epsilon, way] for way in WAYS)
            ratios = (flat.separate.total / best.separate.total, flat.consistent.total / best.consistent.total)
            better.append(ratios[1] > 1)
            similar.append(is_about(ratios[1], ratios[0]))
            if epsilon in (1.0, FIXED):
                totals = map(number, (flat.consistent.total, best.consistent.total))
                rows.append((study.title, f"{epsilon:g}", *totals, *(f"{one:.2f} ×" for one in ratios)))
    found, near = tally(better), tally(similar)
    holds = standing(found, near) if found.held else False
    return _judge("consistent_too", holds, rows, better=found, near=near)


@_CLAIMS.verdict
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
    holds = standing(*(Tally(some, len(held)) for some in lower))
    return _judge("consistency_helps", holds, rows, lower=lower, all=len(held), failed=failed.values())


@_CLAIMS.verdict
def least_loss(studies: Sequence[Study]) -> Claim:
    """Figure 2."""
    rows, falls, most = [], [], []
    for study in _distinct(studies):
        answers = [study.least[tau] for tau in TAUS]
        falls += [looser.total < tighter.total for tighter, looser in pairwise(answers)]
        most += [answer.budgets[2] > answer.total / 2 for answer in answers]
        for tau, answer in zip(TAUS, answers, strict=True):
            cells = (*(f"{budget:.3f}" for budget in answer.budgets), f"{answer.total:.3f}")
            rows.append((" and ".join(_sharing(studies, study)), f"{tau:,.0f}", *cells))
    falling, blocks = tally(falls), tally(most)
    return _judge("least_loss", standing(falling, blocks), rows, falls=falling, most=blocks, shared=_shared(studies))


@_CLAIMS.verdict
def prediction(studies: Sequence[Study]) -> Claim:
    """What the prior predicts is what is seen."""
    rows, off, near = [], [], []
    for study in studies:
        answer = study.least[TAU]
        seen = closed_form(study.tree.truth, answer.budgets).total
        off.append(f"{100 * (seen / TAU - 1):+.1f} %")
        near.append((is_about(answer.total, EPSILON), is_about(seen, TAU)))
        rows.append((study.title, f"{answer.total:.3f}", number(seen), off[-1]))
    epsilons, errors = (tally(some) for some in zip(*near, strict=True))
    numbers = {"epsilons": epsilons, "errors": errors, "off": off}
    return _judge("prediction", standing(epsilons, errors), rows, **numbers)


@_CLAIMS.verdict
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


@_CLAIMS.verdict
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


@_CLAIMS.verdict
def shares_better(studies: Sequence[Study]) -> Claim:
    """Figure 6: shares dealt out by released blocks."""
    rows, less, bias, hidden = [], [], [], 0
    for study in studies:
        for weighting in WEIGHTINGS:
            flat, best = (_shares(study, way, weighting, "variance") for way in WAYS)
            less += [other < one for one, other in zip(flat, best, strict=True)]
            variance = [f"{flat[0]:.3g} → {best[0]:.3g}", f"{median(flat):.3g} → {median(best):.3g}"]
            # What a finite number of releases leaves of the variance in a squared bias.
            chance = [one / study.size.runs for one in flat]
            flat, best = (_shares(study, way, weighting, "bias") for way in WAYS)
            found = [_less(one, other, by) for one, other, by in zip(flat, best, chance, strict=True)]
            bias += [one for one in found if one is not None]
            hidden += found.count(None)
            untold = "" if found[0] is not None else f" (chance alone leaves {chance[0]:.1g})"
            cells = [f"{flat[0]:.3g} → {best[0]:.3g}{untold}", f"{median(flat):.3g} → {median(best):.3g}"]
            rows.append((study.title, weighting, *cells, *variance))
    lower, told = tally(less), tally(bias)
    holds = standing(lower, told)
    return _judge("shares_better", None if holds and hidden else holds, rows, variance=lower, bias=told, hidden=hidden)


def _less(flat: float, best: float, chance: float) -> bool | None:
    """Whether the second squared bias is the smaller one; None where both are what chance alone leaves."""
    return None if max(flat, best) < chance else best < flat


@_CLAIMS.verdict
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
    found = tally(smallest)
    return _judge("log_gap", standing(found), rows, smallest=found)


@_CLAIMS.verdict
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


@_CLAIMS.verdict
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
    both = raised is not None and kept is not None
    parts = [sum(lower) > len(lower) / 2, len(skews[True]) > len(lower) / 2]
    parts += [raised < kept] if raised is not None and kept is not None else []
    numbers = {"lower": sum(lower), "higher": len(skews[True]), "all": len(lower), "raised": raised, "kept": kept}
    return _judge("shares_variance", standing(tally(parts)), rows, both=both, **numbers)


@_CLAIMS.verdict
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


@_CLAIMS.verdict
def truth_for_the_split(studies: Sequence[Study]) -> Claim:
    """The paper's privacy claim, which is wrong."""
    rows, lost = [], []
    for study in studies:
        lost.append(study.by_prior / study.by_truth - 1)
        reach = FIXED / study.neighbour if study.neighbour else float("inf")
        rows.append((study.title, f"{100 * lost[-1]:.2f} %", f"{study.neighbour:.2g}", f"{reach:.2g}"))
    # One table whose split moves with one person is enough to break it.
    still = tally(study.neighbour == 0 for study in studies)
    return _judge(
        "truth_for_the_split", still.is_all, rows, moved=still.all - still.held, all=still.all, most=max(lost)
    )


@_CLAIMS.verdict
def engine(studies: Sequence[Study]) -> Claim:
    """Treetop's own releases."""
    rows, ratios = [], []
    for study in studies:
        for repair in ("euclidean", "chebyshev"):
            flat, best = (study.engine[repair, way] for way in WAYS)
            ratios.append(flat / best)
            rows.append((study.title, repair, number(flat), number(best), f"{flat / best:.2f} ×"))
    found = tally(ratio > 1 for ratio in ratios)
    return _judge("engine", standing(found), rows, ratios=times(ratios), found=found)


@_CLAIMS.verdict
def tuned_splits(studies: Sequence[Study]) -> Claim:
    """Splits for consistent counts, and by trials."""
    rows, better = [], []
    for study in studies:
        plain, *others = (study.tuned[name] for name in TUNED)
        better += [other < (1 - LITTLE) * plain for other in others]
        rows.append((study.title, *map(number, (plain, *others)), *(f"{plain / other:.3f} ×" for other in others)))
    found = tally(better)
    return _judge("tuned_splits", standing(found), rows, found=found, little=100 * LITTLE)


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


def _distinct(studies: Sequence[Study]) -> list[Study]:
    """Return one study for each prior: what follows from a prior alone is one case for all that share it."""
    return list({id(study.tree.prior): study for study in reversed(studies)}.values())[::-1]


def _sharing(studies: Sequence[Study], one: Study) -> list[str]:
    """Name all populations that share the prior of one."""
    return [study.title for study in studies if study.tree.prior is one.tree.prior]


def _shared(studies: Sequence[Study]) -> list[str]:
    """Name those that share a prior, where there are any."""
    together = (_sharing(studies, one) for one in _distinct(studies))
    return [" and ".join(titles) for titles in together if len(titles) > 1]


def is_about(value: float, wanted: float) -> bool:
    """Whether a number is about another."""
    return wanted / ABOUT <= value <= wanted * ABOUT


def times(ratios: Sequence[float]) -> str:
    """Say between which factors some ratios lie."""
    return f"{min(ratios):.1f} to {max(ratios):.1f} times"


def number(value: float) -> str:
    """Write a number for people."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
