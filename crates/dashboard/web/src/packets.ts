// The panel of packets: those that a row is made of, decoded, and as a file.

import { api, ApiError, captureOf, type FoundPackets, type Packet, type PacketsQuestion, type Row } from "./api";
import { clean, h, put, type Child } from "./dom";
import { protocolCondition } from "./format";
import { NOT_IP, NO_NAME, type Dimension, type Filter } from "./model";
import type { State } from "./state";

/** A row as a question: numbers that are not exact here would find nothing. */
export function ofRow(program: string, output: string | undefined, row: Row): PacketsQuestion {
  const exact = Object.entries(row).filter(([, cell]) => typeof cell !== "number" || Math.abs(cell) <= Number.MAX_SAFE_INTEGER);
  return { program, output, row: Object.fromEntries(exact) };
}

const isAddress = (text: string) => /^[0-9a-f.:]+$/i.test(text);

/** A value of a table as a condition of the language; none where it is no such value. */
function condition(dimension: Dimension, text: string): string | undefined {
  if (dimension === "protocol") return protocolCondition(text);
  if (dimension === "interface") {
    return text === NO_NAME ? "not exists(interface)" : `interface == "${text.replace(/[\\"]/g, "\\$&")}"`;
  }
  if (text === NOT_IP) return "not ip";
  if (dimension === "host") return isAddress(text) ? `ip.src == ${text} or ip.dst == ${text}` : undefined;
  if (dimension === "pair") {
    const [a = "", b = ""] = text.split(" \u2013 ");
    if (!isAddress(a) || !isAddress(b)) return undefined;
    return `ip.src == ${a} and ip.dst == ${b} or ip.src == ${b} and ip.dst == ${a}`;
  }
  const [, name = "", port] = /^(.*?)(?: (\d+))?$/.exec(text) ?? [];
  const known = protocolCondition(text) ?? protocolCondition(name);
  if (known === undefined || protocolCondition(text) !== undefined) return known;
  return port === undefined ? known : `${known} and min_of(sport, dport) == ${port}`;
}

/** The packets of a value of a table, of those that meet the filters, in a range of time. */
export function ofValue(state: State, filter: Filter, [from, to]: [number, number]): PacketsQuestion | undefined {
  const all: string[] = [];
  for (const one of [filter, ...state.link.filters]) {
    const text = condition(one.dimension, one.value);
    if (text === undefined) return undefined;
    all.push(one.excludes ? `not (${text})` : `(${text})`);
  }
  const until = to + state.model.interval;
  return { where: all.join(" and "), from: new Date(from).toISOString(), until: new Date(until).toISOString() };
}

/** The line that stands first of a packet. */
function summary({ time, length, fields }: Packet): string {
  const cell = (name: string) => (fields[name] === undefined ? "" : clean(String(fields[name])));
  const end = (address: string, port: string) => (port ? `${address} port ${port}` : address);
  const from = end(cell("ip.src") || cell("arp.sender_ip") || cell("eth.src"), cell("sport"));
  const to = end(cell("ip.dst") || cell("arp.target_ip") || cell("eth.dst"), cell("dport"));
  return `${clean(time).replace("T", " ").replace("Z", "")}  ${from} \u2192 ${to}  ${length} bytes`;
}

/** Bytes in lines of 16. */
function dump(hex: string): string {
  const lines: string[] = [];
  for (let at = 0; at < hex.length; at += 32) {
    const bytes = hex.slice(at, at + 32).match(/../g) ?? [];
    const text = bytes.map((byte) => {
      const code = parseInt(byte, 16);
      return code >= 32 && code < 127 ? String.fromCharCode(code) : ".";
    }).join("");
    lines.push(`${(at / 2).toString(16).padStart(4, "0")}  ${bytes.join(" ").padEnd(48)} ${text}`);
  }
  return lines.join("\n");
}

