// Every page on a wide and a phone screen, light and dark: nothing serious for axe, nothing cut off, nothing jumps.
import assert from "node:assert/strict";
import { opened, PHONE, seriousFaults, WIDE } from "./chromium.mjs";

const SMALL = { viewport: { width: 360, height: 740 } };
const ZOOMED = { viewport: { width: 720, height: 450 } }; // 200 %
const MIDDLE = { viewport: { width: 1000, height: 700 } };
/** Screens, the colours each is looked at in, of which the first loads it, and the screens that it becomes afterwards. */
const SCREENS = [[WIDE, ["light", "dark"], [ZOOMED, MIDDLE]], [PHONE, ["dark", "light"], [SMALL]]];
/** Swagger writes its fields beside their names, and no setting of it makes labels of these. */
const SWAGGERS_OWN = ["label", "select-name"];

/** One name without spaces, and it is the most frequent label from now on. */
const LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft".repeat(2);

async function addresses(base) {
  const get = async (path) => (await fetch(`${base}/api/v1${path}`)).json();
  const { items } = await get("/items?k=1000");
  const decisions = items.map((item) => ({ item: item.id, label: LONG, state: "accepted" }));
  await fetch(`${base}/api/v1/decisions`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ decisions }) });
  const [item, often] = [items[0].id, (await get("/facets")).labels];
  const [label, other] = [0, 1].map((at) => encodeURIComponent(often[at].name));
  const pages = ["/", `/?item=${item}`, "/review", "/review?view=grid", `/review?view=grid&label=${other}`, "/search", `/search?text=${label}`, "/training", "/training?compare=1,2", "/training?compare=1,9", "/status", "/?unfit=90", "/docs"];
  return [...pages, `/map?label=${label}`, "/labels", "/labels?label=1", "/labels?view=tree", "/labels?view=proposals"];
}

/** Each address in one page of this screen, as somebody sees it who comes for the first time: nothing is kept of the last one. */
async function lookAtAll(browser, base, addresses, screen, colours, others) {
  const { context, page, faults } = await opened(browser, base, screen);
  const cdp = await context.newCDPSession(page);
  await cdp.send("Network.setCacheDisabled", { cacheDisabled: true });
  await page.addInitScript(() => {
    if (location.protocol === "about:") return;
    localStorage.clear();
    sessionStorage.clear();
    window.shifted = 0;
    new PerformanceObserver((list) => list.getEntries().forEach((e) => (window.shifted += e.hadRecentInput ? 0 : e.value))).observe({ type: "layout-shift", buffered: true });
  });
  for (const address of addresses) {
    await page.goto("about:blank");
    faults.length = 0;
    await look(page, faults, address, screen, colours, others);
  }
  await context.close();
}

async function look(page, faults, address, screen, colours, others) {
  const swagger = address === "/docs";
  await page.setViewportSize(screen.viewport);
  await page.emulateMedia({ colorScheme: colours[0] });
  await page.goto(address);
  await page.waitForLoadState("networkidle");
  if (swagger) await page.locator(".swagger-ui .opblock").first().waitFor();
  await page.waitForTimeout(200);
  for (const colorScheme of colours) {
    await shown(page, colorScheme, swagger);
    const isNew = screen === WIDE || colorScheme === colours[0]; // the other colours are those of the wide screen
    if (isNew) assert.deepEqual(await seriousFaults(page), [], `${address} at ${screen.viewport.width} pixels, ${colorScheme}`);
    await fits(page, faults, address, screen);
    const shifted = await page.evaluate(() => window.shifted);
    if (!swagger) assert.ok(shifted < 0.1, `${address}, ${colorScheme}: what is seen jumps (${shifted.toFixed(3)})`);
  }
  for (const other of others) {
    await page.setViewportSize(other.viewport);
    await shown(page, colours[1], swagger);
    await fits(page, faults, address, other);
  }
  if (swagger && screen === WIDE) await operations(page, colours);
}

/** Nothing went wrong, nothing is cut off, and nothing has to be moved sideways. */
async function fits(page, faults, address, screen) {
  const where = `${address} at ${screen.viewport.width} pixels`;
  assert.deepEqual(faults, [], where);
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, `${where}: too wide`);
  const sideways = await page.evaluate(() =>
    [...document.querySelectorAll("*")]
      .filter((one) => one.clientWidth > 1 && one.scrollWidth > one.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(one).overflowX))
      .map((one) => one.className),
  );
  if (address !== "/docs") assert.deepEqual(sideways, [], `${where}: these have to be moved sideways`);
}

/** The page in these colours, when none of them fades any longer; Swagger takes them by a script. */
async function shown(page, colorScheme, swagger) {
  await page.emulateMedia({ colorScheme });
  await page.waitForTimeout(200);
  const dark = swagger && colorScheme === "dark";
  await page.waitForFunction((dark) => document.documentElement.classList.contains("dark-mode") === dark, dark);
  await page.waitForFunction(() => document.getAnimations().every((one) => one.playState !== "running" || one.effect?.getComputedTiming().endTime === Infinity));
}

/** Swagger's operations opened, with their fields. */
async function operations(page, colours) {
  for (const method of ["get", "post", "delete"]) {
    const one = page.locator(`.opblock-${method}`).first();
    await one.locator(".opblock-summary-control").click();
    await one.getByRole("button", { name: "Try it out" }).click();
    await one.getByRole("button", { name: "Execute" }).waitFor();
  }
  for (const colorScheme of colours) {
    await shown(page, colorScheme, true);
    assert.deepEqual(await seriousFaults(page, { without: SWAGGERS_OWN }), [], `operations, ${colorScheme}`);
  }
}

/** An answer that no page expects leaves the frame as it is, and the other pages. */
async function brokenPage(browser, base) {
  const { context, page } = await opened(browser, base, WIDE);
  await page.route("**/api/v1/labels/1", (route) => route.fulfill({ json: {} }));
  await page.goto("/labels?label=1");
  await page.getByRole("alert").getByText(/This page could not be shown .*Your decisions are kept/).waitFor();
  await page.getByRole("link", { name: "Gallery" }).click();
  await page.locator('[data-at="0"]').waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  // A service that was away is asked again.
  await page.route("**/api/v1/models*", (route) => route.abort());
  await page.goto("/training");
  await page.getByRole("alert").getByText("the service cannot be reached").first().waitFor();
  await page.unroute("**/api/v1/models*");
  await page.getByRole("alert").waitFor({ state: "detached" });
  await context.close();
}

export async function everyPage(browser, base) {
  await brokenPage(browser, base);
  const pages = await addresses(base);
  await Promise.all(SCREENS.map((screen) => lookAtAll(browser, base, pages, ...screen)));
}
