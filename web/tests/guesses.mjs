// Suggestions by names alone are marked, one by one and in the grid, and accepted ones are not: node tests/guesses.mjs ADDRESS LABEL [FOLDER]
import assert from "node:assert/strict";
import { opened, PHONE, seriousFaults, WIDE, withBrowser } from "./chromium.mjs";

const [base, label, folder] = process.argv.slice(2);
const grid = `/review?view=grid&label=${encodeURIComponent(label)}&order=best_probability`;

await withBrowser(async (browser) => {
  for (const [size, options] of [["wide", WIDE], ["phone", PHONE]]) {
    const { page, faults } = await opened(browser, base, options);
    const take = async (name) => folder && (await page.screenshot({ path: `${folder}/guesses-${name}-${size}.png` }));
    await page.goto("/review");
    const open = page.locator(".review-side .row:not(.accepted)");
    await open.first().waitFor();
    assert.equal(await page.locator(".review-side .row .guess").count(), await open.count());
    const mark = open.first().locator(".guess");
    assert.match(await mark.textContent(), /^guess from the name/);
    assert.match(await mark.getAttribute("title"), /by its name alone/);
    await take("review");
    await page.goto(grid);
    const card = page.locator(".suggestion:not(.accepted)").first();
    await card.locator(".tile-p").waitFor();
    assert.match(await card.locator(".tile-p").textContent(), /^\d+ %, guess$/);
    assert.match(await card.getAttribute("aria-label"), /guess/);
    await take("grid");
    if (size === "phone") {
      await card.locator(".decision.accept").click();
      await page.locator(".suggestion.accepted .tile-p").first().waitFor();
      assert.match(await page.locator(".suggestion.accepted .tile-p").first().textContent(), /^\d+ %$/);
    }
    assert.deepEqual([...faults, ...(await seriousFaults(page))], []);
  }
});
