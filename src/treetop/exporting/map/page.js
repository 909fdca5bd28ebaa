
"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const flows = data.kind === "flows";
const $ = (id) => document.getElementById(id);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const say = (key, values = {}) => fill(data.words[key], values);
const join = (...sentences) => sentences.filter(Boolean).join(" ");
/* Numbers as the language of the page writes them. */
const number = (value) => {
  const [whole, part] = String(value).split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, data.format.group) + (part ? data.format.decimal + part : "");
};
const sure = (value) => fill(data.format.percent, { number: number(value) });
const percent = (part, whole) => sure(whole ? (100 * part / whole).toFixed(part / whole < 0.0995 ? 1 : 0) : 0);
const between = (a, b) => say("between", { a, b });
const RAMP = ["#eff5f9", "#dae7f1", "#bed5e7", "#9bbfdb", "#74a5cb"];
const EMPTY = "#f1f1ed", DOT = "#3f7cb3";
const LOSS = ["#a6611a", "#dfc27d"], GAIN = ["#80cdc1", "#018571"];
const SHADES = flows
  ? [["in", say("arriving")], ["out", say("leaving")], ["stay", say("staying")], ["net", say("balance")]]
  : [["count", say("count")]];
const MOST = [25, 50, 100, 200, 400, 800, 0];

const state = { level: data.levels.length - 1, shade: SHADES[0][0], most: 200, unsure: false, chosen: -1, cursor: -1, view: null, widest: 10 };
const svg = $("map");
const layers = {};
for (const id of ["grid", "shapes", "flows", "dots", "marks"]) layers[id] = svg.appendChild(make("g", { id }));

function make(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  if (text !== undefined) element.textContent = text;
  return element;
}

function html(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

const level = () => data.levels[state.level];
const called = (i, at = level()) => at.places.name[i] === null ? at.places.code[i] : at.places.name[i];
const full = (i) => level().places.name[i] === null ? "" : level().places.code[i];

function values(shade) {
  const here = level();
  return shade === "net" ? here.in.map((value, i) => value - here.out[i]) : here[shade];
}

/* Where things are: the grid of the file to the points of the screen. */

function fit(box) {
  const [x, y, w, h] = box, W = svg.clientWidth || 800, H = svg.clientHeight || 600;
  const k = Math.min(W / Math.max(w, 1), H / Math.max(h, 1)) * 0.92;
  state.view = { k, x: W / 2 - k * (x + w / 2), y: H / 2 - k * (y + h / 2) };
}

function zoom(factor, cx = svg.clientWidth / 2, cy = svg.clientHeight / 2) {
  const view = state.view, least = Math.min(svg.clientWidth / data.size[0], svg.clientHeight / Math.max(data.size[1], 1)) / 2;
  const k = Math.min(Math.max(view.k * factor, least), 40);
  state.view = { k, x: cx - (cx - view.x) * k / view.k, y: cy - (cy - view.y) * k / view.k };
  later();
}

const sx = (i) => state.view.x + state.view.k * level().places.x[i];
const sy = (i) => state.view.y + state.view.k * level().places.y[i];

let waiting = false;
function later() {
  if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; place(); }); }
}

/* Outlines: arcs are a start and steps; ~i is arc i backwards. */

function unpack(text) {
  const numbers = [];
  for (let i = 0; i < text.length;) {
    let value = 0, shift = 0, bits;
    do { bits = text.charCodeAt(i++) - 63; value |= (bits & 31) << shift; shift += 5; } while (bits >= 32);
    numbers.push(value & 1 ? ~(value >> 1) : value >> 1);
  }
  return numbers;
}

const arcs = data.arcs.map((text) => {
  const steps = unpack(text), points = [];
  for (let i = 0, x = 0, y = 0; i < steps.length; i += 2) points.push([x += steps[i], y += steps[i + 1]]);
  return points;
});

for (const { places } of data.levels) places.rings = places.rings.map((text) => {
  const numbers = unpack(text), rings = [];
  for (let i = 0, arc = 0; i < numbers.length;) {
    const ring = [];
    for (let left = numbers[i++]; left > 0; left--) ring.push(arc += numbers[i++]);
    rings.push(ring);
  }
  return rings;
});

function outline(rings) {
  return rings.map((ring) => "M" + ring.flatMap((arc) => {
    const points = arc < 0 ? arcs[~arc].slice().reverse() : arcs[arc];
    return points.map((point) => point.join(" "));
  }).join("L") + "Z").join("");
}

