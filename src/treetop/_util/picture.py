"""Pictures: figures that need no screen, look like the card, and are written or refused with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from treetop._util.distribution import install_extra
from treetop.errors import ReleaseError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, LINE, LEAF, EARTH = "#1f2a25", "#5a6a62", "#d8dfdb", "#2f6b4f", "#b5430c"
"""The colours of the card: text, text beside it, lines, and two that tell series apart, in print as well."""


def new_figure(
    width: float, height: float, dpi: float | None = None, *, extra: str = "plot", without: str = "leave out `plot`"
) -> Figure:
    """Return an empty figure of a size in inches; if Matplotlib is missing, name the extra or the way without."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ReleaseError(
            f"a plot needs matplotlib, which is not installed: {install_extra(extra)}, or {without}"
        ) from None
    return Figure(figsize=(width, height), layout="constrained", dpi=dpi)


def tidy(axes: Axes, grid: Literal["x", "y"] = "y") -> None:
    """Give axes the look of the card: nothing but the data, its axes, and a faint grid along one of them."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(LINE)
    axes.tick_params(colors=SOFT, labelcolor=INK, length=0, labelsize=9)
    axes.grid(axis=grid, color=LINE, linewidth=0.7)
    axes.set_axisbelow(True)
    for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
        text.set_color(INK)
    axes.title.set_fontsize(10)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_fontsize(9)


def plain_ticks(axes: Axes, which: Literal["x", "y"], every: tuple[int, ...] = ()) -> None:
    """Write the numbers of a logarithmic axis as people do: 1,000. `every` are those of each power of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    if every:
        axis.set_major_locator(LogLocator(subs=every))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if abs(value) >= 1 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def label_ends(axes: Axes, at: float, ends: list[tuple[float, str, object]]) -> None:
    """Write the name of each line at its end, in its colour, without overlaps; the axes must have their limits."""
    if not ends:
        return
    height = axes.get_window_extent().height
    least = 1.35 * 9 * axes.figure.dpi / 72 / max(height, 1)  # the height of a line of text, as a share of the axes
    place = axes.transData.transform
    shares = [axes.transAxes.inverted().transform(place((at, value)))[1] for value, _, _ in ends]
    last = -1.0
    for order in sorted(range(len(ends)), key=shares.__getitem__):
        last = max(shares[order], last + least)
        _, name, colour = ends[order]
        axes.annotate(
            name, (1.02, last), xycoords="axes fraction", va="center", fontsize=9, color=colour, annotation_clip=False
        )


def save_figure(figure: Figure, file: Path) -> None:
    """Write a figure in the format that the file's name ends in."""
    try:
        figure.savefig(file)
    except (OSError, ValueError) as problem:
        raise ReleaseError(f"{file}: the plot cannot be written: {problem}") from problem
