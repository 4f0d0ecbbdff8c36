// The view of traffic: rates and totals, losses beside them, a time line, and top tables.

import { api } from "./api";
import { Chart, topLines, type Line } from "./chart";
import { copyText } from "./copy";
import { choice, clean, copySign, h, put, redraw, table, type Child, type Pick } from "./dom";
import { percent, short, span, whole } from "./format";
import { FLOWS, TRAFFIC, group, largest, plus, zero } from "./model";
import type { Amount, Dimension, Filter, Order, Side, Summary } from "./model";
import { ofValue, showPackets } from "./packets";
import { range, rangeControls, RangeFields } from "./range";
import type { State } from "./state";
import flowsText from "../../programs/page-flows.weir";
import trafficText from "../../programs/page-traffic.weir";

const ROWS = 12;
const MORE_ROWS = 100;

/** The conversations and hosts that page-flows.weir keeps of a window. */
const CONVERSATIONS = 200;
const HOSTS = 60;


/** Counts of the ledger that are losses or worth a look, in packets. */
const LOSSES: [string, string][] = [
  ["lost_by_interface", "lost by interface"], ["lost_in_kernel", "lost in kernel"],
  ["lost_in_ring", "lost in ring"], ["malformed", "malformed"], ["cut", "cut"], ["late", "late"],
  ["evicted", "evicted"], ["wild", "wild"],
];

/** Buttons for a value: it becomes a filter, or is copied. */
export function value(state: State, dimension: Dimension, text: string): HTMLElement {
  const shown = clean(text);
  const filter = (event: Event) => {
    const excludes = event instanceof MouseEvent && event.shiftKey;
    state.filter({ dimension, value: text, excludes });
  };
  const copy = () => void copyText(text, shown);
  const title = "Only this; with Shift: all but this";
  const key = `${dimension} ${text}`;
  return h(
    "span",
    { class: "value" },
    h("button", { type: "button", class: "link", title, "data-key": key, onclick: filter }, shown),
    h("button", {
      type: "button", class: "copy", title: "Copy", "data-key": `copy ${key}`, "aria-label": `Copy ${shown}`, onclick: copy,
    }, copySign()),
  );
}

/** The filters as buttons that take them away, turn them round, or copy their values. */
export function filters(state: State): HTMLElement {
  const one = (filter: Filter) => {
    const text = `${filter.excludes ? "not " : ""}${filter.dimension} ${clean(filter.value)}`;
    const turn = filter.excludes ? "only this" : "all but this";
    return h("span", { class: "filter" }, h("button", {
      type: "button", class: "chip", "data-key": text, "aria-label": `Remove the filter ${text}`,
      onclick: () => state.unfilter(filter),
    }, text, " \u00d7"),
    h("button", {
      type: "button", "data-key": `turn ${text}`, "aria-label": `${turn}: ${filter.dimension} ${clean(filter.value)}`,
      onclick: () => state.filter({ ...filter, excludes: !filter.excludes }),
    }, turn),
    h("button", {
      type: "button", "data-key": `copy filter ${text}`, "aria-label": `copy ${clean(filter.value)}`,
      onclick: () => void copyText(filter.value, clean(filter.value)),
    }, "copy"));
  };
  const all = state.link.filters.map(one);
  return h("div", { class: "filters", "aria-label": "Filters", role: "group" }, ...all);
}

/** The traffic and windows that tables lack that are made of conversations. */
export function conversationsLack({ exact, total, unknown, windows, without }: Summary): string[] {
  const lacks: string[] = [];
  const largest = `in none of the ${CONVERSATIONS} largest conversations of their windows`;
  if (unknown.bytes > 0 && exact) {
    lacks.push(`${percent(unknown.bytes, total.bytes)} of the bytes are ${largest}.`);
  } else if (unknown.bytes > 0) {
    const share = percent(unknown.bytes, unknown.bytes + total.bytes);
    lacks.push(`Of ${share} of the bytes it is not known whether they meet the filters: they are ${largest}.`);
  }
  if (without.conversations > 0) lacks.push(tooFarBack("conversations", without.conversations, windows));
  return lacks;
}

/** The traffic and windows that the table of hosts lacks where it is made of all packets. */
function hostsLack({ hosts, total, windows, without }: Summary): string[] {
  const lacks: string[] = [];
  const unknown = (known: Map<string, Amount>) => [...known.values()].reduce((left, one) => left - one.bytes, total.bytes);
  const [out, into] = [unknown(hosts.sent), unknown(hosts.received)];
  if (out > 0 || into > 0) {
    const [sent, received] = [out, into].map((bytes) => percent(Math.max(0, bytes), total.bytes));
    lacks.push(`Of the bytes, ${sent} were sent by none of the ${HOSTS} largest senders of their windows, and ${received} received by none of the ${HOSTS} largest receivers.`);
  }
  if (without.hosts > 0) lacks.push(tooFarBack("hosts", without.hosts, windows));
  return lacks;
}

