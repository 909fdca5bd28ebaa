/* The picture on the screen: it is larger than the sheet and moves with the hand at once; a new one is painted behind it
in what time frames have left, and takes its place when it is done. */

const MARGIN = 0.25, BUDGET = 7; /* of the sheet on every side; milliseconds of a frame */
let front = $("front"), back = $("back");
let paintedAt = null, work = null, workAt = null, frame = 0;

/* `again`: the scene has changed, and what is being painted is out of date. */
function later(again = false) {
  if (again) { work = null; paintedAt = null; }
  if (!frame) frame = requestAnimationFrame(onFrame);
}

function onFrame() {
  frame = 0;
  const started = performance.now();
  if (isStale()) begin();
  if (work && advance(started + BUDGET)) present();
  if (work) later();
  move();
  drawMarks();
  remember();
}

/* Whether what is painted, or being painted, is at another size, or does not reach as far as the sheet. */
function isStale() {
  const at = workAt || paintedAt;
  if (!at || at.k !== state.view.k || at.scene !== scene) return true;
  if (work) return false;
  return Math.abs(state.view.x - at.x) > MARGIN * wide() * 0.6 || Math.abs(state.view.y - at.y) > MARGIN * high() * 0.6;
}

function begin() {
  const pixels = Math.min(window.devicePixelRatio || 1, 2), width = Math.round(wide() * (1 + 2 * MARGIN)), height = Math.round(high() * (1 + 2 * MARGIN));
  if (back.width !== width * pixels || back.height !== height * pixels) [back.width, back.height] = [width * pixels, height * pixels];
  [back.style.width, back.style.height] = [width + "px", height + "px"];
  const { k, x, y } = state.view;
  workAt = { k, x, y, scene };
  work = painting(back.getContext("2d"), { k, x: x + MARGIN * wide(), y: y + MARGIN * high() }, width, height, pixels);
}

/* Paint until the time is up; return whether it is done. */
function advance(until) {
  do { if (work.next().done) return true; } while (performance.now() < until);
  return false;
}

function present() {
  [front, back] = [back, front];
  [paintedAt, work, workAt] = [workAt, null, null];
  front.classList.remove("away");
  back.classList.add("away");
}

function move() {
  if (!paintedAt) return;
  const factor = state.view.k / paintedAt.k;
  const x = state.view.x - factor * (paintedAt.x + MARGIN * wide()), y = state.view.y - factor * (paintedAt.y + MARGIN * high());
  front.style.transform = `translate(${x}px, ${y}px) scale(${factor})`;
}

/* Everything at once, for paper and for those who measure. */
function paintNow() {
  begin();
  advance(Infinity);
  present();
  move();
}