/* Colours and widths. */

function nice(value) {
  const digits = Math.pow(10, Math.max(0, Math.floor(Math.log10(Math.max(value, 1))) - 1));
  return Math.round(value / digits) * digits;
}

function breaks(numbers) {
  const sorted = numbers.filter((value) => value > 0).sort((a, b) => a - b);
  const at = (share) => nice(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]);
  return [...new Set(sorted.length ? [0.2, 0.4, 0.6, 0.8].map(at) : [])];
}

function scale() {
  const all = values(state.shade);
  if (state.shade === "net") {
    const sizes = all.map(Math.abs).filter((value) => value > 0).sort((a, b) => a - b);
    const small = nice(sizes[Math.floor(sizes.length * 0.25)] || 0), large = nice(sizes[Math.floor(sizes.length * 0.75)] || 1);
    const rows = [[LOSS[0], say("below", { a: "−" + number(large) })], [LOSS[1], between("−" + number(large), "−" + number(small))],
      [EMPTY, say("within", { a: number(small) })], [GAIN[0], between(number(small), number(large))], [GAIN[1], say("above", { a: number(large) })]];
    const colour = (value) => rows[value < -large ? 0 : value < -small ? 1 : value <= small ? 2 : value <= large ? 3 : 4][0];
    return { rows, colour };
  }
  const cuts = breaks(all), ramp = RAMP.slice(RAMP.length - cuts.length - 1);
  const rows = [[EMPTY, "0"], ...ramp.map((colour, i) => [colour,
    i === cuts.length ? (cuts.length ? say("and_more", { a: number(cuts[i - 1]) }) : say("above", { a: "0" }))
      : i ? between(number(cuts[i - 1]), number(cuts[i] - 1)) : say("below", { a: number(cuts[0]) })])];
  const colour = (value) => value <= 0 ? EMPTY : ramp[cuts.filter((cut) => value >= cut).length];
  return { rows: all.some((value) => value <= 0) ? rows : rows.slice(1), colour };
}

const largest = (numbers) => numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 1);
/* Widths grow with the counts, up to what leaves most of the map visible. */
const thick = (count, most) => Math.max(0.8, state.widest * count / most);

function widest(list) {
  const ink = list.reduce((sum, flow) => sum + flow.count / list[0].count * Math.hypot(sx(flow.to) - sx(flow.from), sy(flow.to) - sy(flow.from)), 0);
  return Math.max(3, Math.min(18, Math.min(svg.clientWidth, svg.clientHeight) / 36, 0.14 * svg.clientWidth * svg.clientHeight / Math.max(ink, 1)));
}

const radius = (value, most) => value === 0 ? 1.6 : Math.max(2, Math.sqrt(Math.abs(value) / most) * Math.min(26, Math.max(12, svg.clientWidth / 32)));

/* Which flows are drawn: the largest of all, or the largest of the chosen place. */

/* Flows that stand out from the noise come first; the others may be noise, and are drawn only when asked for. */
const real = (i, here = level()) => here.real === null || i < here.real;
const untested = (here = level()) => here.real === null;

function drawn() {
  const [origin, destination, count] = level().flows, list = [];
  const most = state.most || (state.chosen < 0 ? 0 : 200);
  for (let i = 0; i < count.length && list.length < most; i++)
    if ((real(i) || state.unsure) && (state.chosen < 0 || origin[i] === state.chosen || destination[i] === state.chosen))
      list.push({ i, from: origin[i], to: destination[i], count: count[i] });
  return list.sort((a, b) => b.count - a.count);
}

/* A flow with its interval, where it has one of its own. */
function said(i) {
  const [, , count, lower, upper] = level().flows;
  return number(count[i]) + (lower ? ` (${between(number(lower[i]), number(upper[i]))})` : "");
}

/* A ribbon that is thick where the flow begins and thin where it ends, bent to its right. */