function tooFarBack(ofWhat: string, without: number, windows: number): string {
  return `The ${ofWhat} of ${whole(without)} of ${whole(windows)} windows are not kept: only totals go so far back.`;
}

/** The section that stands in place of traffic that nothing counts. */
export function uncounted(state: State): HTMLElement {
  const add = async () => {
    const programs: [string, string][] = [[TRAFFIC, trafficText], [FLOWS, flowsText]];
    for (const [name, text] of programs) {
      if (state.programs.some((one) => one.name === name)) continue;
      await api("POST", "programs", { name, text });
    }
    await state.ask();
  };
  const fail = (error: unknown) => {
    state.trouble = String(error);
  };
  return h(
    "section",
    { class: "empty" },
    h("h2", {}, "Traffic"),
    h("p", {}, "No program counts traffic for this page yet. Two programs do that; they run beside the others until somebody removes them."),
    h("button", { type: "button", onclick: () => void add().catch(fail) }, "Count traffic"),
  );
}

export class TrafficView {
  readonly title = "Traffic";
  private more = new Set<string>();
  private readonly chart: Chart;
  private readonly top = h("div");
  private readonly times: RangeFields;
  private readonly legend = h("div", { class: "legend" });
  private readonly tables = h("div", { class: "tables" });
  private built = false;
  /** Whether packets come by several interfaces: one says nothing that the total does not. */
  private several = false;

  constructor(private readonly state: State) {
    this.chart = new Chart("Traffic over time", (from, to) =>
      this.state.go({ range: [from, to] }));
    this.times = new RangeFields(state);
  }

  show(host: HTMLElement): void {
    this.built = this.state.countsTraffic;
    this.chart.forget();
    if (this.built) {
      put(host, h("h2", { class: "hidden" }, "Traffic"), this.top, this.times.element, this.chart.element, this.legend, this.tables);
    } else put(host, uncounted(this.state));
    this.update(host);
  }

  update(host: HTMLElement): void {
    if (this.built !== this.state.countsTraffic) return this.show(host);
    if (!this.built) return;
    const { state } = this;
    this.several = state.model.interfaces().length > 1;
    const [from, to] = range(state);
    this.times.update();
    const summary = state.model.summary(from, to, state.link.filters);
    redraw(this.top, () => put(this.top, this.controls(), filters(state), this.numbers(summary), this.losses()));
    const { at, by } = state.model.series(from, to, state.link.filters, this.side);
    const seconds = state.model.interval / 1000;
    const [scale, which] = this.unit === "bits" ? [8 / seconds, 1] : this.unit === "packets" ? [1 / seconds, 0] : [1, 2];
    const scaled = new Map([...by[which] ?? []].map(([name, all]) => [name, all.map((n) => n * scale)]));
    const lines = topLines(scaled, at.length);
    this.chart.show(at, lines, state.model.interval < 1000);
    redraw(this.legend, () => put(this.legend, this.lines(lines)));
    redraw(this.tables, () => put(this.tables, this.orders(), ...this.topTables(summary)));
  }

  private get unit(): string {
    return this.state.link.unit ?? "bits";
  }

  /** The unit as it stands beside numbers. */
  private get unitText(): string {
    return this.unit === "conversations" ? "conversations" : `${this.unit}/s`;
  }

  /** The number that tables are sorted by, and their shares are of. */
  private get order(): Order {
    return this.state.link.order ?? "bytes";
  }

  private orders(): HTMLElement {
    const set = (order: string) => this.state.go({ order: order === "packets" ? order : undefined });
    return h("div", { class: "controls wide" }, h("span", {}, "Tables by"),
      choice("Tables by", [["bytes", "bytes"], ["packets", "packets"]], this.order, set));
  }

  private get side(): Side {
    return this.state.link.by ?? "protocol";
  }

  private controls(): HTMLElement {
    const { state } = this;
    const units = choice("Unit", [["bits", "bits/s"], ["packets", "packets/s"], ["conversations", "conversations"]], this.unit,
      (unit) => state.go({ unit }));
    const sides = state.link.by || this.several
      ? choice("Stacked by", [["protocol", "by protocol"], ["interface", "by interface"]], this.side,
        (by) => state.go({ by: by === "interface" ? by : undefined }))
      : null;
    return h("div", { class: "controls" }, units, sides, ...rangeControls(state));
  }

