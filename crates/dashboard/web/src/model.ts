// The traffic of the last while, by windows: totals by protocol, which have all packets, and the
// largest conversations, which tables are made of.

import type { Batch, Row } from "./api";
import { protocol } from "./format";

export const TRAFFIC = "page-traffic";
export const FLOWS = "page-flows";

/** Points of a time line, of which windows without packets are some. */
const POINTS_MAX = 5000;

/** Windows that are kept, and conversations of all of them. */
const WINDOWS_MAX = 3600;
const CONVERSATIONS_MAX = 150_000;

export type Dimension = "host" | "pair" | "service" | "protocol" | "interface";

/** What a time line is stacked by: all packets are known by it. */
export type Side = "protocol" | "interface";

/** A condition on conversations. */
export interface Filter {
  dimension: Dimension;
  value: string;
  excludes: boolean;
}

export interface Amount {
  packets: number;
  bytes: number;
}

export interface Conversation extends Amount {
  src: string;
  dst: string;
  pair: string;
  service: string;
  protocol: string;
  interface: string;
}

/** What came by an interface and a protocol, and in how many conversations. */
interface Total extends Amount {
  protocol: string;
  interface: string;
  conversations: number;
}

interface TrafficWindow {
  /** Milliseconds since 1970. */
  at: number;
  totals: Map<string, Total>;
  conversations: Conversation[];
}

export const NOT_IP = "not IP";

/** What stands for the interface where a capture names none. */
export const NO_NAME = "without name";

function number(row: Row, name: string): number | null {
  const value = row[name];
  return typeof value === "number" ? value : null;
}

function add(to: Map<string, Amount>, key: string, amount: Amount): void {
  const sum = to.get(key);
  if (sum) {
    sum.packets += amount.packets;
    sum.bytes += amount.bytes;
  } else {
    to.set(key, { packets: amount.packets, bytes: amount.bytes });
  }
}

/** Both directions of a conversation have one name. */
export function pairOf(src: string, dst: string): string {
  return src < dst ? `${src} \u2013 ${dst}` : `${dst} \u2013 ${src}`;
}

function amount(row: Row): Amount {
  return { packets: number(row, "packets") ?? 0, bytes: number(row, "bytes") ?? 0 };
}

function interfaceOf(row: Row): string {
  return typeof row.interface === "string" ? row.interface : NO_NAME;
}

function conversation(row: Row): Conversation {
  const src = typeof row.src === "string" ? row.src : NOT_IP;
  const dst = typeof row.dst === "string" ? row.dst : NOT_IP;
  const name = protocol(number(row, "proto"), number(row, "type"));
  const port = number(row, "port");
  const pair = src === NOT_IP ? NOT_IP : pairOf(src, dst);
  const service = port === null ? name : `${name} ${port}`;
  return { ...amount(row), src, dst, pair, service, protocol: name, interface: interfaceOf(row) };
}

/** Whether a total has what filters of protocols and interfaces say. */
function meets(one: Total, filters: Filter[]): boolean {
  return filters.every(({ dimension, value, excludes }) =>
    (one[dimension === "interface" ? "interface" : "protocol"] === value) !== excludes);
}

/** Whether a conversation has a value. */
function has(one: Conversation, { dimension, value }: Filter): boolean {
  if (dimension === "host") return one.src === value || one.dst === value;
  return one[dimension] === value;
}

export function passes(one: Conversation, filters: Filter[]): boolean {
  return filters.every((filter) => has(one, filter) !== filter.excludes);
}

/** What a range of time holds. */
export interface Summary {
  windows: number;
  /** Milliseconds. */
  span: number;
  conversations: Conversation[];
  /** All that meets the filter, as far as that is known. */
  total: Amount;
  /** What is in no conversation that is known, so that a filter can't tell. */
  unknown: Amount;
  /** Conversations of the latest window, as far as they are known to meet the filter. */
  conversing: number;
}

