// The state that all views share: the run, its programs, its rows, and the link.

import { Follower, api, type Batch, type Counts, type OutputInfo, type Program, type Row, type RunInfo } from "./api";
import { FLOWS, Model, TRAFFIC, type Filter } from "./model";
import { read, write, type Link } from "./link";

/** Rows of an output that are kept here. */
const ROWS_MAX = 5000;

/** Programs that are followed at once. */
const FOLLOWED_MAX = 60;

/** The latest rows of a program. */
export class Kept {
  /** Rows that are not here: the run did not keep them, or there were too many for the page. */
  skipped = 0;
  private readonly rows: Map<string, Row[]>;

  constructor(readonly outputs: OutputInfo[], public next: number) {
    this.rows = new Map(outputs.map((output) => [output.name, []]));
  }

  /** Where a program has several outputs, each row says which it is of. */
  take(rows: Row[], most = ROWS_MAX): void {
    const [only] = this.outputs;
    for (const row of rows) {
      const name = this.outputs.length < 2 ? only?.name : row._pipeline;
      this.rows.get(String(name))?.push(row);
    }
    for (const all of this.rows.values()) {
      const more = all.length - most;
      if (more <= 0) continue;
      all.splice(0, more);
      this.skipped += more;
    }
  }

  of(output: OutputInfo): Row[] {
    return this.rows.get(output.name) ?? [];
  }
}

export class State {
  readonly model = new Model();
  readonly rows = new Map<string, Kept>();
  programs: Program[] = [];
  counts: Counts | undefined;
  /** Packets by second of each worker, between the last two questions. */
  workerRates: number[] = [];
  private counted = 0;
  run: RunInfo | undefined;
  link: Link = read(location.hash);
  paused = false;
  trouble = "";
  private followed = "";
  private readonly follower: Follower;
  private retry: number | undefined;

  constructor(private readonly changed: (why: "rows" | "state" | "link") => void) {
    this.follower = new Follower(
      (batch) => this.take(batch),
      (error) => this.fail(error),
    );
  }

  /** Another link: it becomes that of the page. */
  go(change: Partial<Link>, replaces = false): void {
    // Columns are those of a program.
    const other = "program" in change && change.program !== this.link.program;
    this.link = { ...this.link, ...(other ? { value: undefined, split: undefined } : {}), ...change };
    const text = write(this.link);
    if (text === location.hash) this.changed("link");
    else if (replaces) {
      history.replaceState(null, "", text);
      this.changed("link");
    } else location.hash = text;
  }

  /** The browser went to another link. */
  arrived(): void {
    this.link = read(location.hash);
    this.follow();
    this.changed("link");
  }

  filter(filter: Filter): void {
    const same = (one: Filter) => one.dimension === filter.dimension && one.value === filter.value;
    this.go({ filters: [...this.link.filters.filter((one) => !same(one)), filter] });
  }

  unfilter(filter: Filter): void {
    this.go({ filters: this.link.filters.filter((one) => one !== filter) });
  }

  get countsTraffic(): boolean {
    return [TRAFFIC, FLOWS].every((name) => this.programs.some((one) => one.name === name));
  }

  /** Asks for everything that is no row. */
  async ask(): Promise<void> {
    try {
      const [run, list] = await Promise.all([
        api<RunInfo>("GET", "run"),
        api<{ programs: Program[] }>("GET", "programs"),
      ]);
      this.run = run;
      if (run.interval) this.model.interval = run.interval * 1000;
      this.programs = list.programs;
      for (const name of [...this.rows.keys()]) {
        if (!list.programs.some((one) => one.name === name)) this.rows.delete(name);
      }
      this.follow();
      this.trouble = "";
    } catch (error) {
      this.fail(error);
    }
    this.changed("state");
  }

  async askCounts(): Promise<void> {
    try {
      const [counts, before, now] = [await api<Counts>("GET", "stats"), this.counts, performance.now()];
      const seconds = (now - this.counted) / 1000;
      this.workerRates = (counts.workers ?? []).map((n, i) => Math.max(0, n - (before?.workers?.[i] ?? n)) / seconds);
      [this.counts, this.counted] = [counts, now];
      this.changed("rows");
    } catch {
      // The other question says what is wrong.
    }
  }

  /** Follows the programs of the page, those with alerts, the one that is shown, and those that
   * are not known yet. */
  private follow(): void {
    const wanted = ({ name }: Program) => {
      if (name === TRAFFIC || name === FLOWS || name === this.link.program) return true;
      const known = this.rows.get(name);
      return !known || known.outputs.some(isAlert);
    };
    const names = this.programs.filter(wanted).map((one) => one.name).slice(0, FOLLOWED_MAX);
    const text = names.join(",");
    if (text === this.followed) return;
    this.followed = text;
    this.follower.start(names.map((name) => [name, this.rows.get(name)?.next]));
  }

  /** Stops while nobody looks; what was missed comes later. */
  sleep(): void {
    this.follower.stop();
    this.followed = "";
  }

  private take(batch: Batch): void {
    let kept = this.rows.get(batch.program);
    if (!kept || batch.outputs) {
      kept = new Kept(batch.outputs ?? [], batch.next);
      this.rows.set(batch.program, kept);
    }
    kept.next = batch.next;
    kept.skipped += batch.skipped;
    if (batch.program === TRAFFIC || batch.program === FLOWS) {
      this.model.take(batch);
    } else {
      kept.take(batch.rows);
    }
    this.changed("rows");
    // Perhaps it need not be followed.
    if (batch.outputs) window.setTimeout(() => this.follow(), 300);
  }

  private fail(error: unknown): void {
    this.trouble = error instanceof Error ? error.message : String(error);
    this.followed = "";
    this.changed("state");
    window.clearTimeout(this.retry);
    this.retry = window.setTimeout(() => {
      if (!document.hidden) void this.ask();
    }, 3000);
  }
}

export function isAlert(output: OutputInfo): boolean {
  return output.columns.some((column) => column.name === "alert.rule");
}
