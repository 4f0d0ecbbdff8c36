// Looks at the page as people do: all views, two sizes, light and dark, by mouse and by keyboard.
// Arguments: the address with the token, a folder for pictures, and what is served: `file`, `live`
// or `plain` (a run that has no programs of the page). Fails with what is wrong.
import assert from "node:assert/strict";
import { readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const [address, pictures, kind] = process.argv.slice(2);
const origin = new URL(address).origin;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE = 60_000;

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run"],
  timeout: PATIENCE,
});

/** A page that counts what must not be. */
async function open(url, { width, height, scheme }) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const wrong = [];
  page.on("console", (m) => ["error", "warn"].includes(m.type()) && wrong.push(`console: ${m.text()}`));
  page.on("pageerror", (e) => wrong.push(`error: ${e.message}`));
  page.on("dialog", (dialog) => void dialog.accept());
  page.on("request", (r) => {
    if (!r.url().startsWith(`${origin}/`) && !r.url().startsWith("data:")) wrong.push(`asks ${r.url()}`);
  });
  await page.evaluateOnNewDocument(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (e) =>
      window.violations.push(`${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber}`));
  });
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(url, { waitUntil: "domcontentloaded" });
  return { page, wrong, close: () => context.close() };
}

async function sound(one, where) {
  const violations = await one.page.evaluate(() => window.violations);
  assert.deepEqual([...violations, ...one.wrong], [], where);
}

/** Clicks at once: lists are drawn anew while rows come, which takes nodes away. */
async function press(page, selector) {
  await page.waitForSelector(selector);
  await page.evaluate((where) => document.querySelector(where).click(), selector);
}

const text = (page) => page.evaluate(() => document.body.innerText);

/** Waits until the page shows a text. */
async function until(page, wanted) {
  try {
    await page.waitForFunction((t) => document.body.innerText.includes(t), {}, wanted);
  } catch {
    throw new Error(`no "${wanted}" on the page:\n${await text(page)}`);
  }
}

/** Clicks what has this text. */
async function click(page, selector, wanted) {
  await page.waitForFunction((s, t) => [...document.querySelectorAll(s)].some((e) => e.innerText.trim() === t), {}, selector, wanted);
  await page.evaluate((s, t) => {
    [...document.querySelectorAll(s)].find((e) => e.innerText.trim() === t).click();
  }, selector, wanted);
}

async function view(page, name, wanted) {
  await page.waitForSelector(`nav [data-key=${name.toLowerCase()}]`);
  await page.evaluate((key) => document.querySelector(`nav [data-key=${key}]`).click(), name.toLowerCase());
  await until(page, wanted);
}

/** No serious finding of axe, and nothing wider than the screen. */
async function accessible(page, where) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) =>
      `${v.id}: ${v.nodes.map((n) => `${n.html.slice(0, 160)} ${n.any.map((a) => a.message).join()}`).slice(0, 3).join(" | ")}`);
  });
  assert.deepEqual(found, [], where);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wide <= 0, `${where}: ${wide} pixels wider than the screen`);
}

/** The rows of the table with a caption, by their first cells. */
const rows = (page, caption) => page.evaluate((wanted) => {
  const table = [...document.querySelectorAll("table")].find((t) => t.caption?.innerText === wanted);
  return [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.innerText.trim()));
}, caption);

const VIEWS = kind === "plain" ? [] : [
  ["Traffic", "Pairs of hosts"], ["Relations", "Hosts to hosts"], ["Queries", "From the library"],
  ["Alerts", "Suppressed"], ["Plan", "Worker level"],
];

/** Each view in each size and each scheme. */
async function looks() {
  for (const [size, width, height] of [["wide", 1280, 900], ["narrow", 390, 844]]) {
    for (const scheme of ["light", "dark"]) {
      const one = await open(address, { width, height, scheme });
      for (const [name, wanted] of VIEWS) {
        const where = `${kind} ${name} ${size} ${scheme}`;
        await view(one.page, name, wanted);
        if (name === "Queries") await one.page.waitForSelector(".cm-content");
        await new Promise((done) => setTimeout(done, 700));
        const full = await one.page.screenshot({ fullPage: true });
        const { writeFile } = await import("node:fs/promises");
        await writeFile(`${pictures}/${where.toLowerCase().replaceAll(" ", "-")}.png`, full);
        await step(where, () => accessible(one.page, where));
        await step(where, () => sound(one, where));
      }
      await one.close();
    }
  }
}

