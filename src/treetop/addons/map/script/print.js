/* Paper: one picture of just what is seen, finely painted and in the colours of the day, which the page then scales. */

const FINE = 2;

function paintStill() {
  const canvas = $("still"), above = document.createElement("canvas"), width = wide(), height = high();
  for (const one of [canvas, above]) [one.width, one.height] = [width * FINE, height * FINE];
  const contexts = [canvas, above].map((one) => one.getContext("2d"));
  const work = painting(...contexts, state.view, width, height, FINE);
  while (!work.next().done);
  contexts[0].setTransform(1, 0, 0, 1, 0, 0);
  contexts[0].globalAlpha = 1;
  contexts[0].drawImage(above, 0, 0);
}

function turnToPaper(isPaper) {
  document.documentElement.classList.toggle("paper", isPaper);
  readColours();
  legend();
  mark();
  if (isPaper) paintStill(); else later(true);
}

window.addEventListener("beforeprint", () => turnToPaper(true));
window.addEventListener("afterprint", () => turnToPaper(false));
