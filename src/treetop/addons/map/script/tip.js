/* What a mouse rests on, said beside it; a finger has the answer at the foot of the map instead. */

function tip(x, y, head, ...lines) {
  const box = $("tip");
  box.replaceChildren(html("b", head), ...lines.filter(Boolean).map((line) => html("div", line)));
  box.hidden = false;
  box.style.left = Math.max(4, Math.min(x + 14, wide() - box.offsetWidth - 6)) + "px";
  box.style.top = Math.max(4, y + 18 + box.offsetHeight > high() ? y - box.offsetHeight - 12 : y + 18) + "px";
}

function hideTip() { $("tip").hidden = true; }

function tipOf(found, x, y) {
  if (!found) hideTip();
  else if (found.node) tip(x, y, ...nodeLines(found.node));
  else tip(x, y, ...flowLines(scene.flows[found.flow]));
}

function nodeLines({ members, value }) {
  const here = level();
  if (members.length > 1) return [groupName(members), say("sum_said", { number: number(value) })];
  const i = members[0];
  return [called(i) + (code(i) ? ` (${code(i)})` : ""), ...totals(here, i).map(([words, [count, range]]) => `${words}: ${count}${range ? ` (${range})` : ""}`)];
}

function flowLines(flow) {
  const here = level(), { lower, upper } = here.flows, head = `${groupName(flow.from.members)} → ${groupName(flow.to.members)}`;
  if (flow.parts > 1) return [head, say("sum_said", { number: number(flow.count) })];
  const doubt = untested(here) ? (isFaint(here, flow.count) ? say("no_larger") + "." : "") : flow.real ? "" : say("may_be_noise") + ".";
  return [head, bounded(flow.count, lower && lower[flow.i], upper && upper[flow.i]), doubt];
}
