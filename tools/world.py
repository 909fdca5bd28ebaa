"""Make the coastlines and borders that lie under maps: python tools/world.py countries-50m.json OUT.npz."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from treetop.addons.map.arcs import bends

STEPS = 180  # in a degree
LEAST = 5.0  # steps: the smallest bend that is kept
SMALLEST = 200.0  # square steps: the smallest island that is kept


def main(source: str, out: str) -> None:
    """Simplify the borders of a TopoJSON file, each once, and write the outer rings of its countries."""
    topology = json.loads(Path(source).read_text(encoding="utf-8"))
    scale, move = (np.array(topology["transform"][key]) for key in ("scale", "translate"))
    arcs = []
    for arc in topology["arcs"]:
        points = np.round((np.cumsum(arc, axis=0) * scale + move) * STEPS).astype(np.int64)
        arcs.append(points[bends(points) >= LEAST])
    rings = []
    for country in topology["objects"]["countries"]["geometries"]:
        polygons = country.get("arcs", [])
        for polygon in [polygons] if country["type"] == "Polygon" else polygons:
            pieces = [arcs[~arc][::-1] if arc < 0 else arcs[arc] for arc in polygon[0]]
            ring = np.concatenate([pieces[0], *(piece[1:] for piece in pieces[1:])])
            ring = ring[np.r_[True, np.any(np.diff(ring, axis=0) != 0, axis=1)]]
            x, y = ring.T
            if len(ring) >= 4 and abs(np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])) / 2 >= SMALLEST:
                rings.append(ring)
    rings.sort(
        key=lambda ring: -float(np.prod(np.ptp(ring, axis=0).astype(float)))
    )  # enclaves above what surrounds them
    steps = np.concatenate([np.diff(ring, axis=0, prepend=np.zeros((1, 2), np.int64)) for ring in rings])
    sizes = np.array([len(ring) for ring in rings], np.int16)
    np.savez_compressed(out, steps=steps.astype(np.int16).T, sizes=sizes, scale=np.array(STEPS))
    sys.stdout.write(f"{len(rings):,} rings, {len(steps):,} points, {Path(out).stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
