// The choice of what a query runs over: what this run reads, a capture of its folder, or one that
// somebody sent.

import { api, ApiError, sendCapture, type Capture, type Captures } from "./api";
import { clean, h, put, type Child } from "./dom";
import { short } from "./format";
import type { State } from "./state";

export class CaptureChoice {
  readonly element = h("div", { class: "controls" });
  private all: Captures | undefined;
  private drawn = "";

  constructor(
    private readonly state: State,
    private readonly say: (text: string, bad?: boolean) => void,
  ) {}

  /** The name of the capture that is chosen; empty for what the run reads. */
  get chosen(): string {
    return this.state.link.capture ?? "";
  }

  private choose(capture: string): void {
    if (capture === this.chosen) return;
    this.state.go({ capture: capture || undefined }, true);
  }

  /** Follows the link. */
  update(): void {
    if (this.chosen !== this.drawn && this.all) this.draw();
  }

  /** The title of the chosen capture, for people. */
  get title(): string {
    const all = [...(this.all?.uploads ?? []), ...(this.all?.files ?? [])];
    return clean(all.find((one) => one.capture === this.chosen)?.title ?? this.chosen);
  }

  /** Asks which captures there are. */
  async ask(): Promise<void> {
    try {
      this.all = await api<Captures>("GET", "captures");
    } catch (error) {
      // A run that keeps none has no such choice.
      this.all = undefined;
      if (!(error instanceof ApiError && error.status === 409)) this.say(String(error), true);
    }
    this.draw();
  }

  private draw(): void {
    const { all } = this;
    if (!all) {
      this.choose("");
      put(this.element);
      return;
    }
    const known = [...all.uploads, ...all.files].some((one) => one.capture === this.chosen);
    if (this.chosen && !known) {
      this.say("The capture of the link is not kept by this run.", true);
      this.choose("");
    }
    this.drawn = this.chosen;
    const option = (one: Capture) => h("option", { value: one.capture, selected: one.capture === this.chosen }, `${clean(one.title)} (${short(one.size)}B)`);
    const group = (label: string, some: Capture[]) => (some.length > 0 ? h("optgroup", { label }, ...some.map(option)) : null);
    const select: HTMLSelectElement = h("select", { id: "query-over", "data-key": "over", onchange: () => {
      this.choose(select.value);
    } }, h("option", { value: "" }, "what this run reads"));
    for (const part of [group("Sent", all.uploads), group("On the server", all.files)]) if (part) select.append(part);
    const most = `at most ${short(all.upload_bytes_max)}B, ${all.uploads_max} of them; gone when the run ends`;
    const input: HTMLInputElement = h("input", { id: "query-send", type: "file", accept: ".pcap,.pcapng,.cap,.gz,.zst", title: most, onchange: () => {
      const file = input.files?.[0];
      if (file) void this.send(file);
    } });
    const remove: Child = this.chosen.startsWith("upload:")
      ? h("button", { type: "button", "data-key": "remove capture", onclick: () => void this.remove() }, "Remove the capture") : null;
    put(this.element, h("label", { for: "query-over" }, "Over"), select, h("label", { for: "query-send" }, "Send a capture"), input, remove,
      all.more ? h("span", { class: "quiet" }, "The folder has more captures than are listed.") : null);
  }

  private async send(file: File): Promise<void> {
    const most = this.all?.upload_bytes_max ?? 0;
    if (file.size > most) {
      this.say(`${clean(file.name)} has more than ${short(most)}B: put it into the folder of --captures`, true);
      return;
    }
    try {
      const capture = await sendCapture(file);
      this.say(`sent ${clean(file.name)}`);
      await this.ask();
      this.choose(capture);
    } catch (error) {
      this.say(error instanceof Error ? error.message : String(error), true);
    }
  }

  private async remove(): Promise<void> {
    try {
      await api("DELETE", `captures?name=${this.chosen}`);
      this.choose("");
    } catch (error) {
      this.say(error instanceof Error ? error.message : String(error), true);
    }
    await this.ask();
  }
}