async function traffic(one) {
  const { page } = one;
  await view(page, "Traffic", "Services");
  assert.ok(!(await page.evaluate(() => location.href)).includes("token"), "the token left the link");
  await until(page, "received");
  // Rows may come after the ledger.
  await page.waitForFunction(() => [...document.querySelectorAll("table")].some((t) => t.caption?.innerText === "Hosts" && t.rows.length > 3));
  const hosts = await rows(page, "Hosts");
  assert.deepEqual(hosts.slice(-2).map((row) => row[0]), ["other", "total"]);
  // Every table adds up to the same total.
  const totals = await page.evaluate(() => ["Pairs of hosts", "Services", "Protocols"].map((wanted) => {
    const table = [...document.querySelectorAll("table")].find((t) => t.caption?.innerText === wanted);
    return table.rows[table.rows.length - 1].cells[3].innerText;
  }));
  assert.equal(new Set(totals).size, 1, totals.join());
  if (kind === "file") {
    // All packets of the victim of the flood, which came in 1,432 conversations.
    await page.waitForFunction(() => [...document.querySelectorAll("table")].some((t) => t.caption?.innerText === "Hosts"
      && [...t.rows].some((row) => /^198\.51\.100\.2\D.*\b1\D582\b.*\b1\D588\b/s.test(row.innerText))));
    // Its windows have more sources than are kept, which the table says.
    await until(page, "were sent by none of the 60 largest senders of their windows");
  }
  const host = hosts[0][0];
  await click(page, ".tables button.link", host);
  await page.waitForSelector(".chip");
  const hash = await page.evaluate(() => location.hash);
  assert.ok(hash.includes(`f=${encodeURIComponent(`host:${host}`)}`), hash);
  const pairs = (await rows(page, "Pairs of hosts")).slice(0, -2);
  assert.ok(pairs.length > 0 && pairs.every(([name]) => name.includes(host)), String(pairs));
  // The link alone gives the same picture.
  await page.reload({ waitUntil: "domcontentloaded" });
  await page.waitForSelector(".chip");
  await until(page, "Pairs of hosts");
  await press(page, ".chip");
  await page.waitForFunction(() => !document.querySelector(".chip"));
  // Tables by packets, whose shares are of packets.
  await click(page, ".tables .choice button", "packets");
  await page.waitForFunction(() => location.hash.includes("o=packets"));
  await page.waitForSelector(".tables [data-key='Tables by packets'][aria-pressed=true]");
  const sent = (await rows(page, "Hosts")).slice(0, -2).map((row) => row.slice(3, 5).reduce((sum, cell) => sum + Number(cell.replace(/\D/g, "")), 0));
  assert.deepEqual(sent, [...sent].sort((a, b) => b - a));
  await click(page, ".tables .choice button", "bytes");
  await click(page, ".choice button", "packets/s");
  await until(page, "latest window, packets/s");
  await click(page, "#switches button", "Pause");
  await until(page, "The picture is stopped. Counting goes on.");
  await click(page, "#switches button", "Go on");
  await click(page, "#switches button", "Dark");
  const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(ground, "rgb(20, 23, 26)");
  await click(page, "#switches button", "Auto");
}

