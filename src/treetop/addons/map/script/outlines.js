/* Outlines as paths of the grid, made when they are first needed, and how far they reach. */

function traced(rings) {
  const path = new Path2D();
  for (const ring of rings) {
    let first = true;
    for (const arc of ring) {
      const points = arcs[arc < 0 ? ~arc : arc], last = points.length - 1;
      for (let i = 0; i <= last; i++) {
        const [x, y] = points[arc < 0 ? last - i : i];
        if (first) { path.moveTo(x, y); first = false; } else path.lineTo(x, y);
      }
    }
    path.closePath();
  }
  return path;
}

function extent(rings) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (const ring of rings) for (const arc of ring) for (const [x, y] of arcs[arc < 0 ? ~arc : arc]) {
    if (x < box[0]) box[0] = x;
    if (y < box[1]) box[1] = y;
    if (x > box[2]) box[2] = x;
    if (y > box[3]) box[3] = y;
  }
  return box;
}

for (const { places } of data.levels) {
  places.paths = [];
  places.boxes = places.rings.map((rings) => rings.length ? extent(rings) : null);
  places.outlined = places.boxes.some((box) => box);
}

function outline(places, i) {
  if (!places.paths[i]) places.paths[i] = traced(places.rings[i]);
  return places.paths[i];
}
