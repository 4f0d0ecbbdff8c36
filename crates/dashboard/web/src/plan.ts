// The view of plans: where each stage of a program runs, and what crosses between the levels.

import { api, type Column, type StageFlow, type StageFlows } from "./api";
import { clean, h, put, redraw, table, type Child } from "./dom";
import { percent, short, whole } from "./format";
import type { State } from "./state";

interface NodeId {
  half: "whole" | "partial" | "final";
  pipeline: number;
  stage: number;
}

interface PlanNode {
  id: NodeId;
  columns: Column[];
  reads: string[];
}

type Place = { exchange: number } | { pipeline: number } | { output: number } | { pipelines: number[] };

interface Fragment {
  pipeline: number;
  from: Place;
  to: Place[];
  why: string;
  nodes: PlanNode[];
}

interface Plan {
  levels: { level: string; fragments: Fragment[] }[];
  exchanges: { needs: unknown; payload: Record<string, unknown>; why: string }[];
  outputs: { name?: string }[];
  pipelines: { name?: string }[];
}

interface Shown {
  name: string;
  text: string;
  source: string;
  plan: Plan | null;
  stages: string[][];
}

const LEVELS: Record<string, string> = {
  kernel: "Kernel level: in the kernel, before packets are copied",
  worker: "Worker level: on each worker, over its share of the packets",
  machine: "Machine level: once, over what the workers hand over",
};

function place(at: Place): string {
  if ("exchange" in at) return `exchange ${at.exchange + 1}`;
  if ("pipeline" in at) return `pipeline ${at.pipeline + 1}`;
  if ("pipelines" in at) return `pipelines ${at.pipelines.map((n) => n + 1).join(", ")}`;
  return `output ${at.output + 1}`;
}

/** Rows that have gone through a stage: now, and a while before. */
interface Moving {
  flow: StageFlow;
  before?: StageFlow;
  /** Seconds between the two. */
  seconds: number;
}

/** Rows by second; none where counting began anew meanwhile. */
function rate({ before, seconds }: Moving, now: number, then: number | undefined): string {
  if (!before || then === undefined || seconds <= 0 || now < then) return "";
  return `${short((now - then) / seconds)}/s`;
}

/** The share of the worker that gets most, where it gets more than its part. */
function skew(workers: number[]): string {
  const all = workers.reduce((sum, n) => sum + n, 0);
  const most = Math.max(...workers);
  if (workers.length < 2 || all === 0) return "";
  return `, the busiest of ${workers.length} workers has ${percent(most, all)}`;
}

/** A stage, by what it left out and what it holds. */
interface Ranked {
  key: string;
  level: string;
  /** Rows that went in, and how many go in by second. */
  rows: number;
  rate: number;
  held: number;
  dropped: number;
}

/** Stages of the list, and letters of the text of one. */
const RANKED = 8;
const STAGE_TEXT = 60;

/** How often the counts are asked for, in milliseconds. */
const PERIOD = 2000;

export class PlanView {
  readonly title = "Plan";
  private flow: { at: number; all: Map<string, StageFlow> } | undefined;
  private moving = new Map<string, Moving>();
  private waiting = "";
  private timer: number | undefined;
  private readonly cells = new Map<string, HTMLElement>();
  private readonly busy = h("div");
  private readonly ranking = h("div", { class: "ranking" });
  private shown: Shown | undefined;
  private asked = "";
  private readonly head = h("div");
  private readonly levels = h("div", { class: "plan" });

  constructor(private readonly state: State) {}

  show(host: HTMLElement): void {
    this.asked = "";
    put(host, h("h2", {}, "Plan"), this.head, this.busy, h("div", { class: "beside" }, this.levels, this.ranking));
    this.update();
    void this.askFlow();
    window.clearInterval(this.timer);
    this.timer = window.setInterval(() => {
      if (!document.hidden && !this.state.paused) void this.askFlow();
    }, PERIOD);
  }

  hide(): void {
    window.clearInterval(this.timer);
    this.timer = undefined;
  }

  private static key(one: { level: string; pipeline: number; stage: number }): string {
    return `${one.level} ${one.pipeline} ${one.stage}`;
  }

  /** Asks what goes through stages, and shows it where the stages stand. */
  private async askFlow(): Promise<void> {
    const program = this.program;
    let flow: StageFlows;
    try {
      flow = await api<StageFlows>("GET", "stages");
    } catch {
      // The head of the page says that the run does not answer.
      return;
    }
    const found = flow.programs.find(({ name }) => name === program);
    if (!found || this.shown?.name !== program) return;
    const at = performance.now();
    const all = new Map(found.stages.map((one) => [PlanView.key(one), one]));
    const seconds = this.flow ? (at - this.flow.at) / 1000 : 0;
    this.moving = new Map(found.stages.map((one) => {
      const key = PlanView.key(one);
      return [key, { flow: one, before: this.flow?.all.get(key), seconds }];
    }));
    this.flow = { at, all };
    this.waiting = flow.waiting === undefined ? "" :
      `${flow.waiting} of ${flow.waiting_max} batches of rows wait for the machine level`;
    this.fill();
  }