/** Traffic by interface, of each worker, and in conversations. */
async function sides(one) {
  const { page } = one;
  await view(page, "Traffic", "Services");
  await click(page, ".choice button", "by interface");
  await until(page, "Interfaces over time");
  await page.waitForFunction(() => [...document.querySelectorAll("table")].some((t) => t.caption?.innerText === "Interfaces over time" && t.tBodies[0].rows.length === 3));
  const names = (await rows(page, "Interfaces over time")).map((row) => row[0]);
  assert.deepEqual([...names].sort(), ["total", "v2", "v4"]);
  // The same packets are in both, and two of three came by one of them.
  const shares = new Map((await rows(page, "Interfaces over time")).map((row) => [row[0], parseFloat(row[3])]));
  assert.ok(shares.get("v2") > shares.get("v4"), String([...shares]));
  const received = await rows(page, "Interfaces of the run, in packets");
  assert.deepEqual(received.map((row) => row[0]), ["v2", "v4"]);
  assert.ok(received.every((row) => row[2] === "0" && Number(row[1].replace(/\D/g, "")) > 0), String(received));
  const workers = await rows(page, "Workers of the run");
  assert.deepEqual(workers.map((row) => row[0]), ["0", "1"]);
  assert.equal(Math.round(workers.reduce((sum, row) => sum + parseFloat(row[3]), 0)), 100, String(workers));
  await click(page, ".choice button", "conversations");
  await until(page, "latest window, conversations");
  const counted = await rows(page, "Interfaces over time");
  assert.ok(counted.every((row) => parseFloat(row[2]) > 0), String(counted));
  // An interface is a filter, which holds for the tables, too, and for the packets of their rows.
  await click(page, ".legend button.link", "v4");
  await page.waitForSelector(".chip");
  const hash = await page.evaluate(() => location.hash);
  assert.ok(hash.includes("f=interface%3Av4") && hash.includes("b=interface") && hash.includes("u=conversations"), hash);
  await page.waitForFunction(() => [...document.querySelectorAll("table")].some((t) => t.caption?.innerText === "Interfaces" && t.tBodies[0].rows.length === 3));
  assert.deepEqual((await rows(page, "Interfaces")).map((row) => row[0]), ["v4", "other", "total"]);
  await page.reload({ waitUntil: "domcontentloaded" });
  await until(page, "Interfaces over time");
  await press(page, ".chip");
  await click(page, ".choice button", "by protocol");
  await click(page, ".choice button", "bits/s");
}

/** A range of time, by mouse and by keyboard, and the views that show it. */
async function ranges(one) {
  const { page } = one;
  await view(page, "Traffic", "Services");
  const packets = () => page.evaluate(() => Number(document.querySelectorAll(".tile strong")[2].innerText.replace(/\D/g, "")));
  const hash = () => page.evaluate(() => location.hash);
  const all = await packets();
  const box = await (await page.$(".chart .u-over")).boundingBox();
  const [x, y] = [box.x + box.width * 0.7, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + box.width * 0.15, y, { steps: 5 });
  await page.mouse.up();
  await page.waitForFunction(() => /[?&]t=\d+-\d+/.test(location.hash));
  // What has a range is drawn a moment after the link has it.
  await page.waitForSelector("main [data-key=all]");
  const dragged = await packets();
  assert.ok(dragged > 100 && dragged < all, `${dragged} of ${all}`);
  const [from, to] = await page.evaluate(() => [...document.querySelectorAll("form input")].map((input) => Date.parse(input.value)));
  assert.ok((await hash()).includes(`t=${from}-${to}`), `${await hash()}: ${from} to ${to}`);
  // The flood is in it, and other views follow.
  await view(page, "Relations", "Hosts to hosts");
  await until(page, "All times");
  await view(page, "Queries", "page-flows");
  await press(page, "[data-key=flood]");
  await until(page, "Only rows from 2026-11-21 05:51:1");
  await page.waitForSelector(".results .chart canvas");
  const rowsOf = () => page.evaluate(() => [...document.querySelectorAll(".results tbody tr")].map((row) => Date.parse(row.cells[0].innerText)));
  await page.waitForFunction(() => document.querySelectorAll(".results tbody tr").length > 2);
  const times = (await rowsOf()).filter((ms) => !Number.isNaN(ms));
  assert.ok(times.length > 0 && times.every((ms) => ms >= from && ms <= to), `${times} from ${from} to ${to}`);
  await view(page, "Alerts", "Only alerts that went on at some time from 2026-11-21");
  await page.waitForSelector(".alert");
  await click(page, "button", "All times");
  await page.waitForFunction(() => !location.hash.includes("t="));
  // By keyboard, as a time of day and as one of RFC 3339.
  await view(page, "Traffic", "Services");
  const choose = async (begin, end) => {
    for (const [field, value] of [["#range-from", begin], ["#range-to", end]]) {
      await page.$eval(field, (input) => input.select());
      await page.type(field, value);
      if (value === "") await page.$eval(field, (input) => (input.value = ""));
    }
    await page.keyboard.press("Enter");
  };
  await choose("05:51:10", "2026-11-21T06:51:12.5+01:00");
  const wanted = [10_000, 12_500].map((ms) => Date.UTC(2026, 10, 21, 5, 51) + ms).join("-");
  await page.waitForFunction((range) => location.hash.includes(`t=${range}`), {}, wanted);
  await page.waitForSelector("main [data-key=all]");
  assert.ok(await packets() < all);
  await view(page, "Alerts", "No alerts in this range.");
  await view(page, "Traffic", "Services");
  await choose("yesterday", "");
  await until(page, "From: \u201cyesterday\u201d is no time of day");
  await choose("05:51:13", "05:51:12");
  await until(page, "The range ends before it begins.");
  await accessible(page, "ranges");
  await choose("", "05:51:12");
  await page.waitForFunction((t) => !location.hash.includes(t), {}, wanted);
  await click(page, "button", "All times");
}

