
"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const words = data.words, listed = data.count.length, all = data.columns[0].at.length;
const WIDTH = 120, HEIGHT = 14;
const state = { sort: data.columns.length, down: true, page: 0, found: [] };

/* Words and numbers, in the language of the page. */

const number = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, data.group);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLocaleLowerCase(data.language);

function html(tag, attributes, ...inside) {
  const element = document.createElement(tag);
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  element.append(...inside);
  return element;
}

function drawn(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  return element;
}

/* On a narrow screen all attributes share one column, so that the numbers are in sight. */

const narrow = matchMedia("(max-width: 44rem)");
const isCompact = () => narrow.matches && data.columns.length > 1;
const columns = () => isCompact() ? [data.columns.map((_, i) => i)] : data.columns.map((_, i) => [i]);

/* What stands in a row. */

const isZero = (row) => row >= listed;
const count = (row) => isZero(row) ? 0 : data.count[row];
const upper = (row) => isZero(row) ? (data.absent ? data.absent[row - listed] : 0) : data.upper[row];
const lower = (row) => isZero(row) ? 0 : data.lower[row];
const isOutside = (row) => !isZero(row) && data.lower !== null && (count(row) < lower(row) || count(row) > upper(row));
const isNoise = (row) => !isZero(row) && data.noise !== null && data.noise[row] === 1;

const compare = new Intl.Collator(data.language, { numeric: true, sensitivity: "base" }).compare;
for (const column of data.columns) {
  column.called = column.code.map((code, i) => column.name && column.name[i] !== null ? column.name[i] : code);
  column.plain = column.code.map((code, i) => plain(code + (column.called[i] === code ? "" : " " + column.called[i])));
  const order = column.code.map((_, i) => i).sort((a, b) => compare(column.called[a], column.called[b]) || a - b);
  column.rank = [];
  order.forEach((entry, rank) => { column.rank[entry] = rank; });
}

/* Which rows are shown, and in what order. */

function matching() {
  const terms = plain($("search").value).split(/\s+/).filter(Boolean);
  const hits = terms.map((term) => data.columns.map((column) => column.plain.map((text) => text.includes(term))));
  const stands = $("stands") && $("stands").checked, last = stands || !($("zeros") && $("zeros").checked) ? listed : all;
  const found = [];
  for (let row = 0; row < last; row++) {
    if (stands && isNoise(row)) continue;
    if (hits.every((columns) => columns.some((column, i) => column[data.columns[i].at[row]]))) found.push(row);
  }
  return found;
}

function sorted(rows) {
  const column = data.columns[state.sort], way = state.down ? -1 : 1;
  const range = state.sort === data.columns.length + 1;
  const value = column ? (row) => column.rank[column.at[row]] : range ? upper : count;
  return rows.sort((a, b) => way * (value(a) - value(b)) || (column ? count(b) - count(a) : upper(b) - upper(a)) || a - b);
}

/* A range as a bar: the band is the range, the tick is the number. */

function bar(row, most) {
  const x = (value) => (Math.min(value, most) / Math.max(most, 1) * (WIDTH - 2) + 1).toFixed(1);
  const picture = drawn("svg", { class: "bar", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, "aria-hidden": "true", focusable: "false" });
  const from = x(lower(row)), wide = Math.max(2, x(upper(row)) - from);
  picture.append(drawn("line", { class: "track", x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2 }),
    drawn("rect", { class: "amount", x: 0, y: 5, width: x(count(row)), height: HEIGHT - 10 }),
    drawn("rect", { class: "band", x: Math.min(from, WIDTH - 2), y: 2, width: wide.toFixed(1), height: HEIGHT - 4, rx: 1.5 }),
    drawn("line", { class: "tick", x1: x(count(row)), x2: x(count(row)), y1: 0.5, y2: HEIGHT - 0.5 }));
  return picture;
}

function label(column, row) {
  const entry = column.at[row], code = column.code[entry], called = column.called[entry];
  /* A word that no line holds may be broken anywhere; others are not. */
  const name = html("bdi", /\S{25}/.test(called + " " + code) ? { class: "long" } : {}, called);
  return called === code ? [name] : [name, " ", html("small", {}, html("bdi", {}, code))];
}

