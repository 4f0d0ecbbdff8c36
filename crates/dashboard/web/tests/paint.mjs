// How long the page takes to show something, in browsers that have never seen it:
//   node tests/paint.mjs 'http://127.0.0.1:9464/#token=…' [BROWSERS]
// It measures, and fails only where there is no picture at all.

import puppeteer from "puppeteer-core";

const [page, browsers = "7"] = process.argv.slice(2);
const ALL = ["first-contentful-paint", "loaded"];

/** The times of one browser, in milliseconds from the start of the navigation. */
async function times() {
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run"],
  });
  try {
    const tab = await browser.newPage();
    await tab.goto(page, { waitUntil: "load" });
    await tab.waitForFunction(() => performance.getEntriesByType("paint").length > 1);
    return await tab.evaluate(() => ({
      "first-contentful-paint": performance.getEntriesByName("first-contentful-paint")[0].startTime,
      loaded: performance.getEntriesByType("navigation")[0].loadEventEnd,
    }));
  } finally {
    await browser.close();
  }
}

const seen = [];
for (let i = 0; i < Number(browsers); i++) seen.push(await times());
for (const name of ALL) {
  const all = seen.map((one) => one[name]).sort((a, b) => a - b);
  const [low, middle, high] = [0, 0.5, 1].map((at) => all[Math.floor(at * (all.length - 1))]);
  console.log(`${name}: ${Math.round(middle)} ms (${Math.round(low)}–${Math.round(high)})`);
}
