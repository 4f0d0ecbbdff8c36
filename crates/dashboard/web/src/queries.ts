// The view of queries: the programs that run, a box to write further ones, and their rows.

import { ApiError, api, type CaptureRows, type Column, type OutputInfo, type Program, type Row } from "./api";
import { CaptureChoice } from "./captures";
import { Chart } from "./chart";
import { clean, h, put, redraw, type Child } from "./dom";
import type { Editor, Finding } from "./editor";
import { moment, whole } from "./format";
import { FLOWS, TRAFFIC } from "./model";
import { rangeNote } from "./range";
import { axes, draw, legend, rowsWithin, rowTable, type Axes } from "./rows";
import { Kept, type State } from "./state";

interface LibraryQuery {
  name: string;
  group: string;
  title: string;
  text: string;
}

/** Letters of a query that a link has. */
const QUERY_MAX = 4000;

const FIRST = "packets\n| summarize packets = count(), bytes = sum(len) by ip.dst every 1s\n| top 10 by bytes\n";

let library: Promise<LibraryQuery[]> | undefined;

/** The queries that come with Weir. */
export function queries(): Promise<LibraryQuery[]> {
  library ??= api<{ queries: LibraryQuery[] }>("GET", "library").then((all) => all.queries);
  return library;
}

/** A choice of queries, by groups. */
export function librarySelect(all: LibraryQuery[], label: string, choose: (one: LibraryQuery) => void) {
  const groups = new Map<string, LibraryQuery[]>();
  for (const one of all) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
  const select = h("select", { "aria-label": label, onchange: () => {
    const found = all.find((one) => one.name === select.value);
    if (found) choose(found);
  } }, h("option", { value: "" }, label));
  for (const [name, some] of groups) {
    select.append(h("optgroup", { label: name }, ...some.map((one) =>
      h("option", { value: one.name }, `${one.name}: ${one.title}`))));
  }
  return select;
}

export class QueriesView {
  readonly title = "Queries";
  private editor: Editor | undefined;
  private readonly list = h("div");
  private readonly results = h("div", { class: "results" });
  private readonly problems = h("ul", { class: "problems", "aria-live": "polite" });
  private readonly said = h("pre", { class: "said", role: "status" });
  private readonly name = h("input", { id: "query-name", value: "query", maxlength: "64", spellcheck: "false", autocapitalize: "off" });
  private readonly picked = h("div");
  private chart: Chart | undefined;
  private drawn = "";
  private text = "";
  private readonly over: CaptureChoice;
  private readonly tooLong = h("p", { class: "quiet", role: "status" });
  /** The rows of a query over a capture, as long as no program is chosen. */
  private apart: { title: string; kept: Kept; answer: CaptureRows } | undefined;

  constructor(private readonly state: State) {
    this.over = new CaptureChoice(state, (text, bad) => this.say(text, bad));
  }

  show(host: HTMLElement): void {
    const place = h("div", { class: "editor" });
    const run = () => void this.run();
    put(
      host,
      h("section", {}, h("h2", {}, "Programs"), this.list),
      h("section", {},
        h("h2", { id: "query-title" }, "Query"),
        h("div", { class: "controls" },
          h("label", { for: "query-name" }, "Name"), this.name,
          h("button", { type: "button", class: "main", title: "Ctrl-Enter", onclick: run }, "Run"),
          this.picked),
        this.over.element, place, this.tooLong, this.problems, this.said),
      h("section", {}, h("h2", {}, "Rows"), this.results),
    );
    this.drawn = "";
    void this.over.ask();
    this.text = this.state.link.query ?? (this.text || FIRST);
    void import("./editor").then(({ Editor }) => {
      if (!place.isConnected) return;
      this.editor = new Editor(place, this.text, {
        label: "Text of the query", run, found: (all) => this.find(all), typed: (text) => this.typed(text),
      });
    });
    void queries().then((all) => put(this.picked, librarySelect(all, "From the library\u2026", (one) => {
      this.name.value = one.name;
      this.editor?.set(one.text);
    })));
    this.update();
  }

  hide(): void {
    this.editor?.destroy();
    this.editor = undefined;
    this.chart?.destroy();
    this.chart = undefined;
  }

  update(): void {
    this.over.update();
    redraw(this.list, () => put(this.list, this.programs()));
    this.showRows();
  }

  private typed(text: string): void {
    this.text = text;
    // The link has the text, so that it can be sent to others.
    this.state.link.query = text;
    const fits = text.length < QUERY_MAX;
    put(this.tooLong, fits ? null : `The query has more than ${QUERY_MAX} letters, so the link of the page lacks it.`);
    this.state.go({ query: fits ? text : undefined }, true);
  }

