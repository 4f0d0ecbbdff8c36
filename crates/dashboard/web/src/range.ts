// The range of time that views show: the one of the link, or the last while of what comes. It is
// chosen by dragging over a chart, by its length, or by typing when it begins and ends.

import { choice, h, put, type Child } from "./dom";
import { moment, parseTime, span, time } from "./format";
import type { State } from "./state";

const SPANS: [string, string][] = [["60", "1 min"], ["300", "5 min"], ["900", "15 min"], ["3600", "1 h"]];

/** Milliseconds since 1970, both included. */
export type Range = [number, number];

/** The range that is shown: the link's, or the last while of what comes. */
export function range(state: State): Range {
  const { link, model, run } = state;
  if (link.range) return link.range;
  const { first = 0, last = 0 } = model;
  return run?.reads_again ? [first, last] : [Math.max(first, last - link.seconds * 1000), last];
}

/** The button that leaves a range. */
function allTimes(state: State): HTMLElement {
  return h("button", { type: "button", "data-key": "all", onclick: () => state.go({ range: undefined }) }, "All times");
}

/** How long a range is shown, and which one it is. */
export function rangeControls(state: State): Child[] {
  const set = (seconds: string) => state.go({ range: undefined, seconds: Number(seconds) });
  const spans = state.run?.reads_again || state.link.range ? null
    : choice("Time range", SPANS, String(state.link.seconds), set);
  const [from, to] = range(state);
  const shown = `${moment(from)} to ${time(to + state.model.interval)} UTC, windows of ${span(state.model.interval)}`;
  return [spans, state.link.range && allTimes(state), h("span", { class: "quiet" }, shown)];
}

/** Says in other views that they show a range only, and leaves it. */
export function rangeNote(state: State, ofWhat: string): HTMLElement | null {
  if (!state.link.range) return null;
  const [from, to] = state.link.range;
  const text = `Only ${ofWhat} from ${moment(from)} to ${moment(to)} UTC.`;
  return h("div", { class: "controls" }, h("span", {}, text), allTimes(state));
}

/** Two fields for the range, which stay as they are while the rest is drawn anew. */
export class RangeFields {
  readonly element: HTMLElement;
  private readonly from = h("input", { id: "range-from", size: "24", autocomplete: "off", spellcheck: "false" });
  private readonly to = h("input", { id: "range-to", size: "24", autocomplete: "off", spellcheck: "false" });
  private readonly said = h("span", { class: "bad", role: "alert" });
  private written = "";

  constructor(private readonly state: State) {
    this.element = h("form", { class: "controls", "aria-label": "Range of time", onsubmit: (event) => {
      event.preventDefault();
      this.choose();
    } },
    h("label", { for: "range-from" }, "From"), this.from, h("label", { for: "range-to" }, "to"), this.to,
    h("button", { type: "submit" }, "Show range"),
    h("span", { class: "quiet" }, "UTC: 05:51:12 or 2026-11-21T05:51:12Z"), this.said);
  }

  /** Writes the range of the link into the fields, once for each. */
  update(): void {
    const chosen = this.state.link.range;
    const written = chosen?.join("-") ?? "";
    if (written === this.written) return;
    this.written = written;
    const text = (ms: number | undefined) => (ms === undefined ? "" : new Date(ms).toISOString());
    [this.from.value, this.to.value] = [text(chosen?.[0]), text(chosen?.[1])];
    put(this.said);
  }

  /** An empty field stands for the first or the last time. */
  private choose(): void {
    const { first, last } = this.state.model;
    const near = last ?? Date.now();
    const ends = ([["From", this.from, first ?? near], ["to", this.to, near]] as const).map(([name, input, empty]) => {
      const text = input.value.trim();
      return { name, text, ms: text === "" ? empty : parseTime(text, near) };
    });
    const wrong = ends.find(({ ms }) => Number.isNaN(ms));
    const [from = NaN, to = NaN] = ends.map(({ ms }) => ms);
    if (wrong) this.say(`${wrong.name}: \u201c${wrong.text}\u201d is no time of day and no time as in RFC 3339.`);
    else if (from > to) this.say("The range ends before it begins.");
    else {
      this.say("");
      this.state.go({ range: [from, to] });
    }
  }

  private say(text: string): void {
    put(this.said, text);
  }
}
