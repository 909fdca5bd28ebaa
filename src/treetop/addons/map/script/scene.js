/* The scene: which dots and flows there are to draw. It changes with choices and with zoom, not with panning. */

let scene = null;

function makeScene() {
  state.shown = levelToShow();
  const here = level(), { nodes, own } = grouped(here), shown = values();
  for (const node of nodes) node.value = node.members.reduce((sum, i) => sum + shown[i], 0);
  const made = { level: state.shown, nodes, own, flows: [], most: 1, top: 1, widest: 10 };
  made.most = nodes.reduce((most, node) => Math.max(most, Math.abs(node.value)), steadyMost());
  if (flows) made.flows = bundled(here, nodes, own);
  if (made.flows.length) made.top = made.flows[0].count;
  made.widest = widest(made.flows, made.top);
  for (const flow of made.flows) flow.width = Math.max(0.7, made.widest * flow.count / made.top);
  made.faint = faintness(made.flows);
  return made;
}

/* Flows between the same two dots are one flow, their sum; those within a dot are not seen. */
function bundled(here, nodes, own) {
  const { origin, destination, count, length } = here.flows, found = new Map();
  const most = state.most || (state.place < 0 ? 0 : 200), single = nodes.length === own.length;
  const last = state.unsure || untested(here) ? length : here.real;
  for (let i = 0; i < last; i++) {
    if (state.place >= 0 && origin[i] !== state.place && destination[i] !== state.place) continue;
    const from = own[origin[i]], to = own[destination[i]];
    if (from === to) continue;
    const key = single ? i : from * nodes.length + to, known = found.get(key);
    if (known) { known.count += count[i]; known.parts++; known.real = known.real || isReal(i); }
    else if (!single || found.size < most || i >= here.real) found.set(key, { i, from: nodes[from], to: nodes[to], count: count[i], parts: 1, real: isReal(i), width: 1 });
  }
  return [...found.values()].sort((a, b) => b.count - a.count).slice(0, most);
}

/* Widths grow with the counts, up to what leaves most of the map visible. */
function widest(list, top) {
  const { k } = state.view;
  const ink = list.reduce((sum, { from, to, count }) => sum + count / top * Math.min(Math.hypot(to.x - from.x, to.y - from.y) * k, 700), 0);
  return Math.max(3, Math.min(18, Math.min(wide(), high()) / 36, 0.12 * wide() * high() / Math.max(ink, 1)));
}

/* Where thousands of thin flows would cover the map, each is fainter, and the larger ones stay in sight. */
function faintness(list) {
  const length = list.reduce((sum, { from, to }) => sum + Math.hypot(to.x - from.x, to.y - from.y), 0) * state.view.k;
  return Math.max(0.25, Math.min(1, wide() * high() / Math.max(length, 1)));
}

const radius = (value, most) => value === 0 ? 1.6 : Math.max(2.2, Math.sqrt(Math.abs(value) / most) * Math.min(24, Math.max(11, wide() / 38)));
