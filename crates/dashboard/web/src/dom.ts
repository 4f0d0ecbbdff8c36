// Elements and texts. Values from packets are only ever put in as text.

export type Child = Node | string | null | undefined | false;

type Props = Record<string, string | boolean | ((event: Event) => void) | undefined>;

/** An element with attributes, handlers (`onclick`) and children; strings become text nodes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, props, children);
  return element;
}

/** The same for SVG. */
export function s(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, props, children);
  return element;
}

function fill(element: Element, props: Props, children: Child[]): void {
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (typeof value === "string") element.setAttribute(name, value);
  }
  for (const child of children) if (child) element.append(child);
}

/** The sign of a button that copies. */
export function copySign(): SVGElement {
  const square = (x: string, y: string) => s("rect", {
    x, y, width: "8", height: "9", rx: "1", fill: "none", stroke: "currentColor",
  });
  return s("svg", { viewBox: "0 0 14 14", width: "13", height: "13", "aria-hidden": "true" },
    square("1.5", "1.5"), square("4.5", "3.5"));
}

/** Replaces the children of an element. */
export function put(element: Element, ...children: Child[]): void {
  element.replaceChildren(...children.filter((child): child is Node | string => !!child));
}

/** A text without control characters, signs of the direction of writing, and marks that take no
 * room; cut where it is very long. */
export function clean(text: string): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\u2028\u2029]/gu, "\u00b7");
  return plain.length > 300 ? `${plain.slice(0, 300)}\u2026` : plain;
}

/** Runs what is asked for many times at most once in so many milliseconds. */
export function paced(ms: number, run: () => void): () => void {
  let last = -Infinity;
  let timer: number | undefined;
  return () => {
    if (timer !== undefined) return;
    const wait = Math.max(0, last + ms - performance.now());
    timer = window.setTimeout(() => {
      timer = undefined;
      last = performance.now();
      run();
    }, wait);
  };
}

/** A choice among a few, as buttons of which one is pressed. */
export function choice(
  label: string,
  options: [string, string][],
  chosen: string,
  choose: (value: string) => void,
): HTMLElement {
  const group = h("div", { class: "choice", role: "group", "aria-label": label });
  for (const [value, text] of options) {
    const pressed = String(value === chosen);
    group.append(
      h("button", {
        type: "button", "aria-pressed": pressed, "data-key": `${label} ${value}`,
        onclick: () => choose(value),
      }, text),
    );
  }
  return group;
}

/** The action of a row: `act` by a click on it, or by its button, whose name is `label`. */
export interface Pick {
  label: (row: number) => string | undefined;
  act: (row: number) => void;
}

/** A click on a row, but for one on something in it, and for text that was selected. */
function picked(event: Event, act: () => void): void {
  const at = event.target;
  const other = at instanceof Element && at.closest("button, a, input, select, summary");
  if (!other && getSelection()?.type !== "Range") act();
}

/** A table whose place can be scrolled by the keyboard. */
export function table(caption: string, head: string[], rows: Child[][], numbers: Set<number>, pick?: Pick) {
  const cell = (tag: "td" | "th", child: Child, column: number): HTMLElement =>
    h(tag, { class: numbers.has(column) ? "number" : undefined }, child);
  const titles = h("tr", {}, ...head.map((title, i) => {
    const th = cell("th", title, i);
    th.setAttribute("scope", "col");
    return th;
  }), pick && h("th", { scope: "col" }, h("span", { class: "hidden" }, "packets")));
  const body = rows.map((row, at) => {
    const cells = row.map((child, i) => cell("td", child, i));
    const label = pick?.label(at);
    if (!pick || label === undefined) return h("tr", {}, ...cells, pick && h("td"));
    const button = h("button", {
      type: "button", class: "pick", "data-key": `${caption} ${label}`, "aria-label": label, title: label, onclick: () => pick.act(at),
    }, "packets");
    return h("tr", { class: "picks", onclick: (event) => picked(event, () => pick.act(at)) }, ...cells, h("td", {}, button));
  });
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption, "data-key": caption },
    h(
      "table",
      {},
      h("caption", {}, caption),
      h("thead", {}, titles),
      h("tbody", {}, ...body),
    ),
  );
}

/** Keeps the focus where it is while a part of the page is drawn anew: elements are known by
 * `data-key`. */
export function redraw(element: HTMLElement, draw: () => void): void {
  const active = document.activeElement;
  const inside = active instanceof HTMLElement && element.contains(active);
  // A list that is open would close.
  if (inside && active instanceof HTMLSelectElement) return;
  const key = inside ? active.dataset.key : undefined;
  const scrolls = [...element.querySelectorAll<HTMLElement>(".scroll")].map((one) => [
    one.scrollLeft,
    one.scrollTop,
  ]);
  draw();
  element.querySelectorAll<HTMLElement>(".scroll").forEach((one, i) => {
    const [left, top] = scrolls[i] ?? [0, 0];
    one.scrollTo(left ?? 0, top ?? 0);
  });
  if (key === undefined) return;
  for (const one of element.querySelectorAll<HTMLElement>("[data-key]")) {
    if (one.dataset.key === key) one.focus({ preventScroll: true });
  }
}