  private find(all: Finding[]): void {
    put(this.problems, ...all.map((one) => h("li", { class: one.severity },
      h("b", {}, `${one.severity}, line ${one.line}: `), one.message, one.help ? h("span", { class: "quiet" }, ` (${one.help})`) : null)));
  }

  /** Runs the query over a capture, beside the run. */
  private async runApart(capture: string): Promise<void> {
    const title = this.over.title;
    this.say(`running over ${title}\u2026`);
    try {
      const answer = await api<CaptureRows>("POST", "captures/query", { capture, text: this.text });
      this.say("");
      const kept = new Kept(answer.outputs, 0);
      kept.take(answer.rows, Infinity);
      this.apart = { title, kept, answer };
      this.state.go({ program: undefined }, true);
      this.showRows();
    } catch (error) {
      this.say(error instanceof ApiError ? `${error.message}\n${error.detail}` : String(error), true);
    }
  }

  private async run(): Promise<void> {
    if (this.over.chosen) return this.runApart(this.over.chosen);
    const [name, text] = [this.name.value.trim(), this.text];
    const exists = this.state.programs.some((one) => one.name === name);
    try {
      const path = exists ? `programs/${encodeURIComponent(name)}` : "programs";
      const body = exists ? { text } : { name, text };
      const answer = await api<{ text: string }>(exists ? "PUT" : "POST", path, body);
      this.say(answer.text);
      this.state.go({ program: name }, true);
      await this.state.ask();
    } catch (error) {
      this.say(error instanceof ApiError ? `${error.message}\n${error.detail}` : String(error), true);
    }
  }

  private say(text: string, bad = false): void {
    this.said.textContent = text.trim();
    this.said.classList.toggle("bad", bad);
  }

