// Time series by uPlot, stacked. The values of a chart also stand in a table beside it.

import uPlot from "uplot";
import { short, time } from "./format";

/** The colours of Okabe and Ito, which people who see fewer colours can tell apart. */
export const COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];
export const OTHER_COLOR = "#8a8a8a";

export interface Line {
  name: string;
  values: number[];
  color: string;
}

/** The largest lines, and all others as one. */
export function topLines(by: Map<string, number[]>, length: number, n = COLORS.length): Line[] {
  const sum = (values: number[]) => values.reduce((all, one) => all + one, 0);
  const sorted = [...by].sort((a, b) => sum(b[1]) - sum(a[1]) || (a[0] < b[0] ? -1 : 1));
  const lines: Line[] = sorted.slice(0, n).map(([name, values], i) => ({
    name, values, color: COLORS[i] ?? OTHER_COLOR,
  }));
  const rest = sorted.slice(n);
  if (rest.length > 0) {
    const values = Array.from({ length }, (_, i) =>
      rest.reduce((all, [, one]) => all + (one[i] ?? 0), 0));
    lines.push({ name: "other", values, color: OTHER_COLOR });
  }
  return lines;
}

export class Chart {
  readonly element = document.createElement("div");
  private plot: uPlot | undefined;
  private names = "";
  private readonly observer: ResizeObserver;

  /** `zoom` gets the range that somebody drags over, in milliseconds. */
  constructor(
    label: string,
    private readonly zoom?: (from: number, to: number) => void,
  ) {
    this.element.className = "chart";
    this.element.setAttribute("role", "img");
    this.element.setAttribute("aria-label", `${label}; the table has its numbers`);
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(this.element);
  }

  destroy(): void {
    this.observer.disconnect();
    this.plot?.destroy();
    this.plot = undefined;
  }

  /** Shows lines over times in milliseconds. */
  show(at: number[], lines: Line[], fine: boolean): void {
    const names = `${fine} ${lines.map((line) => `${line.name}${line.color}`).join("\n")}`;
    // The lowest line is drawn last, over the others.
    const stacked: number[][] = [];
    const sums = new Array<number>(at.length).fill(0);
    for (const line of lines) {
      line.values.forEach((value, i) => (sums[i] = (sums[i] ?? 0) + value));
      stacked.push([...sums]);
    }
    const data = [at.map((ms) => ms / 1000), ...stacked.reverse()] as uPlot.AlignedData;
    if (this.plot && names === this.names) {
      this.plot.setData(data);
      return;
    }
    this.plot?.destroy();
    this.names = names;
    this.plot = new uPlot(this.options([...lines].reverse(), fine), data, this.element);
  }

  /** Draws anew, as colours of the page have changed. */
  forget(): void {
    this.names = "";
  }

  private fit(): void {
    this.plot?.setSize(this.size());
  }

  private size(): { width: number; height: number } {
    const width = Math.max(200, this.element.clientWidth);
    return { width, height: Math.round(Math.min(260, Math.max(140, width / 3))) };
  }

  private options(lines: Line[], fine: boolean): uPlot.Options {
    const style = getComputedStyle(document.documentElement);
    const [ink, grid] = [style.getPropertyValue("--quiet"), style.getPropertyValue("--line")];
    const font = "12px system-ui, sans-serif";
    const axis = { stroke: ink, font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid } };
    // Around a single point uPlot would show a day.
    const range = (plot: uPlot, min: number, max: number): [number, number] =>
      (plot.data[0]?.length === 1 ? [min - 5, min + 5] : [min, max]);
    const points = { show: (plot: uPlot) => (plot.data[0]?.length ?? 0) < 2 };
    return {
      ...this.size(),
      title: "",
      legend: { show: false },
      cursor: { y: false, drag: { x: !!this.zoom, y: false, setScale: false } },
      scales: { x: { time: true, range }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] } },
      axes: [
        { ...axis, values: (_, all) => all.map((s) => time(s * 1000, fine)), space: fine ? 100 : 70 },
        { ...axis, values: (_, all) => all.map(short), size: 55 },
      ],
      series: [
        {},
        ...lines.map((line) => ({
          label: line.name, stroke: line.color, fill: line.color, width: 1, points,
        })),
      ],
      hooks: {
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (width < 5 || !this.zoom) return;
            const ms = (x: number) => plot.posToVal(x, "x") * 1000;
            this.zoom(ms(left), ms(left + width));
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
      },
    };
  }
}
