/* The address says what is shown, so that it can be kept and sent, and going back goes back. */

let opened = null, remembering = 0;

function address() {
  const here = level(), said = new URLSearchParams();
  const [latitude, longitude, near] = viewInDegrees();
  said.set("at", `${latitude.toFixed(4)},${longitude.toFixed(4)},${near.toFixed(2)}`);
  if (state.level !== AUTOMATIC && data.levels.length > 1) said.set("level", here.name);
  else if (state.place >= 0 && data.levels.length > 1) said.set("near", here.name);
  if (state.place >= 0) said.set("place", here.places.code[state.place]);
  if (state.shade !== SHADES[0][0]) said.set("shade", state.shade);
  if (flows && state.most !== FIRST) said.set("flows", state.most);
  if (state.unsure) said.set("noise", "also");
  const filter = filterOf();
  if (filter) said.set("only", `${filter.of}/${filter.entries[state.kept[1]].code}`); else if (firstKept()) said.set("only", "");
  return "#" + said.toString().replaceAll("%2C", ",");
}

/* What was chosen is a step that one can go back from; where one looks is not. */
function note() {
  const now = address();
  if (opened !== null && now !== location.hash) history.pushState(null, "", now);
}

function remember() {
  clearTimeout(remembering);
  if (opened !== null) remembering = setTimeout(() => { if (address() !== location.hash) history.replaceState(null, "", address()); }, 250);
}

function restore() {
  const said = new URLSearchParams(location.hash.slice(1));
  const only = said.get("only"), at0 = data.filters.findIndex((filter) => only && only.startsWith(filter.of + "/"));
  const entry = at0 < 0 ? -1 : data.filters[at0].entries.findIndex((own) => `${data.filters[at0].of}/${own.code}` === only);
  keep(only === null ? firstKept() : entry < 0 ? null : [at0, entry]);
  const named = (key) => data.levels.findIndex((one) => one.name === said.get(key));
  const at = (said.get("at") || "").split(",").map(Number);
  if (at.length === 3 && at.every(Number.isFinite)) viewFromDegrees(at); else fit(data.view);
  state.level = data.levels.length === 1 ? 0 : named("level");
  Object.assign(state, { place: NOTHING, flow: NOTHING, group: null, cursor: NOTHING });
  state.shade = SHADES.some(([key]) => key === said.get("shade")) ? said.get("shade") : SHADES[0][0];
  state.most = said.has("flows") && MOST.includes(+said.get("flows")) ? +said.get("flows") : FIRST;
  state.unsure = said.get("noise") === "also";
  state.shown = Math.max(state.level, 0);
  if (said.has("place")) {
    if (state.level < 0) state.shown = Math.max(named("near"), 0);
    state.place = level().places.code.indexOf(said.get("place"));
  }
  opened = location.hash;
  lastBand = band();
  syncControls();
  refresh();
}

window.addEventListener("popstate", restore);
