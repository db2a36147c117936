/** Milliseconds until the gallery is painted, and until its pictures are there: node tests/paint.mjs ADDRESS. */

import { chromium } from "playwright-core";

const [address] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const times = [];
for (let round = 0; round < 5; round++) {
  const page = await (await browser.newContext()).newPage();
  await page.goto(address);
  await page.waitForFunction(() => {
    const shown = [...document.querySelectorAll("main img")];
    return shown.length > 10 && shown.every((one) => one.complete);
  });
  times.push(
    await page.evaluate(() => ({
      painted: performance.getEntriesByName("first-contentful-paint")[0].startTime,
      pictures: performance.now(),
    })),
  );
}
await browser.close();
for (const what of ["painted", "pictures"]) {
  const found = times.map((one) => one[what]).sort((a, b) => a - b);
  console.log(`gallery ${what}: median ${found[2].toFixed(0)} ms, most ${found[4].toFixed(0)} ms`);
}