function ribbon(x0, y0, x1, y1, width, bend = 0.16) {
  const dx = x1 - x0, dy = y1 - y0, length = Math.hypot(dx, dy) || 1, nx = -dy / length, ny = dx / length;
  const cx = (x0 + x1) / 2 - nx * length * bend, cy = (y0 + y1) / 2 - ny * length * bend;
  const a = width / 2, b = width * 0.36, c = Math.max(0.25, width * 0.1);
  const p = (x, y) => x.toFixed(1) + " " + y.toFixed(1);
  return `M${p(x0 + nx * a, y0 + ny * a)}Q${p(cx + nx * b, cy + ny * b)} ${p(x1 + nx * c, y1 + ny * c)}` +
    `L${p(x1 - nx * c, y1 - ny * c)}Q${p(cx - nx * b, cy - ny * b)} ${p(x0 - nx * a, y0 - ny * a)}Z`;
}

/* Drawing: `build` when what is shown changes, `place` when it only moves. */

let ribbons = [], dots = [], hasShapes = false;

function build() {
  const here = level(), { rings, x } = here.places, all = values(state.shade), colours = scale();
  for (const id in layers) layers[id].replaceChildren();
  svg.classList.toggle("chosen", state.chosen >= 0);
  svg.classList.toggle("net", state.shade === "net");
  hasShapes = rings.some((ring) => ring.length > 0);
  dots = [];
  if (!data.arcs.length) graticule();
  else if (!hasShapes) background();
  /* Where the two ends have outlines of their own, those that count lie above the others. */
  const order = x.map((_, i) => i).sort((a, b) => (all[a] !== 0) - (all[b] !== 0));
  order.forEach((i) => {
    if (rings[i].length)
      layers.shapes.append(make("path", { class: "shape", d: outline(rings[i]), fill: colours.colour(all[i]), "data-place": i }));
    else dots.push(i);
  });
  if (hasShapes) borders();
  const most = largest(all);
  dots.sort((a, b) => Math.abs(all[b]) - Math.abs(all[a]));
  dots = dots.map((i) => ({ i, r: radius(all[i], most), element: layers.dots.appendChild(
    make("circle", { class: "dot", r: radius(all[i], most).toFixed(1), fill: state.shade === "net" ? colours.colour(all[i]) : DOT, "fill-opacity": 0.85, "data-place": i })) }));
  ribbons = flows ? drawn() : [];
  const top = ribbons.length ? ribbons[0].count : 1;
  state.widest = widest(ribbons);
  for (const flow of ribbons.slice().reverse()) {
    const side = (state.chosen < 0 ? "" : flow.from === state.chosen ? " out" : " in") + (real(flow.i) ? "" : " unsure");
    flow.width = thick(flow.count, top);
    flow.element = layers.flows.appendChild(make("path", { class: "flow" + side, "data-flow": flow.i }));
  }
  tell(colours, most, top);
  place();
}

let lines = [];
function graticule() {
  lines = ["x", "y"].flatMap((axis) => data.graticule[axis].map(([at, words]) => ({ axis, at,
    line: layers.grid.appendChild(make("line", { class: "grid" })), text: layers.grid.appendChild(make("text", { class: "degrees" }, words)) })));
}

function background() {
  const finest = data.levels.slice().reverse().find((at) => at.places.rings.some((ring) => ring.length));
  for (const rings of finest.places.rings) layers.shapes.append(make("path", { class: "shape", d: outline(rings), fill: EMPTY }));
}

function borders() {
  const coarser = data.levels[0];
  if (state.level > 0 && coarser.places.rings.some((ring) => ring.length))
    layers.shapes.append(make("path", { class: "above", d: coarser.places.rings.map(outline).join("") }));
}

function place() {
  const { k, x, y } = state.view;
  layers.shapes.setAttribute("transform", `translate(${x} ${y}) scale(${k})`);
  for (const dot of dots) { dot.element.setAttribute("cx", sx(dot.i).toFixed(1)); dot.element.setAttribute("cy", sy(dot.i).toFixed(1)); }
  for (const flow of ribbons) flow.element.setAttribute("d", ribbon(sx(flow.from), sy(flow.from), sx(flow.to), sy(flow.to), flow.width));
  for (const { axis, at, line, text } of lines) {
    const across = axis === "x", here = (across ? x : y) + k * at, end = across ? svg.clientHeight : svg.clientWidth;
    const set = (element, values) => { for (const name in values) element.setAttribute(name, values[name]); };
    set(line, across ? { x1: here, x2: here, y1: 0, y2: end } : { x1: 0, x2: end, y1: here, y2: here });
    set(text, across ? { x: here + 3, y: end - 5 } : { x: end - 40, y: here - 3 });
  }
  marks();
}

