// Draws a part of a page as SVG: backgrounds and borders, texts, inline SVG, and what was drawn on
// canvases (canvas.mjs). This script runs in the browser (picture.mjs).

const round = (value) => String(Math.round(value * 10) / 10);
const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

function attributes(all) {
  return Object.entries(all).filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => ` ${name}="${escaped(String(value))}"`).join("");
}

/** A text is as wide as here in every font. */
const asWide = (pixels) => ({ textLength: round(pixels), lengthAdjust: "spacingAndGlyphs" });
const textAt = (place, text) => `<text${attributes(place)}>${escaped(text)}</text>`;
const family = (css) => (css.includes("mono") ? "ui-monospace, monospace" : undefined);
const weight = (css) => (Number(css) >= 600 ? css : undefined);

/** A colour without its opacity; `undefined` where nothing is seen of it. */
function color(css) {
  if (css.startsWith("#")) return css;
  const [r, g, b, alpha = 1] = css.match(/[\d.]+/g)?.map(Number) ?? [];
  if (r === undefined || alpha === 0) return undefined;
  return `#${[r, g, b].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** A box with a radius for each corner, from the upper left one on. */
function rounded(x, y, w, h, corners) {
  const [a, b, c, d] = corners;
  if (corners.every((one) => one === a)) {
    return `<rect${attributes({ x, y, width: w, height: h, rx: a || undefined })}/>`;
  }
  const arc = (radius, dx, dy) => (radius ? `a${radius} ${radius} 0 0 1 ${dx} ${dy}` : "");
  return `<path d="M${x + a} ${y}H${x + w - b}${arc(b, b, b)}V${y + h - c}${arc(c, -c, c)}`
    + `H${x + d}${arc(d, -d, -d)}V${y + a}${arc(a, a, -a)}Z"/>`;
}

/** The lines of a text node, as they are broken, each with its place. */
function linesOf(node) {
  const found = [];
  const range = document.createRange();
  for (let i = 0; i < node.length; i += 1) {
    range.setStart(node, i);
    range.setEnd(node, i + 1);
    const [rect] = range.getClientRects();
    if (!rect || rect.width === 0) continue;
    const isSpace = /[ \n\t]/.test(node.data[i]);
    let line = found.at(-1);
    if (!line || Math.abs(line.top - rect.top) > 2) {
      if (isSpace) continue;
      line = { text: "", left: rect.left, top: rect.top, bottom: rect.bottom };
      found.push(line);
    }
    line.text += isSpace ? " " : node.data[i];
    if (!isSpace) line.right = rect.right;
  }
  return found.map((line) => ({ ...line, text: line.text.trimEnd() }));
}

const SHAPE = [
  "d", "x", "y", "width", "height", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "points",
  "transform",
];

class Drawing {
  /** Boxes are below all marks. Both have attributes that neighbours may share, and a body. */
  boxes = [];
  marks = [];
  width = document.documentElement.clientWidth;
  meter = document.createElement("canvas").getContext("2d");

  constructor(top, bottom) {
    this.top = top;
    this.bottom = bottom;
  }

  isInside(rect) {
    const middle = (rect.top + rect.bottom) / 2;
    return middle > this.top && middle < this.bottom && rect.right > 0 && rect.left < this.width;
  }

