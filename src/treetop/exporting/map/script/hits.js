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

function flowUnder(px, py, reach) {
  let found = null, least = Infinity;
  scene.flows.forEach((flow, at) => {
    for (const [gx0, gy0, gx1, gy1] of copies(flow)) {
      const x0 = across(gx0), y0 = down(gy0), x1 = across(gx1), y1 = down(gy1), [cx, cy] = bent(x0, y0, x1, y1), room = reach + flow.width;
      if (px < Math.min(x0, x1, cx) - room || px > Math.max(x0, x1, cx) + room || py < Math.min(y0, y1, cy) - room || py > Math.max(y0, y1, cy) + room) continue;
      const away = awayFromRibbon(px, py, x0, y0, x1, y1) - flow.width * 0.3;
      if (away < reach && away < least) { least = away; found = { flow: at }; }
    }
  });
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
