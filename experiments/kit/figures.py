"""How figures look and how they are saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

BLUE, ORANGE, GREEN, RED, PINK, SKY, YELLOW, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000",
)  # fmt: skip
"""By Okabe and Ito (2008): people with any common colour blindness tell them apart."""


class Titled(Protocol):
    """What a panel is drawn of."""

    @property
    def title(self) -> str:
        """A name for people."""


def save(figure: Figure, file: Path, dpi: int = 110) -> Path:
    """Write few colours, which is all that a plot has: a third of the bytes, and the eye sees no difference.

    The colours that cover most are kept, so no line's colour drifts towards another's.
    """
    figure.set_dpi(dpi)
    canvas: Any = FigureCanvasAgg(figure)  # whose methods have no types
    canvas.draw()
    drawn = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    few = drawn.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(file, optimize=True)
    return file


def save_all(figures: Mapping[str, Figure], folder: Path, dpi: int = 110) -> list[Path]:
    """Write figures by their names into a folder that need not be there, and return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    return [save(figure, folder / name, dpi) for name, figure in figures.items()]


def new_figure(width: float, height: float) -> Figure:
    """Return a figure whose parts make room for each other."""
    return Figure(figsize=(width, height), layout="constrained")


def grid(rows: int, columns: int, size: tuple[float, float], **shared: Any) -> tuple[Figure, Any]:
    """Return a figure of so many inches, and its panels, each with a grid, by row and column."""
    figure = new_figure(*size)
    panels = figure.subplots(rows, columns, squeeze=False, **shared)
    for axes in panels.flat:
        axes.grid(alpha=0.3, linewidth=0.5)
    return figure, panels


def panels(studies: Sequence[Titled], height: float, below: float = 0.5, **shared: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel a study, three in a row, each of some height."""
    columns = min(3, len(studies))
    rows = ceil(len(studies) / columns)
    figure, all_ = grid(rows, columns, (3.2 * columns, height * rows + below), **shared)
    every = list(all_.flat)
    for axes in every[len(studies) :]:
        axes.set_visible(False)
    for axes, study in zip(every, studies, strict=False):
        axes.set_title(study.title, fontsize="medium")
    return figure, every[: len(studies)]


def label_left(panels: Sequence[Axes], what: str) -> None:
    """Name the axis of the first panel of each row."""
    for axes in panels[::3]:
        axes.set_ylabel(what, fontsize="small")


def legend(figure: Figure, axes: Axes | Iterable[Axes], columns: int | None = None, **style: Any) -> None:
    """Put one legend below all panels, with every label of some of them once."""
    found: dict[str, Artist] = {}
    for one in [axes] if isinstance(axes, Axes) else axes:
        for handle, text in zip(*one.get_legend_handles_labels(), strict=True):
            found.setdefault(text, handle)
    style = {"frameon": False, **style}
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns or len(found), **style)


def percent(share: float, _: object = None) -> str:
    """Write the mark of an axis as a percentage."""
    return f"{100 * share:.6g}%"