  private programs(): HTMLElement {
    const rows = this.state.programs.map((one) => this.programRow(one));
    if (rows.length === 0) return h("p", { class: "quiet" }, "No program runs.");
    const head = ["program", "rows", "not written", "since (UTC)", ""];
    const titles = h("tr", {}, ...head.map((text, i) => h("th", { scope: "col", class: i === 1 || i === 2 ? "number" : undefined }, text || h("span", { class: "hidden" }, "changes"))));
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Programs", "data-key": "Programs" },
      h("table", {}, h("thead", {}, titles), h("tbody", {}, ...rows)));
  }

  private programRow(one: Program): HTMLElement {
    const { state } = this;
    const own = one.name === TRAFFIC || one.name === FLOWS;
    const current = state.link.program === one.name;
    const button = (text: string, act: () => void): HTMLElement =>
      h("button", { type: "button", "data-key": `${text} ${one.name}`, "aria-label": `${text} ${one.name}`, onclick: act }, text);
    const name = h("button", {
      type: "button", class: "link", "data-key": one.name, "aria-pressed": String(current),
      onclick: () => state.go({ program: one.name }),
    }, one.name);
    const remove = () => {
      if (window.confirm(`End ${one.name}? Its windows close, and its last rows come out.`)) void this.remove(one.name);
    };
    return h("tr", { class: current ? "current" : undefined },
      h("td", {}, name, own ? h("span", { class: "quiet" }, " of this page") : null,
        one.failed ? h("span", { class: "bad" }, ` ${clean(one.failed)}`) : null),
      h("td", { class: "number" }, whole(one.rows)),
      h("td", { class: one.refused > 0 ? "number bad" : "number" }, whole(one.refused)),
      h("td", {}, moment(one.since * 1000)),
      h("td", {}, h("div", { class: "acts" }, button("Edit", () => void this.edit(one.name)), button("Remove", remove))));
  }

  private async edit(name: string): Promise<void> {
    try {
      const found = await api<{ text: string }>("GET", `programs/${encodeURIComponent(name)}`);
      this.name.value = name;
      this.editor?.set(found.text);
      this.editor?.focus();
    } catch (error) {
      this.say(String(error), true);
    }
  }

  private async remove(name: string): Promise<void> {
    try {
      this.say((await api<{ text: string }>("DELETE", `programs/${encodeURIComponent(name)}`)).text);
      if (this.state.link.program === name) this.state.go({ program: undefined }, true);
      await this.state.ask();
    } catch (error) {
      this.say(String(error), true);
    }
  }

  /** The rows of the program that is chosen, as charts and tables. */
  private showRows(): void {
    const { program } = this.state.link;
    if (program) this.apart = undefined;
    if (this.apart) return this.showApart(this.apart);
    const kept = program ? this.state.rows.get(program) : undefined;
    if (!program || program === TRAFFIC || program === FLOWS) {
      this.clear(program ? "The view of traffic shows the rows of this program." : "Choose a program, or run a query.");
      return;
    }
    if (!kept) {
      this.clear("No rows have come yet.");
      return;
    }
    const shape = JSON.stringify([program, kept.outputs]);
    if (shape !== this.drawn) {
      this.chart?.destroy();
      this.chart = undefined;
      this.drawn = shape;
    }
    const { range } = this.state.link;
    redraw(this.results, () => {
      const parts: Child[] = [];
      parts.push(rangeNote(this.state, "rows"));
      if (kept.skipped > 0) parts.push(h("p", { class: "bad" }, `${whole(kept.skipped)} rows are not here: there were more than this page keeps.`));
      kept.outputs.forEach((output, i) => {
        const rows = rowsWithin(kept, output, range);
        if (i === 0) parts.push(...this.charted(output, rows, (from, to) => this.state.go({ range: [from, to] })));
        parts.push(rowTable(program, rows, output));
      });
      put(this.results, ...parts);
    });
    const [output] = kept.outputs;
    const shown = output && this.axes(output);
    if (output && shown && this.chart) draw(this.chart, rowsWithin(kept, output, range), shown);
  }

  /** Rows of a query over a capture, which stay as they are. */
  private showApart({ title, kept, answer }: { title: string; kept: Kept; answer: CaptureRows }): void {
    const { value, split } = this.state.link;
    const shape = JSON.stringify(["apart", title, answer.rows.length, value, split]);
    if (this.drawn === shape) return;
    this.chart?.destroy();
    this.chart = undefined;
    this.drawn = shape;
    const bad = (said: boolean, text: string): Child => (said ? h("p", { class: "bad" }, text) : null);
    const [output] = kept.outputs;
    const shown = output && this.axes(output);
    redraw(this.results, () => put(this.results, h("p", {}, `Rows of the query over ${title}`),
      bad(answer.more, "There were more rows than are shown here."),
      bad(answer.cut_short, "It took too long, and was ended before the end of the capture."),
      bad(answer.failed, "The capture could not be read to its end."),
      ...(output ? this.charted(output, kept.of(output)) : []),
      ...kept.outputs.map((one) => rowTable(undefined, kept.of(one), one)),
      h("details", {}, h("summary", {}, "What the run said"), h("pre", {}, answer.said.split("\n").map(clean).join("\n")))));
    if (output && shown && this.chart) draw(this.chart, kept.of(output), shown);
  }

  private clear(text: string): void {
    this.chart?.destroy();
    this.chart = undefined;
    this.drawn = "";
    put(this.results, h("p", { class: "quiet" }, text));
  }

  /** The axes of an output's chart: as the link says, or else as its columns suggest. */
  private axes(output: OutputInfo): Axes | undefined {
    const { time, values, keys } = axes(output);
    const { link } = this.state;
    const find = (all: Column[], name: string | undefined) => all.find((one) => one.name === name);
    const value = find(values, link.value) ?? values[values.length - 1];
    if (!time || !value) return undefined;
    const first = keys.find((one) => one.type !== "int");
    const by = link.split === undefined ? first : find(keys, link.split);
    return { time, value, by: by === value ? undefined : by };
  }

  /** The chart of rows, with a choice of what it shows. */
  private charted(output: OutputInfo, rows: Row[], zoom?: (from: number, to: number) => void): Child[] {
    const shown = this.axes(output);
    if (!shown) return [];
    const { values, keys } = axes(output);
    this.chart ??= new Chart(`Rows of ${output.name} over time`, zoom);
    const select = (label: string, all: string[], now: string, set: (name: string) => void) => {
      const element = h("select", { "aria-label": label, "data-key": label, onchange: () => {
        // A list that has the focus is not drawn anew, so it loses it meanwhile.
        if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
        set(element.value);
        this.results.querySelector<HTMLElement>(`[data-key="${label}"]`)?.focus();
      } }, ...all.map((name) => h("option", { value: name, selected: name === now }, name || "nothing")));
      return h("label", {}, `${label} `, element);
    };
    const [value, split] = [shown.value.name, shown.by?.name ?? ""];
    return [
      h("div", { class: "controls" },
        select("Value", values.map((one) => one.name), value, (name) => this.state.go({ value: name }, true)),
        select("Split by", ["", ...keys.map((one) => one.name)], split, (name) => this.state.go({ split: name }, true))),
      this.chart.element,
      legend(rows, shown),
    ];
  }
}
