
"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const words = data.words, WIDTH = 120, HEIGHT = 14, FIRST = 12, OVERVIEW = 25;

/* Words and numbers, in the language of the page. */

const number = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, data.group);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLocaleLowerCase(data.language);
const compare = new Intl.Collator(data.language, { numeric: true, sensitivity: "base" }).compare;

function html(tag, attributes, ...inside) {
  const element = document.createElement(tag);
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  element.append(...inside);
  return element;
}

function drawn(tag, attributes, ...inside) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  element.append(...inside);
  return element;
}

const choices = (select, pairs) => select.replaceChildren(...pairs.map(([value, text]) => html("option", { value }, text)));

/* The tables: of all attributes, of each alone, and of pairs. Rows above zero come first, then zeros. */

const tables = [data, ...data.tables];
const keyOf = (column) => `${column.of}\n${column.level}`;
for (const table of tables) {
  table.keys = table.columns.map(keyOf);
  table.listed = table.count.length;
  table.all = table.columns[0].at.length;
  for (const column of table.columns) column.called = column.code.map((code, i) => column.name && column.name[i] !== null ? column.name[i] : code);
}
const find = (...keys) => tables.find((table) => table.keys.length === keys.length && keys.every((key) => table.keys.includes(key)));
const attributes = data.columns.map((column) => column.of);
const alone = attributes.map((of) => tables.filter((table) => table.keys.length === 1 && table.columns[0].of === of)
  .sort((a, b) => a.columns[0].code.length - b.columns[0].code.length));

function cell(table, row) {
  const zero = row >= table.listed, count = zero ? 0 : table.count[row], ranged = data.lower !== null;
  const upper = !ranged ? count : zero ? (table.absent ? table.absent[row - table.listed] : 0) : table.upper[row];
  const lower = !ranged || zero ? (zero ? 0 : count) : table.lower[row];
  return { zero, count, lower, upper, exact: table.exact, noise: !zero && table.noise !== null && table.noise[row] === 1,
    outside: ranged && !zero && (count < lower || count > upper), known: ranged && (!zero || table.absent !== null),
    unnamed: zero && table.named };
}
const reach = (one) => Math.max(one.count, one.upper);

function range(one) {
  if (one.exact && !one.unnamed) return words.exact;
  if (!one.known) return "";
  return one.zero ? fill(words.at_most, { upper: number(one.upper) }) : fill(words.to, { lower: number(one.lower), upper: number(one.upper) });
}

/* A range as a bar: the band is the range, the tick is the number. */

function bar(one, most) {
  const x = (value) => (Math.min(value, most) / Math.max(most, 1) * (WIDTH - 2) + 1).toFixed(1);
  const picture = drawn("svg", { class: "bar", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, "aria-hidden": "true", focusable: "false" });
  const from = x(one.lower), wide = Math.max(2, x(one.upper) - from);
  picture.append(drawn("line", { class: "track", x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2 }),
    drawn("rect", { class: "amount", x: 0, y: 3, width: x(one.count), height: HEIGHT - 6 }));
  if (one.known && !one.exact) picture.append(drawn("rect", { class: "band", x: Math.min(from, WIDTH - 2), y: 2, width: wide.toFixed(1), height: HEIGHT - 4, rx: 1.5 }));
  picture.append(drawn("line", { class: "tick", x1: x(one.count), x2: x(one.count), y1: 0.5, y2: HEIGHT - 0.5 }));
  return picture;
}

function label(column, entry) {
  const code = column.code[entry], called = column.called[entry];
  /* A word that no line holds may be broken anywhere; others are not. */
  const name = html("bdi", /\S{25}/.test(called + " " + code) ? { class: "long" } : {}, called);
  return called === code ? [name] : [name, " ", html("small", {}, html("bdi", {}, code))];
}

/* The same as a link to the page of the entry, if it has one. */
function linked(column, entry, current) {
  const own = find(keyOf(column));
  if (!own || attributes.length < 2 || !own.columns[0].code.includes(column.code[entry])) return label(column, entry);
  return [html("a", { href: `#only=${address(column, column.code[entry])}`, ...(current ? { "aria-current": "true" } : {}) }, ...label(column, entry))];
}
const address = (column, code) => `${encodeURIComponent(column.of)}/${encodeURIComponent(column.level)}/${encodeURIComponent(code)}`;