async function queries(one) {
  const { page } = one;
  await view(page, "Queries", "page-flows");
  await page.waitForSelector(".cm-content");
  const write = async (query) => {
    await page.click(".cm-content");
    await page.keyboard.down("Control");
    await page.keyboard.press("a");
    await page.keyboard.up("Control");
    await page.keyboard.type(query, { delay: 1 });
    // The list of completions is closed.
    await page.keyboard.press("Escape");
  };
  await write("packets | where dprt == 443");
  await until(page, "no field or column is called `dprt`");
  await until(page, "did you mean `dport`?");
  await page.keyboard.press("End");
  await page.keyboard.type(" and tcp.sy");
  // That of the word before may still be there.
  await page.waitForFunction(() =>
    document.querySelector(".cm-tooltip-autocomplete")?.innerText.includes("tcp.syn"));
  await page.keyboard.press("Escape");
  await write("packets | summarize n = count() by ip.src every 1s | top 5 by n");
  await page.waitForFunction(() => document.querySelector(".problems").childElementCount === 0);
  await page.$eval("#query-name", (e) => { e.value = "mine"; });
  await click(page, "button.main", "Run");
  await until(page, "added mine");
  if (kind === "live") await until(page, "Rows of mine");
  await page.waitForFunction(() => document.querySelectorAll(".results tbody tr").length > 2);
  await page.waitForSelector(".results .chart canvas");
  const amount = await page.evaluate(() => {
    const row = document.querySelector(".results tbody tr");
    row.click();
    return Number(row.cells[2].innerText);
  });
  const found = await panel(page, "packets of a row");
  // In its first window, a program may have been there for a part only, and the ring for all.
  const all = Number(/(\d+) packets/.exec(found)?.[1]);
  assert.ok(kind === "live" ? all >= Math.min(amount, 50) : all === Math.min(amount, 50), `${amount}: ${found.slice(0, 300)}`);
  await one.page.screenshot({ path: `${pictures}/${kind}-rows.png`, fullPage: true });
  await accessible(page, "rows");
  await write("packets | summarize n = count() by ip.dst every 1s");
  await page.waitForFunction(() => document.querySelector(".problems").childElementCount === 0);
  await click(page, "button.main", "Run");
  await until(page, "replaced mine");
  await page.waitForFunction(() => [...document.querySelectorAll(".results th")].some((th) => th.innerText === "ip.dst"));
  await write("packets | wher");
  await click(page, "button.main", "Run");
  await until(page, "mine.weir has errors");
  await press(page, "[aria-label='Edit mine']");
  await page.waitForFunction(() => document.querySelector(".cm-content").innerText.includes("by ip.dst"));
  await press(page, "[aria-label='Remove mine']");
  await until(page, "removed mine");
}

