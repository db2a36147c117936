// Opens the first suggestions to review, as a new user does: node tests/first-use.mjs ADDRESS.
import { opened, WIDE, withBrowser } from "./chromium.mjs";

await withBrowser(async (browser) => {
  const { page } = await opened(browser, process.argv[2], WIDE);
  await page.goto("/review");
  await page.locator(".review-side .row").first().waitFor();
  await page.waitForFunction(() => [...document.querySelectorAll("main img")].every((one) => one.complete));
});