function marks() {
  layers.marks.replaceChildren();
  const { rings } = level().places;
  for (const [i, name] of [[state.chosen, "ring"], [state.cursor, "ring cursor"]]) {
    if (i < 0) continue;
    if (rings[i].length) layers.marks.append(make("path", { class: name, d: outline(rings[i]), transform: layers.shapes.getAttribute("transform") }));
    else {
      const dot = dots.find((one) => one.i === i);
      layers.marks.append(make("circle", { class: name, cx: sx(i), cy: sy(i), r: (dot ? dot.r : 4) + 2.5 }));
    }
  }
  labels();
}

/* Names where there is room: the chosen place and its partners first, then by size. */

function labels() {
  const taken = [], all = values(flows && state.shade === "net" ? "in" : state.shade), order = all.map((_, i) => i);
  const partner = new Set(ribbons.filter((flow) => state.chosen >= 0).slice(0, 8).flatMap((flow) => [flow.from, flow.to]));
  const rank = (i) => (i === state.chosen ? 1e18 : i === state.cursor ? 1e17 : partner.has(i) ? 1e16 : 0) + all[i];
  order.sort((a, b) => rank(b) - rank(a));
  let left = 14;
  for (const i of order) {
    if (left === 0) break;
    if (state.chosen >= 0 && rank(i) < 1e16) break;
    const text = called(i).length > 16 && level().places.code[i].length < 9 ? level().places.code[i] : called(i), x = sx(i), dot = dots.find((one) => one.i === i), y = sy(i) - (dot ? dot.r + 4 : 5), w = text.length * 3.3 + 4;
    if (text.length > 40 || x - w < 0 || x + w > svg.clientWidth || y < 14 || y > svg.clientHeight - 4) continue;
    if (taken.some((box) => Math.abs(box[0] - x) < box[2] + w && Math.abs(box[1] - y) < 15)) continue;
    taken.push([x, y, w]);
    left--;
    layers.marks.append(make("text", { class: "name", x: x.toFixed(1), y: y.toFixed(1) }, text));
  }
}

/* Words beside the map. */

function tell(colours, most, top) {
  const here = level();
  $("shown").textContent = shownText(here);
  if (flows) $("unsure-row").hidden = untested(here) || here.flows[2].length <= here.real;
  $("noise").textContent = noiseText(here);
  legend(colours, most, top);
  details();
}

function shownText(here) {
  const summed = data.summed.length ? say("summed", { attributes: data.summed.join(", ") }) : "";
  const without = here.unplaced ? say("unplaced", { number: number(here.unplaced) }) : "";
  if (!flows) return join(say("in_all", { number: number(here.total) }), summed, without);
  const count = ribbons.reduce((sum, flow) => sum + flow.count, 0), stay = here.stay.reduce((sum, value) => sum + value, 0);
  const moving = state.chosen < 0 ? say("stay", { number: number(stay) }) : "";
  if (!untested(here) && !state.unsure) return join(certainText(here, count, moving), summed, without);
  const whole = state.chosen < 0 ? here.moving : here.in[state.chosen] + here.out[state.chosen];
  const key = state.chosen >= 0 ? "drawn_of" : ribbons.length === here.pairs ? "drawn_all" : "drawn_largest";
  const told = say(key, { number: number(ribbons.length), pairs: number(here.pairs), share: percent(count, whole), moving: number(whole), place: state.chosen < 0 ? "" : called(state.chosen) });
  const kept = here.flows[2].length < here.pairs ? say("held", { number: number(here.flows[2].length) }) : "";
  return join(told, moving, kept, summed, without);
}

function certainText(here, count, moving) {
  const whole = state.chosen < 0 ? here.moving : here.in[state.chosen] + here.out[state.chosen];
  const others = say("others", { pairs: number(here.pairs) });
  if (!here.real) return join(say("none_stands"), moving);
  if (!ribbons.length) return join(say("none_of_place"), others);
  const key = ribbons.length < here.real && state.chosen < 0 ? "stands_largest" : "stands";
  const told = say(key, { number: number(ribbons.length), real: number(here.real), share: percent(count, whole), moving: number(whole) });
  return join(told, say("rate", { rate: sure(here.rate) }), others, moving);
}

function noiseText(here) {
  const totals = Object.values(here.totals).some((own) => own.lower) ? say("totals", { confidence: sure(data.confidence) }) : "";
  return join(measuredText(here), totals);
}

