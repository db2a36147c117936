// Screenshots of every page, wide and on a phone, light and dark: node tests/shoot.mjs http://127.0.0.1:8420 FOLDER [LABEL [PAGE,PAGE [SCREEN-COLOURS]]]
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { opened, PHONE, seriousFaults, WIDE, withBrowser } from "./chromium.mjs";

const [base, folder, label = "boat", only, screen] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const settle = async (page) => {
  await page.waitForLoadState("networkidle").catch(() => undefined);
  await page.waitForTimeout(300);
};
const pages = {
  gallery: ["/"],
  filters: ["/", async (page) => page.getByRole("button", { name: /^Filters/ }).click()],
  selection: [
    "/",
    async (page) => {
      for (const at of [0, 1, 4]) await page.locator(`[data-at="${at}"] .check`).click({ force: true });
    },
  ],
  item: ["/", async (page) => page.locator('[data-at="2"]').click({ position: { x: 20, y: 60 } })],
  review: ["/review", async (page) => page.keyboard.press("1")],
  grid: [
    `/review?view=grid&label=${encodeURIComponent(label)}&order=best_probability`,
    async (page) => {
      await page.locator('[data-at="0"] .decision.accept').click();
      await page.locator('[data-at="1"] .decision.reject').click();
    },
  ],
  above: [`/review?label=${encodeURIComponent(label)}`, async (page) => page.getByRole("button", { name: /Accept all above/ }).click()],
  keys: ["/review", async (page) => page.keyboard.press("?")],
  "search-start": ["/search"],
  search: [`/search?text=${encodeURIComponent(label)}`],
  labels: ["/labels"],
  label: [`/labels?words=${encodeURIComponent(label)}`, async (page) => page.locator(".label-row").first().click()],
  tree: [
    "/labels?view=tree",
    async (page) => {
      await page.locator('[role="treeitem"]').first().focus();
      for (const key of ["ArrowRight", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    },
  ],
  proposals: ["/labels?view=proposals"],
  map: [`/map?label=${encodeURIComponent(label)}`, async (page) => page.waitForTimeout(1000)],
  training: ["/training?compare=1,2&model=1"],
  status: ["/status"],
  api: ["/docs"],
};

await withBrowser(async (browser) => {
  for (const [size, options] of [["wide", WIDE], ["phone", PHONE]]) {
    for (const colorScheme of ["light", "dark"].filter((one) => !screen || screen === `${size}-${one}`)) {
      for (const [name, [address, act]] of Object.entries(pages).filter(([one]) => !only || only.split(",").includes(one))) {
        const { context, page, faults } = await opened(browser, base, { ...options, colorScheme });
        await page.goto(address);
        await settle(page);
        try {
          await act?.(page);
        } catch (error) {
          faults.push(String(error).split("\n")[0]);
        }
        await settle(page);
        const serious = name === "api" ? [] : await seriousFaults(page);
        const across = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (across > 0) faults.push(`wider than the screen by ${across}`);
        await page.screenshot({ path: join(folder, `${name}-${size}-${colorScheme}.png`) });
        if (faults.length || serious.length) console.log(name, size, colorScheme, JSON.stringify([...faults, ...serious], null, 1));
        await context.close();
      }
    }
  }
});