/** A capture that is sent, and one of the folder, answer queries beside the run. */
async function captures(one) {
  const { page } = one;
  await view(page, "Queries", "page-flows");
  await page.waitForSelector(".cm-content");
  await page.waitForSelector("#query-over");
  const send = await page.$("#query-send");
  await send.uploadFile(process.env.CAPTURE);
  await until(page, "sent mixed.pcap");
  await page.waitForFunction(() => document.querySelector("#query-over").value === "upload:1");
  await accessible(page, "captures");
  await page.click(".cm-content");
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
  await page.keyboard.type("packets | summarize n = count()", { delay: 1 });
  await page.keyboard.press("Escape");
  const run = async (title) => {
    await click(page, "button.main", "Run");
    await until(page, `Rows of the query over ${title}`);
    assert.deepEqual(await rows(page, "Rows of 1"), [["336"]]);
  };
  await run("mixed.pcap");
  await click(page, "button", "Remove the capture");
  await page.waitForFunction(() => document.querySelector("#query-over").value === "");
  await page.select("#query-over", "file:mixed.pcap");
  await page.waitForFunction(() => location.hash.includes("c=file%3Amixed.pcap"));
  await run("mixed.pcap");
  // Rows with a time have a chart, and the link has its columns.
  await page.click(".cm-content");
  await page.keyboard.press("End");
  await page.keyboard.type(", bytes = sum(len) by ip.proto every 1s", { delay: 1 });
  await page.keyboard.press("Escape");
  await click(page, "button.main", "Run");
  await page.waitForSelector(".results .chart canvas");
  await page.select("[aria-label=Value]", "n");
  await page.select("[aria-label='Split by']", "ip.proto");
  await until(page, "Sums of n since 2026-11-21");
  await page.waitForFunction(() => /v=n&y=ip.proto/.test(location.hash));
  assert.ok((await page.evaluate(() => document.querySelector(".results .legend").innerText)).includes("6: "));
  // Who gets the link has the same choice; a capture that is gone is said to be.
  await page.reload({ waitUntil: "domcontentloaded" });
  await page.waitForFunction(() => document.querySelector("#query-over")?.value === "file:mixed.pcap");
  await page.evaluate(() => { location.hash = location.hash.replace("mixed.pcap", "gone.pcap"); });
  await until(page, "The capture of the link is not kept by this run.");
  await page.waitForFunction(() => !location.hash.includes("c="));
}

/** Names that packets brought are text and nothing else. */
async function hostile(one) {
  const { page } = one;
  await view(page, "Queries", "names");
  await press(page, "[data-key='names']");
  await page.waitForFunction(() => document.querySelectorAll(".results tbody tr").length >= 2);
  await page.evaluate(() => document.querySelector(".results button.pick").click());
  await panel(page, "packets with hostile names");
  const shown = await text(page);
  assert.ok(shown.includes("<img src=x onerror="), shown);
  const elements = await page.evaluate(() => document.querySelectorAll("main img, main script, main iframe").length);
  assert.equal(elements, 0);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  // No control character and no sign of the direction of writing comes through.
  assert.ok(!/[\u0000-\u0008\u000b-\u001f\u202a-\u202e]/.test(shown));
}

async function alerts(one) {
  const { page } = one;
  await view(page, "Alerts", "SYNs to 198.51.100.2");
  await page.evaluate(() => document.querySelector(".alert details summary").click());
  await until(page, "alert.threshold");
  await page.screenshot({ path: `${pictures}/${kind}-alert.png`, fullPage: true });
  await click(page, ".alert button", "Packets");
  assert.ok((await panel(page, "packets of an alert")).includes("198.51.100.2"));
  const suppress = async (howLong, wanted) => {
    await click(page, ".alert button", "Suppress");
    await click(page, ".alert button", howLong);
    await until(page, wanted);
    await press(page, "[aria-label^='Remove flood']");
    await until(page, "No alert is suppressed.");
  };
  // Of files, time is that of packets.
  await suppress("For 1 hour", "server=198.51.100.2 until 2026-11-21T06:51:1");
  await suppress("For 1 day", "server=198.51.100.2 until 2026-11-22T05:51:1");
  await click(page, ".alert button", "Suppress");
  await accessible(page, "how long to suppress");
  await click(page, ".alert button", "For ever");
  await until(page, "server=198.51.100.2 added");
  await press(page, "[aria-label^='Remove flood']");
  await until(page, "No alert is suppressed.");
  await page.waitForSelector(".alert");
  await page.evaluate(() => document.querySelectorAll(".alert").forEach(() =>
    document.querySelector(".alert [data-key^=ack]").click()));
  await until(page, "All alerts are acknowledged.");
  await page.reload({ waitUntil: "domcontentloaded" });
  await until(page, "All alerts are acknowledged.");
  await press(page, "[data-key=hides]");
  await until(page, "SYNs to 198.51.100.2");
  await page.evaluate(() => document.querySelectorAll(".alert [data-key^=ack]").length).then(async (n) => {
    for (let i = 0; i < n; i += 1) await click(page, ".alert button", "Take back");
  });
  await page.waitForFunction(() => ![...document.querySelectorAll(".alert button")].some((b) => b.innerText === "Take back"));
  await page.reload({ waitUntil: "domcontentloaded" });
  await page.waitForSelector(".alert");
}

