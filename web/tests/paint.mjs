// Milliseconds until the gallery is painted, until its pictures are there, and of a frame while it is scrolled:
// node tests/paint.mjs ADDRESS.
import { opened, WIDE, withBrowser } from "./chromium.mjs";

const [base] = process.argv.slice(2);
const times = [];
let frames = [];
/** Milliseconds between frames while the wheel is turned for four seconds. */
async function scrolled(page) {
  await page.evaluate(() => {
    window.drawn = [];
    const note = (at) => (window.drawn.push(at), requestAnimationFrame(note));
    requestAnimationFrame(note);
  });
  await page.mouse.move(700, 500);
  for (const begun = Date.now(); Date.now() - begun < 4000; ) {
    await page.mouse.wheel(0, 120);
    await page.waitForTimeout(16);
  }
  const drawn = await page.evaluate(() => window.drawn);
  return drawn.slice(1).map((at, i) => at - drawn[i]);
}

await withBrowser(async (browser) => {
  for (let round = 0; round < 5; round += 1) {
    const { context, page } = await opened(browser, base, WIDE);
    await page.goto("/");
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
    if (round === 4) frames = await scrolled(page);
    await context.close();
  }
});
for (const what of ["painted", "pictures"]) {
  const found = times.map((one) => one[what]).sort((a, b) => a - b);
  console.log(`gallery ${what}: median ${found[2].toFixed(0)} ms, most ${found[4].toFixed(0)} ms`);
}
frames.sort((a, b) => a - b);
const frame = (share) => frames[Math.floor(share * (frames.length - 1))].toFixed(0);
console.log(`a frame while scrolling: median ${frame(0.5)} ms, 99 % in ${frame(0.99)} ms, longest ${frame(1)} ms`);