function measuredText(here) {
  if (here.margin === null) return say("sums");
  const confidence = sure(here.named !== null ? here.named : data.stated);
  return say((here.named !== null ? "named_" : "margin_") + (flows ? "flows" : "counts"), { confidence, margin: number(here.margin) });
}

function legend(colours, most, top) {
  const box = $("legend"), label = SHADES.find(([key]) => key === state.shade)[1];
  const picture = make("svg", { viewBox: "0 0 300 10", role: "img" });
  let y = 12;
  const text = (x, at, words, name) => picture.append(make("text", { x, y: at, class: name || "" }, words));
  text(0, y, `${level().name}: ${state.shade === "net" ? say("net") : label}`, "head");
  y += 8;
  if (hasShapes || state.shade === "net") {
    colours.rows.forEach(([colour, words], i) => {
      const column = (i % 2) * 150, row = y + Math.floor(i / 2) * 16;
      picture.append(make("rect", { x: column, y: row, width: 20, height: 11, fill: colour, stroke: "#b9c4be", "stroke-width": 0.6 }));
      text(column + 26, row + 9.5, words);
    });
    y += Math.ceil(colours.rows.length / 2) * 16;
  } else {
    let x = 0;
    const r0 = radius(most, most);
    for (const value of [most, most / 4, most / 20].map(nice).filter((value, i, all) => value > 0 && all.indexOf(value) === i)) {
      const r = radius(value, most);
      picture.append(make("circle", { cx: x + r, cy: y + r0, r, fill: DOT, "fill-opacity": 0.85 }));
      text(x + 2 * r + 5, y + r0 + 4, number(value));
      x += 2 * r + 62;
    }
    y += 2 * r0 + 2;
  }
  if (flows && ribbons.length) {
    y += 15;
    text(0, y, say("thick"), "head");
    y += 13;
    [top, top / 4, top / 20].map(nice).filter((value, i, all) => value > 0 && all.indexOf(value) === i).forEach((value, i) => {
      picture.append(make("path", { class: "flow", d: ribbon(i * 100, y + 4, i * 100 + 40, y + 4, thick(value, top), 0) }));
      text(i * 100 + 46, y + 6, number(value));
    });
    y += 12;
  }
  picture.setAttribute("viewBox", `0 0 300 ${y}`);
  box.replaceChildren(picture);
}

function row(i, words, count, extra, unsure) {
  const item = html("li"), button = html("button", words);
  if (unsure) { item.className = "faint"; item.title = say("may_be_noise"); }
  button.type = "button";
  button.addEventListener("click", () => choose(i));
  if (unsure === undefined && level().margin !== null && count <= level().margin) { item.className = "faint"; item.title = say("no_larger"); }
  item.append(button, html("span", number(count) + (extra || "")));
  return item;
}

function details() {
  const here = level(), box = $("details"), i = state.chosen;
  box.replaceChildren();
  if (i < 0) { overview(here, box); return; }
  const title = html("h2", called(i) + " ");
  if (full(i)) title.append(html("small", full(i)));
  box.append(title);
  const facts = html("dl");
  const shown = flows ? [[say("arriving"), here.in[i]], [say("leaving"), here.out[i]], [say("staying"), here.stay[i]]] : [[say("count"), here.count[i]]];
  for (const [name, value] of shown) {
    const cell = html("div");
    cell.append(html("dt", name), html("dd", number(value)));
    facts.append(cell);
  }
  for (const [words, value] of totals(i)) {
    const cell = html("div", undefined, "whole");
    cell.append(html("dt", words), html("dd", value));
    facts.append(cell);
  }
  box.append(facts);
  if (flows) for (const [side, words, key] of [[1, say("come_from"), "in"], [0, say("go_to"), "out"]]) partners(here, box, i, side, words, key);
  const clear = html("button", say("show_all"));
  clear.id = "clear";
  clear.addEventListener("click", () => choose(-1));
  box.append(clear);
}

/* All of a place, whatever the other end: with the interval of its own measurement where it was measured. */

function totals(i) {
  const names = flows ? [["destination", say("arrive_or_stay")], ["origin", say("leave_or_stay")]] : Object.keys(level().totals).map((name) => [name, say("interval")]);
  return names.map(([name, words]) => [words, interval(level().totals[name], i)]).filter(([, said]) => said);
}