/* The cells of a number: itself, its range, and what has to be said of it. */

function numbers(one, most, drawn = data.lower !== null) {
  const said = one.unnamed ? words.not_named : number(one.count);
  const cells = [html("td", { class: "number" }, ...(one.noise ? [html("span", { class: "mark" }, words.may_be_noise), " "] : []), said)];
  if (drawn) cells.push(html("td", { class: "range" }, bar(one, most), html("span", {}, range(one)), ...(one.outside ? [" ", html("span", { class: "mark" }, words.outside)] : [])));
  return cells;
}
const kind = (one) => one.zero ? "zero" : one.noise ? "noise" : "";

/* Totals: a chart of each attribute, of all or of one entry that was chosen. */

let only = null;
const charts = alone.filter((levels) => levels.length).map((levels) => ({ levels, all: false, order: null,
  level: levels.filter((table) => table.columns[0].code.length <= (table.columns[0].dates ? 4 * OVERVIEW : OVERVIEW)).pop() || levels[0] }));
const levelsOf = (of) => charts.find((chart) => chart.levels[0].columns[0].of === of).levels;

/* The rows of a chart: all of a level, or those of a pair that have the chosen entry. None if the page has them not. */
function part(level) {
  if (!only || only.column.of === level.columns[0].of) return { table: level, column: level.columns[0], rows: [...Array(level.all).keys()] };
  const table = find(only.key, level.keys[0]);
  if (!table || table.listed < table.number) return null;
  const at = table.keys.indexOf(only.key), entry = table.columns[at].code.indexOf(only.code);
  return { table, column: table.columns[1 - at], rows: [...Array(table.all).keys()].filter((row) => table.columns[at].at[row] === entry) };
}

/* In the chosen entry's own attribute, what lies within it; of a finest entry that the chart does not show, what lies beside it. */
function inner(chart) {
  if (!only || chart.levels[0].columns[0].of !== only.column.of) return null;
  const own = chart.levels.findIndex((table) => table.keys[0] === only.key), beside = own + 1 === chart.levels.length;
  if (own < 0 || (beside && (own === 0 || chart.level === chart.levels[own]))) return null;
  const at = beside ? own : own + 1, table = chart.levels[at], column = table.columns[0], coarser = chart.levels[at - 1].columns[0];
  if (table.listed < table.number) return null;
  const top = beside ? column.under[column.code.indexOf(only.code)] : only.code;
  return { table, column, within: coarser.called[coarser.code.indexOf(top)], rows: [...Array(table.all).keys()].filter((row) => column.under[column.at[row]] === top) };
}

/* Dates, bands and short lists are in the order in which they were listed; places and other long lists by size. */
const isScale = (levels, { code, dates }) => dates || (levels.length === 1 && (code.length <= 6 || code.every((one) => /\d/.test(one))));

function ordered(chart, { table, column, rows }) {
  const listed = (chart.order || (isScale(chart.levels, column) ? "listed" : "size")) === "listed";
  const count = (row) => row < table.listed ? table.count[row] : 0;
  return rows.sort((a, b) => (listed ? 0 : count(b) - count(a)) || column.at[a] - column.at[b]);
}

