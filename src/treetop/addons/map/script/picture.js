/* The picture on the screen: it is larger than the sheet and moves with the hand at once; a new one is painted behind it
in what time frames have left, and takes its place when it is done. Names and rings move with it, and are set anew when
it is, or when the hand rests. */

const MARGIN = 0.25, REST = 90; /* of the sheet on every side; milliseconds */
const budget = () => pointers.size ? 6 : 22; /* milliseconds of a frame, less while a hand moves the map */
let front = $("front"), back = $("back");
let paintedAt = null, markedAt = null, frame = 0, resting = 0; /* where the picture and the marks are */
let work = null, workAt = null, target = null, isShowable = false; /* what is being painted, where, on to what, and how far */

/* `again`: the scene has changed, and what is being painted is out of date. */
function later(again = false) {
  if (again) work = workAt = null;
  if (!frame) frame = requestAnimationFrame(onFrame);
}

function onFrame() {
  frame = 0;
  const started = performance.now();
  if (isStale()) begin();
  if (work && advance(started + budget())) finish();
  else if (work && isShowable && (!paintedAt || paintedAt.scene !== scene)) present();
  if (work) later();
  move();
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
  const at = { ...state.view, scene };
  for (const canvas of back.children) {
    if (canvas.width !== width * pixels || canvas.height !== height * pixels) [canvas.width, canvas.height] = [width * pixels, height * pixels];
    [canvas.style.width, canvas.style.height] = [width + "px", height + "px"];
  }
  const view = { k: at.k, x: at.x + MARGIN * wide(), y: at.y + MARGIN * high() };
  [work, workAt, target, isShowable] = [painting(...contexts(back), view, width, height, pixels), at, back, false];
}

/* Canvases that are read often are painted at once, by the processor, and so what it takes can be counted. */
const contexts = (picture) => [...picture.children].map((canvas) => canvas.getContext("2d", { willReadFrequently: true }));
const isShown = (picture) => !picture.classList.contains("away");

/* Paint until the time is up; return whether it is done. */
function advance(until) {
  const painted = contexts(target);
  do {
    const { done, value } = work.next();
    if (done) return true;
    isShowable ||= value;
    for (const context of painted) context.getImageData(0, 0, 1, 1);
  } while (performance.now() < until);
  return false;
}

function present() {
  paintedAt = workAt;
  if (isShown(target)) return;
  [front, back] = [target, front];
  front.classList.remove("away");
  back.classList.add("away");
}

function finish() {
  present();
  [work, workAt, target] = [null, null, null];
}

function move() {
  if (!paintedAt) return;
  shift(front, paintedAt, MARGIN);
  const { x, y, k } = state.view;
  if (!markedAt || markedAt.k !== k || markedAt.painted !== paintedAt) mark();
  else shift(marks, markedAt, 0);
  clearTimeout(resting);
  if (markedAt.x !== x || markedAt.y !== y) resting = setTimeout(mark, REST);
}

function shift(element, at, margin) {
  const factor = state.view.k / at.k;
  const x = state.view.x - factor * (at.x + margin * wide()), y = state.view.y - factor * (at.y + margin * high());
  element.style.transform = `translate(${x}px, ${y}px) scale(${factor})`;
}

function mark() {
  markedAt = { ...state.view, painted: paintedAt };
  marks.style.transform = "none";
  drawMarks();
}
