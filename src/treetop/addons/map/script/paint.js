/* Painting a picture of the scene: the ground on one canvas; on another, above it, dots, and flows beneath them.

The largest flows come first, and each goes beneath what is there already: so a picture can be made in pieces, and what
matters most is there first. A generator stops after every piece; whoever runs it decides how much of a frame it takes. */

const PIECE = 20, SHAPES = 200; /* flows, and outlines, between two looks at the clock */
const CELL = 8, ENOUGH = 2; /* points of the screen that share their ink, and how often it has to cover them */

function* painting(ground, above, view, width, height, pixels) {
  const at = { x: (x) => view.x + view.k * x, y: (y) => view.y + view.k * y }, colours = scale();
  for (const context of [ground, above]) {
    context.setTransform(pixels, 0, 0, pixels, 0, 0);
    context.clearRect(0, 0, width, height);
  }
  if (data.ground.length) yield* paintLand(ground, view, pixels);
  ground.setTransform(pixels, 0, 0, pixels, 0, 0);
  if (!data.arcs.length) paintGrid(ground, at, width, height);
  ground.setTransform(pixels * view.k, 0, 0, pixels * view.k, pixels * view.x, pixels * view.y);
  yield* paintGround(ground, view, width, height, colours);
  above.globalCompositeOperation = "source-over";
  paintDots(above, at, colours);
  above.globalCompositeOperation = "destination-over";
  yield* paintFlows(above, at, width, height);
}

function paintDots(context, at, colours) {
  const { places } = level(), { k } = state.view;
  context.globalAlpha = flows && state.place >= 0 ? 0.55 : 1;
  context.strokeStyle = ink["edge-of-dot"];
  for (const node of scene.nodes.slice().sort((a, b) => Math.abs(b.value) - Math.abs(a.value))) {
    if (!isDot(places, node, k)) continue;
    const r = dotRadius(node, places);
    context.beginPath();
    context.arc(at.x(node.x), at.y(node.y), r, 0, 2 * Math.PI);
    context.fillStyle = places.outlined || state.shade === "net" ? colours.colour(node.value) : ink.dot;
    context.fill();
    context.lineWidth = 1;
    context.stroke();
    if (node.members.length > 1) {
      context.beginPath();
      context.arc(at.x(node.x), at.y(node.y), r + 2.4, 0, 2 * Math.PI);
      context.strokeStyle = ink.dot;
      context.stroke();
      context.strokeStyle = ink["edge-of-dot"];
    }
  }
  context.globalAlpha = 1;
}

/* A place without an outline is a dot; so is one whose outline is too small to be seen. */
function isDot(places, node, k) {
  const box = places.boxes[node.head];
  return !box || Math.max(box[2] - box[0], box[3] - box[1]) * k < 6;
}

const dotRadius = (node, places) => places.outlined ? 3.2 : radius(node.value, scene.most);

function* paintFlows(context, at, width, height) {
  const seen = new Coverage(width, height), all = scene.flows;
  context.lineJoin = "round";
  for (let start = 0; start < all.length; start += PIECE) {
    for (const flow of all.slice(start, start + PIECE)) paintFlow(context, at, flow, seen, width, height);
    yield true; /* all that matters is there, and it can be shown */
  }
}

