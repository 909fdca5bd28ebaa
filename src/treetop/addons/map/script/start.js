/* The controls, and the beginning. */

const narrow = matchMedia("(max-width: 52rem)");

function radio(words, at) {
  const label = html("label", words), input = html("input");
  input.type = "radio";
  input.name = "level";
  input.value = at;
  input.addEventListener("change", () => chooseLevel(at));
  label.prepend(input);
  $("levels").append(label);
}

function options(select, pairs) {
  for (const [value, words] of pairs) { const option = html("option", words); option.value = value; select.append(option); }
}

function syncControls() {
  for (const input of $("levels").querySelectorAll("input")) input.checked = +input.value === state.level;
  $("shade").value = state.shade;
  syncFilter();
  if (flows) { $("most").value = state.most; $("unsure").checked = state.unsure; }
  $("find").value = state.place < 0 ? "" : called(state.place);
}

function names() {
  const seen = new Set();
  for (const here of data.levels.slice().reverse()) here.places.code.forEach((own, i) => seen.add(here.places.name[i] === null ? own : `${called(i, here)} (${own})`));
  $("names").append(...[...seen].slice(0, 5000).map((value) => { const option = html("option"); option.value = value; return option; }));
}

if (data.levels.length > 1) radio(say("automatic"), AUTOMATIC);
data.levels.forEach((at, i) => radio(at.name, i));
$("levels").hidden = data.levels.length === 1;
options($("shade"), SHADES);
$("shade-row").hidden = SHADES.length === 1;
$("shade").addEventListener("change", (event) => { state.shade = event.target.value; refresh(); note(); });
if (flows) {
  const held = Math.max(...data.levels.map((here) => here.flows.length)), enough = MOST.findIndex((most) => most >= held);
  options($("most"), MOST.filter((most, i) => !most || enough < 0 || i <= Math.max(enough, MOST.indexOf(FIRST))).map((most) => [most, most ? number(most) : say("no_flows")]));
  $("most").addEventListener("change", (event) => { state.most = +event.target.value; refresh(); note(); });
  $("unsure").addEventListener("change", (event) => { state.unsure = event.target.checked; refresh(); note(); });
}
$("find").addEventListener("change", (event) => find(event.target.value));
$("controls").addEventListener("submit", (event) => { event.preventDefault(); find($("find").value); });
startFilter();
$("nearer").addEventListener("click", () => zoom(1.5));
$("farther").addEventListener("click", () => zoom(1 / 1.5));
$("whole").addEventListener("click", showWhole);
$("outside").addEventListener("click", showWhole);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); refresh(); });

let width = wide(), height = high();
new ResizeObserver(() => {
  if ((wide() === width && high() === height) || document.documentElement.classList.contains("paper")) return;
  if (state.fitted) fit(state.fitted); else pan((wide() - width) / 2, (high() - height) / 2);
  sized();
  refresh();
}).observe(sheet);

function sized() {
  [width, height] = [wide(), high()];
  marks.setAttribute("viewBox", `0 0 ${width} ${height}`); /* paper is narrower, and scales it */
}

sized();
readColours();
names();
restore();
