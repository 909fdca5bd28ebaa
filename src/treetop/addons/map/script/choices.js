/* Choosing: everything that changes what is shown comes through here. */

function refresh() {
  scene = makeScene();
  hideTip();
  tell();
  later(true);
}

function choose(chosen) {
  Object.assign(state, { place: NOTHING, flow: NOTHING, group: null, cursor: NOTHING }, chosen);
  $("found").textContent = "";
  $("find").value = state.place < 0 ? "" : called(state.place);
  refresh();
  note();
}

const clear = () => choose({});
const choosePlace = (i) => choose({ place: i });

function chooseFound(found) {
  if (!found) { if (state.place >= 0 || state.flow >= 0 || state.group) clear(); return; }
  if (found.flow !== undefined) { choose({ flow: found.flow }); return; }
  const { members } = found.node;
  if (members.length > 1) choose({ group: members });
  else if (members[0] === state.place) clear();
  else choosePlace(members[0]);
}

function chooseLevel(at) {
  state.level = at;
  choose({});
  syncControls();
}

/* After zooming: the level or the groups may be others. */
let lastBand = 0;
function zoomed() {
  if (levelToShow() !== state.shown || band() !== lastBand) {
    lastBand = band();
    if (state.group) state.group = null;
    if (state.flow >= 0) state.flow = NOTHING;
    refresh();
  } else later();
}

function zoom(factor, x, y) { zoomBy(factor, x, y); zoomed(); }

function showWhole() { fit([0, 0, ...data.size]); zoomed(); }

/* Enlarge until the places of a dot come apart. */
function spread(members) {
  const { x, y } = level().places, xs = members.map((i) => x[i]), ys = members.map((i) => y[i]);
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  state.group = null;
  fit([left, top, Math.max(right - left, 1), Math.max(bottom - top, 1)]);
  zoomed();
}

/* A place by name or code: at the level that is shown first, then at the others, the finest first. */
function find(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return;
  const others = data.levels.map((_, i) => i).reverse().filter((i) => i !== state.shown && (state.level === AUTOMATIC || i === state.level));
  for (const exact of [true, false]) for (const at of [state.shown, ...others]) {
    const here = data.levels[at];
    const i = here.places.code.findIndex((own, i) => [own, called(i, here), `${called(i, here)} (${own})`].map((word) => word.toLowerCase()).some((word) => exact ? word === wanted : word.startsWith(wanted)));
    if (i < 0) continue;
    state.shown = at;
    choosePlace(i);
    if (sx(i) < 20 || sx(i) > wide() - 20 || sy(i) < 20 || sy(i) > high() - 20) { centre(here.places.x[i], here.places.y[i]); later(); }
    return;
  }
  $("found").textContent = say("not_found", { text: text.trim() });
}
