// A user's way through all pages of a running service: node tests/flow.mjs http://127.0.0.1:8420 PICTURE [FOLDER FOR SCREENSHOTS]
// The collection has tags and no model yet. What went wrong is printed, and the exit code is 1.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { everyPage } from "./every-page.mjs";
import { labelsOf } from "./flow-labels.mjs";
import { opened, PHONE, seriousFaults, WIDE, withBrowser } from "./chromium.mjs";

const [base, picture, folder] = process.argv.slice(2);
if (folder) mkdirSync(folder, { recursive: true });

const get = async (path) => {
  const ask = () => fetch(`${base}/api/v1${path}`);
  return (await ask().catch(ask)).json(); // a kept connection that the service has just closed fails once
};
const shoot = async (page, name) => folder && page.screenshot({ path: join(folder, `${name}.png`) });
const eventually = async (what, told) => {
  for (let i = 0; i < 600; i += 1) {
    if (await what()) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  assert.fail(`never came: ${told}`);
};
const stateOf = async (item, label) =>
  (await get(`/items/${item}`)).annotations.find((a) => a.label === label && !a.region)?.state ?? null;

async function learns(page) {
  await page.goto("/review");
  await page.getByText("Nothing is suggested yet").waitFor();
  await page.goto("/status");
  await page.getByRole("button", { name: "Scan" }).click();
  await page.getByText(/Looking for files: done/).waitFor();
  await page.getByRole("link", { name: "Learn", exact: true }).click();
  await page.getByText("There is no model in use yet.").waitFor();
  await page.getByRole("button", { name: "Learn", exact: true }).click();
  await page.locator(".job.running progress").waitFor();
  await page.getByRole("heading", { name: "The training that runs" }).waitFor();
  await page.getByRole("img", { name: /^MAP on held-out pictures: / }).waitFor({ timeout: 240_000 });
  await shoot(page, "learning");
  await page.getByRole("heading", { name: "How model 1 was trained" }).waitFor({ timeout: 240_000 });
  await page.goto("/status");
  await page.getByText(/^Number 1, learned from everything/).waitFor();
  await shoot(page, "status");
}

/** What was reviewed is learned; then both models are compared, and the first is in use again. */
async function training(page) {
  await page.goto("/training");
  await page.getByText(/^(\d+ decisions are|1 decision is) not learned yet/).waitFor();
  assert.ok((await get("/models")).forecast.decisions > 0);
  await page.getByRole("spinbutton", { name: "Epochs" }).fill("0");
  assert.ok(await page.getByRole("button", { name: "Learn", exact: true }).isDisabled());
  await page.getByRole("spinbutton", { name: "Epochs" }).fill("3");
  await page.getByRole("checkbox", { name: "Use it even if it does worse" }).check();
  await page.getByRole("button", { name: "Learn", exact: true }).click();
  await page.getByRole("heading", { name: "How model 2 was trained" }).waitFor({ timeout: 240_000 });
  await page.getByText("As a table").click();
  const { curve } = await get("/models/2");
  assert.equal(curve.length, 3);
  assert.equal(await page.getByRole("rowheader").count(), 3);
  for (const number of [1, 2]) await page.getByRole("checkbox", { name: `Compare model ${number}` }).check();
  assert.match(page.url(), /compare=1%2C2/);
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.getByText(/^(It cannot be said which is better|Model 2 does (better|worse) than model 1): /).waitFor({ timeout: 60_000 });
  await shoot(page, "training");
  await page.getByRole("button", { name: "Back to model 1" }).click();
  await eventually(async () => (await get("/models")).models.find((m) => m.in_use).id === 1, "the first model in use again");
  await page.getByRole("button", { name: "Use model 2" }).click();
  await eventually(async () => (await get("/models")).models.find((m) => m.in_use).id === 2, "the second model in use");
  const prepare = page.getByRole("button", { name: "Prepare free words" });
  await prepare.click();
  await page.getByText(/^Suggesting(: done| failed: .*pip install)/).waitFor({ timeout: 120_000 }); // the extra `words` is needed
  if ((await get("/models")).models.some((m) => m.method === "zero-shot")) await prepare.waitFor({ state: "detached" });
  await page.goto("/training?compare=1,9&model=9");
  await page.getByText("There is no model 9 here. Choose two of the models above.").waitFor();
  await page.getByText("There is no model 9 here.", { exact: true }).waitFor();
  await page.getByRole("checkbox", { name: "Compare model 2" }).check();
  await page.getByRole("heading", { name: "Model 2 beside model 1" }).waitFor();
}

async function gallery(page) {
  await page.goto("/");
  const { total } = await get("/items?k=1");
  await page.getByRole("heading", { name: `${total} pictures` }).waitFor();
  await page.route("**/thumbnail?*", (route) => route.abort());
  await page.reload();
  await page.getByRole("gridcell").first().getByText("cannot be shown").waitFor();
  await page.unroute("**/thumbnail?*");
  await page.reload();
  await page.locator('[data-at="0"]').focus();
  await page.keyboard.press("x");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Shift+ArrowRight");
  await page.locator('[data-at="4"]').click({ modifiers: ["Control"] });
  await page.getByText("3 pictures", { exact: true }).waitFor();
  const keepsFocus = await page.locator(".tag-bar input").evaluate(async (field) => {
    document.querySelector('[data-at="5"]').dispatchEvent(new MouseEvent("click", { bubbles: true, ctrlKey: true }));
    await null; // the pages have answered the click
    field.focus();
    for (let i = 0; i < 4; i += 1) await new Promise(requestAnimationFrame);
    return field === document.activeElement;
  });
  assert.ok(keepsFocus, "a field that is chosen right after a click keeps the focus");
  await page.locator('[data-at="5"]').click({ modifiers: ["Control"] });
  await page.getByText("3 pictures", { exact: true }).waitFor();
  await page.keyboard.press("t");
  await page.keyboard.type("our own");
  await page.keyboard.press("Enter");
  await eventually(async () => (await get("/items?label=our%20own")).total === 3, "three tagged pictures");
  await shoot(page, "gallery");
  await page.locator('[data-at="0"]').focus();
  await page.keyboard.press("z");
  await eventually(async () => !(await get("/items?label=our%20own")).total, "the tags taken back");

  await page.keyboard.press("f");
  const { labels } = await get("/facets");
  await page.getByRole("combobox", { name: "Filter by label" }).fill(labels[0].name.slice(0, 3));
  await page.getByRole("option", { name: labels[0].name, exact: true }).first().click();
  await page.getByRole("heading", { name: new RegExp(`^${labels[0].accepted} picture`) }).waitFor();
  assert.match(page.url(), /label=/);
  await shoot(page, "filters");
  await page.locator('[data-at="0"]').click();
  await page.getByRole("dialog").getByText(labels[0].name, { exact: true }).first().waitFor();
  await shoot(page, "item");
  await page.goBack();
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  assert.match(page.url(), /label=/, "going back closes the picture and keeps the filter");
  await page.locator('[data-at="1"]').focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.activeElement?.getAttribute("data-at") === "1"); // where the keys were before

  await page.goto("/?untagged=1");
  const untagged = (await get("/items?unlabelled=true&k=1000")).items.length;
  await page.getByRole("heading", { name: `${untagged} pictures` }).waitFor();
  await page.locator('[data-at="0"]').focus();
  for (const key of ["x", "t"]) await page.keyboard.press(key);
  await page.keyboard.type("our own");
  await page.keyboard.press("Enter");
  await eventually(async () => (await get("/items?label=our%20own")).total === 1, "a tagged picture");
  await page.getByRole("link", { name: "Search" }).click();
  await page.goBack();
  await page.getByRole("heading", { name: `${untagged - 1} pictures` }).waitFor();
  await page.keyboard.press("z");
  await eventually(async () => !(await get("/items?label=our%20own")).total, "the tag taken back");
  await page.keyboard.press("/");
  await page.keyboard.type("b/");
  await page.keyboard.press("Enter");
  await page.waitForURL(/words=b/);
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Filter by words");

  await page.goto("/?unfit=95");
  const unfit = await get("/items?no_tag_fits=0.95&k=1000");
  assert.ok(unfit.total > 0 && unfit.items.every((item) => item.state === "present"));
  await page.getByRole("heading", { name: new RegExp(`^${unfit.total} picture`) }).waitFor();
  await page.getByRole("button", { name: "Filters (1)" }).click();
  await page.getByRole("button", { name: "95 %", pressed: true }).waitFor();
  await shoot(page, "no-tag-fits");
  await page.getByRole("group", { name: "No tag fits" }).getByRole("button", { name: "Any" }).click();
  await page.getByRole("heading", { name: `${total} pictures` }).waitFor();
}