function line(row, most) {
  const element = html("tr", { class: isZero(row) ? "zero" : isNoise(row) ? "noise" : "" });
  columns().forEach((group, i) => {
    const parts = group.length === 1 ? label(data.columns[group[0]], row)
      : group.map((at) => html("div", {}, html("small", { class: "of" }, html("bdi", {}, data.columns[at].short)), " ", ...label(data.columns[at], row)));
    element.append(html(i ? "td" : "th", i ? { class: "text" } : { scope: "row", class: "text" }, ...parts));
  });
  const said = isZero(row) && data.named ? words.not_named : number(count(row));
  element.append(html("td", { class: "number" }, ...(isNoise(row) ? [html("span", { class: "mark" }, words.may_be_noise), " "] : []), said));
  if (data.lower !== null) {
    const bounds = isZero(row) ? (data.absent ? fill(words.at_most, { upper: number(upper(row)) }) : "") : fill(words.to, { lower: number(lower(row)), upper: number(upper(row)) });
    element.append(html("td", { class: "range" }, bar(row, most), html("span", {}, bounds), ...(isOutside(row) ? [" ", html("span", { class: "mark" }, words.outside)] : [])));
  }
  return element;
}

function sorter(name, at, text) {
  const button = html("button", { type: "button", "data-sort": at, title: fill(words.sort, { column: name }) }, html("bdi", {}, name), html("span", { class: "arrow", "aria-hidden": "true" }));
  button.addEventListener("click", () => {
    state.down = state.sort === at ? !state.down : !text;
    state.sort = at;
    state.page = 0;
    update();
  });
  return button;
}

function heading() {
  const row = html("tr", {}), most = data.columns.length;
  for (const group of columns()) row.append(html("th", { scope: "col", class: "text" }, ...group.map((at) => sorter(data.columns[at].head, at, true))));
  row.append(html("th", { scope: "col", class: "number" }, sorter(words.count, most, false)));
  if (data.lower !== null) row.append(html("th", { scope: "col", class: "range" }, sorter(words.range, most + 1, false), html("span", { id: "scale", class: "scale" })));
  $("rows").tHead.replaceChildren(row);
}

/* What a column, and a button in it, says of the order. */
function ordered() {
  const way = state.down ? "descending" : "ascending";
  for (const cell of $("rows").tHead.querySelectorAll("th")) {
    const buttons = [...cell.querySelectorAll("button")];
    for (const button of buttons) button.className = +button.dataset.sort === state.sort ? way : "";
    cell.setAttribute("aria-sort", buttons.some((button) => button.className) ? way : "none");
  }
}

/* Drawing. */

function update() {
  state.found = sorted(matching());
  show();
}

function show() {
  const size = +$("size").value, found = state.found, pages = Math.max(1, Math.ceil(found.length / size));
  state.page = Math.max(0, Math.min(state.page, pages - 1));
  const rows = found.slice(state.page * size, (state.page + 1) * size);
  const most = data.lower === null ? 0 : rows.reduce((top, row) => Math.max(top, upper(row), count(row)), 1);
  $("rows").tBodies[0].replaceChildren(...rows.map((row) => line(row, most)));
  $("rows").hidden = rows.length === 0;
  ordered();
  if ($("scale")) $("scale").textContent = fill(words.scale, { most: number(most) });
  $("status").textContent = rows.length ? fill(words.status, { first: number(state.page * size + 1), last: number(state.page * size + rows.length), number: number(found.length) }) : words.none;
  $("where").textContent = fill(words.page, { page: number(state.page + 1), pages: number(pages) });
  $("pager").hidden = pages === 1;
  /* Not disabled: a button that loses its focus sends a keyboard back to the top. */
  $("previous").setAttribute("aria-disabled", state.page === 0);
  $("next").setAttribute("aria-disabled", state.page === pages - 1);
}

function restart() { state.page = 0; update(); }

heading();
let waiting = 0;
$("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(restart, 120); });
$("controls").addEventListener("submit", (event) => { event.preventDefault(); restart(); });
for (const id of ["size", "stands", "zeros"]) if ($(id)) $(id).addEventListener("change", restart);
$("previous").addEventListener("click", () => { state.page--; show(); });
$("next").addEventListener("click", () => { state.page++; show(); });
narrow.addEventListener("change", () => { heading(); show(); });
$("controls").hidden = false;
update();
})();
