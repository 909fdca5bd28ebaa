/* What is drawn, how far off it is, and why there is nothing, in sentences. */

const isGrouped = () => scene.nodes.length < scene.own.length;

function shownText(here) {
  const others = data.summed.filter((name) => !filterOf() || name !== filterOf().label);
  const summed = join(keptText(), others.length ? say("summed", { attributes: others.join(", ") }) : "");
  const narrow = data.unfiltered.length ? say("no_filter", { attributes: data.unfiltered.join(", ") }) : "";
  const without = here.unplaced ? say("unplaced", { number: number(here.unplaced) }) : "";
  const all = say("in_all", { number: bounded(data.whole.count, data.whole.lower, data.whole.upper) });
  const near = isGrouped() ? say(flows ? "grouped" : "grouped_counts") : "";
  if (!flows) return join(all, near, summed, narrow, without);
  const moving = state.place < 0 ? say("stay", { number: number(here.stay.reduce((sum, value) => sum + value, 0)) }) : "";
  return join(scene.flows.length ? drawnText(here) : emptyText(here), moving, near, summed, narrow, without);
}

function drawnText(here) {
  const count = scene.flows.reduce((sum, flow) => sum + flow.count, 0);
  const whole = state.place < 0 ? here.moving : here.in[state.place] + here.out[state.place];
  const shared = { number: number(scene.flows.length), share: percent(count, whole), moving: number(whole) };
  if (untested(here) || state.unsure) return untestedText(here, shared);
  const parts = scene.flows.reduce((sum, flow) => sum + flow.parts, 0);
  const key = parts > scene.flows.length ? "stands_bundled" : parts < here.standing && state.place < 0 ? "stands_largest" : "stands";
  return join(say(key, { ...shared, parts: number(parts), real: number(here.standing) }), say("rate", { rate: sure(here.rate) }), say("others", { pairs: number(here.pairs) }));
}

function untestedText(here, shared) {
  const key = state.place >= 0 ? "drawn_of" : scene.flows.length === here.pairs ? "drawn_all" : "drawn_largest";
  const told = say(key, { ...shared, pairs: number(here.pairs), place: state.place < 0 ? "" : called(state.place) });
  return join(told, here.flows.length < here.pairs ? say("held", { number: number(here.flows.length) }) : "");
}

/* Why there is nothing to see; nothing where there is something, or nothing was asked for. */
function emptyText(here) {
  if (!flows) return weights(here).some((weight) => weight > 0) ? "" : say("nothing_counted");
  if (scene.flows.length) return "";
  if (state.most === 0 && state.place < 0) return say("not_asked");
  if (!here.pairs) return say("nothing_moves");
  if (state.place >= 0) return untested(here) || state.unsure ? say("none_at_all") : join(say("none_of_place"), say("others", { pairs: number(here.pairs) }));
  if (!untested(here) && !state.unsure && !here.real) return say("none_stands");
  return say("all_within");
}

function noiseText(here) {
  const totals = Object.values(here.totals).some((own) => own.lower) ? say("totals", { confidence: sure(data.confidence) }) : "";
  return join(measuredText(here), totals);
}

function measuredText(here) {
  if (here.exact) return say("exact");
  if (here.margin === null) return say("sums");
  const confidence = sure(here.named !== null ? here.named : data.stated);
  return say((here.named !== null ? "named_" : "margin_") + (flows ? "flows" : "counts"), { confidence, margin: number(here.margin) });
}
