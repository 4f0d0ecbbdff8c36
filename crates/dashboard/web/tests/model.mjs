// What the page keeps of traffic, and what it makes of that: without a browser.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

async function load(name) {
  const source = fileURLToPath(new URL(`../src/${name}`, import.meta.url));
  const built = await build({ entryPoints: [source], bundle: true, format: "esm", write: false });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].text).toString("base64")}`);
}

const [{ Model }, { parseTime }] = await Promise.all(["model.ts", "format.ts"].map(load));

const ALL = [-Infinity, Infinity];

/** The rows of both programs for a window of a second, in which a host gets a packet from many. */
function flood(model, second, sources, kept, iface = "eth0") {
  const ts = new Date(second * 1000).toISOString();
  const batch = (program, rows) => model.take({ program, next: 0, skipped: 0, rows });
  const bytes = 60;
  const total = { ts, interface: iface, version: 4, proto: 6, type: 0 };
  batch("page-traffic", [{ ...total, packets: sources, bytes: sources * bytes }]);
  const conversations = Array.from({ length: kept }, (_, i) => ({
    ...total, _pipeline: "page-flows", src: `10.0.${i >> 8}.${i & 255}`, dst: "192.0.2.1", port: 80, packets: 1, bytes,
  }));
  const host = { ts, interface: iface };
  batch("page-flows", [
    { ...total, _pipeline: "page-flows.counts", conversations: sources }, ...conversations,
    { ...host, _pipeline: "page-flows.senders", host: "10.0.0.0", packets: 1, bytes },
    { ...host, _pipeline: "page-flows.receivers", host: "192.0.2.1", packets: sources, bytes: sources * bytes },
  ]);
}

const only = (dimension, value, excludes = false) => [{ dimension, value, excludes }];

// The victim has all packets, not only those of the conversations that are kept.
{
  const model = new Model();
  flood(model, 1, 1432, 15);
  flood(model, 1, 68, 15, "eth1");
  const of = (filters) => model.summary(...ALL, filters);
  assert.equal(of([]).hosts.received.get("192.0.2.1").packets, 1500);
  assert.equal(of(only("interface", "eth0")).hosts.received.get("192.0.2.1").packets, 1432);
  assert.equal(of(only("interface", "eth0", true)).hosts.received.get("192.0.2.1").packets, 68);
  // Protocols and interfaces are exact, and what conversations lack is known.
  const tcp = of(only("protocol", "tcp"));
  assert.deepEqual([tcp.exact, tcp.total.packets, tcp.protocols.get("tcp").packets], [true, 1500, 1500]);
  assert.deepEqual([tcp.interfaces.get("eth1").packets, tcp.unknown.packets], [68, 1470]);
  assert.equal(tcp.hosts.ofAll, false);
  assert.equal(of(only("protocol", "udp")).unknown.packets, 0);
  // A host and an interface: what can't be told is of that interface only.
  const both = of([...only("host", "10.0.0.3"), ...only("interface", "eth1")]);
  assert.deepEqual([both.exact, both.total.packets, both.unknown.packets], [false, 1, 53]);
}

// Conversations go before totals do, and a summary says of how many windows.
{
  const model = new Model();
  const windows = 3700;
  for (let second = 1; second <= windows; second += 1) flood(model, second, 200, 100);
  const all = model.summary(...ALL, []);
  assert.deepEqual([all.windows, all.total.packets], [3600, 720_000]);
  // The latest window is kept whatever it holds.
  assert.equal(all.without.conversations, 3600 - 1501);
  assert.equal(all.without.hosts, 0);
  const [from, to] = [3690_000, 3700_000];
  assert.equal(model.summary(from, to, []).without.conversations, 0);
  // A program that begins anew loses its own only.
  model.take({ program: "page-flows", next: 0, skipped: 0, outputs: [], rows: [] });
  const bare = model.summary(...ALL, []);
  assert.deepEqual([bare.total.packets, bare.conversations.length, bare.without.hosts], [720_000, 0, 3600]);
}

// Times that are typed: the day is that of the latest packet, or the one before.
{
  const near = Date.UTC(2026, 10, 21, 1, 0);
  const times = {
    "00:30": "2026-11-21T00:30:00.000Z",
    "1:00:02.5": "2026-11-21T01:00:02.500Z",
    "23:59:59": "2026-11-20T23:59:59.000Z",
    "2026-11-21 05:51": "2026-11-21T05:51:00.000Z",
    "2026-11-21t05:51:12z": "2026-11-21T05:51:12.000Z",
    "2026-11-21T05:51:12-02:00": "2026-11-21T07:51:12.000Z",
  };
  for (const [text, wanted] of Object.entries(times)) assert.equal(new Date(parseTime(text, near)).toISOString(), wanted, text);
  for (const text of ["", "24:00", "12:60", "12", "noon", "2026-13-01T00:00Z", "2026-11-21"]) assert.ok(Number.isNaN(parseTime(text, near)), text);
}