/** A part of a picture is tagged, which is said over the picture and shown beside it; then it is taken back. */
async function region(page) {
  const { id } = (await get("/items?k=1")).items[0];
  await page.goto(`/?item=${id}`);
  await page.getByRole("button", { name: "Box" }).click();
  const frame = await page.locator(".frame .drawing").boundingBox();
  await page.mouse.move(frame.x + frame.width * 0.2, frame.y + frame.height * 0.2);
  await page.mouse.down();
  await page.mouse.move(frame.x + frame.width * 0.7, frame.y + frame.height * 0.7, { steps: 4 });
  await page.mouse.up();
  await page.locator(".region-panel .decision").first().click();
  const told = page.getByRole("dialog").getByText(/^The box is tagged /);
  await told.waitFor();
  await page.getByRole("heading", { name: "In regions" }).waitFor();
  await shoot(page, "region");
  await page.keyboard.press("z");
  await page.getByRole("heading", { name: "In regions" }).waitFor({ state: "detached" });
}

/** A label that is typed fast is the one that is meant, and not the first of those that were proposed before. */
async function typedFast(page) {
  const { name: label } = (await get("/facets")).labels.find((one) => one.open_suggestions > 0);
  await page.goto("/review");
  const field = page.getByRole("combobox", { name: "Label", exact: true });
  await field.click();
  await page.getByRole("option").first().waitFor();
  await field.press("Enter");
  assert.equal(new URL(page.url()).search, "", "nothing is chosen by Enter alone");
  await field.pressSequentially(label);
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.searchParams.get("label") === label);
}

