"""Pictures: figures that need no screen, and files that are written or refused with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from treetop.errors import ReleaseError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(
    width: float, height: float, dpi: float | None = None, *, extra: str = "plot", without: str = "leave --plot out"
) -> Figure:
    """Return an empty figure of so many inches; where Matplotlib is missing, say what to install or to do without."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ReleaseError(
            f"a plot needs matplotlib, which is not installed: pip install 'treetop[{extra}]', or {without}"
        ) from None
    return Figure(figsize=(width, height), layout="constrained", dpi=dpi)


def save_figure(figure: Figure, file: Path) -> None:
    """Write a figure in the format that the file's name ends in."""
    try:
        figure.savefig(file)
    except (OSError, ValueError) as problem:
        raise ReleaseError(f"{file}: the plot cannot be written: {problem}") from problem
