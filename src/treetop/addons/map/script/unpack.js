/* What was packed to make the page small: numbers as text, five bits a character; arcs and flows made of them. */

function unpack(text) {
  const numbers = [];
  for (let i = 0; i < text.length;) {
    let value = 0, unit = 1, bits;
    do { bits = text.charCodeAt(i++) - 63; value += (bits & 31) * unit; unit *= 32; } while (bits >= 32);
    numbers.push(value % 2 ? -(value + 1) / 2 : value / 2);
  }
  return numbers;
}

/* Arcs are a start and steps; a ring is arcs one after the other, and ~i is arc i backwards. */

const arcs = data.arcs.map((text) => {
  const steps = unpack(text), points = [];
  for (let i = 0, x = 0, y = 0; i < steps.length; i += 2) points.push([x += steps[i], y += steps[i + 1]]);
  return points;
});

function unpackRings(text) {
  const numbers = unpack(text), rings = [];
  for (let i = 0, arc = 0; i < numbers.length;) {
    const ring = [];
    for (let left = numbers[i++]; left > 0; left--) ring.push(arc += numbers[i++]);
    rings.push(ring);
  }
  return rings;
}

/* Flows: origins, destinations, counts; and bounds, which are steps from the counts. */

function unpackFlows(columns) {
  const [origin, destination, count, ...bounds] = columns.map(unpack);
  const [lower, upper] = bounds.map((steps) => steps.map((step, i) => count[i] + step));
  return { origin, destination, count, lower: lower || null, upper: upper || null, length: count.length };
}

for (const level of data.levels) {
  level.places.rings = level.places.rings.map(unpackRings);
  if (flows) level.flows = unpackFlows(level.flows);
}