function packetItem(packet: Packet): HTMLElement {
  const rest: [string, string][] = [["captured", `${packet.captured} bytes`]];
  if (packet.interface) rest.push(["interface", `${packet.interface} ${packet.direction ?? ""}`]);
  const fields = Object.entries(packet.fields).map(([name, value]): [string, string] => [name, String(value)]);
  const list = [...fields, ...rest].flatMap(([name, value]) => [h("dt", {}, clean(name)), h("dd", {}, clean(value))]);
  const cut = packet.hex.length / 2 < packet.captured ? h("p", { class: "quiet" }, "The first bytes of the frame.") : null;
  const details = h("details", { class: "packet" }, h("summary", {}, summary(packet)));
  // Most are never opened.
  details.addEventListener("toggle", () => {
    if (details.childElementCount > 1) return;
    details.append(h("dl", {}, ...list), h("pre", { tabindex: "0", role: "region", "aria-label": "Bytes of the frame" }, dump(packet.hex)));
    if (cut) details.append(cut);
  });
  return h("li", {}, details);
}

/** Remarks on the packets that were found. */
function remarks(found: FoundPackets): Child[] {
  const one = (bad: boolean, text: string) => h("p", { class: bad ? "bad" : "quiet" }, text);
  const out: Child[] = [];
  const n = found.packets.length;
  if (n === 0) out.push(one(false, "No such packet was found."));
  else out.push(one(false, found.more ? `The first ${n} packets; there are more of them. The file has more.` : `${n} packets: all that were found.`));
  if (found.gone) {
    const since = found.kept_from ? ` The oldest packet that is kept is of ${clean(found.kept_from)}.` : "";
    out.push(one(true, `Packets of that time are kept no more, so some may be missing here; --ring keeps more.${since}`));
  }
  if (found.cut_short) out.push(one(true, "The search was ended before it had read all captures: it took too long."));
  if (found.error) out.push(one(true, `Not all could be read: ${clean(found.error)}`));
  if (found.passed_over.length > 0) out.push(one(true, `Other packets may be among these: ${found.passed_over.join(", ")} can't be followed back.`));
  const time = [found.from && `from ${clean(found.from)}`, found.until && `until ${clean(found.until)}`].filter(Boolean).join(" ");
  const query = found.query.map((stage) => `| ${clean(stage)}`).join("\n");
  out.push(h("details", {}, h("summary", {}, "How they were chosen"), h("pre", {}, `packets\n${query}${time ? `\n${time}` : ""}`)));
  return out;
}

/** Hands a file to the browser. */
function save(file: Blob): void {
  const link = h("a", { href: URL.createObjectURL(file), download: "weir-packets.pcapng" });
  document.body.append(link);
  link.click();
  link.remove();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Opens the panel. */
export function showPackets(title: string, question: PacketsQuestion): void {
  const said = h("div", { role: "status" }, h("p", {}, "Looking for the packets\u2026"));
  const list = h("ol", { class: "plain packets" });
  const tell = (error: unknown) => {
    const text = error instanceof ApiError ? `${error.message}\n${error.detail}` : String(error);
    put(said, h("p", { class: "bad said" }, clean(text)));
  };
  const download = h("button", { type: "button", class: "main", disabled: true, onclick: () => {
    download.disabled = true;
    void captureOf(question).then(({ file, lacks }) => {
      save(file);
      if (lacks) said.append(h("p", { class: "bad" }, `The file lacks packets: ${clean(lacks)}.`));
    }).catch(tell).finally(() => (download.disabled = false));
  } }, "Download pcapng");
  const panel = h("dialog", { class: "panel", "aria-label": title },
    h("div", { class: "panel-head" }, h("h2", {}, title),
      h("div", { class: "acts" }, download, h("button", { type: "button", onclick: () => panel.close() }, "Close"))),
    said, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Packets" }, list));
  panel.addEventListener("close", () => panel.remove());
  document.body.append(panel);
  panel.showModal();
  void api<FoundPackets>("POST", "packets", question).then((found) => {
    put(said, ...remarks(found));
    put(list, ...found.packets.map(packetItem));
    download.disabled = found.packets.length === 0;
  }).catch(tell);
}
