// How smoothly a map is dragged and zoomed: node tests/frames.mjs http://127.0.0.1:8420
// Prints the time from one frame to the next: as the browser draws it, and by WebGL where it has no card for that.
import { opened, WIDE, withBrowser } from "./chromium.mjs";

const [base] = process.argv.slice(2);
const FRAMES = 120;

/** Milliseconds between frames while something is done before each. */
const measured = (page, act) =>
  page.evaluate(
    async ([act, frames]) => {
      const box = document.querySelector(".map-stage");
      const { left, top, width, height } = box.getBoundingClientRect();
      const [x, y] = [left + width / 2, top + height / 2];
      const send = (kind, type, given) => box.dispatchEvent(new kind(type, { bubbles: true, cancelable: true, clientX: x, clientY: y, ...given }));
      box.setPointerCapture = () => undefined; // of a pointer that is not there
      if (act === "drag") send(PointerEvent, "pointerdown", { pointerId: 7, button: 0 });
      const taken = [];
      let last = await new Promise(requestAnimationFrame);
      for (let i = 0; i < frames; i += 1) {
        if (act === "drag") send(PointerEvent, "pointermove", { pointerId: 7, clientX: x + 150 * Math.sin(i / 8), clientY: y + 100 * Math.cos(i / 8) });
        else send(WheelEvent, "wheel", { deltaY: i < frames / 2 ? -60 : 60 });
        const now = await new Promise(requestAnimationFrame);
        taken.push(now - last);
        last = now;
      }
      if (act === "drag") send(PointerEvent, "pointerup", { pointerId: 7 });
      taken.sort((a, b) => a - b);
      return [taken[frames >> 1], taken[Math.floor(0.95 * frames)]];
    },
    [act, FRAMES],
  );

await withBrowser(async (browser) => {
  for (const card of [false, true]) {
    const { context, page, faults } = await opened(browser, base, WIDE);
    if (card) await page.addInitScript(() => {
      WebGL2RenderingContext.prototype.getExtension = () => null; // which would tell that there is no card
    });
    const begun = Date.now();
    await page.goto("/map");
    await page.locator(".map-stage canvas").first().waitFor();
    const shown = Date.now() - begun;
    await page.waitForLoadState("networkidle");
    const by = await page.locator(".map-stage").getAttribute("data-drawn-by");
    const told = [];
    for (const act of ["drag", "zoom"]) {
      const [median, p95] = await measured(page, act);
      told.push(`${act} ${median.toFixed(1)} ms a frame (95 %: ${p95.toFixed(1)})`);
    }
    console.log(`drawn by ${by}, there after ${shown} ms: ${told.join(", ")}`);
    if (faults.length) console.log(faults);
    await context.close();
  }
});