  /** The rates: of a live run now, else over the range. */
  private numbers(summary: Summary): HTMLElement {
    const { state } = this;
    const live = state.run?.phase === "live" && !state.link.range;
    const last = state.model.last ?? 0;
    const now = live ? state.model.summary(last - 4 * state.model.interval, last, state.link.filters) : summary;
    const seconds = Math.max(now.span, 1) / 1000;
    const what = live ? `mean of the last ${span(now.span)}` : `mean of ${span(now.span)}`;
    const tile = (name: string, text: string, note: string) =>
      h("div", { class: "tile" }, h("span", { class: "name" }, name), h("strong", {}, text), h("span", { class: "quiet" }, note));
    return h(
      "div",
      { class: "tiles" },
      tile("packets/s", short(now.total.packets / seconds), what),
      tile("bits/s", short((8 * now.total.bytes) / seconds), what),
      tile("packets", whole(summary.total.packets), `in ${span(summary.span)}`),
      tile("bytes", short(summary.total.bytes), `in ${span(summary.span)}`),
      tile("conversations", short(now.conversing), "in the latest window"),
    );
  }

  /** The ledger of the whole run: what was received, and what was lost, in packets. */
  private losses(): HTMLElement {
    const { counts, model } = this.state;
    if (!counts) return h("p", { class: "quiet" }, "The run has not told its counts yet.");
    const lost = ["lost_by_interface", "lost_in_kernel", "lost_in_ring"]
      .reduce((sum, name) => sum + (counts[name] ?? 0), 0);
    const parts: Child[] = [
      h("span", {}, "The whole run, in packets: received ", h("b", {}, whole(counts.received ?? 0))),
      h("span", { class: lost > 0 ? "bad" : undefined }, "lost ", h("b", {}, whole(lost))),
    ];
    for (const [name, text] of LOSSES) {
      const n = counts[name] ?? 0;
      if (n > 0) parts.push(h("span", { class: "bad" }, `${text} `, h("b", {}, whole(n))));
    }
    if (model.skipped > 0) parts.push(h("span", {}, `rows of earlier windows not kept ${whole(model.skipped)}`));
    return h("p", { class: "ledger" }, ...parts);
  }

  /** The lines of the chart as numbers. */
  private lines(lines: Line[]): HTMLElement {
    const last = (line: Line) => line.values[line.values.length - 1] ?? 0;
    const mean = (line: Line) => line.values.reduce((all, one) => all + one, 0) / Math.max(1, line.values.length);
    const all = lines.reduce((sum, line) => sum + mean(line), 0);
    const rows = lines.map((line): Child[] => {
      const mark = h("span", { class: "mark", "aria-hidden": "true" });
      mark.style.background = line.color;
      const name = line.name === "other" ? "other" : value(this.state, this.side, line.name);
      return [h("span", {}, mark, name), short(last(line)), short(mean(line)), percent(mean(line), all)];
    });
    rows.push(["total", short(lines.reduce((sum, line) => sum + last(line), 0)), short(all), ""]);
    const title = this.side === "interface" ? "Interfaces over time" : "Protocols over time";
    return table(title, [this.side, `latest window, ${this.unitText}`, `mean, ${this.unitText}`, "share"], rows, new Set([1, 2, 3]));
  }

  /** Packets by each interface, and by each worker, of the whole run, whatever the filter. */
  private ofRun(): HTMLElement[] {
    const { counts, workerRates } = this.state;
    const blocks: HTMLElement[] = [];
    const add = (title: string, head: string[], rows: Child[][]) =>
      blocks.push(h("section", { class: "block plain" }, table(title, head, rows, new Set([1, 2, 3]))));
    const interfaces = counts?.interfaces ?? [];
    if (interfaces.length > 0) {
      const rows = interfaces.map(([name, received, lost]): Child[] =>
        [clean(name), whole(received), whole(lost), percent(lost, received + lost)]);
      add("Interfaces of the run, in packets", ["interface", "received", "lost", "share lost"], rows);
    }
    const workers = counts?.workers ?? [];
    if (workers.length > 1) {
      const all = workers.reduce((sum, n) => sum + n, 0);
      const rows = workers.map((n, i): Child[] => [String(i), short(workerRates[i] ?? 0), whole(n), percent(n, all)]);
      add("Workers of the run", ["worker", "packets/s", "packets", "share"], rows);
    }
    return blocks;
  }