export class Model {
  private windows = new Map<number, TrafficWindow>();
  private sorted: TrafficWindow[] = [];
  /** Milliseconds of a window. */
  interval = 1000;
  /** Rows that the run did not keep. */
  skipped = 0;

  /** Takes rows of the page's programs. */
  take(batch: Batch): void {
    const traffic = batch.program === TRAFFIC;
    if (batch.outputs) {
      this.skipped = 0;
      for (const one of this.windows.values()) {
        // Each program counts its part of a total, and may begin anew without the other.
        for (const [key, total] of one.totals) {
          if (traffic) Object.assign(total, zero());
          else total.conversations = 0;
          if (total.packets === 0 && total.conversations === 0) one.totals.delete(key);
        }
        if (!traffic) one.conversations = [];
      }
      this.drop((one) => one.totals.size > 0 || one.conversations.length > 0);
    }
    this.skipped += batch.skipped;
    for (const row of batch.rows) {
      const at = Date.parse(String(row.ts));
      if (Number.isNaN(at)) continue;
      const found = this.window(at);
      const counted = number(row, "conversations");
      if (traffic) plus(Model.total(found, row), amount(row));
      else if (counted !== null) Model.total(found, row).conversations += counted;
      else found.conversations.push(conversation(row));
    }
    this.bound();
  }

  /** The total that a row is about. */
  private static total(window: TrafficWindow, row: Row): Total {
    const name = protocol(number(row, "proto"), number(row, "type"));
    const key = `${interfaceOf(row)}\n${name}`;
    let total = window.totals.get(key);
    if (!total) {
      total = { ...zero(), protocol: name, interface: interfaceOf(row), conversations: 0 };
      window.totals.set(key, total);
    }
    return total;
  }

  /** Lets go of the oldest windows beyond the bounds. */
  private bound(): void {
    let conversations = 0;
    for (let i = this.sorted.length - 1; i >= 0; i -= 1) {
      conversations += this.sorted[i]?.conversations.length ?? 0;
      const kept = this.sorted.length - i;
      if (kept < 2 || (kept <= WINDOWS_MAX && conversations <= CONVERSATIONS_MAX)) continue;
      const first = this.sorted[i + 1]?.at ?? 0;
      this.drop((one) => one.at >= first);
      return;
    }
  }

  private window(at: number): TrafficWindow {
    let found = this.windows.get(at);
    if (!found) {
      found = { at, totals: new Map(), conversations: [] };
      this.windows.set(at, found);
      const last = this.sorted[this.sorted.length - 1];
      this.sorted.push(found);
      if (last && last.at > at) this.sorted.sort((a, b) => a.at - b.at);
    }
    return found;
  }

  private drop(stays: (one: TrafficWindow) => boolean): void {
    this.sorted = this.sorted.filter(stays);
    this.windows = new Map(this.sorted.map((one) => [one.at, one]));
  }

  get first(): number | undefined {
    return this.sorted[0]?.at;
  }

  get last(): number | undefined {
    return this.sorted[this.sorted.length - 1]?.at;
  }

  private within(from: number, to: number): TrafficWindow[] {
    return this.sorted.filter((one) => one.at >= from && one.at <= to);
  }

  /** Whether filters are about protocols and interfaces only, which are known of all packets. */
  private static exact(filters: Filter[]): boolean {
    return filters.every(({ dimension }) => dimension === "protocol" || dimension === "interface");
  }

  /** The interfaces of all windows, by name. */
  interfaces(): string[] {
    const names = new Set<string>();
    for (const one of this.sorted) for (const total of one.totals.values()) names.add(total.interface);
    return [...names].sort();
  }

