"""The walk of one release: how many functions, files and layers it passes through, and in which order.

`python tools/walk.py` makes a release of a small table with a ledger in a folder of its own, as `treetop release` does,
and prints the layers in the order in which they are first entered, with how many functions and files of each are used.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from layers import LAYERS

PACKAGE = Path(__file__).parents[1] / "src" / "treetop"

PLAN = """
title = "Trips"
[data]
source = "trips.csv"
[attributes.place]
levels = ["place"]
hierarchy = "places.csv"
[unit]
entity = "trip"
contributions = 1
neighbours = "replace"
[loss]
rho = 1
"""


class Walk:
    """Takes down which functions are called, by layer."""

    def __init__(self) -> None:
        self.functions: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self.upward: set[str] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take down one call."""
        if event != "call" or (layer := _layer(frame)) is None or frame.f_code.co_name == "<module>":
            return
        path = str(Path(frame.f_code.co_filename).relative_to(PACKAGE))
        self.functions[layer].add((path, frame.f_code.co_qualname))
        caller = frame.f_back
        while caller is not None and _layer(caller) is None:  # what a library calls back
            caller = caller.f_back
        below = None if caller is None else _layer(caller)
        if caller is not None and below in LAYERS and layer in LAYERS and LAYERS.index(below) < LAYERS.index(layer):
            self.upward.add(f"{below} ({caller.f_code.co_qualname}) calls {layer} ({frame.f_code.co_qualname})")

    def __str__(self) -> str:
        files = {path for used in self.functions.values() for path, _ in used}
        lines = [f"{'layer':<14}{'files':>7}{'functions':>11}"]
        for layer, used in self.functions.items():
            lines.append(f"{layer:<14}{len({path for path, _ in used}):>7}{len(used):>11}")
        calls = sum(map(len, self.functions.values()))
        lines += [f"{'in all':<14}{len(files):>7}{calls:>11}", f"{len(self.functions)} layers", "", "Called back:"]
        return "\n".join([*lines, *sorted(self.upward)])


def _layer(frame: FrameType) -> str | None:
    path = frame.f_code.co_filename
    return Path(path).relative_to(PACKAGE).parts[0] if path.startswith(str(PACKAGE)) else None


def main() -> None:
    """Walk once, after a first release has loaded and compiled everything."""
    from treetop.cli import main as treetop
    from treetop.ledger import Ledger
    from treetop.privacy import Loss

    with TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("plan.toml").write_text(PLAN, encoding="utf-8")
        Path("trips.csv").write_text("place\n" + "a\n" * 20 + "b\n" * 5, encoding="utf-8")
        Path("places.csv").write_text("place\na\nb\nc\n", encoding="utf-8")
        Ledger.create("ledger", loss=Loss(rho=5))
        call = ["release", "plan.toml", "--ledger", "ledger", "--quiet", "--threads", "1", "--out"]
        treetop([*call, "first"])
        walk = Walk()
        sys.setprofile(walk)
        try:
            treetop([*call, "second"])
        finally:
            sys.setprofile(None)
        sys.stdout.write(f"{walk}\n")


if __name__ == "__main__":
    main()