  private topTables(summary: Summary): HTMLElement[] {
    const all = summary.conversations;
    const lacks = conversationsLack(summary);
    // Of these, all packets are known where the filters are known of all packets.
    const side = summary.exact ? [] : lacks;
    return [
      this.hosts(summary),
      this.topTable("Pairs of hosts", "pair", group(all, (one) => one.pair), summary, lacks),
      this.topTable("Services", "service", group(all, (one) => one.service), summary, lacks),
      this.topTable("Protocols", "protocol", summary.protocols, summary, side),
      ...(this.several ? [this.topTable("Interfaces", "interface", summary.interfaces, summary, side)] : []),
      ...this.ofRun(),
    ];
  }

  private rowsOf(name: string): number {
    return this.more.has(name) ? MORE_ROWS : ROWS;
  }

  /** A table with what it lacks, and a button for more of its rows. */
  private block(name: string, known: number, content: HTMLElement, lacks: string[]): HTMLElement {
    const more = this.more.has(name);
    const toggle = () => {
      if (more) this.more.delete(name);
      else this.more.add(name);
      this.state.go({});
    };
    const button = known > ROWS
      ? h("button", { type: "button", "data-key": `more ${name}`, "aria-expanded": String(more), onclick: toggle }, more ? "Fewer rows" : "More rows")
      : null;
    const notes = lacks.map((text) => h("p", { class: "quiet lacks" }, text));
    return h("section", { class: "block" }, content, ...notes, button);
  }

  private topTable(name: string, dimension: Dimension, all: Map<string, Amount>, summary: Summary, lacks: string[]): HTMLElement {
    const { total } = summary;
    const { rows, other } = largest(all, this.rowsOf(name), total, this.order);
    const seconds = Math.max(summary.span, 1) / 1000;
    const cells = (amount: Amount): Child[] => [
      short((8 * amount.bytes) / seconds), short(amount.packets / seconds), short(amount.bytes), percent(amount[this.order], total[this.order]),
    ];
    const body = rows.map(([key, amount]): Child[] => [value(this.state, dimension, key), ...cells(amount)]);
    body.push(["other", ...cells(other)], ["total", ...cells(total)]);
    const pick = this.pick(dimension, rows.map(([key]) => key));
    const content = table(name, [dimension, "bits/s", "packets/s", "bytes", "share"], body, new Set([1, 2, 3, 4]), pick);
    return this.block(name, all.size, content, lacks);
  }

  /** A click on a row shows packets of its value in the range that is shown. */
  private pick(dimension: Dimension, keys: string[]): Pick {
    const question = (at: number) => {
      const key = keys[at];
      const shown = range(this.state);
      return key === undefined ? undefined : ofValue(this.state, { dimension, value: key, excludes: false }, shown);
    };
    return {
      label: (at) => question(at) && `Packets of ${dimension} ${clean(keys[at] ?? "")}`,
      act: (at) => {
        const asked = question(at);
        if (asked) showPackets(`Packets of ${clean(keys[at] ?? "")}`, asked);
      },
    };
  }

  private hosts(summary: Summary): HTMLElement {
    const { sent, received } = summary.hosts;
    const both = new Map<string, Amount>();
    for (const host of new Set([...sent.keys(), ...received.keys()])) {
      const sum = zero();
      plus(sum, sent.get(host) ?? zero());
      plus(sum, received.get(host) ?? zero());
      both.set(host, sum);
    }
    const { total } = summary;
    const { rows } = largest(both, this.rowsOf("Hosts"), total, this.order);
    const seconds = Math.max(summary.span, 1) / 1000;
    const rate = (amount: Amount) => short((8 * amount.bytes) / seconds);
    const cells = (out: Amount, into: Amount): Child[] => [
      rate(out), rate(into), whole(out.packets), whole(into.packets), percent(out[this.order], total[this.order]),
    ];
    const [restOut, restIn] = [{ ...total }, { ...total }];
    const body = rows.map(([host]): Child[] => {
      const [out, into] = [sent.get(host) ?? zero(), received.get(host) ?? zero()];
      for (const [rest, one] of [[restOut, out], [restIn, into]] as const) {
        rest.bytes -= one.bytes;
        rest.packets -= one.packets;
      }
      return [value(this.state, "host", host), ...cells(out, into)];
    });
    body.push(["other", ...cells(restOut, restIn)], ["total", ...cells(total, total)]);
    const head = ["host", "bits/s sent", "bits/s received", "packets sent", "packets received", "share sent"];
    const pick = this.pick("host", rows.map(([host]) => host));
    const content = table("Hosts", head, body, new Set([1, 2, 3, 4, 5]), pick);
    const lacks = summary.hosts.ofAll ? hostsLack(summary) : conversationsLack(summary);
    return this.block("Hosts", both.size, content, lacks);
  }
}
