/* What is near together when seen from afar is shown together.

Where the release has coarser levels, they are shown instead, so that every number is a released one with its own
interval. Where it has none, or a level was asked for, dots that would lie on one another become one dot, which stands
for the sum of its places and says so. */

/* In points of the screen; flows need more room than shades. */
const LEGIBLE = flows ? { dots: 40, outlines: 26 } : { dots: 18, outlines: 9 }, TOUCHING = 15;

/* How far it is from a place to the next, for half of the places or more, in steps of the grid. */
function spacing(here) {
  if (here.spacing !== undefined) return here.spacing;
  const { x, y } = here.places, weight = weights(here);
  const counted = x.map((_, i) => i).filter((i) => weight[i] > 0).sort((a, b) => x[a] - x[b]);
  const nearest = counted.map((i, at) => {
    let least = Infinity;
    for (const way of [1, -1])
      for (let next = at + way; next >= 0 && next < counted.length; next += way) {
        const j = counted[next], dx = Math.abs(x[j] - x[i]);
        if (dx >= least) break;
        least = Math.min(least, Math.hypot(dx, y[j] - y[i]));
      }
    return least;
  }).sort((a, b) => a - b);
  return here.spacing = nearest.length > 1 ? nearest[Math.floor(nearest.length / 2)] : Infinity;
}

/* The finest level whose places are far enough apart at this zoom; a choice holds the level that it was made at. */
function levelToShow() {
  if (state.level !== AUTOMATIC) return state.level;
  if (state.place >= 0 || state.flow >= 0) return state.shown;
  for (let i = data.levels.length - 1; i > 0; i--) if (spacing(data.levels[i]) * state.view.k >= LEGIBLE[data.levels[i].places.outlined ? "outlines" : "dots"]) return i;
  return 0;
}

/* Zooming changes groups in steps, so that they keep still while one looks. */
const band = () => 2 ** (Math.floor(Math.log2(state.view.k) * 2) / 2);

/* The nodes of the drawing: a place each, or several. They are named after their largest. */
function grouped(here) {
  const { x, y } = here.places, weight = weights(here), own = new Int32Array(x.length).fill(NOTHING), nodes = [];
  const apart = here.places.outlined || state.place >= 0 ? 0 : TOUCHING / band();
  const order = x.map((_, i) => i).sort((a, b) => weight[b] - weight[a]), cells = new Map();
  for (const i of order) {
    const cx = apart ? Math.floor(x[i] / apart) : 0, cy = apart ? Math.floor(y[i] / apart) : 0;
    if (apart) {
      let least = apart;
      for (let dx = -1; dx <= 1; dx++) for (let dy = -1; dy <= 1; dy++) for (const at of cells.get((cx + dx) * 1e6 + cy + dy) || []) {
        const away = Math.hypot(nodes[at].x - x[i], nodes[at].y - y[i]);
        if (away < least) { least = away; own[i] = at; }
      }
    }
    if (own[i] >= 0) { nodes[own[i]].members.push(i); continue; }
    own[i] = nodes.length;
    if (apart) { const key = cx * 1e6 + cy; cells.set(key, [...cells.get(key) || [], nodes.length]); }
    nodes.push({ head: i, members: [i], x: x[i], y: y[i] });
  }
  return { nodes, own };
}

const groupName = (members, short = (name) => name) => members.length === 1 ? short(called(members[0]))
  : say("and_others", { name: short(called(members[0])), number: number(members.length - 1) });
