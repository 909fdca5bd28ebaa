"""Planning before spending: what a loss buys, what accuracy costs, how to divide the loss; from public facts only."""

from treetop.errors import PrivatePrior
from treetop.planning.forecast import Forecast, forecast
from treetop.planning.goals import Mean, Target, Within, mean, read_target, within
from treetop.planning.grid import GridRow, error_grid, render_grid
from treetop.planning.guard import refuse_private, refuse_same_records
from treetop.planning.paste import filled_in, loss_toml
from treetop.planning.plots import plot_grid
from treetop.planning.prior import Prior, PriorLevel
from treetop.planning.programs import Allocation, Term, least_error, least_loss
from treetop.planning.refine import Refinement, refine_split
from treetop.planning.simulate import Trials, simulate
from treetop.planning.split import SPLITS, measured_levels, named_split, optimal_split, preset_split
from treetop.planning.targets import PROMISE, Answer, loss_for

__all__ = [
    "PROMISE",
    "SPLITS",
    "Allocation",
    "Answer",
    "Forecast",
    "GridRow",
    "Mean",
    "Prior",
    "PriorLevel",
    "PrivatePrior",
    "Refinement",
    "Target",
    "Term",
    "Trials",
    "Within",
    "error_grid",
    "filled_in",
    "forecast",
    "least_error",
    "least_loss",
    "loss_for",
    "loss_toml",
    "mean",
    "measured_levels",
    "named_split",
    "optimal_split",
    "plot_grid",
    "preset_split",
    "read_target",
    "refine_split",
    "refuse_private",
    "refuse_same_records",
    "render_grid",
    "simulate",
    "within",
]
