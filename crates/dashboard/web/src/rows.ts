// Rows of a program as a table and a chart, whatever their columns are.

import type { Column, OutputInfo, Row } from "./api";
import { COLORS, Chart, topLines } from "./chart";
import { clean, h, table, type Child } from "./dom";
import { ofRow, showPackets } from "./packets";
import { moment, short } from "./format";
import type { Range } from "./range";
import type { Kept } from "./state";

const SHOWN = 200;

const NUMBERS = new Set(["int", "float", "duration"]);

/** A cell as text. */
export function cell(value: Row[string] | undefined): string {
  if (value === null || value === undefined) return "";
  return clean(String(value));
}

/** The rows of an output within a range; all of them where they have no time. */
export function rowsWithin(kept: Kept, output: OutputInfo, range: Range | undefined): Row[] {
  const rows = kept.of(output);
  const { time } = axes(output);
  if (!range || !time) return rows;
  const [from, to] = range;
  return rows.filter((row) => {
    const at = instant(row, time);
    return at >= from && at <= to;
  });
}

/** The latest of these rows, the latest first. */
export function rowTable(program: string | undefined, rows: Row[], output: OutputInfo): HTMLElement {
  const names = output.columns.map((column) => column.name);
  const numbers = new Set<number>();
  output.columns.forEach((column, i) => NUMBERS.has(column.type) && numbers.add(i));
  const shown = rows.slice(-SHOWN).reverse();
  const body = shown.map((row) => names.map((name): Child => cell(row[name])));
  const name = (row: Row) => names.slice(0, 3).map((one) => cell(row[one])).join(" ");
  const more = rows.length > SHOWN ? `, the latest ${SHOWN} of ${rows.length}` : "";
  // Packets are found again of what the run reads.
  const pick = program === undefined ? undefined : {
    label: (at: number) => `Packets of row ${at + 1}: ${shown[at] ? name(shown[at]) : ""}`,
    act: (at: number) => {
      const row = shown[at];
      if (row) showPackets(`Packets of ${name(row)}`, ofRow(program, output.name, row));
    },
  };
  return table(`Rows of ${output.name}${more}`, names, body, numbers, pick);
}

function instant(row: Row, column: Column): number {
  const value = row[column.name];
  return typeof value === "string" ? Date.parse(value) : NaN;
}

/** Which columns a chart shows. */
export interface Axes {
  time: Column;
  value: Column;
  by?: Column;
}

/** The columns that a chart may show; none without a time and a number. */
export function axes(output: OutputInfo): { time?: Column; values: Column[]; keys: Column[] } {
  const time = output.columns.find((column) => column.type === "time");
  const values = output.columns.filter((column) => NUMBERS.has(column.type));
  const keys = output.columns.filter((column) => !["time", "float", "duration"].includes(column.type));
  return { time, values, keys };
}

/** Puts rows into a chart: a line for each value of a column, added up. */
export function draw(chart: Chart, rows: Row[], { time, value, by }: Axes): void {
  const points: { ms: number; name: string; n: number }[] = [];
  const sums = new Map<string, number[]>();
  for (const row of rows) {
    const [ms, n] = [instant(row, time), Number(row[value.name])];
    if (Number.isNaN(ms) || !Number.isFinite(n)) continue;
    const name = by ? cell(row[by.name]) || "absent" : value.name;
    points.push({ ms, name, n });
    const sum = sums.get(name);
    if (sum) sum[0] = (sum[0] ?? 0) + n;
    else sums.set(name, [n]);
  }
  const at = [...new Set(points.map(({ ms }) => ms))].sort((a, b) => a - b);
  const place = new Map(at.map((ms, i) => [ms, i]));
  // Each name may be another, as names of DNS are: only those that are shown have a line.
  const lines = topLines(sums, 1).map((line) => ({ ...line, values: new Array<number>(at.length).fill(0) }));
  const of = new Map(lines.slice(0, COLORS.length).map((line) => [line.name, line.values]));
  const other = lines[COLORS.length]?.values;
  for (const { ms, name, n } of points) {
    const values = of.get(name) ?? other;
    const i = place.get(ms) ?? 0;
    if (values) values[i] = (values[i] ?? 0) + n;
  }
  chart.show(at, lines, (at[at.length - 1] ?? 0) - (at[0] ?? 0) < 10_000);
}

/** The meaning of a chart's colours. */
export function legend(rows: Row[], { value, by, time }: Axes): HTMLElement {
  const sums = new Map<string, number[]>();
  for (const row of rows) {
    const name = by ? cell(row[by.name]) || "absent" : value.name;
    const sum = sums.get(name);
    const n = Number(row[value.name]) || 0;
    if (sum) sum[0] = (sum[0] ?? 0) + n;
    else sums.set(name, [n]);
  }
  const lines = topLines(sums, 1);
  const first = rows[0] && instant(rows[0], time);
  const items = lines.map((line) => {
    const mark = h("span", { class: "mark", "aria-hidden": "true" });
    mark.style.background = line.color;
    return h("li", {}, mark, `${line.name}: ${short(line.values[0] ?? 0)}`);
  });
  const since = first !== undefined && !Number.isNaN(first) ? ` since ${moment(first)} UTC` : "";
  return h("div", { class: "legend" }, h("p", { class: "quiet" }, `Sums of ${value.name}${since}`), h("ul", { class: "plain" }, ...items));
}
