/* What lies above the picture and is drawn anew in every frame: rings around what is chosen, names, degrees. */

const marks = $("marks");
const labelsFor = (area) => Math.max(6, Math.min(18, Math.round(area / 28000)));

function drawMarks() {
  marks.replaceChildren(...degrees(), ...rings(), ...labels());
  tellOutside();
}

function degrees() {
  if (data.arcs.length) return [];
  const text = (x, y, words) => make("text", { class: "degrees", x: x.toFixed(1), y: y.toFixed(1) }, words);
  return [...data.graticule.x.map(([at, words]) => text(across(at) + 3, high() - 5, words)), ...data.graticule.y.map(([at, words]) => text(wide() - 40, down(at) - 3, words))];
}

function rings() {
  const { places } = level(), found = [];
  const ring = (i, name) => {
    if (i < 0) return;
    if (places.rings[i].length) {
      const { x, y, k } = state.view;
      found.push(make("path", { class: name, d: outlineText(places.rings[i]), transform: `translate(${x} ${y}) scale(${k})` }));
    }
    const node = scene.nodes[scene.own[i]];
    if (isDot(places, node, state.view.k)) found.push(make("circle", { class: name, cx: sx(i), cy: sy(i), r: (node.head === i ? dotRadius(node, places) : 4) + 2.5 }));
  };
  ring(state.place, "ring");
  ring(state.cursor, "ring cursor");
  if (state.group) ring(state.group[0], "ring");
  if (state.flow >= 0 && scene.flows[state.flow]) for (const [x0, y0, x1, y1] of copies(scene.flows[state.flow])) found.push(make("path", { class: "ring", d: ribbonText(across(x0), down(y0), across(x1), down(y1), scene.flows[state.flow].width + 3) }));
  return found;
}

/* The same as text, for the few that are marked. */
const outlineText = (rings) => rings.map((ring) => "M" + ring.flatMap((arc) => {
  const points = arc < 0 ? arcs[~arc].slice().reverse() : arcs[arc];
  return points.map((point) => point.join(" "));
}).join("L") + "Z").join("");

function ribbonText(x0, y0, x1, y1, width) {
  const text = [], say = (letter) => (...at) => text.push(letter + at.map((value) => value.toFixed(1)).join(" "));
  traceRibbon({ moveTo: say("M"), lineTo: say("L"), quadraticCurveTo: say("Q"), closePath: say("Z") }, x0, y0, x1, y1, width);
  return text.join("");
}

const shortened = (name) => name.length > 24 ? name.slice(0, 23).trimEnd() + "…" : name;

/* Names where there is room: the chosen place and its partners first, then by size. A long name is cut, and never a code. */
function labels() {
  const { places } = level(), taken = [], found = [], most = labelsFor(wide() * high());
  const partner = new Set(state.place < 0 ? [] : scene.flows.slice(0, 16).flatMap(({ from, to }) => [from.head, to.head]));
  if (state.flow >= 0 && scene.flows[state.flow]) { const { from, to } = scene.flows[state.flow]; partner.add(from.head).add(to.head); }
  const weight = weights(), rank = ({ head }) => (head === state.place ? 1e18 : head === state.cursor ? 1e17 : partner.has(head) ? 1e16 : 0) + weight[head];
  const only = state.place >= 0 ? 1e16 : 0;
  if (!scene.ranked) scene.ranked = scene.nodes.slice().sort((a, b) => weight[b.head] - weight[a.head]);
  const first = scene.nodes.filter((node) => rank(node) >= 1e16).sort((a, b) => rank(b) - rank(a));
  for (const node of [...first, ...only ? [] : scene.ranked]) {
    if (found.length >= most) break;
    const text = groupName(node.members, shortened);
    const half = text.length * 3.3 + 4, own = across(node.x), x = Math.max(half, Math.min(own, wide() - half)), r = isDot(places, node, state.view.k) ? dotRadius(node, places) : -5;
    if (own < 0 || own > wide()) continue;
    const y = [down(node.y) - r - 5, down(node.y) + r + 13].find((y) => y > 14 && y < high() - 4 && !taken.some((box) => Math.abs(box[0] - x) < box[2] + half && Math.abs(box[1] - y) < box[3]));
    if (y === undefined) continue;
    taken.push([x, y, half, 15]);
    found.push(make("text", { class: y > down(node.y) && r > 0 ? "name below" : "name", x: x.toFixed(1), y: y.toFixed(1) }, text));
  }
  return found;
}

/* Nothing is hidden: how many places the first view leaves out, and a way to see them. */
function tellOutside() {
  const { x } = level().places, weight = weights();
  let outside = 0;
  if (state.fitted) for (let i = 0; i < x.length; i++) if (weight[i] > 0 && (sx(i) < 0 || sx(i) > wide() || sy(i) < 0 || sy(i) > high())) outside++;
  const words = outside ? say("outside", { number: number(outside) }) : "";
  if ($("outside").textContent !== words) $("outside").textContent = words;
  $("outside").hidden = !outside;
}