  /** Amounts that meet the filters, of each window: packets, bytes and conversations. */
  series(from: number, to: number, filters: Filter[], side: Side): { at: number[]; by: Map<string, number[]>[] } {
    const at: number[] = [];
    const by = [new Map<string, number[]>(), new Map<string, number[]>(), new Map<string, number[]>()];
    const windows = this.within(from, to);
    const put = (to: Map<string, number[]>, name: string, i: number, value: number) => {
      let all = to.get(name);
      if (!all) to.set(name, (all = new Array<number>(at.length).fill(0)));
      all[i] = (all[i] ?? 0) + value;
    };
    // Windows without packets have no rows.
    const place = new Map<number, number>();
    const [first, last] = [windows[0]?.at ?? 0, windows[windows.length - 1]?.at ?? 0];
    if (windows.length > 0 && (last - first) / this.interval < POINTS_MAX) {
      for (let ms = first; ms < last + this.interval / 2; ms += this.interval) at.push(Math.round(ms));
    }
    at.forEach((ms, i) => place.set(ms, i));
    if (!windows.every((one) => place.has(one.at))) {
      at.splice(0, at.length, ...windows.map((one) => one.at));
      place.clear();
      at.forEach((ms, i) => place.set(ms, i));
    }
    for (const window of windows) {
      const i = place.get(window.at) ?? 0;
      for (const sum of this.totals(window, filters)) {
        [sum.packets, sum.bytes, sum.conversations].forEach((n, which) => put(by[which] ?? new Map(), sum[side], i, n));
      }
    }
    return { at, by };
  }

  /** What meets the filters: all of it, or the conversations that are known to. */
  private totals(window: TrafficWindow, filters: Filter[]): Total[] {
    if (Model.exact(filters)) return [...window.totals.values()].filter((one) => meets(one, filters));
    return window.conversations.filter((one) => passes(one, filters)).map((one) => ({ ...one, conversations: 1 }));
  }

  /** The conversations of a range that meet the filters, each once, and sums. */
  summary(from: number, to: number, filters: Filter[]): Summary {
    const [all, total, known] = [new Map<string, Conversation>(), zero(), zero()];
    const unknown = zero();
    const windows = this.within(from, to);
    for (const window of windows) {
      for (const sum of window.totals.values()) plus(unknown, sum);
      for (const sum of this.totals(window, filters)) plus(total, sum);
      for (const one of window.conversations) {
        plus(known, one);
        if (!passes(one, filters)) continue;
        const key = `${one.interface} ${one.src} ${one.dst} ${one.service}`;
        const sum = all.get(key);
        if (sum) plus(sum, one);
        else all.set(key, { ...one });
      }
    }
    unknown.packets = Math.max(0, unknown.packets - known.packets);
    unknown.bytes = Math.max(0, unknown.bytes - known.bytes);
    const ends = windows.length > 0 ? this.interval : 0;
    const span = (windows[windows.length - 1]?.at ?? 0) - (windows[0]?.at ?? 0) + ends;
    const latest = windows[windows.length - 1];
    const conversing = latest ? this.totals(latest, filters).reduce((n, one) => n + one.conversations, 0) : 0;
    return { windows: windows.length, span, conversations: [...all.values()], total, unknown, conversing };
  }
}

export function zero(): Amount {
  return { packets: 0, bytes: 0 };
}

export function plus(to: Amount, more: Amount): void {
  to.packets += more.packets;
  to.bytes += more.bytes;
}

/** The largest first by bytes; those beyond `n`, and what is in none, are `other`. */
export function largest(
  all: Map<string, Amount>,
  n: number,
  total: Amount,
): { rows: [string, Amount][]; other: Amount } {
  const sorted = [...all].sort((a, b) => b[1].bytes - a[1].bytes || (a[0] < b[0] ? -1 : 1));
  const rows = sorted.slice(0, n);
  const other = { packets: total.packets, bytes: total.bytes };
  for (const [, sum] of rows) {
    other.packets -= sum.packets;
    other.bytes -= sum.bytes;
  }
  return { rows, other };
}

/** Sums by something of conversations. */
export function group(all: Conversation[], key: (one: Conversation) => string): Map<string, Amount> {
  const out = new Map<string, Amount>();
  for (const one of all) add(out, key(one), one);
  return out;
}
