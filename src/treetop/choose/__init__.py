"""Planning before spending: what a loss buys, what accuracy costs, how to divide the loss; from public facts only."""

from treetop.choose.design import design
from treetop.choose.expected import expected_errors
from treetop.choose.forecast import forecast
from treetop.choose.goals import mean, read_target, within
from treetop.choose.grid import error_grid
from treetop.choose.outlook import outlook
from treetop.choose.prior import Prior
from treetop.choose.refine import refine_split
from treetop.choose.simulate import simulate
from treetop.choose.split import optimal_split
from treetop.choose.targets import loss_for

__all__ = [
    "Prior",
    "design",
    "error_grid",
    "expected_errors",
    "forecast",
    "loss_for",
    "mean",
    "optimal_split",
    "outlook",
    "read_target",
    "refine_split",
    "simulate",
    "within",
]
