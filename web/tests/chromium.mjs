// One headless Chromium for tests and screenshots, with pages that report their own faults.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const EXECUTABLE = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/google-chrome"].find((path) => existsSync(path));
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const WIDE = { viewport: { width: 1440, height: 900 } };
export const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

export async function withBrowser(work) {
  const home = mkdtempSync(join(tmpdir(), "chromium-"));
  const browser = await chromium.launch({ executablePath: EXECUTABLE, args: [...FLAGS, `--disk-cache-dir=${home}`] });
  try {
    return await work(browser);
  } finally {
    await browser.close();
    rmSync(home, { recursive: true, force: true });
  }
}

/** A page, and the list of what went wrong in it: errors in scripts, and whatever its security policy refused. */
export async function opened(browser, base, options = {}) {
  const context = await browser.newContext({ baseURL: base, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) faults.push(message.text());
  });
  page.on("response", async (response) => {
    if (response.status() >= 400) faults.push(`${response.url()}: ${response.status()} ${await response.text().catch(() => "")}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(base) && !/^(data|blob):/.test(request.url())) faults.push(`asked another site: ${request.url()}`);
  });
  return { context, page, faults };
}

/** What axe-core finds that is serious or critical, but for the rules in `without`. Run apart from the page's own scripts,
 * which may not be added to. */
export async function seriousFaults(page, options = {}) {
  const cdp = await page.context().newCDPSession(page);
  const { frameTree } = await cdp.send("Page.getFrameTree");
  const { executionContextId } = await cdp.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  await cdp.send("Runtime.evaluate", { expression: AXE, contextId: executionContextId });
  // A rule's impact is that of all it finds: what is at most moderate would be left out of the answer anyway.
  const run = `axe.run(${JSON.stringify(options.within ?? "body")}, { resultTypes: ["violations"], rules: Object.fromEntries(axe._audit.rules
    .filter((rule) => ["minor", "moderate"].includes(rule.impact) || ${JSON.stringify(options.without ?? [])}.includes(rule.id))
    .map((rule) => [rule.id, { enabled: false }])) }).then((r) => r.violations
    .filter((v) => ["serious", "critical"].includes(v.impact))
    .map((v) => v.id + ": " + v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join(" | ")))`;
  const answer = await cdp.send("Runtime.evaluate", { expression: run, contextId: executionContextId, awaitPromise: true, returnByValue: true });
  await cdp.detach();
  if (answer.exceptionDetails) throw new Error(answer.exceptionDetails.exception?.description ?? "axe failed");
  return answer.result.value;
}
