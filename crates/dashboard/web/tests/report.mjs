// Looks at a page of `weir report` in a browser. Arguments: its file. Fails with what is wrong.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const address = pathToFileURL(process.argv[2]).href;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run"],
  timeout: 60_000,
});

/** The findings of axe that are serious, and what is wider than the screen. */
async function accessible(page, where) {
  // The policy of the page forbids scripts, and this one comes past it.
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.filter((v) => ["serious", "critical"].includes(v.impact))
      .map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 160)).slice(0, 3).join(" | ")}`);
  });
  assert.deepEqual(found, [], where);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wide <= 0, `${where}: ${wide} pixels wider than the screen`);
}

/** Each link and each place that scrolls is reached by Tab, and shows that it has the focus. */
async function keyboard(page, where) {
  const wanted = await page.evaluate(() => {
    const all = [...document.querySelectorAll("a[href], summary, [tabindex='0']")];
    return all.filter((e) => e.checkVisibility()).length;
  });
  const seen = new Set();
  for (let i = 0; i < wanted + 5; i += 1) {
    await page.keyboard.press("Tab");
    const focus = await page.evaluate(() => {
      const e = document.activeElement;
      if (!e || e === document.body) return null;
      return [[...document.querySelectorAll("*")].indexOf(e), getComputedStyle(e).outlineStyle !== "none", e.outerHTML.slice(0, 120)];
    });
    if (!focus) continue;
    assert.ok(focus[1], `${where}: no sign of the focus at ${focus[2]}`);
    seen.add(focus[0]);
  }
  assert.ok(seen.size >= wanted, `${where}: ${seen.size} of ${wanted} elements are reached`);
}

try {
  for (const [size, width, height] of [["wide", 1280, 900], ["narrow", 390, 844]]) {
    for (const scheme of ["light", "dark"]) {
      const page = await browser.newPage();
      const wrong = [];
      page.on("pageerror", (e) => wrong.push(e.message));
      page.on("request", (r) => r.url() !== address && !r.url().startsWith("data:") && wrong.push(`asks ${r.url()}`));
      await page.setViewport({ width, height });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.goto(address, { waitUntil: "load" });
      assert.ok(await page.evaluate(() => document.querySelectorAll("h1, h2").length > 2), "headings");
      await accessible(page, `${size} ${scheme}`);
      await keyboard(page, `${size} ${scheme}`);
      assert.deepEqual(wrong, []);
      await page.close();
    }
  }
} finally {
  await browser.close();
}
