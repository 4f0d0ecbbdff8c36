// The traffic of the last while, by windows: totals by protocol, which have all packets, the hosts
// that send and receive most, and the largest conversations, which other tables are made of.

import type { Batch, Row } from "./api";
import { protocol } from "./format";

export const TRAFFIC = "page-traffic";
export const FLOWS = "page-flows";

/** Points of a time line, of which windows without packets are some. */
const POINTS_MAX = 5000;

/** Windows whose totals are kept, and conversations and amounts of hosts of all of them. */
const WINDOWS_MAX = 3600;
const CONVERSATIONS_MAX = 150_000;
const HOSTS_MAX = 150_000;

export type Dimension = "host" | "pair" | "service" | "protocol" | "interface";

/** A dimension that a time line is stacked by: all packets are known by it. */
export type Side = "protocol" | "interface";

/** The number that tables are sorted by. */
export type Order = keyof Amount;

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

/** Traffic by an interface and a protocol, and in how many conversations. */
interface Total extends Amount {
  protocol: string;
  interface: string;
  conversations: number;
}

/** Traffic that a host sent or received by an interface in a window. */
interface HostAmount extends Amount {
  host: string;
  interface: string;
}

interface TrafficWindow {
  /** Milliseconds since 1970. */
  at: number;
  totals: Map<string, Total>;
  conversations: Conversation[];
  senders: HostAmount[];
  receivers: HostAmount[];
}

export const NOT_IP = "not IP";

/** The text that stands for the interface where a capture names none. */
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

