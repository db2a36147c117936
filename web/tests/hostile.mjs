// Names that are scripts, on every page of a running service: node tests/hostile.mjs http://127.0.0.1:8420 [FOLDER FOR SCREENSHOTS]
// Labels, files, folders and whoever decided are called so; each would set window.hacked, or leave an element behind.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { opened, WIDE, withBrowser } from "./chromium.mjs";

const [base, folder] = process.argv.slice(2);
if (folder) mkdirSync(folder, { recursive: true });
const get = async (path) => (await fetch(`${base}/api/v1${path}`)).json();

/** What of a name has become a part of the page. */
const foreign = (page) =>
  page.evaluate(() => {
    const odd = [...document.querySelectorAll('[onerror], [onload], [onclick], img[src="x"], svg[onload], iframe, object, script:not([src]), base')];
    const links = [...document.querySelectorAll("[href], [src], [action]")].filter((e) => /^\s*(javascript|data:text)/i.test(e.getAttribute("href") ?? e.getAttribute("src") ?? ""));
    return { hacked: window.hacked ?? null, found: [...odd, ...links].map((e) => e.outerHTML.slice(0, 200)) };
  });

await withBrowser(async (browser) => {
  const wrong = [];
  const watched = async () => {
    const { page, faults } = await opened(browser, base, WIDE);
    wrong.push(faults);
    page.setDefaultTimeout(15_000);
    page.on("dialog", (dialog) => {
      faults.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    return page;
  };
  const { labels } = await get("/facets");
  const hostile = labels.filter(({ name }) => name.includes("hacked"));
  assert.ok(hostile.length >= 4, "the collection has hostile labels");
  const [item] = (await get("/items?k=1")).items;
  assert.match(item.path, /hacked/);
  const names = [...hostile.map(({ name }) => name), '"><img src=x onerror=window.hacked=1>', "javascript:window.hacked=1", "%3Cscript%3Ewindow.hacked=1%3C/script%3E"];
  const pages = ["/", `/?item=${item.id}`, "/review", "/status", "/search", "/nothing/<img src=x onerror=window.hacked=1>", "/#<img src=x onerror=window.hacked=1>"];
  for (const name of names) {
    const text = encodeURIComponent(name);
    pages.push(`/?label=${text}`, `/?folder=${text}`, `/?words=${text}`, `/search?text=${text}`, `/review?label=${text}`, `/review?view=grid&label=${text}`);
    pages.push(`/?sort=${text}&item=${text}`, `/docs?url=${text}&configUrl=${text}`);
  }
  const left = [...pages];
  const walked = async () => {
    const page = await watched();
    while (left.length) {
      const address = left.shift();
      await page.goto(address);
      await page.waitForLoadState("networkidle");
      assert.deepEqual(await foreign(page), { hacked: null, found: [] }, address);
    }
    return page;
  };
  const [page] = await Promise.all([walked(), walked(), walked()]); // each waits most of the time
  // What persons see and do with them: completions, messages, the history.
  await page.goto("/?q");
  await page.locator('[data-at="0"]').focus();
  await page.keyboard.press("x");
  await page.keyboard.press("t");
  await page.keyboard.type("<img");
  await page.getByRole("region", { name: "Selection" }).getByRole("option").first().waitFor();
  assert.deepEqual(await foreign(page), { hacked: null, found: [] });
  if (folder) await page.screenshot({ path: join(folder, "hostile-gallery.png") });
  await page.keyboard.press("Escape");
  await page.keyboard.type(' src=x onerror="window.hacked=2">');
  await page.keyboard.press("Enter");
  await page.getByText(/tagged <img src=x/).waitFor();
  assert.deepEqual(await foreign(page), { hacked: null, found: [] });
  for (let i = 0; i < 50 && (await get("/journal?k=1")).entries[0].by !== "local"; i += 1) await page.waitForTimeout(100); // it is sent
  await page.waitForLoadState("networkidle");
  await page.goto("/status");
  await page.getByText(/\+<img src=x/).first().waitFor();
  assert.deepEqual(await foreign(page), { hacked: null, found: [] });
  if (folder) await page.screenshot({ path: join(folder, "hostile-status.png") });
  assert.deepEqual(wrong.flat().filter((fault) => /hacked=|dialog|another site|Refused|Content Security/.test(fault) && !/: 4\d\d /.test(fault)), []);

  // The check itself sees what is put there, and the policy of the pages stops what would run.
  await page.evaluate(() => document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.hacked=1'><a href='javascript:1'>x</a>"));
  await page.waitForTimeout(300);
  const { hacked, found } = await foreign(page);
  assert.deepEqual([hacked, found.length], [null, 2]);
  console.log(`${pages.length} addresses: ok`);
});
