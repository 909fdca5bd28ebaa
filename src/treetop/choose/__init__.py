"""Planning before spending: what a loss buys, what accuracy costs, how to divide the loss; from public facts only."""

from treetop.choose.forecast import Forecast, forecast
from treetop.choose.goals import Mean, Target, Within, mean, read_target, within
from treetop.choose.grid import GridRow, error_grid, plot_grid, render_grid
from treetop.choose.guard import refuse_private, refuse_same_records
from treetop.choose.paste import filled_in, loss_toml
from treetop.choose.prior import Prior, PriorLevel
from treetop.choose.programs import Allocation, Term, least_error
from treetop.choose.refine import Refinement, refine_split
from treetop.choose.simulate import Trials, simulate
from treetop.choose.split import optimal_split
from treetop.choose.targets import PROMISE, Answer, loss_for
from treetop.errors import PrivatePrior
from treetop.plan.splits import SPLITS, measured_levels, named_split, preset_split

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
