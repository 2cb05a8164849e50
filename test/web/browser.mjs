// A real browser on the page that KUBEREWIND_PAGE names. What the page must never do is watched on every tab.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const address = (name) => process.env[name]?.replace(/\/$/, "");

export const origin = address("KUBEREWIND_PAGE");
/** clusters is a page of two clusters; the second one's UID is "another". */
export const clusters = address("KUBEREWIND_CLUSTERS");
/** hasty is a page whose server counts for no longer than it must: most answers are not counted to the end. */
export const hasty = address("KUBEREWIND_HASTY");
/** whole is a page whose server has the API of the past, too. */
export const whole = address("KUBEREWIND_WHOLE");
/** api is what a client of that API needs: url, token and ca; and a code. With POST the server is another one first. */
export const api = async (method = "GET") => (await fetch(process.env.KUBEREWIND_WHOLE_CONTROL, { method })).json();
export const patience = 60_000; // of one wait: machines that build other things are slow

/** launch starts a browser. The first start on a busy machine may take minutes. */
export const launch = (more = []) => chromium.launch({ timeout: 5 * patience, executablePath: process.env.KUBEREWIND_CHROMIUM, args: [...flags, ...more], ignoreDefaultArgs: ["--enable-unsafe-swiftshader"] });

/** code asks the test's server for a code, as a link has one. */
export const code = async (from = origin) => (from === whole ? (await api()).code : (await fetch(process.env.KUBEREWIND_CODES)).text());

/** context is a browser of one user. faults collects what must not happen in any of its tabs. refused are the answers that are no fault. */
export async function context(browser, { width = 1280, height = 800, scheme = "dark", from = origin, refused = /status of (401|404)/, timezone } = {}) {
  const made = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, timezoneId: timezone, permissions: ["clipboard-read", "clipboard-write"] }), faults = [];
  made.setDefaultTimeout(patience);
  await made.addInitScript(() => addEventListener("securitypolicyviolation", (e) => console.error(`policy violation: ${e.violatedDirective} ${e.blockedURI}`)));
  made.on("page", (p) => {
    p.on("pageerror", (e) => faults.push(`error: ${e.stack}`));
    p.on("console", (m) => { if (m.type() === "error" && !refused.test(m.text())) faults.push(`console: ${m.text()}`); });
    p.on("request", (r) => { if (new URL(r.url()).origin !== from) faults.push(`request off origin: ${r.url()}`); });
  });
  return { context: made, faults };
}

/** open gives a tab that shows lanes. The first one of a user needs a code. */
export async function open(made, fragment = "", withCode = false, from = origin) {
  const page = await made.newPage(), parts = [withCode ? `code=${await code(from)}` : "", fragment].filter(Boolean).join("&");
  await page.goto(`${from}/${parts ? `#${parts}` : ""}`);
  await page.locator("[role=row]").first().waitFor();
  return page;
}

/** at is the seq in the URL of a page, or null at the end of the record. */
export const at = (page) => page.evaluate(() => /[#&]at=seq:(\d+)/.exec(location.hash)?.[1] ?? null);

/** placeOf is where a time is on the strip. */
export async function placeOf(page, time) {
  const box = await page.locator(".strip-canvas").boundingBox(), [from, to] = await page.evaluate(() => globalThis.kuberewind.span());
  const pad = (to - from) * 0.012, x = ((Date.parse(time) - from + pad) / (to - from + 2 * pad)) * box.width;
  return { x: box.x + x, y: box.y + 30 };
}

/** axe gives what axe-core finds serious or critical. */
export async function axe(page) {
  const source = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await page.evaluate(source);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.map((n) => `${n.html} ${n.failureSummary}`).join("\n")}`);
}

/** settled waits until a page has asked nothing for a while: what is painted is what was answered. */
export async function settled(page) {
  await page.waitForFunction(() => globalThis.kuberewind.idle());
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** hold keeps back what a tab asks at a pattern, until free is called. asked resolves at the first request. */
export async function hold(page, pattern) {
  let begin, free;
  const asked = new Promise((done) => { begin = done; }), freed = new Promise((done) => { free = done; });
  await page.route(pattern, async (route) => {
    begin();
    await freed;
    await route.continue();
  });
  return { asked, free };
}

/** read waits until the page has read what was answered up to now: an answer that is asked for later comes later. */
export async function read(page) {
  await page.evaluate(() => fetch(location.pathname).then((r) => r.text()));
  await settled(page);
}
