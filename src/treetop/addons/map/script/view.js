/* Where things are: from the grid of the file to the points of the screen, and to degrees. */

const sheet = $("map");
const wide = () => sheet.clientWidth || 800;
const high = () => sheet.clientHeight || 600;
const TURN = 2 * Math.PI * data.frame.scale; /* once around the world, in steps of the grid */
const ROOM = 0.05, LEAST_ROOM = 28, NEAREST = 40; /* of the sheet, and points of the screen, left free on every side */

function fit([x, y, w, h]) {
  const within = (side) => side - 2 * Math.max(ROOM * side, LEAST_ROOM);
  const k = Math.min(within(wide()) / Math.max(w, 1), within(high()) / Math.max(h, 1));
  state.view = { k: Math.min(k, NEAREST), x: 0, y: 0 };
  centre(x + w / 2, y + h / 2);
  state.fitted = [x, y, w, h];
}

function centre(x, y) {
  state.view.x = wide() / 2 - state.view.k * x;
  state.view.y = high() / 2 - state.view.k * y;
  state.fitted = null;
}

function pan(dx, dy) {
  state.view.x += dx;
  state.view.y += dy;
  state.fitted = null;
}

function zoomBy(factor, cx = wide() / 2, cy = high() / 2) {
  const { k, x, y } = state.view;
  const least = Math.min(wide() / data.size[0], high() / Math.max(data.size[1], 1)) / 2;
  const next = Math.min(Math.max(k * factor, least), NEAREST);
  state.fitted = null;
  state.view = { k: next, x: cx - (cx - x) * next / k, y: cy - (cy - y) * next / k };
}

const across = (x) => state.view.x + state.view.k * x;
const down = (y) => state.view.y + state.view.k * y;
const sx = (i) => across(level().places.x[i]);
const sy = (i) => down(level().places.y[i]);

/* A view in degrees and in the zoom of web maps, so that a link outlives a page that is made anew. */

function viewInDegrees() {
  const x = (wide() / 2 - state.view.x) / state.view.k, y = (high() / 2 - state.view.y) / state.view.k;
  const { west, north, scale } = data.frame, deg = 180 / Math.PI;
  const east = ((west + x / scale * deg + 180) % 360 + 360) % 360 - 180;
  return [Math.atan(Math.sinh(north - y / scale)) * deg, east, Math.log2(state.view.k * TURN / 256)];
}

function viewFromDegrees([latitude, longitude, zoom]) {
  const { west, north, scale } = data.frame, rad = Math.PI / 180;
  state.view = { k: Math.min(2 ** zoom * 256 / TURN, NEAREST), x: 0, y: 0 };
  /* West of the sheet there is more room than a turn: what is nearer that way is counted that way. */
  let turned = ((longitude - west) % 360 + 360) % 360;
  if (turned * rad * scale > (data.size[0] + TURN) / 2) turned -= 360;
  centre(turned * rad * scale, (north - Math.asinh(Math.tan(latitude * rad))) * scale);
}