function overTime(found, rows) {
  const cells = rows.map((row) => cell(found.table, row)), wide = 560, high = 150, foot = 18, step = wide / rows.length;
  const most = Math.max(1, ...cells.map(reach)), y = (value) => ((high - foot) * (1 - value / most)).toFixed(1);
  const picture = drawn("svg", { class: "time", viewBox: `0 -18 ${wide} ${high + 18}`, "aria-hidden": "true", focusable: "false" });
  const each = Math.ceil(rows.length / 7);
  cells.forEach((one, i) => {
    const left = (i * step + step * 0.15).toFixed(1), middle = ((i + 0.5) * step).toFixed(1), text = found.column.called[found.column.at[rows[i]]];
    picture.append(drawn("rect", { class: "column", x: left, y: y(one.count), width: (step * 0.7).toFixed(1), height: (y(0) - y(one.count)).toFixed(1) }));
    if (one.known && !one.exact) picture.append(drawn("line", { class: "whisker", x1: middle, x2: middle, y1: y(one.lower), y2: y(one.upper) }));
    if (i % each === 0) picture.append(drawn("text", { x: i || step > 60 ? middle : 0, y: high - 3, "text-anchor": i || step > 60 ? "middle" : "start" }, text));
  });
  picture.append(drawn("line", { class: "track", x1: 0, x2: wide, y1: y(0), y2: y(0) }));
  const top = cells.reduce((best, one, i) => one.count > cells[best].count ? i : best, 0), peak = cells[top];
  if (peak.count) picture.append(drawn("text", { class: "peak", x: Math.max(24, Math.min((top + 0.5) * step, wide - 24)).toFixed(1), y: y(peak.known ? reach(peak) : peak.count) - 4, "text-anchor": "middle" }, number(peak.count)));
  return picture;
}

function chartRow(chart, found, row, most) {
  const one = cell(found.table, row), entry = found.column.at[row], key = keyOf(found.column), code = found.column.code[entry];
  const chosen = only && only.key === key && only.code === code;
  const name = one.unnamed ? label(found.column, entry) : linked(found.column, entry, chosen);
  if (name[0].href) name[0].addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; /* which open it elsewhere */
    event.preventDefault();
    choose(chosen ? null : { column: found.column, key, code, called: found.column.called[entry] }, chart);
  });
  return html("tr", { class: `${kind(one)}${chosen ? " chosen" : ""}` }, html("th", { scope: "row", class: "text" }, ...name), ...numbers(one, most, true));
}

function lines(chart, found, rows, head) {
  const most = Math.max(1, ...rows.map((row) => reach(cell(found.table, row))));
  return html("table", {}, html("caption", {}, head), html("tbody", {}, ...rows.map((row) => chartRow(chart, found, row, most))));
}

function drawChart(chart) {
  const finer = inner(chart), found = finer || part(chart.level), body = chart.place.querySelector(".body"), column = finer ? finer.column : chart.level.columns[0];
  const title = finer ? fill(words.inside, { level: column.level, name: finer.within }) : column.head;
  if (!found) return body.replaceChildren(html("p", { class: "small" }, words.not_here));
  const rows = ordered(chart, found), all = chart.all || rows.length <= FIRST + 3, shown = all ? rows : rows.slice(0, FIRST);
  const inside = column.dates && rows.length > 2 ? [overTime(found, ordered({ order: "listed" }, { ...found, rows: [...rows] }))] : [];
  if (finer) inside.push(html("h4", {}, html("bdi", {}, title)));
  inside.push(lines(chart, found, shown, title));
  if (!rows.length) inside.splice(0, 2, html("p", { class: "small" }, words.nothing));
  if (rows.length > FIRST + 3) {
    const more = html("button", { type: "button", class: "more", "aria-expanded": chart.all }, chart.all ? words.fewer : fill(words.more, { number: number(rows.length) }));
    more.addEventListener("click", () => { chart.all = !chart.all; drawChart(chart); chart.place.querySelector(".more").focus(); });
    inside.push(more);
  }
  if (found.table.listed < found.table.number) inside.push(html("p", { class: "notice" }, fill(words.held, { shown: number(found.table.listed), number: number(found.table.number) })));
  body.replaceChildren(...inside);
}

/* The page of one entry, which has an address of its own: its number and range, its rank, and its part of all else. */
function named(text) {
  const [of, level, code] = text.split("/").map(decodeURIComponent);
  const table = tables.find((own) => own.keys.length === 1 && own.columns[0].of === of && own.columns[0].level === level);
  const entry = table ? table.columns[0].code.indexOf(code) : -1;
  return entry < 0 ? null : { column: table.columns[0], key: table.keys[0], code, called: table.columns[0].called[entry] };
}