function interval(own, i) {
  const bounds = own.lower && own.lower[i] !== null ? between(number(own.lower[i]), number(own.upper[i])) : "";
  if (!flows) return bounds;
  return own.count[i] === null ? "" : number(own.count[i]) + (bounds ? ` (${bounds})` : "");
}

function partners(here, box, i, side, words, key) {
  const [origin, destination, count] = here.flows, own = side ? destination : origin, other = side ? origin : destination, found = [];
  for (let at = 0; at < count.length; at++) if (own[at] === i) found.push(at);
  const head = html("h3"), mark = html("span", undefined, "mark " + key), list = html("ol");
  head.append(mark, words);
  found.sort((a, b) => real(b) - real(a) || count[b] - count[a]);
  for (const at of found.slice(0, 8)) list.append(row(other[at], called(other[at]), count[at], ` · ${percent(count[at], here[key][i])}`, untested(here) ? undefined : !real(at)));
  box.append(head, list);
  const rest = here[key][i] - found.slice(0, 8).reduce((sum, at) => sum + count[at], 0);
  if (rest > 0) box.append(html("p", say(key === "in" ? "from_elsewhere" : "to_elsewhere", { number: number(rest) }), "small"));
  if (!found.length && rest <= 0) box.append(html("p", say("none"), "small"));
}

function overview(here, box) {
  const list = html("ol");
  box.append(html("h3", say(flows ? "largest_flows" : "largest_counts")));
  if (flows) {
    const [origin, destination, count, lower, upper] = here.flows, most = Math.min(10, here.real === null ? count.length : here.real);
    for (let at = 0; at < most; at++) list.append(row(destination[at], `${called(origin[at])} → ${called(destination[at])}`, count[at], lower ? ` (${between(number(lower[at]), number(upper[at]))})` : "", untested(here) ? undefined : false));
    if (!most) box.append(html("p", say("none_here"), "small"));
  } else {
    const order = here.count.map((_, i) => i).sort((a, b) => here.count[b] - here.count[a]).slice(0, 10);
    for (const i of order) if (here.count[i] > 0) list.append(row(i, called(i), here.count[i], ` · ${percent(here.count[i], here.total)}`));
  }
  box.append(list, html("p", join(say("choose"), here.margin !== null ? say("grey") : ""), "small"));
}

/* Choosing, pointing and keys. */

function choose(i) {
  state.chosen = i;
  state.cursor = -1;
  $("find").value = i < 0 ? "" : called(i);
  hide();
  build();
}

function turn(to) {
  state.level = to;
  state.chosen = state.cursor = -1;
  $("find").value = "";
  $("names").replaceChildren(...level().places.code.map((code, i) => {
    const option = html("option");
    option.value = level().places.name[i] === null ? code : `${called(i)} (${code})`;
    return option;
  }));
  hide();
  build();
}

function tip(x, y, head, ...lines) {
  const box = $("tip");
  box.replaceChildren(html("b", head), ...lines.filter(Boolean).map((line) => html("div", line)));
  box.hidden = false;
  const W = svg.clientWidth, H = svg.clientHeight;
  box.style.left = Math.max(4, Math.min(x + 14, W - box.offsetWidth - 6)) + "px";
  box.style.top = Math.max(4, y + 18 + box.offsetHeight > H ? y - box.offsetHeight - 12 : y + 18) + "px";
}

function hide() { $("tip").hidden = true; }

function tipOf(target, x, y) {
  const here = level();
  const faint = (count) => here.margin !== null && count <= here.margin ? say("no_larger") + "." : "";
  if (target.dataset.flow) {
    const [origin, destination, count] = here.flows, i = +target.dataset.flow;
    tip(x, y, `${called(origin[i])} → ${called(destination[i])}`, said(i), untested(here) ? faint(count[i]) : real(i) ? "" : say("may_be_noise") + ".");
  } else if (target.dataset.place) placeTip(+target.dataset.place, x, y);
  else hide();
}

function placeTip(i, x, y) {
  const here = level(), head = called(i) + (full(i) ? ` (${full(i)})` : "");
  const whole = totals(i).map(([words, said]) => `${words} ${said}`);
  if (flows) tip(x, y, head, `${say("arriving")} ${number(here.in[i])} · ${say("leaving")} ${number(here.out[i])}`, `${say("staying")} ${number(here.stay[i])}`, ...whole);
  else tip(x, y, head, number(here.count[i]), ...whole);
}

