/* What the page was given, and its words and numbers as its language writes them. */

const data = JSON.parse(document.getElementById("data").textContent);
const flows = data.kind === "flows";
const $ = (id) => document.getElementById(id);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const say = (key, values = {}) => fill(data.words[key], values);
const join = (...sentences) => sentences.filter(Boolean).join(" ");
const number = (value) => {
  const [whole, part] = String(value).split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, data.format.group) + (part ? data.format.decimal + part : "");
};
const sure = (value) => fill(data.format.percent, { number: number(value) });
const percent = (part, whole) => sure(whole ? (100 * part / whole).toFixed(part / whole < 0.0995 ? 1 : 0) : 0);
const between = (a, b) => say("between", { a, b });

/* A number with its interval, where it has one; what is exact needs none. */
function interval(count, lower, upper) {
  const isOpen = lower !== null && lower !== undefined && !(lower === count && upper === count);
  const outside = isOpen && (count < lower || count > upper) ? `; ${say("outside_range")}` : "";
  return [number(count), isOpen ? between(number(lower), number(upper)) + outside : ""];
}

function bounded(...numbers) {
  const [count, range] = interval(...numbers);
  return range ? `${count} (${range})` : count;
}

function html(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

function make(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  if (text !== undefined) element.textContent = text;
  return element;
}