function choose(chosen, chart) {
  only = chosen;
  const focused = chart && chart.place.contains(document.activeElement);
  charts.forEach(drawChart);
  $("only").hidden = only === null;
  if (only) {
    const table = find(only.key), entry = table.columns[0].code.indexOf(only.code), row = table.columns[0].at.indexOf(entry), one = cell(table, row);
    const larger = table.count.filter((count) => count > one.count).length, whole = table.listed === table.number;
    $("only-of").textContent = table.columns[0].head;
    $("only-name").textContent = only.called;
    $("only-count").textContent = one.unnamed ? words.not_named : number(one.count);
    $("only-what").textContent = words.what;
    $("only-range").textContent = [range(one), one.outside ? words.outside : ""].filter(Boolean).join("; ");
    $("only-rank").textContent = !whole || one.zero || isScale(levelsOf(only.column.of), table.columns[0]) ? "" : fill(words.rank, { rank: number(larger + 1), number: number(table.columns[0].code.length) });
  }
  const asked = only ? `#only=${address(only.column, only.code)}` : "#totals";
  if (only ? location.hash !== asked : location.hash.startsWith("#only=")) history.pushState(null, "", asked);
  if (focused) (chart.place.querySelector("[aria-current]") || chart.place.querySelector("tbody a") || $("only-none")).focus({ preventScroll: true });
}