let drag = null;
svg.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse" && event.button === 0) drag = { x: event.clientX, y: event.clientY, moved: false }; });
window.addEventListener("pointerup", () => { svg.classList.remove("dragging"); setTimeout(() => { drag = null; }); });
svg.addEventListener("pointermove", (event) => {
  const box = svg.getBoundingClientRect();
  if (drag && event.buttons) {
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    Object.assign(drag, { x: event.clientX, y: event.clientY, moved: true });
    svg.classList.add("dragging");
    state.view.x += dx;
    state.view.y += dy;
    hide();
    later();
  } else tipOf(event.target, event.clientX - box.left, event.clientY - box.top);
});
svg.addEventListener("pointerleave", hide);
svg.addEventListener("click", (event) => {
  if (drag && drag.moved) return;
  const { place: at, flow } = event.target.dataset;
  if (at !== undefined) choose(+at === state.chosen ? -1 : +at);
  else if (flow === undefined) choose(-1);
});
svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = svg.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
}, { passive: false });

function step(dx, dy) {
  const from = state.cursor >= 0 ? state.cursor : state.chosen, all = values(flows && state.shade === "net" ? "in" : state.shade);
  if (from < 0) { state.cursor = all.indexOf(Math.max(...all)); return; }
  let best = -1, least = Infinity;
  level().places.x.forEach((_, i) => {
    const x = sx(i) - sx(from), y = sy(i) - sy(from), along = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
    if (i !== from && along > 0 && along + 2.5 * aside < least) { least = along + 2.5 * aside; best = i; }
  });
  if (best >= 0) state.cursor = best;
}

svg.addEventListener("keydown", (event) => {
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (way) { step(...way); marks(); if (state.cursor >= 0) placeTip(state.cursor, sx(state.cursor), sy(state.cursor)); }
  else if ((event.key === "Enter" || event.key === " ") && state.cursor >= 0) choose(state.cursor);
  else if (event.key === "Escape") choose(-1);
  else if (event.key === "+" || event.key === "=") zoom(1.4);
  else if (event.key === "-") zoom(1 / 1.4);
  else if (event.key === "0") { fit([0, 0, ...data.size]); place(); }
  else return;
  event.preventDefault();
});

function find(text) {
  const { code } = level().places, wanted = text.trim().toLowerCase();
  if (!wanted) return;
  const said = code.map((one, i) => [one, called(i), `${called(i)} (${one})`].map((word) => word.toLowerCase()));
  let i = said.findIndex((words) => words.includes(wanted));
  if (i < 0) i = said.findIndex((words) => words[1].startsWith(wanted));
  if (i >= 0) choose(i);
}

/* The controls. */

data.levels.forEach((at, i) => {
  const label = html("label", at.name), input = html("input");
  input.type = "radio";
  input.name = "level";
  input.checked = i === state.level;
  input.addEventListener("change", () => turn(i));
  label.prepend(input);
  $("levels").append(label);
});
for (const [key, words] of SHADES) { const option = html("option", words); option.value = key; $("shade").append(option); }
$("shade-row").hidden = SHADES.length === 1;
$("shade").addEventListener("change", (event) => { state.shade = event.target.value; build(); });
if (flows) {
  for (const most of MOST) { const option = html("option", most ? String(most) : say("no_flows")); option.value = most; option.selected = most === state.most; $("most").append(option); }
  $("most").addEventListener("change", (event) => { state.most = +event.target.value; build(); });
  $("unsure").addEventListener("change", (event) => { state.unsure = event.target.checked; build(); });
}
$("find").addEventListener("change", (event) => find(event.target.value));
$("controls").addEventListener("submit", (event) => { event.preventDefault(); find($("find").value); });
$("nearer").addEventListener("click", () => zoom(1.5));
$("farther").addEventListener("click", () => zoom(1 / 1.5));
$("whole").addEventListener("click", () => { fit([0, 0, ...data.size]); place(); });
let width = 0, height = 0;
new ResizeObserver(() => {
  if (svg.clientWidth === width && svg.clientHeight === height) return;
  [width, height] = [svg.clientWidth, svg.clientHeight];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`); // paper is narrower, and scales it
  fit(data.view);
  build();
}).observe(svg);
fit(data.view);
turn(state.level);
})();
