// The walk through the page of labels: looking, editing, merging, the tree, proposals.
import assert from "node:assert/strict";

const NAMES = ["sea gull", "sea-gull", "Möwenvogel", "bird of the sea"];

export function labelsOf(base, { get, eventually, shoot }) {
  const post = async (path, body) =>
    (await fetch(`${base}/api/v1${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })).json();
  const found = async (start) => (await get(`/labels?prefix=${encodeURIComponent(start)}`)).labels[0];

  /** A label that is deleted with its tags, after a question, and put back. */
  async function deletes(page, label) {
    const there = "delete" in (await (await fetch(`${base}/openapi.json`)).json()).paths["/api/v1/labels/{label}"];
    const asked = [];
    await page.route(`**/api/v1/labels/${label.id}?*`, async (route) => {
      asked.push(`${route.request().method()} ${new URL(route.request().url()).search}`);
      if (there) await route.continue();
      else await route.fulfill({ status: 409, json: { detail: "labels are not deleted here" } });
    });
    await page.goto(`/labels?label=${label.id}`);
    await page.getByRole("button", { name: "Delete label …" }).click();
    const question = page.getByRole("dialog", { name: `Delete “${label.name}”?` });
    await question.getByText(/^2 pictures have this tag\. /).waitFor();
    await shoot(page, "label-delete");
    await question.getByRole("button", { name: "Cancel" }).click();
    assert.deepEqual(asked, []);
    await page.getByRole("button", { name: "Delete label …" }).click();
    await question.getByRole("button", { name: "Delete label" }).click();
    await eventually(() => asked.length === 1, "the request");
    assert.deepEqual(asked, ["DELETE ?with_tags=true"]);
    if (!there) await question.getByText("labels are not deleted here").waitFor();
    else {
      await page.getByRole("heading", { name: "Choose a label" }).waitFor();
      await eventually(async () => (await found(label.name))?.name !== label.name, "no such label");
      await page.keyboard.press("z");
      await eventually(async () => (await found(label.name))?.name === label.name, "the label back");
    }
    await page.unroute(`**/api/v1/labels/${label.id}?*`);
  }

  return async function labels(page) {
    const decisions = NAMES.flatMap((label, i) => [1, 2, 3].slice(0, 4 - i).map((item) => ({ item, label, state: "accepted" })));
    await post("/decisions", { decisions });
    const gull = await found(NAMES[0]);

    const wide = page.viewportSize();
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto("/labels?view=tree");
    await page.getByRole("heading", { name: "No label is below another yet" }).waitFor();
    await shoot(page, "tree-empty-phone");
    await page.setViewportSize(wide);
    await page.goto("/labels");
    const { total, labels } = await get("/vocabulary?k=1");
    await page.getByText(`${total.toLocaleString("en")} labels`).waitFor();
    await page.locator(".label-row").first().click();
    await page.getByRole("heading", { name: labels[0].name }).waitFor();
    await page.locator(".label-neighbours li").first().waitFor();
    await page.locator(".label-pictures img").first().waitFor();
    await shoot(page, "label");
    await page.keyboard.press("j");
    const second = (await get("/vocabulary?k=2")).labels[1];
    await page.getByRole("heading", { name: second.name }).waitFor();
    await page.keyboard.press("k");
    await page.getByRole("heading", { name: labels[0].name }).waitFor();

    await page.keyboard.press("/");
    await page.keyboard.type("SEA gull");
    await page.keyboard.press("Enter");
    await page.getByText("2 labels", { exact: true }).waitFor();
    await page.getByRole("option", { name: "sea gull" }).click();
    const form = page.getByRole("form", { name: "Edit" });
    await form.getByLabel("Name").fill(labels[0].name);
    await form.getByRole("button", { name: "Save" }).click();
    await page.getByText(/^another label is called/).waitFor();
    await form.getByLabel("Name").fill("gull");
    await form.getByLabel(/Language/).fill("en");
    await form.getByRole("combobox", { name: "Below which label" }).fill("bird of");
    await page.getByRole("option", { name: "bird of the sea" }).click();
    await form.getByRole("button", { name: "Save" }).click();
    await eventually(async () => (await get(`/labels/${gull.id}`)).parent === "bird of the sea", "a parent");
    assert.deepEqual((await get(`/labels/${gull.id}`)).synonyms, ["sea gull"]);
    await page.getByRole("button", { name: "bird of the sea" }).waitFor();
    await form.getByLabel("Name").fill("not saved yet");
    await page.getByLabel("Another name").fill("goéland");
    await page.getByRole("textbox", { name: "Language", exact: true }).fill("fr");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("French").waitFor();
    assert.equal(await form.getByLabel("Name").inputValue(), "not saved yet", "what is being typed stays when something else is changed");
    await form.getByRole("button", { name: "Reset" }).click();
    await page.getByRole("button", { name: "No longer call it goéland" }).click();
    await page.getByText("French").waitFor({ state: "detached" });
    for (const names of [1, 0]) {
      await page.keyboard.press("z");
      await eventually(async () => (await get(`/labels/${gull.id}`)).names.filter((n) => n.language === "fr").length === names, "an undone name");
    }

    await page.keyboard.press("m");
    await page.keyboard.type("Möwenv");
    await page.getByRole("option", { name: "Möwenvogel" }).click();
    await page.getByRole("button", { name: "Merge", exact: true }).click();
    await page.getByRole("heading", { name: "Möwenvogel" }).waitFor();
    await eventually(async () => (await found("gull")).name === "Möwenvogel", "a merged label");
    await page.locator(".label-detail h2").click();
    await page.keyboard.press("z");
    await eventually(async () => (await found("gull")).name === "gull", "the label back");

    await page.getByRole("button", { name: "Tree" }).click();
    await page.getByRole("treeitem", { name: /bird of the sea/ }).focus();
    await page.keyboard.press("ArrowRight");
    await page.getByRole("treeitem", { name: /gull/ }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "gull" }).waitFor();
    await shoot(page, "tree");
    await page.keyboard.press("z"); // the form: its name as well
    await eventually(async () => (await get(`/labels/${gull.id}`)).name === "sea gull", "the old name");

    await page.getByRole("button", { name: "Proposals" }).click();
    await page.getByRole("button", { name: "Compare labels" }).click();
    await page.locator(".proposal h2").waitFor({ timeout: 60_000 });
    const left = async () => (await get("/labels/proposals?k=1")).total;
    const before = await left();
    const at = (await get("/labels/proposals?k=100")).proposals.findIndex((one) => one.target.name === "sea gull");
    assert.ok(at >= 0, "the two gulls are proposed");
    for (let i = 0; i < at; i += 1) await page.keyboard.press("j");
    await page.getByRole("radio", { name: /^sea-gull/ }).click();
    await page.locator(".proposal h2").click();
    await shoot(page, "proposals");
    await page.keyboard.press("a");
    await eventually(async () => await left() === before - 1, "a proposal accepted");
    assert.equal((await found("sea gull")).name, "sea-gull", "the one that was chosen stays");
    await page.keyboard.press("z");
    await eventually(async () => await left() === before, "the proposal back");
    await page.getByRole("radio", { name: /^sea gull/ }).waitFor();
    await page.keyboard.press("x");
    await eventually(async () => await left() === before - 1, "kept apart");
    assert.equal((await get(`/labels/${gull.id}`)).merge_exclusions[0].name, "sea-gull");
    await deletes(page, await found("Möwenvogel"));
  };
}