  /** Puts the counts where they belong. */
  private fill(): void {
    for (const [key, cell] of this.cells) {
      const moving = this.moving.get(key);
      if (moving) put(cell, ...this.counted(moving));
    }
    const first = this.ranked()[0];
    const worst = first && first.dropped > 0
      ? h("p", { class: "bad" }, `${this.stageText(first.key)} left out ${whole(first.dropped)} rows that came late or found no room.`) : null;
    put(this.busy, worst, this.waiting ? h("p", { class: "quiet" }, this.waiting) : null);
    redraw(this.ranking, () => put(this.ranking, this.rankedTable()));
  }

  private stageText(key: string): string {
    return this.cells.get(key)?.dataset.stage ?? key;
  }

  /** The stages that left out most, then those that hold most, then those that get most. */
  private ranked(): Ranked[] {
    const all = [...this.moving].map(([key, { before, flow, seconds }]) => {
      const rate = before && seconds > 0 ? Math.max(0, flow.rows_in - before.rows_in) / seconds : 0;
      return { key, level: flow.level, rows: flow.rows_in, rate, held: flow.held, dropped: flow.late + flow.evicted };
    });
    return all.filter(({ key, rows }) => this.cells.has(key) && rows > 0)
      .sort((a, b) => b.dropped - a.dropped || b.held - a.held || b.rate - a.rate || b.rows - a.rows);
  }

  private rankedTable(): HTMLElement {
    const all = this.ranked().slice(0, RANKED);
    if (all.length === 0) return h("p", { class: "quiet" }, "No rows have come to a stage yet.");
    const rows = all.map(({ key, level, rows: n, rate, held, dropped }): Child[] => {
      const text = this.stageText(key);
      const show = () => {
        const node = this.cells.get(key)?.closest<HTMLElement>(".node");
        node?.scrollIntoView({ block: "center" });
        node?.focus({ preventScroll: true });
      };
      const link = h("button", { type: "button", class: "link", title: clean(text), "data-key": `rank ${key}`, onclick: show },
        text.length > STAGE_TEXT ? `${text.slice(0, STAGE_TEXT)}\u2026` : text);
      return [link, level, h("span", { class: dropped > 0 ? "bad" : undefined }, whole(dropped)), whole(held), whole(n), short(rate)];
    });
    return table("Stages that left out or hold most", ["stage", "level", "left out", "keys held", "in", "in/s"], rows, new Set([2, 3, 4, 5]));
  }

  private counted(moving: Moving): Child[] {
    const { flow, before } = moving;
    const one = (name: string, n: number, then: number | undefined): Child => {
      const speed = rate(moving, n, then);
      return h("span", {}, `${name} `, h("b", {}, whole(n)), speed ? ` (${speed})` : null);
    };
    const bad = (name: string, n: number): Child => (n > 0 ? h("span", { class: "bad" }, `${name} `, h("b", {}, whole(n))) : null);
    return [
      one("in", flow.rows_in, before?.rows_in), one("out", flow.rows_out, before?.rows_out),
      flow.held > 0 ? h("span", {}, "keys held ", h("b", {}, whole(flow.held))) : null,
      bad("late", flow.late), bad("evicted", flow.evicted), bad("undefined", flow.undefined),
      skew(flow.workers) ? h("span", { class: "quiet" }, skew(flow.workers).slice(2)) : null,
    ];
  }

  private get program(): string | undefined {
    const { link, programs } = this.state;
    return programs.find((one) => one.name === link.program)?.name ?? programs[0]?.name;
  }

  update(): void {
    const found = this.state.programs.find((one) => one.name === this.program);
    const asked = `${found?.name} ${found?.since}`;
    if (found && asked !== this.asked) {
      this.asked = asked;
      void this.ask(found.name);
    }
    redraw(this.head, () => put(this.head, this.choice(), this.counts()));
  }

  private async ask(name: string): Promise<void> {
    try {
      this.shown = await api<Shown>("GET", `programs/${encodeURIComponent(name)}`);
      this.cells.clear();
      this.flow = undefined;
      this.moving.clear();
      put(this.busy);
      put(this.ranking);
      put(this.levels, ...this.draw(this.shown));
      await this.askFlow();
    } catch (error) {
      this.asked = "";
      put(this.levels, h("p", { class: "bad" }, String(error)));
    }
  }

