"""Planning before spending: what a loss buys, what accuracy costs, how to divide the loss; from public facts only."""

from treetop.advice.design import design
from treetop.advice.expected import expected_errors
from treetop.advice.grid import error_grid
from treetop.advice.outlook import forecast, outlook
from treetop.advice.prior import Prior
from treetop.advice.refine import refine_split
from treetop.advice.simulate import simulate
from treetop.advice.split_for import optimal_split
from treetop.advice.targets import loss_for, mean, read_target, within

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
