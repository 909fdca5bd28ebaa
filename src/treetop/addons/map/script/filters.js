/* The map of one entry of another attribute, such as one month: the same places with other numbers. */

const everything = { levels: data.levels, whole: data.whole };
const filterOf = () => state.kept && data.filters[state.kept[0]];

function keep(kept) {
  const chosen = kept ? data.filters[kept[0]].entries[kept[1]] : everything;
  for (const [i, own] of chosen.levels.entries()) {
    if (own.places) continue;
    own.places = everything.levels[i].places;
    if (flows) own.flows = unpackFlows(own.flows);
  }
  state.kept = kept;
  [data.levels, data.whole] = [chosen.levels, chosen.whole];
}

/* What was measured comes first: where the numbers of all places are public, one entry, that with the largest total. */
function firstKept() {
  if (!data.filters.length || !everything.levels.every((here) => here.exact)) return null;
  const totals = data.filters[0].entries.map((entry) => entry.whole.count);
  return [0, totals.indexOf(Math.max(...totals))];
}

/* Over time the same size stands for the same number. */
function steadyMost() {
  const filter = filterOf();
  if (!filter || !filter.dates || flows) return 1;
  return filter.entries.reduce((most, entry) => Math.max(most, ...entry.levels[state.shown].count), 1);
}

const keptText = () => {
  const filter = filterOf();
  return filter ? say("kept", { attribute: filter.label, name: filter.entries[state.kept[1]].name }) : "";
};

function keepAndShow(kept) {
  keep(kept);
  if (state.flow >= 0 || state.group) Object.assign(state, { flow: NOTHING, group: null });
  syncFilter();
  refresh();
  note();
}

function syncFilter() {
  if (!data.filters.length) return;
  $("filter").value = state.kept ? state.kept.join() : "";
  const time = data.filters.findIndex((filter) => filter.dates);
  $("time-row").hidden = time < 0;
  if (time < 0) return;
  const isOn = state.kept && state.kept[0] === time, entries = data.filters[time].entries;
  $("time-of").textContent = data.filters[time].label;
  $("time").max = entries.length;
  $("time").value = isOn ? state.kept[1] + 1 : 0;
  $("time-said").textContent = isOn ? entries[state.kept[1]].name : say("all");
  $("time").setAttribute("aria-valuetext", $("time-said").textContent);
}

function startFilter() {
  if (!data.filters.length) return;
  const option = (value, words) => { const element = html("option", words); element.value = value; return element; };
  $("filter").append(option("", say("all")), ...data.filters.map((filter, at) => {
    const group = html("optgroup");
    group.label = filter.label;
    group.append(...filter.entries.map((entry, i) => option(`${at},${i}`, entry.name)));
    return group;
  }));
  $("filter").addEventListener("change", (event) => keepAndShow(event.target.value ? event.target.value.split(",").map(Number) : null));
  $("time").addEventListener("input", (event) => keepAndShow(+event.target.value ? [data.filters.findIndex((filter) => filter.dates), event.target.value - 1] : null));
}
