// The view of alerts: those of all programs, the latest state of each.

import { api, type Row } from "./api";
import { clean, h, put, redraw, type Child } from "./dom";
import { moment } from "./format";
import { ofRow, showPackets } from "./packets";
import { librarySelect, queries } from "./queries";
import { rangeNote, type Range } from "./range";
import { cell } from "./rows";
import { isAlert, type State } from "./state";

const ACKNOWLEDGED = "weir.acknowledged";

/** Alerts that are remembered as acknowledged. */
const ACKNOWLEDGED_MAX = 2000;

const SEVERITIES = ["critical", "high", "medium", "low", "info"];

const SHOWN = 200;

interface Suppression {
  line: string;
  from: string;
}

interface Alert {
  key: string;
  row: Row;
  program: string;
  goesOn: boolean;
}

function text(row: Row, name: string): string {
  return cell(row[name]);
}

function readAcknowledged(): Set<string> {
  try {
    return new Set(JSON.parse(localStorage.getItem(ACKNOWLEDGED) ?? "[]") as string[]);
  } catch {
    return new Set();
  }
}

/** The latest row of each alert, those that go on first, then the latest. */
function alerts(state: State): Alert[] {
  const all = new Map<string, Alert>();
  for (const [program, kept] of state.rows) {
    for (const row of kept.outputs.filter(isAlert).flatMap((output) => kept.of(output))) {
      const key = ["alert.rule", "alert.key", "alert.first"].map((name) => String(row[name])).join(" ");
      all.set(key, { key, row, program, goesOn: row["alert.state"] !== "end" });
    }
  }
  const order = (one: Alert) => String(one.row["alert.last"] ?? one.row.ts);
  return [...all.values()].sort((a, b) =>
    Number(b.goesOn) - Number(a.goesOn) || (order(a) < order(b) ? 1 : order(a) > order(b) ? -1 : 0));
}

/** Whether an alert went on in a range. */
function overlaps(row: Row, [from, to]: Range): boolean {
  const at = (name: string) => Date.parse(String(row[name]));
  const [first, last] = [at("alert.first"), at("alert.last")];
  return first <= to && (Number.isNaN(last) ? first : last) >= from;
}

export class AlertsView {
  readonly title = "Alerts";
  private readonly list = h("div");
  private readonly suppressed = h("div");
  private readonly said = h("p", { role: "status", class: "said" });
  private readonly begin = h("div");
  private acknowledged = readAcknowledged();
  private hides = true;
  private open = new Set<string>();
  /** The alert of which somebody is asked for how long it is suppressed. */
  private suppressing: string | undefined;
  private lines: Suppression[] = [];

  constructor(private readonly state: State) {}

  /** How many alerts go on that nobody has acknowledged. */
  static open(state: State): number {
    const acknowledged = readAcknowledged();
    return alerts(state).filter((one) => one.goesOn && !acknowledged.has(one.key)).length;
  }

  show(host: HTMLElement): void {
    put(host, h("h2", {}, "Alerts"), this.begin, this.said, this.list, h("h2", {}, "Suppressed"), this.suppressed);
    void this.askLines();
    void queries().then((all) => {
      const detectors = all.filter((one) => one.group.startsWith("detectors"));
      put(this.begin, h("div", { class: "controls" }, librarySelect(detectors, "Run a detector\u2026", (one) =>
        void this.act(api("POST", "programs", { name: one.name, text: one.text }), `${one.name} runs`))));
    }).catch(() => undefined);
    this.update();
  }

  update(): void {
    redraw(this.list, () => put(this.list, ...this.alerts()));
    redraw(this.suppressed, () => put(this.suppressed, this.suppressions()));
  }