/** Waits until a panel of packets has some, and looks at the first. */
async function panel(page, where) {
  await page.waitForSelector("dialog.panel .packets li");
  await page.evaluate(() => document.querySelector("dialog.panel .packets summary").click());
  await page.waitForFunction(() => document.querySelector("dialog.panel dl")?.innerText.includes("captured"));
  await accessible(page, where);
  const shown = await page.evaluate(() => document.querySelector("dialog.panel").innerText);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.querySelector("dialog"));
  return shown;
}

/** The link of the page, and values, with a clipboard and without; a query that a link lacks. */
async function links(one) {
  const { page } = one;
  await view(page, "Traffic", "Services");
  const clipboard = (has) => page.evaluate((is) => {
    const value = is ? { writeText: async (text) => { window.copied = text; } } : undefined;
    Object.defineProperty(navigator, "clipboard", { value, configurable: true });
  }, has);
  await clipboard(true);
  await click(page, "#switches button", "Copy link");
  await until(page, "Copied the link of this view");
  assert.equal(await page.evaluate(() => window.copied), await page.evaluate(() => location.href));
  await page.waitForFunction(() => !document.querySelector(".copied"));
  await clipboard(false);
  for (const [selector, wanted] of [["#switches [data-key=link]", page.url()], [".tables button.copy", undefined]]) {
    await press(page, selector);
    await page.waitForSelector("#copied-text");
    const shown = await page.evaluate(() => [document.querySelector("#copied-text").value, getSelection().toString()]);
    assert.equal(shown[0], wanted ?? (await rows(page, "Hosts"))[0][0]);
    assert.equal(shown[1], shown[0]);
    await accessible(page, "copy by hand");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !document.querySelector("dialog"));
  }
  await view(page, "Queries", "page-flows");
  await page.waitForSelector(".cm-content");
  await page.click(".cm-content");
  await page.evaluate(() => document.execCommand("insertText", false, `# ${"long ".repeat(900)}`));
  await until(page, "so the link of the page lacks it");
  assert.ok(!page.url().includes("q="), page.url().slice(0, 200));
  await page.keyboard.down("Control");
  await page.keyboard.press("z");
  await page.keyboard.up("Control");
  await page.waitForFunction(() => !document.body.innerText.includes("so the link of the page lacks it"));
}

/** On a small screen, by touch: filters are turned round, and values copied. */
async function touch() {
  const one = await open(address, { width: 390, height: 844, scheme: "light" });
  const { page } = one;
  await view(page, "Traffic", "Services");
  // Tables of other keys may come first.
  const found = await page.waitForFunction(() => [...document.querySelectorAll("table")]
    .find((t) => t.caption?.innerText === "Hosts")?.querySelector("button.link"));
  const host = await found.evaluate((button) => {
    button.click();
    return button.innerText;
  });
  await click(page, ".filter button", "all but this");
  await page.waitForFunction((text) => location.hash.includes(new URLSearchParams({ f: `!host:${text}` }).toString()), {}, host);
  await page.waitForFunction((text) => ![...document.querySelectorAll(".tables button.link")].some((e) => e.innerText === text), {}, host);
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true }));
  await click(page, ".filter button", "copy");
  await page.waitForSelector("#copied-text");
  assert.equal(await page.evaluate(() => document.querySelector("#copied-text").value), host);
  await click(page, "dialog button", "Close");
  await page.screenshot({ path: `${pictures}/${kind}-filter-narrow.png` });
  await accessible(page, "filters on a small screen");
  await click(page, ".filter button", "only this");
  await page.waitForFunction((text) => location.hash.includes(`f=${encodeURIComponent(`host:${text}`)}`), {}, host);
  await sound(one, "touch");
  await one.close();
}