  private choice(): HTMLElement {
    const { programs } = this.state;
    if (programs.length === 0) return h("p", { class: "quiet" }, "No program runs.");
    const select = h("select", { id: "plan-program", "data-key": "program", onchange: () => {
      this.state.go({ program: select.value });
    } }, ...programs.map(({ name }) => h("option", { value: name, selected: name === this.program }, name)));
    return h("div", { class: "controls" }, h("label", { for: "plan-program" }, "Program"), select);
  }

  /** The counts of the program, and those of the run over all of its programs. */
  private counts(): HTMLElement {
    const one = this.state.programs.find(({ name }) => name === this.program);
    const { counts } = this.state;
    const parts: Child[] = [];
    if (one) {
      parts.push(h("span", {}, "rows emitted ", h("b", {}, whole(one.rows))));
      parts.push(h("span", { class: one.refused > 0 ? "bad" : undefined }, "not written ", h("b", {}, whole(one.refused))));
    }
    const names: [string, string][] = [
      ["processed", "packets processed"], ["late", "late"], ["evicted", "evicted"], ["undefined", "undefined values"],
    ];
    for (const [key, text] of names) {
      if (counts) parts.push(h("span", {}, `${text} (all programs) `, h("b", {}, whole(counts[key] ?? 0))));
    }
    return h("p", { class: "ledger" }, ...parts);
  }

  private draw(shown: Shown): Child[] {
    const text = h("details", {}, h("summary", {}, "Text of the query"), h("pre", {}, shown.text));
    if (!shown.plan) return [h("p", { class: "quiet" }, "This plan can't be shown: it calls functions that are not of the language."), text];
    const { plan } = shown;
    const used = new Set<number>();
    const parts: Child[] = [];
    for (const { level, fragments } of plan.levels) {
      // An exchange stands above the first level that reads from it.
      for (const { from } of fragments) {
        if ("exchange" in from && !used.has(from.exchange)) {
          used.add(from.exchange);
          parts.push(this.exchange(plan, from.exchange));
        }
      }
      parts.push(h("section", { class: `level ${clean(level)}`, "aria-label": `${level} level` },
        h("h3", {}, LEVELS[level] ?? level),
        ...fragments.map((one) => this.fragment(one, shown, level))));
    }
    parts.push(h("section", { class: "exchange" }, h("h3", {}, "Outputs"),
      h("p", {}, plan.outputs.length === 0 ? "none" : `${plan.outputs.length}, with rows for the sinks and this page`)));
    return [...parts, text];
  }

  private exchange(plan: Plan, number: number): HTMLElement {
    const one = plan.exchanges[number];
    const payload = Object.keys(one?.payload ?? {})[0] ?? "";
    return h("section", { class: "exchange", "aria-label": `Exchange ${number + 1}` },
      h("h3", {}, `Exchange ${number + 1}: ${payload}`), h("p", { class: "quiet" }, one?.why ?? ""));
  }

  private fragment(one: Fragment, shown: Shown, level: string): HTMLElement {
    const name = shown.plan?.pipelines[one.pipeline]?.name;
    const title = `Pipeline ${one.pipeline + 1}${name ? ` (${clean(name)})` : ""}: from ${place(one.from)} to ${one.to.map(place).join(", ")}`;
    const nodes = one.nodes.map((node) => this.node(node, shown, level));
    return h("div", { class: "fragment" }, h("h4", {}, title), h("p", { class: "quiet" }, one.why),
      nodes.length > 0 ? h("ol", { class: "plain nodes" }, ...nodes) : h("p", { class: "quiet" }, "Rows go through as they are."));
  }

  private node({ id, columns, reads }: PlanNode, shown: Shown, level: string): HTMLElement {
    const text = shown.stages[id.pipeline]?.[id.stage] ?? "";
    const half = id.half === "whole" ? "" : `${id.half} `;
    const state = /^(summarize|scan|distinct|top|join|analyze|alert)\b/.test(text) && id.half !== "final";
    const counts = h("p", { class: "flow", "data-stage": half + text });
    this.cells.set(PlanView.key({ level, pipeline: id.pipeline, stage: id.stage }), counts);
    return h("li", { class: state ? "node state" : "node", tabindex: "-1" },
      h("code", {}, half + text), state ? h("span", { class: "badge" }, "state") : null, counts,
      reads.length > 0 ? h("p", { class: "quiet" }, `reads ${reads.join(", ")}`) : null,
      columns.length > 0 ? h("p", { class: "quiet" }, `columns ${columns.map((one) => `${one.name} ${one.type}`).join(", ")}`) : null);
  }
}