function paintFlow(context, at, flow, seen, width, height) {
  const share = Math.sqrt(flow.width / scene.widest), alpha = flow.width < 1.2 ? (0.3 + 0.45 * share) * scene.faint : 0.3 + 0.45 * share;
  for (const [gx0, gy0, gx1, gy1] of copies(flow)) {
    const x0 = at.x(gx0), y0 = at.y(gy0), x1 = at.x(gx1), y1 = at.y(gy1);
    if (!seen.shows(x0, y0, x1, y1, flow.width, alpha)) continue;
    context.beginPath();
    if (flow.width < 1.2) {
      const [cx, cy] = bent(x0, y0, x1, y1);
      context.moveTo(x0, y0);
      context.quadraticCurveTo(cx, cy, x1, y1);
      context.strokeStyle = colourOf(flow);
      context.lineWidth = flow.width;
      context.globalAlpha = flow.real ? alpha : 0.25;
      context.setLineDash(flow.real ? [] : [3, 3]);
      context.stroke();
    } else {
      traceRibbon(context, x0, y0, x1, y1, flow.width);
      context.setLineDash(flow.real ? [] : [3, 3]);
      context.globalAlpha = flow.real ? 0.7 : 0.5;
      context.lineWidth = flow.real ? 0.5 : 0.9;
      context.strokeStyle = flow.real ? ink.halo : colourOf(flow);
      context.stroke();
      context.globalAlpha = flow.real ? alpha : 0.14;
      context.fillStyle = colourOf(flow);
      context.fill();
    }
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}

const colourOf = (flow) => state.place < 0 ? ink.flow : flow.from.head === state.place ? ink.out : ink.in;

/* Where so much is painted already that nothing beneath it can be seen, nothing is painted. */
class Coverage {
  constructor(width, height) {
    [this.columns, this.rows] = [Math.ceil(width / CELL), Math.ceil(height / CELL)];
    this.ink = new Float32Array(this.columns * this.rows);
    [this.width, this.height] = [width, height];
  }

  /* Whether anything of a ribbon can be seen; if so, its ink is counted. */
  shows(x0, y0, x1, y1, width, alpha) {
    const length = Math.hypot(x1 - x0, y1 - y0);
    if (length < 1) return false;
    const [cx, cy] = bent(x0, y0, x1, y1), steps = Math.max(2, Math.min(200, Math.ceil(length / CELL)));
    if (Math.max(x0, x1, cx) < 0 || Math.min(x0, x1, cx) > this.width || Math.max(y0, y1, cy) < 0 || Math.min(y0, y1, cy) > this.height) return false;
    const share = Math.min(1, width / CELL) * alpha * (length / steps / CELL);
    let shows = false;
    for (let step = 0; step <= steps; step++) {
      const t = step / steps, u = 1 - t, x = u * u * x0 + 2 * u * t * cx + t * t * x1, y = u * u * y0 + 2 * u * t * cy + t * t * y1;
      if (x < 0 || y < 0 || x >= this.width || y >= this.height) continue;
      const cell = (y / CELL | 0) * this.columns + (x / CELL | 0);
      if (this.ink[cell] < ENOUGH) shows = true;
      this.ink[cell] += share;
    }
    return shows;
  }
}

/* The ground: shapes, their borders, and above them those of the coarsest level. The canvas is in steps of the grid. */
function* paintGround(context, view, width, height, colours) {
  const here = level(), shaded = here.places.outlined ? here.places : null;
  const places = shaded || (data.levels.slice().reverse().find((at) => at.places.outlined) || here).places;
  if (!places.outlined) return;
  const inSight = (box) => box && box[0] * view.k + view.x < width && box[2] * view.k + view.x > 0 && box[1] * view.k + view.y < height && box[3] * view.k + view.y > 0;
  const found = places.boxes.map((_, i) => i).filter((i) => inSight(places.boxes[i])), all = values();
  const coarsest = data.levels[0].places;
  context.globalAlpha = flows && state.place >= 0 ? 0.5 : 1; /* so that its flows stand out */
  /* Where the two ends have outlines of their own, those that count lie above the others. */
  if (shaded) found.sort((a, b) => (all[a] !== 0) - (all[b] !== 0));
  for (const [n, i] of found.entries()) {
    context.fillStyle = shaded ? colours.colour(all[i]) : ink.land;
    context.fill(outline(places, i), "evenodd");
    if (n % SHAPES === 0) yield;
  }
  context.strokeStyle = ink.border;
  context.lineWidth = Math.min(0.7 / view.k, shaded ? spacing(here) / 20 : Infinity); /* many small places are not all border */
  for (const [n, i] of found.entries()) { context.stroke(outline(places, i)); if (n % SHAPES === 0) yield; }
  if (shaded && state.shown > 0 && coarsest.outlined) {
    context.strokeStyle = ink.above;
    context.lineWidth = 0.9 / view.k;
    coarsest.boxes.forEach((box, i) => { if (inSight(box)) context.stroke(outline(coarsest, i)); });
  }
}

/* Land and its borders, under places that have no outlines of their own. */
const land = data.ground.map((text) => {
  const path = new Path2D(), steps = unpack(text);
  for (let i = 0, x = 0, y = 0; i < steps.length; i += 2) path.lineTo(x += steps[i], y += steps[i + 1]);
  path.closePath();
  return path;
});

function* paintLand(context, view, pixels) {
  context.setTransform(pixels * view.k, 0, 0, pixels * view.k, pixels * view.x, pixels * view.y);
  context.globalAlpha = 1;
  [context.fillStyle, context.strokeStyle, context.lineWidth] = [ink.land, ink.coast, 0.8 / view.k];
  for (const [i, path] of land.entries()) {
    context.fill(path);
    context.stroke(path);
    if (i % SHAPES === 0) yield;
  }
}

function paintGrid(context, at, width, height) {
  context.globalAlpha = 1;
  context.strokeStyle = ink.grid;
  context.lineWidth = 1;
  context.beginPath();
  for (const [x] of data.graticule.x) { context.moveTo(at.x(x), 0); context.lineTo(at.x(x), height); }
  for (const [y] of data.graticule.y) { context.moveTo(0, at.y(y)); context.lineTo(width, at.y(y)); }
  context.stroke();
}
