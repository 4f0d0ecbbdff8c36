// The page: its head, the choice of a view, and when to draw what.

import { hasToken, setToken } from "./api";
import { AlertsView } from "./alerts";
import { copyText } from "./copy";
import { choice, clean, h, paced, put, redraw } from "./dom";
import { PlanView } from "./plan";
import { QueriesView } from "./queries";
import { RelationsView } from "./relations";
import { State } from "./state";
import { TrafficView } from "./traffic";

interface View {
  readonly title: string;
  show(host: HTMLElement): void;
  update(host: HTMLElement): void;
  hide?(): void;
}

const THEME = "weir.theme";

function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

const [main, nav, switches, notice, about] =
  ["main", "views", "switches", "notice", "run"].map(element) as
  [HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement];

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** The token of a link `#token=…`, which is not kept there. */
function takeToken(): void {
  const found = /^#token=([!-~]+)$/.exec(location.hash);
  if (!found?.[1]) return;
  const token = decoded(found[1]);
  // Tokens are of printable ASCII: a link that has something else is none of this run.
  if (/^[!-~]+$/.test(token)) setToken(token);
  history.replaceState(null, "", "#/1/traffic");
}

takeToken();

/** Whether nothing is to be drawn but the question for the token. */
let locked = true;

const state = new State((why) => {
  if (locked) return;
  if (why === "link") drawAll();
  else if (state.paused) drawHead();
  else if (why === "state") drawAll();
  else drawRows();
});

const views: Record<string, View> = {
  traffic: new TrafficView(state),
  relations: new RelationsView(state),
  queries: new QueriesView(state),
  alerts: new AlertsView(state),
  plan: new PlanView(state),
};

let shown: View | undefined;

function theme(): string {
  return localStorage.getItem(THEME) ?? "system";
}

function setTheme(value: string): void {
  localStorage.setItem(THEME, value);
  document.documentElement.dataset.theme = value;
  shown?.hide?.();
  shown = undefined;
  drawAll();
}

function drawHead(): void {
  const { run, link, trouble } = state;
  const phase = { live: "live", reading: "reading", ended: "no more packets" };
  const filter = run?.filter ? `, filter ${clean(run.filter)}` : "";
  // Interfaces, or the names of files without their folders.
  const sources = run?.sources.map((one) => clean(one.split("/").pop() ?? one)).join(", ") ?? "";
  about.title = run?.sources.map(clean).join(", ") ?? "";
  const text = run ? `${sources}${filter}: ${phase[run.phase]}` : "";
  put(about, text, run?.error ? h("span", { class: "bad" }, ` (${clean(run.error)})`) : null);
  redraw(nav, () => put(nav, ...Object.entries(views).map(([name, view]) => {
    const open = AlertsView.open(state);
    const count = name === "alerts" && open > 0
      ? h("span", { class: "badge", title: "go on and are not acknowledged" }, String(open)) : null;
    const current = name === link.view ? "page" : undefined;
    return h("a", { href: `#/1/${name}`, "aria-current": current, "data-key": name, onclick: (event) => {
      // Filters and times stay as another view is chosen.
      if (event instanceof MouseEvent && (event.ctrlKey || event.metaKey || event.shiftKey)) return;
      event.preventDefault();
      state.go({ view: name });
    } }, view.title, count && " ", count);
  })));
  redraw(switches, () => put(switches,
    h("button", {
      type: "button", "aria-pressed": String(state.paused), "data-key": "pause", onclick: () => {
        state.paused = !state.paused;
        drawAll();
      },
    }, state.paused ? "Go on" : "Pause"),
    h("button", { type: "button", "data-key": "link", onclick: () => void copyText(location.href, "the link of this view") }, "Copy link"),
    choice("Colours", [["system", "Auto"], ["light", "Light"], ["dark", "Dark"]], theme(), setTheme)));
  const paused = "The picture is stopped. Counting goes on.";
  const said = trouble ? `The run does not answer: ${clean(trouble)}` : state.paused ? paused : "";
  if (notice.textContent !== said) notice.textContent = said;
  notice.hidden = said === "";
}

function drawAll(): void {
  drawHead();
  const named = Object.entries(views).find(([name]) => name === state.link.view);
  const view = named?.[1] ?? views.traffic;
  if (!view || locked) return;
  document.title = `${view.title} \u2013 Weir`;
  if (shown !== view) {
    shown?.hide?.();
    shown = view;
    main.dataset.view = state.link.view;
    view.show(main);
  } else view.update(main);
}

let pressed = false;

/** Whether somebody selects text of the view, or clicks: rows keep still meanwhile. */
function holdsStill(): boolean {
  const selection = getSelection();
  const at = selection?.anchorNode;
  const inside = at instanceof Node && main.contains(at) && !at.parentElement?.closest(".cm-editor");
  return pressed || (inside && selection?.type === "Range");
}

const drawRows = paced(1000, () => {
  if (state.paused || locked || holdsStill()) return;
  drawHead();
  shown?.update(main);
});

/** Asks for the token, which the page keeps for the time of this tab. */
function askForToken(): void {
  const input = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const form = h("form", { class: "token", onsubmit: (event) => {
    event.preventDefault();
    setToken(input.value);
    location.reload();
  } }, h("h2", {}, "Token"),
  h("p", {}, "This run answers those who have its token: that of the line `page:` that it printed, or that of its --http-token-file. The page keeps it until this tab is closed."),
  h("label", { for: "token" }, "Token"), input, h("button", { type: "submit" }, "Open"));
  put(main, form);
  input.focus();
}

let timers: number[] = [];

function wake(): void {
  timers.forEach((timer) => window.clearInterval(timer));
  void state.ask();
  void state.askCounts();
  timers = [
    window.setInterval(() => void state.ask(), 4000),
    window.setInterval(() => void state.askCounts(), 1500),
  ];
}

function sleep(): void {
  timers.forEach((timer) => window.clearInterval(timer));
  state.sleep();
}

/** Keys that choose a view, where nobody types. */
function key(event: KeyboardEvent): void {
  const at = event.target;
  const types = at instanceof HTMLElement && (at.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName));
  if (types || document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const name = Object.keys(views)[Number(event.key) - 1];
  if (name) state.go({ view: name });
  else if (event.key === "p") {
    state.paused = !state.paused;
    drawAll();
  }
}

async function begin(): Promise<void> {
  document.documentElement.dataset.theme = theme();
  element("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  drawHead();
  if (hasToken()) await state.ask();
  if (!hasToken() || /token/i.test(state.trouble)) {
    state.trouble = "";
    sleep();
    drawHead();
    askForToken();
    return;
  }
  locked = false;
  drawAll();
  window.addEventListener("pointerdown", () => (pressed = true));
  for (const name of ["pointerup", "pointercancel", "blur"]) {
    window.addEventListener(name, () => (pressed = false));
  }
  window.addEventListener("hashchange", () => {
    takeToken();
    state.arrived();
  });
  window.addEventListener("keydown", key);
  document.addEventListener("visibilitychange", () => (document.hidden ? sleep() : wake()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(theme()));
  wake();
}

void begin();
