// Milliseconds until the gallery is painted, until its pictures are there, and of a frame while it is scrolled by the
// wheel and flung through thousands of pictures: node tests/paint.mjs ADDRESS.
import { opened, WIDE, withBrowser } from "./chromium.mjs";

const [base] = process.argv.slice(2);
const times = [];
const told = [];
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

/** Milliseconds between frames while a screen and a half passes with each, and until the pictures it ends at are there. */
function flung(page) {
  return page.evaluate(async () => {
    const box = document.querySelector(".grid");
    const drawn = [await new Promise(requestAnimationFrame)];
    for (let i = 0; i < 180; i += 1) {
      box.scrollTop += 1.5 * box.clientHeight;
      drawn.push(await new Promise(requestAnimationFrame));
    }
    const begun = performance.now();
    const { top, bottom } = box.getBoundingClientRect();
    const there = () => {
      const tiles = [...box.querySelectorAll(".tile")].filter((tile) => {
        const at = tile.getBoundingClientRect();
        return at.bottom > top && at.top < bottom;
      });
      return tiles.length > 0 && tiles.every((tile) => tile.querySelector("img")?.naturalWidth);
    };
    while (!there() && performance.now() - begun < 30_000) await new Promise(requestAnimationFrame);
    return { frames: drawn.slice(1).map((at, i) => at - drawn[i]), settled: performance.now() - begun };
  });
}

function tell(what, frames) {
  const sorted = frames.toSorted((a, b) => a - b);
  const frame = (share) => sorted[Math.floor(share * (sorted.length - 1))].toFixed(0);
  told.push(`a frame ${what}: median ${frame(0.5)} ms, 95 % in ${frame(0.95)} ms, 99 % in ${frame(0.99)} ms, longest ${frame(1)} ms`);
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
    if (round === 4) {
      tell("while the wheel is turned", await scrolled(page));
      let asked = 0;
      page.on("request", (request) => (asked += request.url().includes("/thumbnail")));
      const { frames, settled } = await flung(page);
      tell("while it is flung", frames);
      told.push(`where it ends all pictures are there after ${settled.toFixed(0)} ms, ${asked} were asked for`);
    }
    await context.close();
  }
});
for (const what of ["painted", "pictures"]) {
  const found = times.map((one) => one[what]).sort((a, b) => a - b);
  console.log(`gallery ${what}: median ${found[2].toFixed(0)} ms, most ${found[4].toFixed(0)} ms`);
}
console.log(told.join("\n"));
