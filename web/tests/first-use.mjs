// The first page to review, then each page as the documentation shows it: node tests/first-use.mjs ADDRESS [FOLDER].

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { opened, WIDE, withBrowser } from "./chromium.mjs";

const [base, folder] = process.argv.slice(2);

await withBrowser(async (browser) => {
  const { page } = await opened(browser, base, WIDE);
  await page.goto("/review");
  await page.locator(".one-side .row").first().waitFor();
  await page.waitForFunction(() => [...document.querySelectorAll("main img")].every((one) => one.complete));
  console.log("suggestions to review:");
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  const { pages } = await import("./pages.mjs");
  for (const [name, show] of Object.entries(pages)) {
    await show(page);
    await page.waitForLoadState("networkidle");
    await page.mouse.move(0, 0);
    await page.screenshot({ path: join(folder, `${name}.png`) });
    console.log(`${name}:`);
  }
});
