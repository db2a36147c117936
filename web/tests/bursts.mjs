// A burst in the review is one card: node tests/bursts.mjs http://127.0.0.1:8420 [FOLDER FOR SCREENSHOTS]
// Each burst of the collection has four pictures. What went wrong is printed, and the exit code is 1.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { opened, PHONE, seriousFaults, WIDE, withBrowser } from "./chromium.mjs";

const [base, folder] = process.argv.slice(2);
if (folder) mkdirSync(folder, { recursive: true });

const get = async (path) => (await fetch(`${base}/api/v1${path}`)).json();
const shoot = async (page, name) => folder && page.screenshot({ path: join(folder, `${name}.png`) });
const statesOf = (ids, label) =>
  Promise.all(ids.map(async (id) => (await get(`/items/${id}`)).annotations.find((a) => a.label === label)?.state ?? null));
const becomes = async (ids, label, expected) => {
  let states = [];
  for (let i = 0; i < 300; i += 1) {
    states = await statesOf(ids, label);
    if (states.every((state, at) => state === expected[at])) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  assert.deepEqual(states, expected);
};
/** Keys act on this card once the page knows that it has the focus. */
const choose = async (card) => {
  await card.focus();
  await card.and(card.page().locator('[tabindex="0"]')).waitFor();
};
const all = (state) => [state, state, state, state];

/** A label that is suggested for a whole burst, and the pictures of the burst in the order of the review. */
async function suggestedBurst() {
  for (const { name } of (await get("/facets")).labels.filter((label) => label.open_suggestions > 3)) {
    const query = `label=${encodeURIComponent(name)}&label_state=suggested&sort=probability&descending=true&k=1000`;
    const { items } = await get(`/items?${query}`);
    const first = items.find((item) => item.burst.length === 4 && items.filter((other) => item.burst.includes(other.id)).length === 4);
    if (first) return { label: name, items, first, ids: [first.id, ...first.burst.filter((id) => id !== first.id)] };
  }
  return assert.fail("no label is suggested for a burst");
}

async function grid(page, { label, items, first, ids }) {
  await page.goto(`/review?view=grid&label=${encodeURIComponent(label)}&order=best_probability`);
  const card = page.getByRole("gridcell", { name: `${first.path}, 4 alike` });
  await card.waitFor();
  await page.getByText(`${items.length} pictures ·`).waitFor();
  const { entries } = await get("/journal");
  await choose(card);
  await page.keyboard.press("a");
  await becomes(ids, label, all("accepted"));
  const after = (await get("/journal")).entries;
  assert.equal(after[0].id, entries[0].id + 1, "one decision on the card is one entry of the journal");
  await page.keyboard.press("z");
  await becomes(ids, label, all(null));
  await choose(card);
  await page.keyboard.press("r");
  await becomes(ids, label, all("rejected"));
  await card.getByRole("button", { name: /^Accept / }).click();
  await becomes(ids, label, all("accepted"));
  assert.deepEqual(await seriousFaults(page), []);
  await shoot(page, "burst-grid");

  await choose(card);
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  const strip = dialog.getByRole("region", { name: "Burst" }).getByRole("button");
  await strip.first().waitFor();
  assert.equal(await strip.count(), 4);
  await page.keyboard.press("ArrowRight");
  await page.waitForURL((url) => url.searchParams.get("item") === String(ids[1]));
  await dialog.getByRole("button", { name: `Reject ${label}`, exact: true }).click();
  await becomes(ids, label, ["accepted", "rejected", "accepted", "accepted"]);
  await page.keyboard.press("Escape");
  await choose(card);
  await page.keyboard.press("r");
  await becomes(ids, label, ["rejected", "rejected", "rejected", "rejected"]);
  await page.keyboard.press("z");
  await becomes(ids, label, ["accepted", "rejected", "accepted", "accepted"]);
  await choose(card);
  await page.keyboard.press("a");
  await becomes(ids, label, [null, "rejected", null, null]);
  await page.keyboard.press("z");
  await becomes(ids, label, ["accepted", "rejected", "accepted", "accepted"]);
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  assert.deepEqual(await seriousFaults(page, { within: "dialog" }), []);
  await shoot(page, "burst-open");
}

async function oneByOne(page, { label, ids }) {
  await page.goto(`/review?at=${ids[0]}`);
  await page.getByRole("button", { name: "4 alike" }).waitFor();
  const { items } = await get("/items?label_state=suggested&state=present&sort=uncertainty&descending=true&k=1000");
  const place = items.findIndex((item) => ids.includes(item.id)) + 1;
  await page.getByText(`${place} of ${items.length} pictures`, { exact: true }).waitFor();
  const name = await page.locator(".review-side .row .row-name").first().textContent();
  assert.notEqual(name, label);
  const before = await statesOf(ids, name);
  await page.keyboard.press("1");
  await becomes(ids, name, all("accepted"));
  await shoot(page, "burst-one");
  await page.keyboard.press("z");
  await becomes(ids, name, before);
}

await withBrowser(async (browser) => {
  const burst = await suggestedBurst();
  const { page, faults } = await opened(browser, base, WIDE);
  await grid(page, burst);
  await oneByOne(page, burst);
  assert.deepEqual(faults, []);
  const phone = await opened(browser, base, { ...PHONE, colorScheme: "dark" });
  await phone.page.goto(`/review?at=${burst.ids[0]}`);
  await phone.page.getByRole("button", { name: "4 alike" }).click();
  await phone.page.getByRole("dialog").getByRole("region", { name: "Burst" }).scrollIntoViewIfNeeded();
  assert.deepEqual(await seriousFaults(phone.page, { within: "dialog" }), []);
  await shoot(phone.page, "burst-phone-open");
  await phone.page.goto(`/review?view=grid&order=best_probability&label=${encodeURIComponent("animal")}`);
  await phone.page.waitForLoadState("networkidle");
  await shoot(phone.page, "burst-phone-grid");
  assert.deepEqual(phone.faults, []);
});
