/* Beside the map, and on a phone at its foot: the answer to what was chosen; otherwise what is largest. */

const LISTED = 8, LARGEST = 10;

function tell() {
  const here = level();
  $("shown").textContent = shownText(here);
  const empty = emptyText(here);
  $("empty").textContent = empty;
  $("empty").hidden = !empty || (flows && state.most === 0);
  if (flows) $("unsure-row").hidden = untested(here) || here.flows.length <= here.real;
  $("noise").textContent = noiseText(here);
  $("noisy").hidden = $("rough").hidden = here.exact;
  legend();
  const box = $("answer"), said = answer(here);
  box.hidden = !said;
  box.replaceChildren(...said ? [closing(), ...said] : []);
  $("overview").hidden = !!said;
  $("overview").replaceChildren(...said ? [] : overview(here));
  if (said) uncover();
}

function answer(here) {
  if (state.place >= 0) return ofPlace(here, state.place);
  if (state.flow >= 0 && scene.flows[state.flow]) return ofFlow(here, scene.flows[state.flow]);
  return state.group ? ofGroup(here, state.group) : null;
}

function closing() {
  const button = html("button", "×", "close");
  button.type = "button";
  button.title = say("show_all");
  button.setAttribute("aria-label", say("show_all"));
  button.addEventListener("click", () => { clear(); sheet.focus({ preventScroll: true }); });
  return button;
}

function heading(text, small) {
  const title = html("h2", text + " ");
  if (small) title.append(html("small", small));
  return title;
}

const isFaint = (here, count, tested) => tested === undefined ? here.margin !== null && count <= here.margin : !tested;

/* A line that can be chosen; in grey where it may be noise. */
function row(go, words, said, faint, why) {
  const item = html("li", undefined, faint ? "faint" : ""), button = html("button", words);
  if (faint) item.title = why;
  button.type = "button";
  button.addEventListener("click", go);
  item.append(button, numbered("span", said));
  return item;
}

/* A number with its interval in small print below it. */
function numbered(tag, [count, interval]) {
  const element = html(tag, count);
  if (interval) element.append(" ", html("small", interval));
  return element;
}

function flowRow(here, i, words, go) {
  const { count, lower, upper } = here.flows, faint = isFaint(here, count[i], untested(here) ? undefined : isReal(i));
  return row(go, words, interval(count[i], lower && lower[i], upper && upper[i]), faint, say(untested(here) ? "no_larger" : "may_be_noise"));
}

/* All of a place, whatever the other end: with the interval of its own measurement where it was measured. */
function totals(here, i) {
  const names = flows ? [["destination", say("arrive_or_stay")], ["origin", say("leave_or_stay")]] : Object.keys(here.totals).map((name) => [name, say("count")]);
  const found = names.map(([name, words]) => {
    const own = here.totals[name], count = own.count[i];
    return count === null ? null : [words, interval(count, own.lower && own.lower[i], own.upper && own.upper[i])];
  });
  if (flows) found.push([say("stay_within"), interval(here.stay[i], here.stays && here.stays[0][i], here.stays && here.stays[1][i])]);
  return found.filter(Boolean);
}

function ofPlace(here, i) {
  const facts = html("dl");
  for (const [words, value] of totals(here, i)) {
    const cell = html("div");
    cell.append(html("dt", words), numbered("dd", value));
    facts.append(cell);
  }
  return [heading(called(i), code(i)), facts, ...elsewhere(here, i), ...flows ? [...partners(here, i, 1), ...partners(here, i, 0)] : []];
}

/* To the pages of a place on the site that the map belongs to. */
function elsewhere(here, i) {
  if (!data.home || here.of.length + data.summed.length < 2) return []; /* pages of places show other attributes */
  return here.of.map(([of, name]) => {
    const line = html("p", undefined, "small"), link = html("a", say("all_numbers", { place: called(i) }) + (here.of.length > 1 ? ` (${data.ends[of]})` : ""));
    link.href = `${data.home}#only=${[of, name, here.places.code[i]].map(encodeURIComponent).join("/")}`;
    line.append(link);
    return line;
  });
}

