// The requests of the page to the run. The token is sent as a header, so nothing asks for a page
// of another site.

const STORED = "weir.token";

/** Why something was not done. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly detail: string,
  ) {
    super(message);
  }
}

let token = sessionStorage.getItem(STORED) ?? "";

export function setToken(text: string): void {
  token = text.trim();
  sessionStorage.setItem(STORED, token);
}

export function hasToken(): boolean {
  return token !== "";
}

function request(method: string, path: string, body?: unknown, more: RequestInit = {}) {
  const headers: Record<string, string> = { Authorization: `Bearer ${token}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const text = body === undefined ? undefined : JSON.stringify(body);
  return fetch(`/api/v1/${path}`, {
    method, headers, body: text, credentials: "omit", redirect: "error", ...more,
  });
}

async function refusal(answer: Response): Promise<ApiError> {
  const text = await answer.text();
  try {
    const value = JSON.parse(text) as { error?: string; text?: string };
    return new ApiError(answer.status, value.error ?? text, value.text ?? "");
  } catch {
    return new ApiError(answer.status, text.trim() || answer.statusText, "");
  }
}

/** Asks for something as JSON. */
export async function api<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await request(method, path, body);
  if (!answer.ok) throw await refusal(answer);
  return (await answer.json()) as T;
}

/** Which packets are asked for: those of a row, or those that meet a condition. */
export interface PacketsQuestion {
  program?: string;
  output?: string;
  row?: Row;
  where?: string;
  from?: string;
  until?: string;
  limit?: number;
}

export interface Packet {
  time: string;
  length: number;
  captured: number;
  interface?: string;
  direction?: string;
  fields: Row;
  hex: string;
}

export interface FoundPackets {
  packets: Packet[];
  more: boolean;
  query: string[];
  passed_over: string[];
  from?: string;
  until?: string;
  source: "ring" | "captures";
  kept_from?: string;
  kept_to?: string;
  gone: boolean;
  cut_short: boolean;
  error?: string;
}

/** Packets as a pcapng file, and why it may lack some. */
export interface CaptureFile {
  file: Blob;
  lacks: string | null;
}

/** Asks for packets as a pcapng file. */
export async function captureOf(question: PacketsQuestion): Promise<CaptureFile> {
  const answer = await request("POST", "packets", { ...question, limit: undefined, format: "pcapng" });
  if (!answer.ok) throw await refusal(answer);
  return { file: await answer.blob(), lacks: answer.headers.get("Weir-Lacks") };
}

/** A capture that queries may be asked of. */
export interface Capture {
  capture: string;
  title: string;
  size: number;
}

export interface Captures {
  folder: boolean;
  files: Capture[];
  more: boolean;
  uploads: Capture[];
  upload_bytes_max: number;
  uploads_max: number;
}

export interface CaptureRows {
  outputs: OutputInfo[];
  rows: Row[];
  more: boolean;
  cut_short: boolean;
  failed: boolean;
  said: string;
}

/** Sends a capture; says what it is called. */
export async function sendCapture(file: File): Promise<string> {
  const title = file.name.replace(/[^A-Za-z0-9._-]/g, "_").slice(0, 100);
  const answer = await request("POST", `captures?name=${title}`, undefined, {
    body: file,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/octet-stream" },
  });
  if (!answer.ok) throw await refusal(answer);
  return ((await answer.json()) as { capture: string }).capture;
}

/** Rows that have gone through a stage on a level. */
export interface StageFlow {
  level: string;
  pipeline: number;
  stage: number;
  rows_in: number;
  rows_out: number;
  late: number;
  evicted: number;
  undefined: number;
  held: number;
  workers: number[];
}

export interface StageFlows {
  programs: { name: string; stages: StageFlow[] }[];
  waiting?: number;
  waiting_max: number;
}

export interface Program {
  name: string;
  source: string;
  since: number;
  rows: number;
  refused: number;
  failed?: string;
}

export interface RunInfo {
  version: string;
  sources: string[];
  filter: string;
  phase: "live" | "reading" | "ended";
  reads_again: boolean;
  interval?: number;
  error?: string;
}

/** The ledger: of each interface its name, packets received and lost, and packets of each worker. */
export type Counts = Record<string, number> & { interfaces: [string, number, number][]; workers?: number[] };

export interface Column {
  name: string;
  type: string;
}

export interface OutputInfo {
  name: string;
  columns: Column[];
}

export type Row = Record<string, string | number | boolean | null>;

/** Rows of a program; `outputs` where it begins anew. */
export interface Batch {
  program: string;
  next: number;
  skipped: number;
  outputs?: OutputInfo[];
  rows: Row[];
}

/** Follows the rows of programs until it is stopped; `cursors` say which were seen. */
export class Follower {
  private controller: AbortController | undefined;

  constructor(
    private readonly take: (batch: Batch) => void,
    private readonly fail: (error: unknown) => void,
  ) {}

  start(programs: [string, number | undefined][]): void {
    this.stop();
    if (programs.length === 0) return;
    const controller = new AbortController();
    this.controller = controller;
    void this.run(programs, controller.signal).catch((error: unknown) => {
      if (!controller.signal.aborted) this.fail(error);
    });
  }

  stop(): void {
    this.controller?.abort();
    this.controller = undefined;
  }

  private async run(programs: [string, number | undefined][], signal: AbortSignal) {
    const names = programs.map(([name, next]) => (next === undefined ? name : `${name}:${next}`));
    const answer = await request("GET", `recent?programs=${names.join(",")}`, undefined, { signal });
    if (!answer.ok || !answer.body) throw await refusal(answer);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new ApiError(0, "the run has ended", "");
      rest += value;
      const events = rest.split("\n\n");
      rest = events.pop() ?? "";
      for (const event of events) this.event(event);
    }
  }

  private event(text: string): void {
    const data = text.split("\n").find((line) => line.startsWith("data: "));
    if (data && text.startsWith("event: rows")) this.take(JSON.parse(data.slice(6)) as Batch);
  }
}
