/* Mouse, fingers, wheel and keys. */

const pointers = new Map();
let travelled = 0;

const local = (event) => { const box = sheet.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };

sheet.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  if (!pointers.size) travelled = 0;
  pointers.set(event.pointerId, local(event));
  sheet.setPointerCapture(event.pointerId);
});

sheet.addEventListener("pointermove", (event) => {
  const [x, y] = local(event), before = pointers.get(event.pointerId);
  if (!before) { if (event.pointerType === "mouse") hover(x, y); return; }
  travelled += Math.hypot(x - before[0], y - before[1]);
  if (pointers.size === 1 && travelled < 4) return;
  const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
  pointers.set(event.pointerId, [x, y]);
  hideTip();
  sheet.classList.add("dragging");
  if (others.length) pinch(before, [x, y], others[0]);
  else { pan(x - before[0], y - before[1]); later(); }
});

/* What the mouse rests on is looked for once a frame. */
let hovered = null;
function hover(x, y) {
  if (!hovered) requestAnimationFrame(() => { const [x, y] = hovered; hovered = null; if (!pointers.size && sheet.matches(":hover")) tipOf(under(x, y, "mouse"), x, y); });
  hovered = [x, y];
}

function pinch(before, after, other) {
  const apart = (a, b) => Math.max(Math.hypot(a[0] - b[0], a[1] - b[1]), 1);
  pan((after[0] - before[0]) / 2, (after[1] - before[1]) / 2);
  zoom(apart(after, other) / apart(before, other), (after[0] + other[0]) / 2, (after[1] + other[1]) / 2);
}

function lift(event) {
  pointers.delete(event.pointerId);
  if (!pointers.size) sheet.classList.remove("dragging");
}
sheet.addEventListener("pointerup", lift);
sheet.addEventListener("pointercancel", lift);
sheet.addEventListener("pointerleave", hideTip);
/* Not when the finger lifts: its click would then fall on the answer that has come up under it. */
sheet.addEventListener("click", (event) => { if (travelled < 4) chooseFound(under(...local(event), event.pointerType)); });
sheet.addEventListener("dblclick", (event) => zoom(2, ...local(event)));
sheet.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 400), ...local(event));
}, { passive: false });

/* Arrow keys go from dot to dot: to the nearest that way. */
function step(dx, dy) {
  const weight = weights(), from = state.cursor >= 0 ? state.cursor : state.place;
  if (from < 0) { state.cursor = scene.nodes.reduce((best, node) => weight[node.head] > weight[best] ? node.head : best, scene.nodes[0].head); return; }
  let best = NOTHING, least = Infinity;
  for (const { head, x: gx, y: gy } of scene.nodes) {
    const x = across(gx) - sx(from), y = down(gy) - sy(from), along = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
    if (head !== from && along > 0 && along + 2.5 * aside < least) { least = along + 2.5 * aside; best = head; }
  }
  if (best >= 0) state.cursor = best;
}

function followCursor() {
  const i = state.cursor, { x, y } = level().places;
  if (sx(i) < 20 || sx(i) > wide() - 20 || sy(i) < 20 || sy(i) > high() - 20) centre(x[i], y[i]);
  const lines = nodeLines(scene.nodes[scene.own[i]]);
  tip(sx(i), sy(i), ...lines);
  $("spoken").textContent = lines.filter(Boolean).join(". ");
  markedAt = null;
  later();
}

sheet.addEventListener("keydown", (event) => {
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (way) { step(...way); if (state.cursor >= 0) followCursor(); }
  else if ((event.key === "Enter" || event.key === " ") && state.cursor >= 0) chooseFound({ node: scene.nodes[scene.own[state.cursor]] });
  else if (event.key === "Escape") clear();
  else if (event.key === "+" || event.key === "=") zoom(1.4);
  else if (event.key === "-") zoom(1 / 1.4);
  else if (event.key === "0") showWhole();
  else return;
  event.preventDefault();
});