/** An address that is not a page, within the pages, and a page while the service is away: both say so, and there is a way back. */
async function nowhere(page, context) {
  await page.goto("/review");
  await page.evaluate(() => {
    history.pushState(null, "", "/nowhere");
    dispatchEvent(new PopStateEvent("popstate"));
  });
  await page.getByRole("heading", { name: "Unknown page" }).waitFor();
  assert.equal(await page.title(), "Unknown page · wsabie");
  assert.deepEqual(await seriousFaults(page), []);
  await page.getByRole("button", { name: "Back" }).click();
  await page.getByRole("region", { name: "Review", exact: true }).waitFor();
  await context.setOffline(true);
  await page.getByRole("link", { name: "Map" }).click();
  await page.getByText("the service cannot be reached").waitFor();
  await context.setOffline(false);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator(".map-stage").waitFor();
}

/** An index is offered where it helps, which is not here; asked for all the same, the service says why not. */
async function index(page) {
  await page.goto("/status");
  await page.getByRole("button", { name: "Suggest" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Index" }).count(), 0);
  const facts = await get("/collection");
  await page.route("**/api/v1/collection", (route) => route.fulfill({ json: { ...facts, index: { ...facts.index, state: "none" } } }));
  await page.reload();
  await page.getByRole("button", { name: "Index" }).click();
  await page.getByText(/^failed: /).waitFor({ timeout: 60_000 });
  assert.match(await page.locator(".job").first().textContent(), /an index of \d+ vectors saves no time|faiss/);
  await page.unroute("**/api/v1/collection");
}

async function review(page, context) {
  await page.goto("/review");
  const rows = page.locator(".review-side .row");
  await rows.first().waitFor();
  const first = (await get("/items?sort=uncertainty&descending=true&k=1")).items[0].id;
  const names = await rows.locator(".row-name").allTextContents();
  await page.keyboard.press("1");
  await page.keyboard.press("Shift+Digit2");
  await eventually(async () => (await stateOf(first, names[0])) === "accepted", "the first label accepted");
  await eventually(async () => (await stateOf(first, names[1])) === "rejected", "the second label rejected");
  await page.keyboard.press("z");
  await eventually(async () => (await stateOf(first, names[1])) === null, "the second label open again");
  await rows.nth(0).hover();
  await page.locator(".heat.loaded").waitFor({ timeout: 20_000 });
  await shoot(page, "review");

  await context.setOffline(true);
  await page.keyboard.press("Shift+Digit2");
  await page.getByRole("button", { name: "Offline: 1 decision kept" }).waitFor();
  await shoot(page, "offline");
  await page.keyboard.press("ArrowRight");
  assert.equal(await stateOf(first, names[1]), null);
  await context.setOffline(false);
  await eventually(async () => (await stateOf(first, names[1])) === "rejected", "what was decided offline");

  await page.keyboard.press("?");
  await page.getByText("Reject that label").waitFor();
  await page.keyboard.press("Escape");
  const label = (await get("/facets")).labels.reduce((a, b) => (b.open_suggestions > a.open_suggestions ? b : a)).name;
  const named = encodeURIComponent(label);
  await page.goto(`/review?view=grid&label=${named}&order=best_probability`);
  await page.locator('[data-at="0"]').focus();
  const { items } = await get(`/items?label=${named}&label_state=suggested&sort=probability&descending=true&k=100`);
  const one = items[0];
  const two = items.find((item) => item !== one && !one.burst.includes(item.id)); // the next card
  await page.keyboard.press("a");
  await page.keyboard.press("r");
  await eventually(async () => (await stateOf(one.id, label)) === "accepted", "accepted in the grid");
  await eventually(async () => (await stateOf(two.id, label)) === "rejected", "rejected in the grid");
  await shoot(page, "review-grid");
  await ownLimits(page, label);
  await page.getByRole("button", { name: /Accept all above/ }).click();
  await page.getByRole("button", { name: "90 % right: from 37 %", pressed: true }).waitFor();
  await page.getByRole("slider").fill("20");
  const { count } = await get(`/suggestions/count?label=${named}&min_probability=0.2`);
  await page.getByRole("button", { name: new RegExp(`^Accept ${count} suggestion`) }).waitFor();
  await shoot(page, "above");
  await page.getByRole("button", { name: /^Accept \d+ suggestion/ }).click();
  await eventually(async () => (await get(`/suggestions/count?label=${named}&min_probability=0.2`)).count === 0, "all accepted");
}

/** From now on the service says of a label that it has a threshold of its own. */
async function ownLimits(page, label) {
  const { id } = (await get("/facets")).labels.find((one) => one.name === label);
  await page.route(`**/api/v1/labels/${id}`, async (route) => {
    const response = await route.fetch();
    const told = await response.json();
    const thresholds = [{ precision: 0.9, probability: 0.365, is_label_specific: true }];
    await route.fulfill({ response, json: { ...told, evaluation: { ...told.evaluation, thresholds } } });
  });
}

/** A file let go over the page, as a browser tells of it. */
async function drop(page, file) {
  const content = readFileSync(file).toString("base64");
  const carried = await page.evaluateHandle((given) => {
    const carried = new DataTransfer();
    carried.items.add(new File([Uint8Array.from(atob(given), (c) => c.charCodeAt(0))], "dropped.webp", { type: "image/webp" }));
    return carried;
  }, content);
  const place = page.getByRole("region", { name: "Search", exact: true });
  for (const kind of ["dragenter", "dragover", "drop"]) await place.dispatchEvent(kind, { dataTransfer: carried });
}

async function search(page) {
  await page.goto("/search");
  const { labels } = await get("/facets");
  await page.getByRole("combobox", { name: "Search" }).fill(`${labels[0].name.slice(0, 3)}`);
  await page.getByRole("option", { name: labels[0].name, exact: true }).first().click();
  await page.keyboard.press("Enter");
  await page.locator(".result-grid .tile").first().waitFor();
  assert.match(page.url(), /text=/);
  await shoot(page, "search");
  await page.getByRole("button", { name: "Filters", exact: true }).click();
  const filtered = page.waitForResponse((r) => r.url().includes("/search?") && r.url().includes("unlabelled=true"));
  await page.getByRole("checkbox", { name: "Without any tag" }).check();
  assert.equal((await filtered).status(), 200);
  await shoot(page, "search-filters");
  await page.getByRole("checkbox", { name: "Without any tag" }).uncheck();
  await page.getByLabel("Search with a picture").setInputFiles(picture);
  await page.locator(".by-picture .result-grid .tile").first().waitFor();
  await page.goBack();
  await page.locator(".by-picture").waitFor({ state: "detached" });
  const sent = page.waitForResponse((r) => r.url().includes("/search/picture"));
  await drop(page, picture);
  assert.equal((await sent).status(), 200);
  await page.locator(".by-picture .result-grid .tile").first().waitFor();
  const frame = await page.locator(".by-picture .drawing").boundingBox();
  await page.mouse.move(frame.x + frame.width * 0.2, frame.y + frame.height * 0.2);
  await page.mouse.down();
  await page.mouse.move(frame.x + frame.width * 0.8, frame.y + frame.height * 0.7, { steps: 4 });
  const asked = page.waitForResponse((r) => r.url().includes("region="));
  await page.mouse.up();
  assert.equal((await asked).status(), 200);
  await page.getByText("Only the box counts.").waitFor();
  await shoot(page, "search-picture");
  await page.goBack();
  await page.locator(".result-grid .tile").first().waitFor();
}

/** Where items are on the screen while the whole map is seen, as the page has it from the service. */
async function placesOnScreen(page) {
  const bytes = await (await fetch(`${base}/api/v1/map/points`)).arrayBuffer();
  const n = new DataView(bytes).getUint32(0, true);
  const [steps, at] = [new Uint32Array(bytes, 4, n), new Uint16Array(bytes, 4 + 4 * n)];
  const box = await page.locator(".map-stage").boundingBox();
  const scale = (0.9 * Math.min(box.width, box.height)) / 65535;
  let id = 0;
  return [...steps].map((step, i) => ({
    id: (id += step),
    x: box.x + box.width / 2 + (at[2 * i] - 65535 / 2) * scale,
    y: box.y + box.height / 2 + (65535 / 2 - at[2 * i + 1]) * scale,
  }));
}

/** Whether something is drawn at a place: it has not the colour of the map's corner. */
async function drawnAt(page, { x, y }) {
  const shot = `data:image/png;base64,${(await page.screenshot()).toString("base64")}`;
  const box = await page.locator(".map-stage").boundingBox();
  return page.evaluate(
    async ([shot, x, y, cornerX, cornerY]) => {
      const image = new Image();
      image.src = shot;
      await image.decode();
      const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
      pen.drawImage(image, 0, 0);
      const at = (px, py) => [...pen.getImageData(Math.round(px), Math.round(py), 1, 1).data].join();
      return at(x, y) !== at(cornerX, cornerY);
    },
    [shot, x, y, box.x + 3, box.y + box.height - 3],
  );
}

async function map(page) {
  await page.goto("/map");
  await page.locator('.map-stage[data-drawn-by="canvas"]').waitFor(); // there is no card here
  const { items } = await get("/items?k=1000");
  await page.getByRole("heading", { name: `${items.length} pictures` }).waitFor();
  await page.waitForLoadState("networkidle");
  const places = await placesOnScreen(page);
  assert.deepEqual(places.map((p) => p.id).sort((a, b) => a - b), items.map((i) => i.id).sort((a, b) => a - b));
  const lonely = (p) => Math.min(...places.filter((q) => q !== p).map((q) => Math.hypot(p.x - q.x, p.y - q.y)));
  const around = (p) => [...Array(16).keys()].map((i) => ({ x: p.x + 30 * Math.cos(i), y: p.y + 30 * Math.sin(i) }));
  const one = places.reduce((a, b) => (lonely(b) > lonely(a) ? b : a));
  assert.ok(await drawnAt(page, one), "a point that is drawn");
  const beside = around(one).reduce((a, b) => (lonely(b) > lonely(a) ? b : a));
  assert.ok(!(await drawnAt(page, beside)), "nothing beside it");

  const name = items.find((i) => i.id === one.id).path.split("/").at(-1);
  await page.mouse.move(one.x, one.y);
  await page.locator(".map-card").getByText(name).waitFor();
  await page.locator(".map-card img").waitFor();
  await shoot(page, "map-hover");
  await page.mouse.click(one.x, one.y);
  await page.getByRole("dialog", { name }).waitFor();
  await page.goBack();

  const left = places.toSorted((a, b) => a.x - b.x).slice(0, 20);
  const edge = (left.at(-1).x + places.toSorted((a, b) => a.x - b.x)[20].x) / 2;
  const box = await page.locator(".map-stage").boundingBox();
  const corners = [[box.x + 2, box.y + 2], [edge, box.y + 2], [edge, box.y + box.height - 2], [box.x + 2, box.y + box.height - 2]];
  await page.keyboard.down("Shift");
  await page.mouse.move(...corners[0]);
  await page.mouse.down();
  for (const corner of corners.slice(1)) await page.mouse.move(...corner, { steps: 8 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await page.getByText("20 pictures", { exact: true }).waitFor();
  await shoot(page, "map-lasso");
  await page.keyboard.press("t");
  await page.keyboard.type("on the left");
  await page.keyboard.press("Enter");
  await eventually(async () => (await get("/items?label=on%20the%20left")).total === 20, "what was outlined, tagged");
  const tagged = (await get("/items?label=on%20the%20left")).items.map((i) => i.id);
  assert.deepEqual(tagged.sort((a, b) => a - b), left.map((p) => p.id).sort((a, b) => a - b));

  await page.getByRole("combobox", { name: "Colour by a label" }).fill("on the left");
  await page.getByRole("option", { name: "on the left", exact: true }).click();
  await page.getByText("20 accepted").waitFor();
  await shoot(page, "map-colour");
  await page.getByRole("button", { name: "No colours" }).click();
  await page.getByRole("button", { name: "Gallery" }).click();
  await page.getByRole("heading", { name: "20 pictures" }).waitFor();
  await page.goBack();
  await page.locator(".map-stage").focus();
  await page.keyboard.press("Escape");
  await page.keyboard.press("0");
  await page.keyboard.press("+");
  await page.keyboard.press("x");
  await page.getByText("1 picture", { exact: true }).waitFor();
  await page.keyboard.press("w");
  await page.getByRole("complementary", { name: "The map in words" }).getByRole("button", { name: /^Open / }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("z");
  await eventually(async () => !(await get("/items?label=on%20the%20left")).total, "the tag taken back");
}

/** The same map by WebGL, where the page does not know that there is no card behind it. */
async function mapByCard(browser) {
  const { context, page, faults } = await opened(browser, base, WIDE);
  await page.addInitScript(() => {
    WebGL2RenderingContext.prototype.getExtension = () => null;
  });
  await page.goto("/map");
  const by = await page.locator(".map-stage").getAttribute("data-drawn-by");
  await page.waitForLoadState("networkidle");
  const places = await placesOnScreen(page);
  const left = places.reduce((a, b) => (b.x < a.x ? b : a));
  await eventually(() => drawnAt(page, left), `a point that is drawn by ${by}`);
  assert.ok(!(await drawnAt(page, { x: left.x - 20, y: left.y })), "nothing beside it");
  assert.deepEqual(faults, []);
  console.log(`map drawn by ${by}: ok`);
  await context.close();
}

await withBrowser(async (browser) => {
  const { context, page, faults } = await opened(browser, base, WIDE);
  page.setDefaultTimeout(60_000);
  for (const part of [learns, gallery, region, nowhere, typedFast, review, search, labelsOf(base, { get, eventually, shoot }), map, training, index]) {
    const begun = Date.now();
    try {
      await part(page, context);
    } catch (error) {
      await shoot(page, "failed");
      throw error;
    }
    console.log(`${part.name}: ${((Date.now() - begun) / 1000).toFixed(1)} s`);
  }
  assert.deepEqual(faults.filter((fault) => !/another label is called|labels are not deleted here|is undone already/.test(fault)), []); // which were asked for, or sent again after a page was left
  await mapByCard(browser);
  await everyPage(browser, base);
  console.log("every page: ok");
});