/** From rows to their packets, and to a file. */
async function packets(one) {
  const { page } = one;
  await view(page, "Traffic", "Services");
  for (const table of ["Hosts", "Pairs of hosts", "Services", "Protocols"]) {
    await page.waitForFunction((wanted) => [...document.querySelectorAll("table")]
      .some((t) => t.caption?.innerText === wanted && t.querySelector("button.pick")), {}, table);
    await page.evaluate((wanted) => [...document.querySelectorAll("table")]
      .find((t) => t.caption?.innerText === wanted).querySelector("button.pick").click(), table);
    await panel(page, `packets of ${table}`);
  }
  const session = await page.createCDPSession();
  await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: pictures, browserContextId: page.browserContext().id });
  await page.evaluate(() => document.querySelector("button.pick").focus());
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog.panel .packets li");
  await one.page.screenshot({ path: `${pictures}/${kind}-packets.png` });
  await rm(`${pictures}/weir-packets.pcapng`, { force: true });
  await click(page, "dialog.panel button", "Download pcapng");
  const file = await downloaded("weir-packets.pcapng");
  assert.equal(file.readUInt32LE(0), 0x0a0d0d0a);
  assert.ok(file.length > 100, `${file.length} bytes`);
  await click(page, "dialog.panel button", "Close");
}

async function downloaded(name) {
  for (let i = 0; i < 200; i += 1) {
    const file = await readFile(`${pictures}/${name}`).catch(() => undefined);
    if (file && file.length > 0) return file;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`${name} was not downloaded`);
}

async function plan(one) {
  const { page } = one;
  await view(page, "Plan", "Machine level");
  await page.select("#plan-program", "page-flows");
  await until(page, "partial summarize");
  await until(page, "top 200 by bytes");
  await until(page, "Exchange 2: groups");
  // Packets that came to the first stage are at least the groups that left the last.
  await page.waitForFunction(() => [...document.querySelectorAll(".flow b")].some((b) => b.innerText !== "0"));
  if (kind === "live") await page.waitForFunction(() => [...document.querySelectorAll(".flow")].some((p) => p.innerText.includes("/s)")));
  const flows = await page.evaluate(() => [...document.querySelectorAll(".flow")].map((p) => p.innerText));
  assert.ok(flows.length >= 3 && flows.every((text) => /^in [\d\u202f]+/.test(text)), flows.join("; "));
  // The list of stages leads to them.
  await page.waitForSelector(".ranking button.link");
  const ranked = await rows(page, "Stages that left out or hold most");
  assert.ok(ranked.length > 0 && ranked.every(([, level]) => ["kernel", "worker", "machine"].includes(level)), String(ranked));
  await press(page, ".ranking button.link");
  const reached = await page.evaluate(() => document.activeElement.querySelector("code")?.innerText);
  assert.ok(reached?.startsWith(ranked[0][0].replace("\u2026", "")), `${reached}: ${ranked[0]}`);
}

/** What can be used and is seen, by names that stay when it is drawn anew. */
const usable = (page) => page.evaluate(() => {
  window.nameOf = (e) => e.dataset.key ?? (e.id || `${e.tagName} ${e.className} ${e.innerText?.slice(0, 60)}`);
  const all = [...document.querySelectorAll("a[href], button, select, input, textarea, summary, [tabindex='0'], [contenteditable=true]")];
  return all.filter((e) => !e.disabled && e.tabIndex >= 0 && e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length > 0).map(window.nameOf);
});

