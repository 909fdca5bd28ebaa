"""The page of results, and its claims as text: what the paper says, and what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.kit.pages import BELOW_ITS_CAPTION, pictures, render
from experiments.loss_split.claims import claims
from experiments.loss_split.study import Study


def judged(studies: Sequence[Study]) -> str:
    """Return the claims and their tables, as Markdown."""
    return render("loss_split/judged.md", claims=list(claims(studies)))


def page(studies: Sequence[Study], figures: Mapping[str, str]) -> str:
    """Return the page; its figures are given with their captions."""
    shown = pictures(figures, BELOW_ITS_CAPTION)
    return render("loss_split/page.md", studies=studies, claims=judged(studies), figures=shown)
