/* Colours, which the style sheet has for day and dark, and the classes of a shading. */

const ink = {};

function readColours() {
  const style = getComputedStyle(sheet);
  for (const name of ["sheet", "land", "coast", "border", "above", "grid", "dot", "edge-of-dot", "flow", "in", "out", "ink", "halo", "soft"]) ink[name] = style.getPropertyValue("--" + name).trim();
  for (const name of ["ramp", "net"]) ink[name] = [0, 1, 2, 3, 4].map((i) => style.getPropertyValue(`--${name}-${i}`).trim());
}

function nice(value) {
  const digits = Math.pow(10, Math.max(0, Math.floor(Math.log10(Math.max(value, 1))) - 1));
  return Math.round(value / digits) * digits;
}

function breaks(numbers) {
  const sorted = numbers.filter((value) => value > 0).sort((a, b) => a - b);
  const at = (share) => nice(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]);
  return [...new Set(sorted.length ? [0.2, 0.4, 0.6, 0.8].map(at) : [])].filter((cut) => cut > sorted[0]);
}

/* Classes with their words, and the colour of a value. */
function scale() {
  const all = values();
  return state.shade === "net" ? twoWays(all) : oneWay(all);
}

function oneWay(all) {
  const cuts = breaks(all), ramp = ink.ramp.slice(ink.ramp.length - cuts.length - 1);
  const words = (i) => i === cuts.length ? (cuts.length ? say("and_more", { a: number(cuts[i - 1]) }) : say("above", { a: "0" }))
    : i ? between(number(cuts[i - 1]), number(cuts[i] - 1)) : say("below", { a: number(cuts[0]) });
  const rows = [[ink.land, "0"], ...ramp.map((colour, i) => [colour, words(i)])];
  const colour = (value) => value <= 0 ? ink.land : ramp[cuts.filter((cut) => value >= cut).length];
  return { rows: all.some((value) => value <= 0) ? rows : rows.slice(1), colour };
}

function twoWays(all) {
  const sizes = all.map(Math.abs).filter((value) => value > 0).sort((a, b) => a - b);
  const small = nice(sizes[Math.floor(sizes.length * 0.25)] || 0), large = nice(sizes[Math.floor(sizes.length * 0.75)] || 1);
  const words = [say("below", { a: "−" + number(large) }), between("−" + number(large), "−" + number(small)), say("within", { a: number(small) }), between(number(small), number(large)), say("above", { a: number(large) })];
  const colour = (value) => ink.net[value < -large ? 0 : value < -small ? 1 : value <= small ? 2 : value <= large ? 3 : 4];
  return { rows: words.map((said, i) => [ink.net[i], said]), colour };
}
