/* What lies under a point of the screen: a dot, a flow, or an outline. */

const REACH = { mouse: 3, touch: 9 };

function under(px, py, pointer) {
  const reach = REACH[pointer] || REACH.mouse, { places } = level();
  return dotUnder(px, py, places, reach) || flowUnder(px, py, reach) || shapeUnder(px, py, places) || dotUnder(px, py, places, 2 * reach);
}

function dotUnder(px, py, places, reach) {
  let found = null, least = Infinity;
  for (const node of scene.nodes) {
    const x = across(node.x), y = down(node.y);
    if (Math.abs(x - px) > 60 || Math.abs(y - py) > 60 || !isDot(places, node, state.view.k)) continue;
    const away = Math.hypot(x - px, y - py) - dotRadius(node, places);
    if (away < reach && away < least) { least = away; found = { node }; }
  }
  return found;
}

/* The boxes around all ribbons, in steps of the grid, so that most are passed over at a glance. */
function ribbonBoxes() {
  if (scene.boxes) return scene.boxes;
  const ways = scene.flows.flatMap((flow, at) => copies(flow).map((way) => [at, way])), sides = new Float32Array(4 * ways.length);
  ways.forEach(([, [x0, y0, x1, y1]], i) => {
    const [cx, cy] = bent(x0, y0, x1, y1);
    sides.set([Math.min(x0, x1, cx), Math.min(y0, y1, cy), Math.max(x0, x1, cx), Math.max(y0, y1, cy)], 4 * i);
  });
  return scene.boxes = { ways, sides };
}

function flowUnder(px, py, reach) {
  const { ways, sides } = ribbonBoxes(), { x, y, k } = state.view, gx = (px - x) / k, gy = (py - y) / k, room = (reach + scene.widest) / k;
  let found = null, least = Infinity;
  for (let i = 0; i < ways.length; i++) {
    if (gx < sides[4 * i] - room || gy < sides[4 * i + 1] - room || gx > sides[4 * i + 2] + room || gy > sides[4 * i + 3] + room) continue;
    const [at, way] = ways[i], away = awayFromRibbon(gx, gy, ...way) * k - scene.flows[at].width * 0.3;
    if (away < reach && away < least) { least = away; found = { flow: at }; }
  }
  return found;
}

function shapeUnder(px, py, places) {
  if (!places.outlined) return null;
  const { x, y, k } = state.view, gx = (px - x) / k, gy = (py - y) / k, context = shapeUnder.context ||= document.createElement("canvas").getContext("2d");
  for (const node of scene.ranked || scene.nodes) {
    const box = places.boxes[node.head];
    if (box && gx >= box[0] && gx <= box[2] && gy >= box[1] && gy <= box[3] && context.isPointInPath(outline(places, node.head), gx, gy, "evenodd")) return { node };
  }
  return null;
}