  element(element, outside) {
    const style = getComputedStyle(element);
    const isHidden = style.visibility === "hidden" || style.clipPath !== "none";
    if (isHidden || !element.checkVisibility()) return;
    const rect = element.getBoundingClientRect();
    if (rect.bottom <= this.top || rect.top >= this.bottom) return;
    const inside = outside * Number(style.opacity);
    const opacity = inside < 1 ? inside : undefined;
    if (element.tagName === "CANVAS") return this.canvas(element, rect);
    if (element.tagName === "svg") return this.svg(element, rect, opacity);
    if (element !== document.body && this.isInside(rect)) this.box(rect, style);
    if (element.tagName === "SUMMARY" && style.display === "list-item") this.triangle(rect, style);
    for (const child of element.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) this.text(child, opacity);
      else if (child.nodeType === Node.ELEMENT_NODE) this.element(child, inside);
    }
  }

  /** The background and the border of an element, on whole pixels as browsers paint them. */
  box(rect, style) {
    const [x, y] = [Math.round(rect.left), Math.round(rect.top - this.top)];
    const [w, h] = [Math.round(rect.right) - x, Math.round(rect.bottom - this.top) - y];
    if (w === 0 || h === 0) return;
    const has = (side) =>
      style[`border${side}Style`] !== "none" && parseFloat(style[`border${side}Width`]) > 0;
    const around = ["Top", "Right", "Bottom", "Left"].every(has);
    const fill = color(style.backgroundColor);
    const stroke = around ? color(style.borderTopColor) : undefined;
    if (fill || stroke) {
      const inset = stroke ? 0.5 : 0;
      const corners = ["TopLeft", "TopRight", "BottomRight", "BottomLeft"]
        .map((corner) => Math.min(parseFloat(style[`border${corner}Radius`]), w / 2, h / 2));
      const body = rounded(x + inset, y + inset, w - 2 * inset, h - 2 * inset, corners);
      this.boxes.push({ share: { fill: fill ?? "none", stroke }, body });
    }
    if (around) return;
    if (has("Top")) this.line(x, x + w, y + 0.5, color(style.borderTopColor));
    if (has("Bottom")) this.line(x, x + w, y + h - 0.5, color(style.borderBottomColor));
  }

  /** Cells beside each other have one line. */
  line(from, to, y, stroke) {
    const isBefore = (one) => one.y === y && one.to === from && one.share.stroke === stroke;
    const before = this.boxes.find(isBefore);
    if (before) before.to = to;
    else this.boxes.push({ share: { stroke }, from, to, y });
  }

  /** What opens details. */
  triangle(rect, style) {
    const x = rect.left + parseFloat(style.paddingLeft);
    const y = rect.top - this.top + parseFloat(style.lineHeight) / 2;
    const body = `<path d="M${round(x)} ${round(y - 4.5)}l8 4.5-8 4.5z"/>`;
    this.marks.push({ share: { fill: color(style.color) }, body });
  }

  text(node, opacity) {
    const style = getComputedStyle(node.parentElement);
    this.meter.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const ascent = this.meter.measureText("x").fontBoundingBoxAscent;
    const share = {
      fill: color(style.color), "font-size": parseFloat(style.fontSize), opacity,
      "font-weight": weight(style.fontWeight), "font-family": family(style.fontFamily),
      "text-decoration": style.textDecorationLine === "underline" ? "underline" : undefined,
    };
    for (const { text, left, right, top } of linesOf(node).filter((line) => this.isInside(line))) {
      const place = { x: round(left), y: round(top - this.top + ascent), ...asWide(right - left) };
      this.marks.push({ share, body: textAt(place, text) });
    }
  }

  svg(element, rect, opacity) {
    if (!this.isInside(rect)) return;
    const place = {
      x: round(rect.left), y: round(rect.top - this.top),
      width: round(rect.width), height: round(rect.height),
      viewBox: element.getAttribute("viewBox") ?? undefined, overflow: "visible",
    };
    this.marks.push({ raw: `<svg${attributes(place)}>` });
    this.shapes(element, opacity);
    this.marks.push({ raw: "</svg>" });
  }

  /** The shapes of inline SVG, with what style sheets say of them. */
  shapes(parent, opacity) {
    for (const shape of parent.children) {
      const style = getComputedStyle(shape);
      if (style.display === "none" || ["title", "desc"].includes(shape.tagName)) continue;
      const own = Object.fromEntries(SHAPE.map((name) => [name, shape.getAttribute(name) ?? ""]));
      if (shape.tagName === "g") {
        this.marks.push({ raw: `<g${attributes(own)}>` });
        this.shapes(shape, opacity);
        this.marks.push({ raw: "</g>" });
        continue;
      }
      const stroke = color(style.stroke);
      const isWide = stroke && style.strokeWidth !== "1px";
      const wide = isWide ? parseFloat(style.strokeWidth) : undefined;
      const share = { fill: color(style.fill) ?? "none", stroke, opacity, "stroke-width": wide };
      if (shape.tagName !== "text") {
        this.marks.push({ share, body: `<${shape.tagName}${attributes(own)}/>` });
        continue;
      }
      share["font-size"] = parseFloat(style.fontSize);
      share["font-weight"] = weight(style.fontWeight);
      share["text-anchor"] = style.textAnchor === "start" ? undefined : style.textAnchor;
      const place = { ...own, ...asWide(shape.getComputedTextLength()) };
      this.marks.push({ share, body: textAt(place, shape.textContent) });
    }
  }

  canvas(element, rect) {
    const moved = `translate(${round(rect.left)} ${round(rect.top - this.top)})`;
    this.marks.push({ raw: `<g${attributes({ transform: moved })}>` });
    for (const mark of drawn.get(element) ?? []) {
      const [, isMove, by] = /^(1 0 0 1 )?(.*)$/.exec(mark.matrix);
      const transform = by === "0 0" ? undefined : `${isMove ? "translate" : "matrix"}(${by})`;
      const share = { fill: mark.fill ?? "none", stroke: mark.stroke, transform };
      if (mark.text === undefined) {
        if (mark.stroke && mark.wide !== 1) share["stroke-width"] = round(mark.wide);
        this.marks.push({ share, body: `<path d="${mark.path}"/>` });
        continue;
      }
      share["font-size"] = parseFloat(mark.font.match(/[\d.]+px/)[0]);
      const place = { x: round(mark.x), y: round(mark.y), ...asWide(mark.width) };
      this.marks.push({ share, body: textAt(place, mark.text) });
    }
    this.marks.push({ raw: "</g>" });
  }
}

/** Neighbours with the same attributes stand in one group, which has these. */
function grouped(all) {
  const out = [];
  let open = "";
  for (const { raw, share, body, from, to, y } of all) {
    const next = raw ? "" : attributes(share);
    if (next !== open) {
      if (open) out.push("</g>");
      if (next) out.push(`<g${next}>`);
      open = next;
    }
    out.push(raw ?? body ?? `<path d="M${from} ${y}H${to}"/>`);
  }
  return open ? [...out, "</g>"] : out;
}

/** The page from `top` to `bottom`, in pixels, under a title. */
function draw(top, bottom, title) {
  const drawing = new Drawing(top, bottom);
  drawing.element(document.body, 1);
  const [width, height] = [drawing.width, Math.round(bottom - top)];
  const root = {
    width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "font-family": "system-ui, sans-serif",
  };
  const frame = {
    x: 0.5, y: 0.5, width: width - 1, height: height - 1, rx: 8,
    fill: color(getComputedStyle(document.body).backgroundColor), stroke: "#d5dbe1",
  };
  return [
    `<svg xmlns="http://www.w3.org/2000/svg"${attributes(root)}>`,
    `<title>${escaped(title)}</title>`,
    "<!-- docs/pictures/make.sh makes this file. -->",
    `<rect${attributes(frame)}/>`,
    ...grouped(drawing.boxes), ...grouped(drawing.marks), "</svg>", "",
  ].join("\n");
}
