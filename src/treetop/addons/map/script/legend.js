/* The legend: classes of the shading or sizes of dots, and widths of flows. */

const distinct = (top) => [top, top / 4, top / 20].map(nice).filter((value, i, all) => value > 0 && all.indexOf(value) === i);

function legend() {
  const picture = make("svg", { viewBox: "0 0 300 10", role: "img", "aria-label": say("legend") });
  const { places } = level(), label = SHADES.find(([key]) => key === state.shade)[1];
  const text = (x, y, words, name) => picture.append(make("text", { x, y, class: name || "" }, words));
  text(0, 12, `${level().name}: ${state.shade === "net" ? say("net") : label}`, "head");
  let y = places.outlined || state.shade === "net" ? classes(picture, text, 20) : sizes(picture, text, 20);
  if (scene.flows.length) y = widths(picture, text, y + 15);
  picture.setAttribute("viewBox", `0 0 300 ${y}`);
  $("legend").replaceChildren(picture);
}

function classes(picture, text, y) {
  const { rows } = scale();
  rows.forEach(([colour, words], i) => {
    const column = (i % 2) * 150, row = y + Math.floor(i / 2) * 16;
    picture.append(make("rect", { x: column, y: row, width: 20, height: 11, fill: colour, class: "box" }));
    text(column + 26, row + 9.5, words);
  });
  return y + Math.ceil(rows.length / 2) * 16;
}

function sizes(picture, text, y) {
  const largest = radius(scene.most, scene.most);
  let x = 0;
  for (const value of distinct(scene.most)) {
    const r = radius(value, scene.most);
    picture.append(make("circle", { cx: x + r, cy: y + largest, r, fill: ink.dot, "fill-opacity": 0.88 }));
    text(x + 2 * r + 5, y + largest + 4, number(value));
    x += 2 * r + 62;
  }
  return y + 2 * largest + 2;
}

function widths(picture, text, y) {
  text(0, y, say("thick"), "head");
  distinct(scene.top).forEach((value, i) => {
    const width = Math.max(0.7, scene.widest * value / scene.top);
    picture.append(make("path", { fill: ink.flow, "fill-opacity": 0.7, d: ribbonText(i * 100, y + 17, i * 100 + 40, y + 17, width) }));
    text(i * 100 + 46, y + 20, number(value));
  });
  return y + 25;
}
