/* What the reader has chosen, and what follows from it at once. */

const SHADES = flows
  ? [["in", say("arriving")], ["out", say("leaving")], ["stay", say("staying")], ["net", say("balance")]]
  : [["count", say("count")]];
const MOST = [25, 50, 100, 200, 500, 1000, 10000, 100000, 0];
const FIRST = 100, NOTHING = -1, AUTOMATIC = -1;

const state = {
  level: data.levels.length > 1 ? AUTOMATIC : 0, /* the one that was asked for */
  shown: data.levels.length - 1, /* the one that is drawn */
  shade: SHADES[0][0],
  most: FIRST,
  unsure: false,
  kept: null, /* one entry of another attribute: the number of its filter, and its own */
  place: NOTHING, /* the chosen place, */
  flow: NOTHING, /* or the chosen flow, as a number of the drawn ones, */
  group: null, /* or the places of a chosen dot that stands for several */
  cursor: NOTHING, /* where the keyboard is */
  view: null, /* of the grid on the screen, */
  fitted: null, /* and what it was fitted to, until it is moved */
};

const level = () => data.levels[state.shown];
const called = (i, at = level()) => at.places.name[i] === null ? at.places.code[i] : at.places.name[i];
const code = (i) => level().places.name[i] === null ? "" : level().places.code[i];

function values(shade = state.shade) {
  const here = level();
  return shade === "net" ? here.in.map((value, i) => value - here.out[i]) : here[shade];
}

/* How much a place counts, whatever it is shaded by. */
function weights(here = level()) {
  if (!here.weights) here.weights = flows ? here.in.map((value, i) => value + here.out[i] + here.stay[i]) : here.count;
  return here.weights;
}

/* Flows that stand out from the noise come first; the others may be noise, and are drawn only when asked for. */
const untested = (here = level()) => here.real === null;
const isReal = (i, here = level()) => untested(here) || i < here.real;