/** Everything can be reached by Tab, and shows that it has the focus. */
async function keyboard(one) {
  const { page } = one;
  await page.bringToFront();
  for (const number of ["1", "2", "3", "4", "5"]) {
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press(number);
    await new Promise((done) => setTimeout(done, 400));
    const wanted = await usable(page);
    await page.evaluate(() => window.scrollTo(0, 0));
    const seen = new Set();
    // Until it begins anew at the first: the link that skips to the view.
    for (let i = 0, begun = 0; i < 500 && begun < 2; i += 1) {
      await page.keyboard.press("Tab");
      // The editor marks its focus a moment later.
      await new Promise((done) => setTimeout(done, 25));
      const focus = await page.evaluate(() => {
        const e = document.activeElement;
        if (!e || e === document.body) return null;
        const style = getComputedStyle(e.closest(".cm-editor") ?? e);
        return [window.nameOf(e), style.outlineStyle !== "none", e.outerHTML.slice(0, 120)];
      });
      // What was drawn anew meanwhile; the next Tab goes on from there.
      if (!focus) continue;
      assert.ok(focus[1], `view ${number}: no sign of the focus at ${focus[2]}`);
      seen.add(focus[0]);
      if (focus[0] === "skip") begun += 1;
    }
    // What rows took away or brought meanwhile was not there all the time.
    const still = new Set(await usable(page));
    const missed = wanted.filter((name) => still.has(name) && !seen.has(name));
    assert.ok(seen.size > 8 && missed.length === 0, `view ${number}: not reached by Tab: ${missed.join("; ")}`);
  }
}

async function tokens() {
  const one = await open(`${origin}/#token=0000000000000000`, { width: 800, height: 600, scheme: "light" });
  await one.page.waitForSelector("form.token");
  await accessible(one.page, "token");
  // Nothing else is drawn over the question.
  await press(one.page, "#switches [data-key=pause]");
  await press(one.page, "#switches [data-key=pause]");
  await one.page.waitForSelector("form.token");
  const right = decodeURIComponent(new URL(address).hash.replace("#token=", ""));
  await one.page.type("#token", right);
  await click(one.page, "form button", "Open");
  await until(one.page, "Pairs of hosts");
  await one.close();
}

/** Links that nobody made by this page show a view all the same, and the token stays. */
async function badLinks({ page }) {
  const far = "99999999999999999";
  const times = [`-${far}-${far}`, "9-1", `${far}-${far}`].map((t) => `#/1/traffic?t=${t}`);
  for (const hash of ["#/1/constructor", "#/1/none", ...times, "#token=%", "#token=%E2%82%AC%E2%82%AC"]) {
    await page.evaluate((to) => (location.hash = to), hash);
    await page.reload({ waitUntil: "domcontentloaded" });
    await until(page, "Pairs of hosts");
  }
}

/** What was wrong; each step is tried, so that one run says all of it. */
const failed = [];

async function step(name, run) {
  try {
    await run();
  } catch (error) {
    failed.push(`${name}: ${error.stack}`);
  }
}

/** Everything that somebody may do on the page. */
async function uses() {
  const one = await open(address, { width: 1280, height: 900, scheme: "light" });
  const steps = kind === "plain" ? { adding } : { traffic, packets, plan, queries, keyboard };
  if (kind === "live") Object.assign(steps, { sides });
  if (kind === "file") Object.assign(steps, { ranges, links, touch, hostile, alerts, captures, badLinks });
  for (const [name, run] of Object.entries(steps)) {
    await step(name, async () => {
      await run(one);
      // A query with an error is answered by 422, which browsers write to the console.
      const known = one.wrong.filter((line) => name === "queries" && line.includes("422"));
      assert.ok(known.length <= 1, known.join());
      known.forEach((line) => one.wrong.splice(one.wrong.indexOf(line), 1));
      await sound(one, name);
    });
  }
  await one.close();
}

/** A run that counts no traffic begins to. */
async function adding({ page }) {
  await click(page, "button", "Count traffic");
  await until(page, "Pairs of hosts");
}

try {
  await looks();
  await uses();
  await step("tokens", tokens);
} finally {
  await browser.close();
}
assert.deepEqual(failed, []);
