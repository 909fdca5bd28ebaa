"""How smoothly a map of 100,000 flows pans: the times between frames while it is dragged, as the browser counts them.

python -m benchmarks.map_frames [--flows 100000] [--picture FILE.png]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import treetop as tt
from tests.browser import CHROMIUM, Tab, browser

PLACES, REGIONS, SECONDS = 400, 20, 4
WIDTH, HEIGHT = 1280, 900
_COUNTING = """
window.frames_ = []; window.stop_ = false;
(function next(now) { window.frames_.push(now); if (!window.stop_) requestAnimationFrame(next); })(performance.now());
"""


def main() -> None:
    """Make the map, drag it, and print what was measured."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--flows", type=int, default=100_000)
    asked.add_argument("--picture", type=Path)
    given = asked.parse_args()
    if CHROMIUM is None:
        raise SystemExit("there is no Chromium here to measure with")
    with TemporaryDirectory() as room, browser(Path(room) / "browser") as tab:
        page = make(Path(room), given.flows)
        print(json.dumps(measure(tab, page, given.flows, given.picture), indent=2))


def make(room: Path, flows: int) -> Path:
    """Export a map on which so many flows stand out from the noise."""
    rng = np.random.default_rng(7)
    towns = [f"t{number:03}" for number in range(PLACES)]
    regions = [f"r{number * REGIONS // PLACES:02}" for number in range(PLACES)]
    tree = tt.Hierarchy.from_table(pa.table({"region": regions, "town": towns}), levels=["region", "town"])
    pairs = rng.choice(PLACES * PLACES, min(flows * 11 // 10, PLACES * PLACES), replace=False)
    count = (300 + 3_000 * rng.pareto(1.5, len(pairs))).astype(np.int64)
    origin, destination = ([towns[at] for at in ends] for ends in divmod(pairs, PLACES))
    table = pa.table({"origin": origin, "destination": destination, "n": count})
    unit, loss = tt.Unit("trip", neighbours="replace"), tt.Loss(epsilon=1, delta=1e-12)
    plan = tt.Plan(tt.Spine.destination_first(origin=tree, destination=tree), unit, loss, title="Many flows")
    release = tt.make_release(plan, table, tt.RunOptions(count="n", testing_key=bytes(32)))
    at = rng.uniform((36, -8), (60, 25), (PLACES, 2))
    pq.write_table(pa.table({"town": towns, "lat": at[:, 0], "lon": at[:, 1]}), room / "towns.parquet")
    return tt.export(release, "map", room / "map.html", coordinates=room / "towns.parquet").files[0]


def measure(tab: Tab, page: Path, flows: int, picture: Path | None) -> dict[str, Any]:
    """Return frame times in milliseconds, and the longest tasks of the trace, while the map is dragged about."""
    tab.open(page, WIDTH, HEIGHT, fragment=f"#level=town&flows={flows}")
    drawn = tab.ask("document.getElementById('shown').textContent")
    time.sleep(3)  # the first picture is painted
    if picture is not None:
        tab.picture(picture)
    tab.ask(_COUNTING)
    events = tab.traced(lambda: drag(tab))
    tab.ask("window.stop_ = true")
    times = np.diff(tab.ask("window.frames_"))
    tasks = np.array([one["dur"] / 1000 for one in events if one.get("name") == "FunctionCall" and "dur" in one])
    return {
        "drawn": drawn,
        "page_bytes": page.stat().st_size,
        "frames": len(times),
        "frame_ms": {name: round(float(np.quantile(times, at)), 1) for name, at in _QUANTILES.items()},
        "over_50_ms": int(np.count_nonzero(times > 50)),
        "script_ms": {name: round(float(np.quantile(tasks, at)), 1) for name, at in _QUANTILES.items()},
    }


_QUANTILES = {"median": 0.5, "95 %": 0.95, "99 %": 0.99, "longest": 1.0}


def drag(tab: Tab) -> None:
    """Drag the map around in a wide circle, as fast as events can be sent."""
    x, y, started = WIDTH * 0.35, HEIGHT * 0.5, time.monotonic()
    tab.mouse("mouseMoved", x, y)
    tab.mouse("mousePressed", x, y, button="left", clickCount=1)
    while (past := time.monotonic() - started) < SECONDS:
        turn = 2 * np.pi * past / 2
        tab.mouse("mouseMoved", x + 300 * np.sin(turn), y + 250 * (1 - np.cos(turn)), button="left", buttons=1)
    tab.mouse("mouseReleased", x, y, button="left")


if __name__ == "__main__":
    main()