  private async act(done: Promise<unknown>, text: string): Promise<void> {
    try {
      await done;
      this.said.textContent = text;
      await this.state.ask();
      await this.askLines();
    } catch (error) {
      this.said.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  private async askLines(): Promise<void> {
    this.lines = (await api<{ suppressions: Suppression[] }>("GET", "suppressions")).suppressions;
    this.update();
  }

  private alerts(): Child[] {
    const every = alerts(this.state);
    const { range } = this.state.link;
    const all = range ? every.filter((one) => overlaps(one.row, range)) : every;
    const runs = [...this.state.rows.values()].some((kept) => kept.outputs.some(isAlert));
    if (!runs) return [h("p", { class: "quiet" }, "No program that runs raises alerts. Choose a detector above, or start with `weir serve detectors/ \u2026`.")];
    const left = this.hides ? all.filter((one) => !this.acknowledged.has(one.key)) : all;
    const note = rangeNote(this.state, "alerts that went on at some time");
    const hidden = all.length - left.length;
    const toggle = hidden > 0 || !this.hides
      ? h("button", { type: "button", "data-key": "hides", "aria-pressed": String(!this.hides), onclick: () => {
        this.hides = !this.hides;
        this.update();
      } }, this.hides ? `Show ${hidden} acknowledged` : "Hide acknowledged")
      : null;
    if (left.length === 0) return [note, toggle, h("p", { class: "quiet" }, all.length > 0 ? "All alerts are acknowledged." : range ? "No alerts in this range." : "No alerts so far.")];
    const items = left.slice(0, SHOWN).map((one) => this.alert(one));
    const more = left.length > SHOWN ? h("p", { class: "quiet" }, `The latest ${SHOWN} of ${left.length}.`) : null;
    return [note, toggle, h("ul", { class: "plain alerts" }, ...items), more];
  }

  private alert({ key, row, program, goesOn }: Alert): HTMLElement {
    const severity = text(row, "alert.severity");
    const level = SEVERITIES.includes(severity) ? severity : "info";
    const known = this.acknowledged.has(key);
    const acknowledge = () => {
      if (known) this.acknowledged.delete(key);
      else this.acknowledged.add(key);
      const kept = [...this.acknowledged].slice(-ACKNOWLEDGED_MAX);
      localStorage.setItem(ACKNOWLEDGED, JSON.stringify(kept));
      this.state.go({});
    };
    const packets = () => showPackets(`Packets of ${text(row, "alert.message")}`, ofRow(program, undefined, row));
    const line = typeof row["alert.suppress"] === "string" ? row["alert.suppress"] : "";
    const ask = () => {
      this.suppressing = this.suppressing === key ? undefined : key;
      this.update();
    };
    const asked = this.suppressing === key;
    const details = h("details", { open: this.open.has(key), ontoggle: () => {
      if (details.open) this.open.add(key);
      else this.open.delete(key);
    } }, h("summary", { "data-key": `details ${key}` }, "Evidence"), this.evidence(row, program));
    const state = goesOn ? text(row, "alert.state") : "ended";
    const times = `${text(row, "alert.first")} to ${text(row, "alert.last")}, ${text(row, "alert.rows")} rows`;
    return h("li", { class: `alert ${level}${goesOn ? "" : " over"}` },
      h("p", {}, h("span", { class: "severity" }, severity), " ", h("span", { class: "quiet" }, state), " ",
        h("b", {}, text(row, "alert.rule")), " ", text(row, "alert.message")),
      h("p", { class: "quiet" }, times),
      h("div", { class: "acts" },
        h("button", { type: "button", "data-key": `ack ${key}`, onclick: acknowledge }, known ? "Take back" : "Acknowledge"),
        h("button", { type: "button", "data-key": `packets ${key}`, onclick: packets }, "Packets"),
        line ? h("button", { type: "button", "data-key": `sup ${key}`, "aria-expanded": String(asked), title: clean(line), onclick: ask }, "Suppress") : null),
      asked ? this.howLong(key, line, row) : null,
      details);
  }

  /** Buttons that suppress an alert for a while, or until somebody removes its line. */
  private howLong(key: string, line: string, row: Row): HTMLElement {
    const suppress = (seconds: number | undefined) => {
      this.suppressing = undefined;
      // Lines end by the time of packets, which is now only where they come from interfaces.
      const now = this.state.run?.phase === "live" ? Date.now() : Date.parse(text(row, "alert.last"));
      const until = seconds === undefined ? "" : ` until ${new Date(now + seconds * 1000).toISOString().replace(/\.\d+/, "")}`;
      void this.act(api("POST", "suppressions", { line: line + until }), `Suppressed: ${clean(line + until)}`);
    };
    const button = (name: string, seconds: number | undefined) =>
      h("button", { type: "button", "data-key": `${name} ${key}`, onclick: () => suppress(seconds) }, name);
    return h("div", { class: "acts", role: "group", "aria-label": `How long to suppress ${clean(line)}` },
      button("For 1 hour", 3600), button("For 1 day", 86400), button("For ever", undefined));
  }

  private evidence(row: Row, program: string): HTMLElement {
    const list = h("dl", {}, h("dt", {}, "program"), h("dd", {}, program));
    for (const [name, one] of Object.entries(row)) {
      if (name !== "_pipeline") list.append(h("dt", {}, clean(name)), h("dd", {}, cell(one) || "absent"));
    }
    return list;
  }

  private suppressions(): HTMLElement {
    if (this.lines.length === 0) return h("p", { class: "quiet" }, "No alert is suppressed.");
    const items = this.lines.map(({ line, from }) => {
      const remove = () => void this.act(api("DELETE", "suppressions", { line }), `No longer suppressed: ${clean(line)}`);
      const button = h("button", { type: "button", "data-key": `un ${line}`, "aria-label": `Remove ${clean(line)}`, onclick: remove }, "Remove");
      return h("li", {}, h("code", {}, clean(line)), h("span", { class: "quiet" }, ` ${from === "file" ? "of a file" : "added"} `), button);
    });
    return h("ul", { class: "plain" }, ...items);
  }
}

/** When an alert began, for those who read lists of them. */
export function began(row: Row): string {
  return moment(Date.parse(String(row["alert.first"])));
}
