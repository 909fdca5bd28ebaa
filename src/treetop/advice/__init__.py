"""Advice before spending: what a loss buys, what accuracy costs, how to divide the loss; from public facts only."""

from treetop.advice._designs import design
from treetop.advice._fill_in import design_toml, designed_in, filled_in, loss_toml
from treetop.advice._grids import error_grid, grid_text, plot_grid
from treetop.advice._largest import largest_sizes
from treetop.advice._losses import at_epsilon, epsilon_for, loss_for, mean, read_target, with_epsilon, within
from treetop.advice._outlooks import HOW_TO, known_outlook, limit_guide, outlook
from treetop.advice._report import Report
from treetop.advice._splits import optimal_split, refine_split, split_for
from treetop.advice.expected import expected_errors, margins_not_kept
from treetop.advice.public import Prior, counts_groups, private_tables, read_public, twin_of
from treetop.advice.trials import try_out

__all__ = [
    "HOW_TO", "Prior", "Report", "at_epsilon", "counts_groups", "design", "design_toml", "designed_in", "epsilon_for",
    "error_grid", "expected_errors", "filled_in", "grid_text", "known_outlook", "largest_sizes", "limit_guide",
    "loss_for", "loss_toml", "margins_not_kept", "mean", "optimal_split", "outlook", "plot_grid", "private_tables",
    "read_public",
    "read_target", "refine_split", "split_for", "try_out", "twin_of", "with_epsilon", "within",
]  # fmt: skip