/* What an address asks for: one entry, or one chart alone to be shown on another page. */
function follow(event) {
  const asked = new URLSearchParams(location.hash.slice(1).replace(/\+/g, "%2B")), alone = asked.get("chart");
  if (alone !== null) {
    const chart = charts.find((own) => own.levels[0].columns[0].of === alone);
    document.documentElement.classList.toggle("embedded", Boolean(chart));
    document.documentElement.classList.remove("of-table");
    for (const own of charts) own.place.hidden = chart && own !== chart;
  }
  const text = (location.hash.match(/[#&]only=([^&]*)/) || [])[1];
  const chosen = text ? named(text) : null;
  if (chosen) choose(chosen, null);
  else if (only) choose(null, charts[0]);
  if (chosen && event && event.type === "hashchange") { $("only").scrollIntoView({ block: "center" }); $("only-name").focus({ preventScroll: true }); }
}

/* The text that shows a chart, or the table, on another page. */
function embedding(asked, height) {
  const code = html("code", { tabindex: 0 }), whole = html("details", { class: "embed" }, html("summary", {}, words.embed), html("p", { class: "small" }, words.embed_about), code);
  whole.addEventListener("toggle", () => { code.textContent = `<iframe src="${location.href.split("#")[0]}#${asked()}" title="${document.title.replace(/[&"<>]/g, "")}" width="600" height="${height}"></iframe>`; });
  return whole;
}
const chartAddress = (of) => `chart=${encodeURIComponent(of)}${only && only.column.of !== of ? `&only=${address(only.column, only.code)}` : ""}`;

charts.forEach((chart, i) => {
  const first = chart.levels[0].columns[0], tools = html("div", { class: "tools" });
  if (chart.levels.length > 1) {
    const level = html("select", { id: `level${i}` });
    choices(level, chart.levels.map((table, at) => [at, `${table.columns[0].level} (${number(table.columns[0].code.length)})`]));
    level.value = chart.levels.indexOf(chart.level);
    level.addEventListener("change", () => { chart.level = chart.levels[level.value]; chart.all = false; drawChart(chart); });
    tools.append(html("span", {}, html("label", { for: `level${i}` }, words.level), " ", level));
  }
  if (chart.levels.some((table) => table.columns[0].code.length > 3)) {
    const order = html("select", { id: `order${i}` });
    choices(order, [["", words.as_usual], ["size", words.by_size], ["listed", words.as_listed]]);
    order.addEventListener("change", () => { chart.order = order.value || null; drawChart(chart); });
    tools.append(html("span", {}, html("label", { for: `order${i}` }, words.order), " ", order));
  }
  chart.place = html("section", { class: "chart", "aria-labelledby": `chart${i}` }, html("h3", { id: `chart${i}` }, html("bdi", {}, first.short)), tools, html("div", { class: "body" }), embedding(() => chartAddress(first.of), 480));
  $("charts").append(chart.place);
  drawChart(chart);
});
$("only-none").addEventListener("click", () => { choose(null, charts[0]); $("totals").focus(); });
addEventListener("hashchange", follow);
addEventListener("popstate", follow);

/* The table: of any choice of one or two levels, or of all attributes; searched, sorted, a page at a time. */

let table = data;
const state = { sort: 0, down: true, page: 0, found: [], picked: new Set() };
const narrow = matchMedia("(max-width: 44rem)");
const isCompact = () => narrow.matches && table.columns.length > 1;
/* On a narrow screen all attributes share one column, so that the numbers are in sight. */
const columns = () => isCompact() ? [table.columns.map((_, i) => i)] : table.columns.map((_, i) => [i]);

function prepared(column) {
  if (column.rank) return;
  column.plain = column.code.map((code, i) => plain(code + (column.called[i] === code ? "" : " " + column.called[i])));
  column.rank = [];
  column.code.map((_, i) => i).sort((a, b) => compare(column.called[a], column.called[b]) || a - b)
    .forEach((entry, rank) => { column.rank[entry] = rank; });
}

const terms = () => plain($("search").value).split(/\s+/).filter(Boolean);

function matching(zeros = $("zeros").checked) {
  const hits = terms().map((term) => table.columns.map((column) => column.plain.map((text) => text.includes(term))));
  const stands = table.noise !== null && !data.named && $("stands").checked, last = stands || !zeros ? table.listed : table.all;
  const found = [];
  for (let row = 0; row < last; row++) {
    if (stands && row < table.listed && table.noise[row]) continue;
    if (hits.every((own) => own.some((column, i) => column[table.columns[i].at[row]]))) found.push(row);
  }
  return found;
}

function sorted(rows) {
  const column = table.columns[state.sort], way = state.down ? -1 : 1, ranged = table.upper !== null;
  const count = (row) => row < table.listed ? table.count[row] : 0;
  const upper = (row) => !ranged ? count(row) : row < table.listed ? table.upper[row] : table.absent ? table.absent[row - table.listed] : 0;
  const value = column ? (row) => column.rank[column.at[row]] : state.sort === table.columns.length + 1 ? upper : count;
  return rows.sort((a, b) => way * (value(a) - value(b)) || (column ? count(b) - count(a) : upper(b) - upper(a)) || a - b);
}

/* Rows that are selected have their sum above the table. */
function picker(row, element) {
  const name = table.columns.map((column) => column.called[column.at[row]]).join(", ");
  const box = html("input", { type: "checkbox", class: "pick", "aria-label": fill(words.pick, { name }) });
  const mark = () => { box.checked = state.picked.has(row); element.classList.toggle("picked", box.checked); };
  box.addEventListener("change", () => { state.picked[box.checked ? "add" : "delete"](row); mark(); told(); });
  mark();
  return box;
}

/* The range of the sum of some rows: of their measurements, or else of ranges that hold all at once; null if unknown. */
function together(rows) {
  const { sums, wide } = table, add = (value) => rows.reduce((all, row) => all + value(row), 0);
  if (rows.length === 1 || table.exact) return rows.length === 1 ? range(cell(table, rows[0])) : words.exact;
  let ends = null;
  if (sums && rows.every((row) => sums.value[row] !== null)) {
    const middle = add((row) => sums.value[row]), margin = sums.margin[sums.number.findIndex((number) => number >= rows.length)];
    ends = [middle - margin, middle + margin];
  } else if (wide && rows.length <= wide.most) ends = [add((row) => wide.lower[row]), add((row) => wide.upper[row])];
  return ends && fill(words.to, { lower: number(Math.max(0, ends[0])), upper: number(Math.max(0, ends[1])) });
}

function total(rows) {
  const count = rows.reduce((all, row) => all + cell(table, row).count, 0), own = together(rows);
  return own ? fill(words.sum_own, { count: number(count), range: own }) : fill(words.sum, { count: number(count) });
}

function told() {
  const picked = [...state.picked];
  $("sum").textContent = picked.length ? `${fill(words.picked, { number: number(picked.length) })} ${total(picked)}` : sum();
  $("unpick").hidden = !picked.length;
}

function line(row, most) {
  const one = cell(table, row), element = html("tr", { class: kind(one) });
  columns().forEach((group, i) => {
    const parts = group.length === 1 ? linked(table.columns[group[0]], table.columns[group[0]].at[row])
      : group.map((at) => html("div", {}, html("small", { class: "of" }, html("bdi", {}, table.columns[at].short)), " ", ...linked(table.columns[at], table.columns[at].at[row])));
    element.append(html(i ? "td" : "th", i ? { class: "text" } : { scope: "row", class: "text" }, ...(i ? [] : [picker(row, element)]), ...parts));
  });
  element.append(...numbers(one, most));
  return element;
}

function sorter(name, at, text) {
  const button = html("button", { type: "button", "data-sort": at, title: fill(words.sort, { column: name }) }, html("bdi", {}, name), html("span", { class: "arrow", "aria-hidden": "true" }));
  button.addEventListener("click", () => {
    state.down = state.sort === at ? !state.down : !text;
    state.sort = at;
    restart();
  });
  return button;
}

function heading() {
  const row = html("tr", {}), most = table.columns.length;
  for (const group of columns()) row.append(html("th", { scope: "col", class: "text" }, ...group.map((at) => sorter(table.columns[at].head, at, true))));
  row.append(html("th", { scope: "col", class: "number" }, sorter(words.count, most, false)));
  if (data.lower !== null) row.append(html("th", { scope: "col", class: "range" }, sorter(words.range, most + 1, false), html("span", { id: "scale", class: "scale" })));
  $("rows").tHead.replaceChildren(row);
}

/* What a column, and a button in it, says of the order. */
function headed() {
  const way = state.down ? "descending" : "ascending";
  for (const place of $("rows").tHead.querySelectorAll("th")) {
    const buttons = [...place.querySelectorAll("button")];
    for (const button of buttons) button.className = +button.dataset.sort === state.sort ? way : "";
    place.setAttribute("aria-sort", buttons.some((button) => button.className) ? way : "none");
  }
}

/* The number of some entries in a table of their own, with its own range; empty if there is none. */
function own(entries) {
  const other = find(...entries.map(([at]) => table.keys[at]));
  if (!other || other === table) return "";
  const places = entries.map(([at, entry]) => {
    const column = other.columns[other.keys.indexOf(table.keys[at])];
    return [column, column.code.indexOf(table.columns[at].code[entry])];
  });
  const row = other.count.findIndex((_, i) => places.every(([column, entry]) => column.at[i] === entry));
  if (row < 0) return "";
  const one = cell(other, row), name = places.map(([column, entry]) => `${column.head} ${column.called[entry]}`).join(", ");
  const said = fill(words.sum_range, { name, count: number(one.count), range: range(one) });
  return one.outside ? `${said} (${words.outside})` : said;
}

/* The sum of what was searched: with its own range where another table has it, and without one elsewhere. */
function sum() {
  const asked = terms();
  if (!asked.length || !state.found.length || (table.noise !== null && $("stands").checked)) return "";
  const hits = asked.map((term) => table.columns.flatMap((column, at) => column.plain.flatMap((text, entry) => text.includes(term) ? [[at, entry]] : [])));
  if (data.lower === null || Math.max(...hits.map((found) => found.length)) > (asked.length > 1 ? 1 : table.columns.length)) return added();
  const found = asked.length > 1 ? [own(hits.map(([hit]) => hit))] : hits[0].map((hit) => own([hit]));
  return found.every(Boolean) ? found.join(" · ") : added();
}

function added() {
  if (table.listed < table.number || table.named || data.named || state.found.length < 2) return "";
  return total(matching(true)); /* those that are zero, too: in truth they may be more */
}

function update() {
  table.columns.forEach(prepared);
  state.found = sorted(matching());
  show();
  told();
}

function show() {
  const size = +$("size").value, found = state.found, pages = Math.max(1, Math.ceil(found.length / size));
  state.page = Math.max(0, Math.min(state.page, pages - 1));
  const rows = found.slice(state.page * size, (state.page + 1) * size);
  const most = rows.reduce((top, row) => Math.max(top, reach(cell(table, row))), 1);
  $("rows").tBodies[0].replaceChildren(...rows.map((row) => line(row, most)));
  $("rows").hidden = rows.length === 0;
  headed();
  if ($("scale")) $("scale").textContent = fill(words.scale, { most: number(most) });
  $("status").textContent = rows.length ? fill(words.status, { first: number(state.page * size + 1), last: number(state.page * size + rows.length), number: number(found.length) }) : table.none;
  $("where").textContent = fill(words.page, { page: number(state.page + 1), pages: number(pages) });
  $("pager").hidden = pages === 1;
  /* Not disabled: a button that loses its focus sends a keyboard back to the top. */
  $("previous").setAttribute("aria-disabled", state.page === 0);
  $("next").setAttribute("aria-disabled", state.page === pages - 1);
}

function restart() { state.page = 0; update(); }

/* What the table is of. */

const options = alone.flat().map((own) => [own.keys[0], own.columns[0].head]);

function seconds() {
  const first = $("first").value, of = first.split("\n")[0];
  const usable = options.filter(([key]) => key.split("\n")[0] !== of && find(first, key));
  choices($("second"), [["", words.alone], ...usable]);
  $("second").parentElement.hidden = !first || !usable.length;
}

function turn() {
  const first = $("first").value, second = $("second").value;
  table = !first ? data : second ? find(first, second) : find(first);
  Object.assign(state, { sort: table.columns.length, down: true });
  state.picked.clear();
  if (table.columns.length === 1 && table.columns[0].dates) Object.assign(state, { sort: 0, down: false });
  const outside = table.count.reduce((all, _, row) => all + cell(table, row).outside, 0);
  for (const [id, shown, text] of [["held", table.listed < table.number, table === data ? words.largest : words.held], ["off", outside > 0, words.outside_note]]) {
    $(id).hidden = !shown;
    $(id).textContent = fill(text, { shown: number(table.listed), number: number(id === "off" ? outside : table.number) });
  }
  $("stands").parentElement.hidden = table.noise === null || data.named;
  $("zeros").parentElement.hidden = table.all === table.listed;
  heading();
  restart();
}

choices($("first"), [...(data.columns.length > 1 ? [["", words.together]] : []), ...options]);
$("first").parentElement.hidden = options.length < 2;
$("first").addEventListener("change", () => { seconds(); turn(); });
$("second").addEventListener("change", turn);
let waiting = 0;
$("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(restart, 120); });
$("controls").addEventListener("submit", (event) => { event.preventDefault(); restart(); });
for (const id of ["size", "stands", "zeros"]) $(id).addEventListener("change", restart);
$("previous").addEventListener("click", () => { state.page--; show(); });
$("next").addEventListener("click", () => { state.page++; show(); });
narrow.addEventListener("change", () => { heading(); show(); });
$("controls").hidden = false;
$("unpick").addEventListener("click", () => { state.picked.clear(); told(); show(); $("search").focus(); });
$("embed-table").append(embedding(() => `table=${table === data ? "all" : table.columns.map((column) => `${encodeURIComponent(column.of)}:${encodeURIComponent(column.level)}`).join("/")}${$("search").value ? `&search=${encodeURIComponent($("search").value)}` : ""}`, 640));

/* A table that an address asks for, alone, to be shown on another page; else the one that opens the page. */
function opened() {
  const asked = (location.hash.match(/[#&]table=([^&]+)/) || [])[1];
  const keys = asked && asked.split("/").map((part) => part.split(":").map(decodeURIComponent).join("\n")), wanted = asked === "all" ? data : asked && find(...keys);
  document.documentElement.classList.toggle("of-table", Boolean(wanted));
  if (wanted) {
    document.documentElement.classList.add("embedded");
    $("first").value = wanted === data && data.columns.length > 1 ? "" : wanted.keys[0];
    seconds();
    if (wanted !== data && wanted.keys.length > 1) $("second").value = wanted.keys[1];
    $("search").value = decodeURIComponent((location.hash.match(/&search=([^&]*)/) || ["", ""])[1]);
    return turn();
  }
  /* The table of many attributes is mostly noise: a pair of them opens the page. */
  const opening = charts.slice(0, 2).map((chart) => chart.level.keys[0]), paired = data.columns.length > 2 && opening.length === 2 && find(...opening);
  if (data.columns.length === 1) $("first").value = data.keys[0];
  if (paired) $("first").value = opening[0];
  seconds();
  if (paired) $("second").value = opening[1];
  turn();
}
follow();
opened();
})();