function hostAmount(row: Row): HostAmount {
  const host = typeof row.host === "string" ? row.host : NOT_IP;
  return { ...amount(row), host, interface: interfaceOf(row) };
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

/** Whether a filter is about what is known of all packets. */
function isExact({ dimension }: Filter): boolean {
  return dimension === "protocol" || dimension === "interface";
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

/** Traffic that hosts sent and received. */
export interface Hosts {
  sent: Map<string, Amount>;
  received: Map<string, Amount>;
  /** Whether they are made of all packets that meet the filters, and not of conversations. */
  ofAll: boolean;
}

/** The traffic of a range of time. */
export interface Summary {
  windows: number;
  /** Milliseconds. */
  span: number;
  conversations: Conversation[];
  hosts: Hosts;
  /** By protocol and by interface: of all packets where filters are of these, otherwise of
   * conversations. */
  protocols: Map<string, Amount>;
  interfaces: Map<string, Amount>;
  /** All that meets the filters, as far as that is known. */
  total: Amount;
  /** Whether that is all: filters of protocols and interfaces can tell of every packet. */
  exact: boolean;
  /** Traffic in no conversation that is known: a part of the total, or where that is not exact,
   * traffic that other filters can't tell of. */
  unknown: Amount;
  /** Windows whose conversations are not kept, and those whose hosts are not. */
  without: { conversations: number; hosts: number };
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
        if (!traffic) [one.conversations, one.senders, one.receivers] = [[], [], []];
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
      else if (row._pipeline === `${FLOWS}.senders`) found.senders.push(hostAmount(row));
      else if (row._pipeline === `${FLOWS}.receivers`) found.receivers.push(hostAmount(row));
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

  /** Lets go of the oldest beyond the bounds: totals take little, so they stay for longer than
   * conversations and hosts. */
  private bound(): void {
    let [conversations, hosts] = [0, 0];
    for (let i = this.sorted.length - 1; i >= 0; i -= 1) {
      const one = this.sorted[i];
      const newest = i === this.sorted.length - 1;
      if (!one || newest) continue;
      conversations += one.conversations.length;
      hosts += one.senders.length + one.receivers.length;
      if (conversations > CONVERSATIONS_MAX) one.conversations = [];
      if (hosts > HOSTS_MAX) [one.senders, one.receivers] = [[], []];
    }
    const first = this.sorted[this.sorted.length - WINDOWS_MAX]?.at;
    if (first !== undefined && this.sorted.length > WINDOWS_MAX) this.drop((one) => one.at >= first);
  }

  private window(at: number): TrafficWindow {
    let found = this.windows.get(at);
    if (!found) {
      found = { at, totals: new Map(), conversations: [], senders: [], receivers: [] };
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

  /** Traffic that meets the filters: all of it, or the conversations that are known to. */
  private totals(window: TrafficWindow, filters: Filter[]): Total[] {
    if (filters.every(isExact)) return [...window.totals.values()].filter((one) => meets(one, filters));
    return window.conversations.filter((one) => passes(one, filters)).map((one) => ({ ...one, conversations: 1 }));
  }

  /** Windows of a range that have packets, and are before the first that has something else. */
  private before(windows: TrafficWindow[], has: (one: TrafficWindow) => boolean): number {
    const first = this.sorted.find(has)?.at ?? Infinity;
    return windows.filter((one) => one.at < first && one.totals.size > 0).length;
  }

  /** The traffic of hosts, of all packets where filters are about interfaces at most. */
  private static hosts(windows: TrafficWindow[], filters: Filter[], conversations: Conversation[]): Hosts {
    if (!filters.every(({ dimension }) => dimension === "interface")) {
      const [sent, received] = [group(conversations, (one) => one.src), group(conversations, (one) => one.dst)];
      return { sent, received, ofAll: false };
    }
    const [sent, received] = [new Map<string, Amount>(), new Map<string, Amount>()];
    const wanted = (one: HostAmount) => filters.every(({ value, excludes }) => (one.interface === value) !== excludes);
    for (const { senders, receivers } of windows) {
      for (const one of senders) if (wanted(one)) add(sent, one.host, one);
      for (const one of receivers) if (wanted(one)) add(received, one.host, one);
    }
    return { sent, received, ofAll: true };
  }

  /** The conversations of a range that meet the filters, each once, and sums. */
  summary(from: number, to: number, filters: Filter[]): Summary {
    const [all, total, unknown] = [new Map<string, Conversation>(), zero(), zero()];
    const [protocols, interfaces] = [new Map<string, Amount>(), new Map<string, Amount>()];
    // Of these filters all packets are known.
    const narrow = filters.filter(isExact);
    const windows = this.within(from, to);
    for (const window of windows) {
      for (const sum of window.totals.values()) if (meets(sum, narrow)) plus(unknown, sum);
      for (const sum of this.totals(window, filters)) {
        plus(total, sum);
        add(protocols, sum.protocol, sum);
        add(interfaces, sum.interface, sum);
      }
      for (const one of window.conversations) {
        if (passes(one, narrow)) minus(unknown, one);
        if (!passes(one, filters)) continue;
        const key = `${one.interface} ${one.src} ${one.dst} ${one.service}`;
        const sum = all.get(key);
        if (sum) plus(sum, one);
        else all.set(key, { ...one });
      }
    }
    unknown.packets = Math.max(0, unknown.packets);
    unknown.bytes = Math.max(0, unknown.bytes);
    const latest = windows[windows.length - 1];
    const conversations = [...all.values()];
    return {
      windows: windows.length,
      span: latest ? latest.at - (windows[0]?.at ?? 0) + this.interval : 0,
      conversations,
      hosts: Model.hosts(windows, filters, conversations),
      protocols, interfaces, total, unknown,
      exact: narrow.length === filters.length,
      without: {
        conversations: this.before(windows, (one) => one.conversations.length > 0),
        hosts: this.before(windows, (one) => one.senders.length > 0),
      },
      conversing: latest ? this.totals(latest, filters).reduce((n, one) => n + one.conversations, 0) : 0,
    };
  }
}

export function zero(): Amount {
  return { packets: 0, bytes: 0 };
}

export function plus(to: Amount, more: Amount): void {
  to.packets += more.packets;
  to.bytes += more.bytes;
}

function minus(from: Amount, less: Amount): void {
  from.packets -= less.packets;
  from.bytes -= less.bytes;
}

/** The largest first; those beyond `n`, and what is in none, are `other`. */
export function largest(
  all: Map<string, Amount>,
  n: number,
  total: Amount,
  order: Order,
): { rows: [string, Amount][]; other: Amount } {
  const sorted = [...all].sort((a, b) => b[1][order] - a[1][order] || (a[0] < b[0] ? -1 : 1));
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
