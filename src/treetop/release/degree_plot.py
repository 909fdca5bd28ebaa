"""A picture of released degrees: the share of people with more edges than each degree, with its noise interval."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from treetop.basics.picture import new_figure, save_figure
from treetop.errors import QueryError
from treetop.release.degrees import DegreeTables

MOST_PANELS = 12
"""More places than these are not told apart on one page."""


def draw_degrees(tables: DegreeTables, file: Path, level: str | None = None, confidence: float | None = None) -> None:
    """Draw the people who have more edges than each degree, of the whole graph or of every place of a level.

    The tail is what a cumulative distribution hides at its top: both axes are logarithmic, and a share of zero is not
    drawn. Only what is released is shown, and nothing of the truth.
    """
    rows = tables.cumulative(level, confidence, as_stated=False).to_pylist()
    places: dict[str, list[dict[str, int]]] = {}
    for row in rows:
        places.setdefault("all people" if level is None else row[level], []).append(row)
    if len(places) > MOST_PANELS:
        raise QueryError(
            f"{level} has {len(places):,} places: a plot takes {MOST_PANELS} at most, so name another level"
        )
    columns = min(3, len(places))
    figure = new_figure(1 + 3.6 * columns, 0.6 + 3.2 * -(-len(places) // columns), dpi=110)
    panels = figure.subplots(-(-len(places) // columns), columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes, (name, own) in zip(panels, places.items(), strict=False):
        count = {end: np.array([row[end] for row in own[:-1]]) for end in own[0] if end not in (level, "degree")}
        people, x = max(own[-1]["people"], 1), np.arange(1, len(own))
        if "lower" in count:
            low, high = (np.clip(1 - count[end] / people, 0.1 / people, 1) for end in ("upper", "lower"))
            axes.fill_between(x, low, high, step="post", alpha=0.25, linewidth=0, label="noise interval")
        share = 1 - count["people"] / people
        axes.step(x, np.where(share > 0, share, np.nan), where="post", label="released")
        axes.set(xscale="log", yscale="log", title=name, ylim=(0.5 / people, 1.3))
        axes.title.set_fontsize(9)
    for axes in panels[len(places) :]:
        axes.set_visible(False)
    panels[0].legend(fontsize=8, loc="lower left")
    left = ", after some were left out" if tables.leaves_out else ""
    figure.supxlabel(f"edges, at least{left}", fontsize=9)
    figure.supylabel("share of people", fontsize=9)
    save_figure(figure, file)