function partners(here, i, side) {
  const { origin, destination, count } = here.flows, own = side ? destination : origin, other = side ? origin : destination, key = side ? "in" : "out", found = [];
  for (let at = 0; at < count.length; at++) if (own[at] === i && (state.unsure || isReal(at))) found.push(at);
  const head = html("h3"), list = html("ol"), listed = found.slice(0, LISTED);
  head.append(html("span", undefined, "mark " + key), say(side ? "come_from" : "go_to"));
  list.append(...listed.map((at) => flowRow(here, at, called(other[at]), () => choosePlace(other[at]))));
  const rest = here[key][i] - listed.reduce((sum, at) => sum + count[at], 0);
  const words = rest > 0 ? say(side ? "from_elsewhere" : "to_elsewhere", { number: number(rest) }) : listed.length ? "" : say("none");
  return [head, ...listed.length ? [list] : [], ...words ? [html("p", words, "small")] : []];
}

function ofFlow(here, flow) {
  const words = `${groupName(flow.from.members)} → ${groupName(flow.to.members)}`;
  if (flow.parts > 1) return ofBundle(here, flow, words);
  const { lower, upper } = here.flows, facts = html("dl"), cell = html("div");
  cell.append(html("dt", say("count")), numbered("dd", interval(flow.count, lower && lower[flow.i], upper && upper[flow.i])));
  facts.append(cell);
  const said = untested(here) ? (isFaint(here, flow.count) ? say("no_larger") + "." : "") : flow.real ? say("this_stands") : say("may_be_noise") + ".";
  const ways = html("ol");
  for (const i of [here.flows.origin[flow.i], here.flows.destination[flow.i]]) ways.append(row(() => choosePlace(i), called(i), totals(here, i)[0][1], false));
  return [heading(words), facts, html("p", said, "small"), ways];
}

/* A bundle is a sum, and says so; its parts have intervals of their own. */
function ofBundle(here, flow, words) {
  const list = html("ol"), { origin, destination } = here.flows;
  let listed = 0;
  for (let i = 0; i < here.flows.length && listed < LISTED; i++)
    if (scene.nodes[scene.own[origin[i]]] === flow.from && scene.nodes[scene.own[destination[i]]] === flow.to && (state.unsure || isReal(i))) {
      list.append(flowRow(here, i, `${called(origin[i])} → ${called(destination[i])}`, () => choosePlace(destination[i])));
      listed++;
    }
  return [heading(words), html("p", say("sum_of_flows", { number: number(flow.parts), count: number(flow.count) })), list];
}

function ofGroup(here, members) {
  const list = html("ol"), button = html("button", say("apart"), "wide");
  for (const i of members.slice(0, 4 * LISTED)) list.append(row(() => choosePlace(i), called(i), totals(here, i).length ? totals(here, i)[0][1] : [number(0)], false));
  button.type = "button";
  button.addEventListener("click", () => spread(members));
  return [heading(groupName(members)), html("p", say("sum_of_places", { number: number(members.length) })), button, list];
}

function overview(here) {
  const list = html("ol"), found = [html("h3", say(flows ? "largest_flows" : "largest_counts")), list];
  if (flows) {
    const { origin, destination } = here.flows, most = Math.min(LARGEST, untested(here) ? here.flows.length : here.real);
    for (let i = 0; i < most; i++) list.append(flowRow(here, i, `${called(origin[i])} → ${called(destination[i])}`, () => choosePlace(destination[i])));
    if (!most) found.splice(1, 1, html("p", say("none_here"), "small"));
  } else {
    const order = here.count.map((_, i) => i).filter((i) => here.count[i] > 0).sort((a, b) => here.count[b] - here.count[a]).slice(0, LARGEST);
    for (const i of order) list.append(row(() => choosePlace(i), called(i), totals(here, i)[0][1], isFaint(here, here.count[i]), say("no_larger")));
  }
  found.push(html("p", join(say("choose"), here.margin !== null && untested(here) ? say("grey") : ""), "small"));
  return found;
}

/* On a narrow screen the answer covers the foot of the map: what it is about is moved from under it. */
function uncover() {
  const at = state.place >= 0 ? state.place : state.group ? state.group[0] : NOTHING;
  if (!narrow.matches || at < 0) return;
  const box = sheet.getBoundingClientRect(), top = Math.min($("answer").getBoundingClientRect().top, box.bottom);
  const y = box.top + sy(at), from = Math.max(box.top, 0);
  if (y > top - 24 || y < from + 24) { pan(0, (from + top) / 2 - y); later(); }
}
