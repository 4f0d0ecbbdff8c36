// Keeps what is drawn on canvases, of which otherwise only pixels are left. This script runs in the
// browser, before those of the page (picture.mjs).

/** By canvas, what was drawn on it since it was last cleared. */
const drawn = new WeakMap();

const tenths = (value) => Math.round(value * 10) / 10;

window.Path2D = class extends Path2D {
  constructor(from) {
    super(from);
    this.points = [...from?.points ?? []];
  }
};

const pen = CanvasRenderingContext2D.prototype;

/** Does something of its own before the browser's function of that name. */
function before(prototype, name, does) {
  const own = prototype[name];
  prototype[name] = function (...args) {
    does.apply(this, args);
    return own.apply(this, args);
  };
}

/** Adds a point to a path. A line without a start begins one. */
function step(letter) {
  return function (x, y) {
    this.points ??= [];
    this.points.push([this.points.length > 0 ? letter : "M", tenths(x), tenths(y)]);
  };
}

for (const prototype of [window.Path2D.prototype, pen]) {
  before(prototype, "moveTo", step("M"));
  before(prototype, "lineTo", step("L"));
  before(prototype, "closePath", step("Z"));
  before(prototype, "rect", function (x, y, w, h) {
    const corners = [["M", x, y], ["L", x + w, y], ["L", x + w, y + h], ["L", x, y + h], ["Z"]];
    (this.points ??= []).push(...corners);
  });
}

/** A path as SVG writes it, without the points within a horizontal line. */
function pathOf(points) {
  const turns = points.filter(([letter, , y], i) => {
    const [[, , last], [next, , after]] = [points[i - 1] ?? [], points[i + 1] ?? []];
    return !(letter === "L" && next === "L" && last === y && after === y);
  });
  const steps = { M: (x, y) => `M${x} ${y}`, L: (x, y) => ` ${x} ${y}`, Z: () => "Z" };
  return turns.map(([letter, x, y]) => steps[letter](x, y)).join("");
}

function keep(context, mark) {
  const { a, b, c, d, e, f } = context.getTransform();
  const matrix = [a, b, c, d, e, f].map(tenths).join(" ");
  drawn.set(context.canvas, [...drawn.get(context.canvas) ?? [], { ...mark, matrix }]);
}

before(pen, "beginPath", function () {
  this.points = [];
});
before(pen, "clearRect", function () {
  drawn.delete(this.canvas);
});
before(pen, "fill", function (path) {
  keep(this, { path: pathOf((path?.points ? path : this).points), fill: this.fillStyle });
});
before(pen, "stroke", function (path) {
  const { strokeStyle: stroke, lineWidth: wide } = this;
  keep(this, { path: pathOf((path?.points ? path : this).points), stroke, wide });
});
before(pen, "fillText", function (text, x, y) {
  // The left end, and the line that letters stand on.
  const { textAlign, textBaseline, fillStyle: fill, font } = this;
  const there = this.measureText(text);
  Object.assign(this, { textAlign: "left", textBaseline: "alphabetic" });
  const { actualBoundingBoxLeft, fontBoundingBoxAscent, width } = this.measureText(text);
  Object.assign(this, { textAlign, textBaseline });
  const left = x + actualBoundingBoxLeft - there.actualBoundingBoxLeft;
  const base = y + fontBoundingBoxAscent - there.fontBoundingBoxAscent;
  keep(this, { text, x: left, y: base, width, fill, font });
});
