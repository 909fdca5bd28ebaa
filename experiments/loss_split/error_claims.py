"""What the paper says of errors and divisions, beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from experiments.kit.tables import Claim, lines
from experiments.loss_split.measure import Errors, closed_form, leaves_only
from experiments.loss_split.study import EPSILONS, FIXED, TAUS, WAYS, WEIGHTS, Study
from experiments.loss_split.trees import LEVELS

ASKED = 3.0
"""By how much the best split must cut the total error at the fixed epsilon."""


def threefold(studies: Sequence[Study]) -> Claim:
    """The best split cuts the total error."""
    rows, ratios = [], []
    for study in studies:
        for epsilon in EPSILONS:
            flat, best = (study.outcomes[epsilon, way].separate.total for way in WAYS)
            if epsilon == FIXED:
                ratios.append(flat / best)
            rows.append((study.tree.title, f"{epsilon:g}", number(flat), number(best), f"{flat / best:.2f} ×"))
    return Claim(
        f"Program 6 cuts the total squared error by more than {ASKED:g} at epsilon {FIXED:g}",
        min(ratios) >= ASKED,
        f"By {times(ratios)} at epsilon {FIXED:g}. Total mean squared error, separate counts:",
        lines(("population", "epsilon", "uniform", "optimal", "ratio"), rows),
    )


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
        rows.append((study.tree.title, *map(number, cells), f"{bias[-1]:.1f} × · {variance[-1]:.1f} ×"))
    return Claim(
        "The uniform split has about 10 times the squared bias and 4 times the variance",
        False if min(bias + variance) <= 1 else min(bias) >= 9 or None,
        f"{times(bias)} the squared bias, where the paper has 10, and {times(variance)} the variance, where it has "
        "4. The formulas agree with the releases within "
        f"{100 * max(off):.1f} %. At epsilon {FIXED:g}:",
        lines(("population", "bias², uniform", "optimal", "variance, uniform", "optimal", "ratios"), rows),
    )


def finer_levels_get_more(studies: Sequence[Study]) -> Claim:
    """Theorem 3 and figure 4."""
    rows, rises, all_ = [], 0, 0
    for study in studies:
        for epsilon in EPSILONS:
            budgets = study.outcomes[epsilon, "optimal"].budgets
            all_ += 1
            rises += list(budgets) == sorted(budgets)
            rows.append((study.tree.title, f"{epsilon:g}", *(f"{budget:.3f}" for budget in budgets)))
    return Claim(
        "With equal weights, finer levels are given more (Theorem 3, figure 4)",
        rises == all_,
        f"{cases(rises, all_)} Here every tract has blocks; the theorem needs that. Epsilon of each level:",
        lines(("population", "epsilon", *LEVELS), rows),
    )


def consistent_too(studies: Sequence[Study]) -> Claim:
    """The optimal split is better by as much after program 8."""
    rows, better, all_ = [], 0, 0
    for study in studies:
        for epsilon in EPSILONS:
            flat, best = (study.outcomes[epsilon, way] for way in WAYS)
            ratios = (flat.separate.total / best.separate.total, flat.consistent.total / best.consistent.total)
            all_ += 1
            better += ratios[1] > 1
            if epsilon in (1.0, FIXED):
                totals = (flat.consistent.total, best.consistent.total)
                rows.append(
                    (study.tree.title, f"{epsilon:g}", *map(number, totals), *(f"{one:.2f} ×" for one in ratios))
                )
    return Claim(
        "After top-down consistency the optimal split is better at a similar rate (figure 3)",
        better == all_,
        f"{cases(better, all_)} Total mean squared error of consistent counts, and the ratio before and after:",
        lines(("population", "epsilon", "uniform", "optimal", "ratio, separate", "ratio, consistent"), rows),
    )


def consistency_helps(studies: Sequence[Study]) -> Claim:
    """Program 8 lowers bias and variance a little."""
    rows, all_ = [], 0
    lower, failed = [0, 0], []
    for study in studies:
        for epsilon in EPSILONS:
            for way in WAYS:
                outcome = study.outcomes[epsilon, way]
                changes = [
                    sum(after) / sum(before) - 1
                    for before, after in (
                        (outcome.separate.bias, outcome.consistent.bias),
                        (outcome.separate.variance, outcome.consistent.variance),
                    )
                ]
                all_ += 1
                # Twice the standard error of the bias, most of which is the state's.
                held = [change < 0.01 for change in changes]
                lower = [one + ok for one, ok in zip(lower, held, strict=True)]
                if not all(held) and study not in failed:
                    failed.append(study)
                if epsilon == FIXED:
                    rows.append((study.tree.title, way, *(f"{100 * change:+.1f} %" for change in changes)))
    why = "".join(
        f" It fails in {study.tree.title}, where {_alone(study)[0]} tracts are empty and {_alone(study)[1]} have one "
        "block: a block that takes the count of its tract takes wider noise, and so more bias."
        for study in failed
    )
    return Claim(
        "Consistency lowers both bias and variance slightly",
        lower == [all_, all_] or (None if max(lower) == all_ else False),
        f"The squared bias in {lower[0]} of {all_} cases, the variance in {lower[1]}.{why} What program 8 adds to the "
        f"squared bias and the variance at epsilon {FIXED:g}:",
        lines(("population", "split", "bias²", "variance"), rows),
    )


def least_loss(studies: Sequence[Study]) -> Claim:
    """Figure 2."""
    rows, falls, most, all_ = [], 0, 0, 0
    for study in studies:
        answers = [study.least[tau] for tau in TAUS]
        falls += sum(looser.total < tighter.total for tighter, looser in pairwise(answers))
        most += sum(answer.budgets[2] > answer.total / 2 for answer in answers)
        all_ += len(TAUS)
        for tau, answer in zip(TAUS, answers, strict=True):
            cells = (*(f"{budget:.3f}" for budget in answer.budgets), f"{answer.total:.3f}")
            rows.append((study.tree.title, f"{tau:,.0f}", *cells))
    return Claim(
        "A larger total error τ needs a smaller epsilon, most of it for the blocks (program 7, figure 2)",
        falls == all_ - len(studies) and most == all_,
        f"Falls in {falls} of {all_ - len(studies)} steps; the blocks have more than half in {most} of {all_}. Epsilon "
        "of each level, by the prior:",
        lines(("population", "τ", *LEVELS, "total"), rows),
    )


def prediction(studies: Sequence[Study]) -> Claim:
    """What the prior predicts is what is seen."""
    rows, off = [], []
    for study in studies:
        answer = study.least[20_000.0]
        seen = _at(study, answer.budgets)
        off.append(seen / 20_000 - 1)
        rows.append((study.tree.title, f"{answer.total:.3f}", number(seen), f"{100 * off[-1]:+.1f} %"))
    return Claim(
        "τ = 20,000 takes an epsilon of about 2, and the error that follows is about that",
        all(abs(one) < 0.25 for one in off),
        "An error that the prior predicts to be 20,000 is off by "
        f"{', '.join(f'{100 * one:+.1f} %' for one in off)}. What matters is that the prior has as many blocks.",
        lines(("population", "epsilon for τ = 20,000", "total error of the truth", "off by"), rows),
    )


def weights(studies: Sequence[Study]) -> Claim:
    """Figure 5."""
    rows, falls, rises, least, steps = [], 0, 0, 0, 0
    for study in studies:
        errors = [study.weighted_formulas[weight] for weight in WEIGHTS]
        steps += len(WEIGHTS) - 1
        falls += sum(after.mse[2] < before.mse[2] for before, after in pairwise(errors))
        rises += sum(
            after.mse[0] > before.mse[0] and after.mse[1] > before.mse[1] for before, after in pairwise(errors)
        )
        totals = [error.total for error in errors]
        least += totals.index(min(totals)) == WEIGHTS.index(1 / 3)
        for weight, error in zip(WEIGHTS, errors, strict=True):
            budgets = " / ".join(f"{budget:.3f}" for budget in study.weighted[weight].budgets)
            rows.append((study.tree.title, f"{weight:.2f}", *map(number, error.mse), number(error.total), budgets))
    return Claim(
        "The more the blocks weigh, the smaller their error and the larger that of tracts and state; the total is "
        "least at equal weights (figure 5)",
        False if (falls, rises) != (steps, steps) else least == len(studies) or None,
        f"The blocks' error falls in {falls} of {steps} steps, the others rise in {rises}; the total is least at equal "
        f"weights in {least} of {len(studies)} populations. For the prior it always is, by definition; for the truth "
        f"it is where the prior is like it, and otherwise a little beside. Mean squared error by level, separate "
        f"counts, epsilon {FIXED:g}:",
        lines(("population", "weight of blocks", *LEVELS, "total", "epsilon: state / tract / block"), rows),
    )


def bottom_up(studies: Sequence[Study]) -> Claim:
    """Appendix C: when blocks weigh most, sums of blocks may be better."""
    rows, won, won_raw, all_ = [], 0, 0, 0
    for study in studies:
        whole = [leaves_only(study.tree.truth, FIXED, clipped) for clipped in (True, False)]
        for weight in (1 / 3, 0.8, 0.9, 0.95):
            outcome = study.weighted[weight]
            ways = (outcome.consistent, outcome.bottom_up, whole[0], outcome.raw_sums, whole[1])
            down, *up = (_weighted(errors, weight) for errors in ways)
            if weight >= 0.9:
                all_ += 1
                won += min(up[:2]) < down
                won_raw += min(up[2:]) < down
            rows.append((study.tree.title, f"{weight:.2f}", number(down), *map(number, up)))
    return Claim(
        "Where blocks weigh about 0.9, bottom-up may be more appropriate than top-down (Appendix C)",
        won == all_ or (None if won_raw else False),
        f"With a weight of 0.9 and more it is better in {won} of {all_} cases. Blocks that are cut off at zero are too "
        "high on average, and such biases add up in a tract and in the state, where even a small weight does not hide "
        f"them. Sums of blocks that may be below zero have no bias, and are better in {won_raw} of {all_}. Weighted "
        "mean squared error, with the split of program 6 and with the whole epsilon for the blocks:",
        lines(
            ("population", "weight of blocks", "top-down", "bottom-up", "all ε to blocks", "below zero", "all ε"), rows
        ),
    )


def truth_for_the_split(studies: Sequence[Study]) -> Claim:
    """The paper's privacy claim, which is wrong."""
    rows = []
    for study in studies:
        lost = study.by_prior / study.by_truth - 1
        reach = FIXED / study.neighbour if study.neighbour else float("inf")
        rows.append((study.tree.title, f"{100 * lost:.2f} %", f"{study.neighbour:.2g}", f"{reach:.2g}"))
    return Claim(
        "The truth may be used to divide the loss if only the total is published",
        False,
        "Wrong, and not needed. Wrong: when one person leaves, a split by the truth changes, and so does the scale of "
        "the noise, whether or not it is published. The ratio of the two densities grows without bound with the noise, "
        "so no epsilon holds. The change is small, so the bound is broken far out; but it is broken. Not needed: a "
        "prior costs little. The error with the prior's split above that with the truth's, how far the blocks' "
        f"epsilon moves, and beyond which noise one block alone breaks epsilon {FIXED:g}:",
        lines(("population", "prior costs", "epsilon moves by", "broken beyond"), rows),
    )


