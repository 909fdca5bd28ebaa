/* A ribbon is thick where the flow begins and thin where it ends, and bent to its right. */

const BEND = 0.16;

/* From the dot where it begins to the one where it ends, the shorter way round the world. */
function ends({ from, to }) {
  const turns = Math.round((to.x - from.x) / TURN);
  return [from.x, from.y, to.x - turns * TURN, to.y, turns];
}

/* Where a flow leaves the sheet on one side, it comes in again on the other: it is drawn at both. */
function copies(flow) {
  const [x0, y0, x1, y1, turns] = ends(flow);
  return turns ? [[x0, y0, x1, y1], [x0 + turns * TURN, y0, x1 + turns * TURN, y1]] : [[x0, y0, x1, y1]];
}

const bent = (x0, y0, x1, y1) => [(x0 + x1) / 2 + (y1 - y0) * BEND, (y0 + y1) / 2 - (x1 - x0) * BEND];

function traceRibbon(path, x0, y0, x1, y1, width) {
  const dx = x1 - x0, dy = y1 - y0, length = Math.hypot(dx, dy) || 1, nx = -dy / length, ny = dx / length;
  const [cx, cy] = bent(x0, y0, x1, y1), a = width / 2, b = width * 0.36, c = Math.max(0.25, width * 0.1);
  path.moveTo(x0 + nx * a, y0 + ny * a);
  path.quadraticCurveTo(cx + nx * b, cy + ny * b, x1 + nx * c, y1 + ny * c);
  path.lineTo(x1 - nx * c, y1 - ny * c);
  path.quadraticCurveTo(cx - nx * b, cy - ny * b, x0 - nx * a, y0 - ny * a);
  path.closePath();
}

/* How far a point is from the middle of a ribbon. */
function awayFromRibbon(px, py, x0, y0, x1, y1) {
  const [cx, cy] = bent(x0, y0, x1, y1);
  let least = Infinity, ax = x0, ay = y0;
  for (let step = 1; step <= 16; step++) {
    const t = step / 16, u = 1 - t, bx = u * u * x0 + 2 * u * t * cx + t * t * x1, by = u * u * y0 + 2 * u * t * cy + t * t * y1;
    const dx = bx - ax, dy = by - ay, share = Math.max(0, Math.min(1, ((px - ax) * dx + (py - ay) * dy) / (dx * dx + dy * dy || 1)));
    least = Math.min(least, Math.hypot(px - ax - share * dx, py - ay - share * dy));
    ax = bx;
    ay = by;
  }
  return least;
}
