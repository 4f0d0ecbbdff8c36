// Links: the view, its filter and its query stand after the `#`, which no server sees. A link
// begins with its version, so that later pages can read earlier ones.

import type { Filter, Order, Side } from "./model";

export interface Link {
  view: string;
  filters: Filter[];
  /** Times in milliseconds since 1970. */
  range?: [number, number];
  /** How much of the latest is shown where no range is chosen, in seconds. */
  seconds: number;
  /** The number that tables of traffic are sorted by, where it is not bytes. */
  order?: Order;
  /** The program that is shown. */
  program?: string;
  /** The text of a query that is not run yet. */
  query?: string;
  unit?: string;
  /** The dimension that the time line is stacked by, where it is not protocols. */
  by?: Side;
  /** The capture that a query is to run over, where it is not what the run reads. */
  capture?: string;
  /** Columns of the chart of rows: its numbers, and what they are split by; empty for nothing. */
  value?: string;
  split?: string;
}

const DIMENSIONS = new Set(["host", "pair", "service", "protocol", "interface"]);
const SECONDS = 300;
const SECONDS_MAX = 3600;
/** Times beyond, before and after 1970, are none of dates. */
const MS_MAX = 8e15;
const UNITS = ["bits", "packets", "conversations"];

export function write(link: Link): string {
  const params = new URLSearchParams();
  for (const { dimension, value, excludes } of link.filters) {
    params.append("f", `${excludes ? "!" : ""}${dimension}:${value}`);
  }
  if (link.range) params.set("t", link.range.map(Math.round).join("-"));
  if (link.seconds !== SECONDS) params.set("s", String(link.seconds));
  if (link.program) params.set("p", link.program);
  if (link.query) params.set("q", link.query);
  if (link.unit && link.unit !== "bits") params.set("u", link.unit);
  if (link.by === "interface") params.set("b", link.by);
  if (link.order === "packets") params.set("o", link.order);
  if (link.capture) params.set("c", link.capture);
  if (link.value !== undefined) params.set("v", link.value);
  if (link.split !== undefined) params.set("y", link.split);
  const text = params.toString();
  return `#/1/${link.view}${text ? `?${text}` : ""}`;
}

export function read(hash: string): Link {
  const [, view, text] = /^#\/1\/([a-z]+)\??(.*)$/.exec(hash) ?? [];
  const params = new URLSearchParams(text ?? "");
  const filters: Filter[] = [];
  for (const word of params.getAll("f").slice(0, 20)) {
    const excludes = word.startsWith("!");
    const [dimension, ...value] = word.slice(excludes ? 1 : 0).split(":");
    if (dimension && DIMENSIONS.has(dimension)) {
      filters.push({
        dimension: dimension as Filter["dimension"], value: value.join(":"), excludes,
      });
    }
  }
  const times = /^(-?\d+)-(-?\d+)$/.exec(params.get("t") ?? "")?.slice(1).map(Number);
  const [from, to] = times?.every((ms) => Math.abs(ms) <= MS_MAX) ? times : [];
  const seconds = Number(params.get("s"));
  return {
    view: view ?? "traffic",
    filters,
    range: from !== undefined && to !== undefined && from <= to ? [from, to] : undefined,
    seconds: seconds > 0 && seconds <= SECONDS_MAX ? seconds : SECONDS,
    program: params.get("p") ?? undefined,
    query: params.get("q") ?? undefined,
    unit: UNITS.find((unit) => unit === params.get("u")) ?? "bits",
    by: params.get("b") === "interface" ? "interface" : undefined,
    order: params.get("o") === "packets" ? "packets" : undefined,
    capture: params.get("c") ?? undefined,
    value: params.get("v") ?? undefined,
    split: params.get("y") ?? undefined,
  };
}
