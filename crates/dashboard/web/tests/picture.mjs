// Makes a picture of the documentation: a part of a page, as SVG.
//   node tests/picture.mjs page|report ADDRESS FILE
import { readFile, writeFile } from "node:fs/promises";
import puppeteer from "puppeteer-core";

const [face, address, file] = process.argv.slice(2);
const PATIENCE = 60_000;

/** Counts the rows that the page has taken, by program. Runs before the page. */
function countRows() {
  window.rowsTaken = {};
  const { parse } = JSON;
  JSON.parse = (...args) => {
    const value = parse(...args);
    if (value?.program && value.rows) {
      const before = value.outputs ? 0 : window.rowsTaken[value.program] ?? 0;
      window.rowsTaken[value.program] = before + value.rows.length;
    }
    return value;
  };
}

/** The programs of the run with the numbers of their rows. */
async function programs() {
  const { origin, hash } = new URL(address);
  const headers = { Authorization: `Bearer ${hash.replace("#token=", "")}` };
  const answer = await fetch(`${origin}/api/v1/programs`, { headers });
  return (await answer.json()).programs;
}

/** Waits until the page shows all of a run over files. */
async function wholeRun(page) {
  await page.waitForFunction(() => document.body.innerText.includes("no more packets"));
  const hasAll = (all) => all.every(({ name, rows }) => window.rowsTaken[name] === rows);
  await page.waitForFunction(hasAll, {}, await programs());
  // The page draws rows once a second, and what somebody chooses at once.
  for (const unit of ["packets/s", "bits/s"]) {
    await page.evaluate((name) => [...document.querySelectorAll(".choice button")]
      .find((button) => button.innerText === name).click(), unit);
  }
  await page.waitForFunction(() => document.querySelector(".ledger b")?.innerText
    === document.querySelectorAll(".tile strong")[2].innerText);
}

/** Of each face: its title, what waits until it has all, and from where to where it is shown.
 * Elements say that, so that other fonts cut it at the same places. */
const FACES = {
  page: {
    title: "The page of weir serve",
    whole: wholeRun,
    part: () => {
      const tables = [...document.querySelectorAll("table")];
      const row = tables.find((table) => table.caption?.innerText === "Hosts").tBodies[0].rows[4];
      return [0, row.getBoundingClientRect().bottom + 10];
    },
  },
  report: {
    title: "A page of weir report",
    whole: (page) => page.waitForSelector(".finding"),
    part: () => [
      document.querySelectorAll("figure")[1].getBoundingClientRect().top - 20,
      document.querySelectorAll(".finding")[2].getBoundingClientRect().bottom + 20,
    ],
  },
};

const script = (name) => readFile(new URL(name, import.meta.url), "utf8");
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run"],
  timeout: PATIENCE,
});
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  await page.evaluateOnNewDocument(await script("canvas.mjs"));
  await page.evaluateOnNewDocument(countRows);
  // So high that all of it is there without scrolling.
  await page.setViewport({ width: 1100, height: 4000 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
  await page.goto(address, { waitUntil: "load" });
  const { title, whole, part } = FACES[face];
  await whole(page);
  await page.evaluate(await script("svg.mjs"));
  const take = async () => {
    const [top, bottom] = await page.evaluate(part);
    return page.evaluate((...args) => draw(...args), top, bottom, title);
  };
  let [last, picture] = ["", await take()];
  // Nothing moves any more.
  for (let tries = 0; picture !== last; tries += 1) {
    if (tries === 60) throw new Error("the page does not come to rest");
    await new Promise((done) => setTimeout(done, 500));
    [last, picture] = [picture, await take()];
  }
  await writeFile(file, picture);
} finally {
  await browser.close();
}
