// Tokens in the pages of a running service: node tests/token.mjs http://127.0.0.1:8420 FILE_OF_TOKENS [FOLDER FOR SCREENSHOTS]
// The tokens of first, second (who may write) and reader (who may read) are in WRITE, AGAIN and READ. The collection has a model.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { opened, PHONE, seriousFaults, WIDE, withBrowser } from "./chromium.mjs";

const [base, file, folder] = process.argv.slice(2);
const { WRITE, AGAIN, READ } = process.env;
if (folder) mkdirSync(folder, { recursive: true });
const shoot = async (page, name) => folder && page.screenshot({ path: join(folder, `${name}.png`) });
const get = async (path, token) => (await fetch(`${base}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } })).json();
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const eventually = async (what, told) => {
  for (let i = 0; i < 100; i += 1) {
    if (await what()) return;
    await pause(100);
  }
  assert.fail(`never came: ${told}`);
};

/** From now on the service takes no token of this name; it looks every second. */
async function expire(name) {
  const lines = readFileSync(file, "utf8").split("\n");
  writeFileSync(file, lines.map((line) => (line.startsWith(`${name}\t`) ? line.replace("\t-\t", "\t2001-01-01\t") : line)).join("\n"));
  await eventually(async () => (await get("/collection", WRITE)).status === 401, "the end of a token");
}

const dialog = (page) => page.getByRole("dialog", { name: "A token is needed" });
async function give(page, token) {
  await dialog(page).getByLabel(/^Token/).fill(token);
  await page.keyboard.press("Enter");
}

async function askedFor(page, context) {
  await page.goto("/");
  await dialog(page).waitFor();
  assert.ok(await dialog(page).getByLabel(/^Token/).evaluate((field) => field === document.activeElement), "the field has the focus");
  assert.equal(await dialog(page).getByRole("alert").textContent(), "");
  assert.deepEqual(await seriousFaults(page, { within: "dialog" }), []);
  await shoot(page, "token");
  await give(page, "wrong");
  await dialog(page).getByText("This token is unknown").waitFor();
  assert.deepEqual((await context.cookies()).filter((cookie) => cookie.value), [], "a wrong token is not kept");
  assert.deepEqual(await seriousFaults(page, { within: "dialog" }), []);
  await shoot(page, "token-wrong");
  await page.keyboard.press("Escape");
  await dialog(page).waitFor({ state: "hidden" });
  await pause(500);
  assert.ok(!(await dialog(page).isVisible()), "who closes it is left alone");
  await shoot(page, "token-later");
  await page.getByRole("button", { name: "Token needed" }).click();
  await give(page, ` ${WRITE}\n`); // as it is copied
  await dialog(page).waitFor({ state: "hidden" });
  const { total } = await get("/items?k=1", WRITE);
  await page.getByRole("heading", { name: `${total} pictures` }).waitFor();
  await page.locator(".tile img").first().evaluate((image) => image.decode());
  assert.ok(!(await page.getByRole("button", { name: "Token needed" }).isVisible()));
  const [kept] = await context.cookies();
  assert.deepEqual([kept.name, kept.value, kept.sameSite, kept.expires], ["wsabie_token", WRITE, "Strict", -1]);
  assert.ok(!page.url().includes(WRITE), "no token in the address");
  assert.ok(!JSON.stringify(await context.storageState()).replace(WRITE, "").includes(WRITE), "nor anywhere else");
  await page.reload();
  await page.getByRole("heading", { name: `${total} pictures` }).waitFor();
}

async function expires(page) {
  await page.goto("/review");
  const label = await page.locator(".review-side .row .row-name").first().textContent();
  const item = (await get("/items?sort=uncertainty&descending=true&label_state=suggested&k=1", WRITE)).items[0].id;
  await page.waitForLoadState("networkidle");
  await expire("first");
  await page.keyboard.press("1");
  await dialog(page).waitFor();
  await dialog(page).getByText("Your token is no longer valid").waitFor();
  await dialog(page).getByText("1 decision kept in this browser until then.").waitFor();
  await shoot(page, "token-expired");
  await page.keyboard.press("Escape");
  await page.getByText("1 decision kept", { exact: true }).waitFor(); // not "Offline"
  await shoot(page, "token-expired-later");
  page.once("dialog", (question) => void question.accept()); // decisions wait: shall the page be left?
  await page.reload();
  await dialog(page).getByText("1 decision kept").waitFor();
  await give(page, WRITE);
  await dialog(page).getByText("This token is unknown or has expired.").waitFor();
  await give(page, AGAIN);
  await dialog(page).waitFor({ state: "hidden" });
  const decided = async () => (await get(`/items/${item}`, AGAIN)).annotations?.find((one) => one.label === label);
  await eventually(decided, "what was decided before");
  assert.equal((await decided()).state, "accepted");
  assert.equal((await get("/journal?k=1", AGAIN)).entries[0].by, "second");
  await page.getByText("1 decision kept", { exact: true }).waitFor({ state: "hidden" });
}

async function reads(page) {
  const before = (await get("/journal", READ)).entries.length;
  await page.goto("/");
  await give(page, READ);
  await page.getByText("Read only").waitFor();
  await page.locator('[data-at="0"]').focus();
  await page.keyboard.press("x");
  await pause(200);
  assert.equal(await page.locator(".tag-bar").count(), 0, "nothing to tag with");
  await shoot(page, "reader-gallery");
  await page.locator('[data-at="1"]').click();
  await page.locator(".item-open .row").first().waitFor();
  assert.equal(await page.getByRole("dialog").getByRole("combobox").count(), 0);
  assert.equal(await page.locator(".verdict").count(), 0);
  await shoot(page, "reader-item");
  await page.goto("/review");
  await page.locator(".review-side .row").first().waitFor();
  assert.equal(await page.locator(".verdict:visible").count(), 0);
  for (const name of ["Undo", "Reject rest", "Accept all above …"]) assert.ok(await page.getByRole("button", { name }).isDisabled(), name);
  for (const key of ["1", "a", "e", "z"]) await page.keyboard.press(key);
  await page.getByText("You may look at this collection, but not change it.").waitFor();
  await shoot(page, "reader-review");
  const label = encodeURIComponent((await get("/facets", READ)).labels.reduce((a, b) => (b.open_suggestions > a.open_suggestions ? b : a)).name);
  await page.goto(`/review?view=grid&label=${label}`);
  await page.locator('[data-at="0"]').focus();
  assert.equal(await page.locator(".verdict").count(), 0);
  for (const key of ["a", "A", "r"]) await page.keyboard.press(key);
  await page.goto("/status");
  await page.locator(".counts").waitFor();
  for (const name of ["Scan", "Suggest"]) assert.ok(await page.getByRole("button", { name, exact: true }).isDisabled(), name);
  assert.equal(await page.getByRole("button", { name: /^Undo/ }).count(), 0);
  await shoot(page, "reader-status");
  await page.goto("/training");
  await page.getByRole("button", { name: "Learn", exact: true }).waitFor();
  assert.ok(await page.getByRole("button", { name: "Learn", exact: true }).isDisabled(), "Learn");
  await page.goto("/search");
  await page.getByRole("combobox", { name: "Search" }).waitFor();
  await pause(1000);
  assert.equal((await get("/journal", READ)).entries.length, before, "nothing was changed");
}

await withBrowser(async (browser) => {
  const refusedOnly = (faults) => faults.filter((fault) => !fault.includes(": 401 ") && !fault.includes("MIME type"));
  const wide = await opened(browser, base, WIDE);
  wide.page.setDefaultTimeout(10_000);
  const phone = await opened(browser, base, { ...PHONE, colorScheme: "dark" });
  await phone.page.goto("/");
  await dialog(phone.page).waitFor();
  await shoot(phone.page, "phone-token");
  await give(phone.page, "wrong");
  await dialog(phone.page).getByText("This token is unknown").waitFor();
  assert.deepEqual(await seriousFaults(phone.page, { within: "dialog" }), []);
  assert.ok((await phone.page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, "too wide");
  await shoot(phone.page, "phone-token-wrong");
  const reader = await opened(browser, base, WIDE);
  reader.page.setDefaultTimeout(10_000);
  for (const [name, part, { page, context }] of [["asked for", askedFor, wide], ["expires", expires, wide], ["reads", reads, reader]]) {
    try {
      await part(page, context);
    } catch (error) {
      await shoot(page, "failed");
      throw error;
    }
    console.log(`${name}: ok`);
  }
  await give(phone.page, READ);
  await phone.page.getByText("Read only").waitFor();
  await pause(500);
  assert.ok((await phone.page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, "too wide");
  await shoot(phone.page, "phone-reader");
  await phone.page.goto("/review");
  await phone.page.locator(".review-side .row").first().waitFor();
  await shoot(phone.page, "phone-reader-review");
  for (const { faults } of [wide, phone, reader]) assert.deepEqual(refusedOnly(faults), []);
});