def engine(studies: Sequence[Study]) -> Claim:
    """Treetop's own releases."""
    rows, ratios = [], []
    for study in studies:
        for repair in ("euclidean", "chebyshev"):
            flat, best = (study.engine[repair, way] for way in WAYS)
            ratios.append(flat / best)
            rows.append((study.tree.title, repair, number(flat), number(best), f"{flat / best:.2f} ×"))
    return Claim(
        "Not in the paper: Treetop's own releases gain too",
        min(ratios) > 1,
        f"{times(ratios)} less error. Discrete noise, whole counts, consistent, children of empty nodes not measured. "
        f"Total squared error at epsilon {FIXED:g}:",
        lines(("population", "repair", "uniform", "optimal", "ratio"), rows),
    )


def _at(study: Study, budgets: Sequence[float]) -> float:
    return closed_form(study.tree.truth, tuple(budgets)).total


def _weighted(errors: Errors, weight: float) -> float:
    state, tracts, blocks = errors.mse
    return (1 - weight) / 2 * (state + tracts) + weight * blocks


def _alone(study: Study) -> tuple[int, int]:
    """How many tracts are empty, and how many have one block."""
    population = study.tree.truth
    blocks = np.bincount(population.tract)
    return int((population.levels[1] == 0).sum()), int((blocks == 1).sum())


def cases(held: int, all_: int) -> str:
    """Say in how many cases something holds."""
    return f"In all {all_} cases." if held == all_ else f"In {held} of {all_} cases."


def times(ratios: Sequence[float]) -> str:
    """Say between which factors some ratios lie."""
    return f"{min(ratios):.1f} to {max(ratios):.1f} times"


def number(value: float) -> str:
    """Write a number for people."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
