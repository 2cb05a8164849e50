// What happens to a record while the page is open: the page says so, and shows nothing that is gone. And what people and clusters send.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { code, context, hold, launch, open, settled } from "../browser.mjs";

const sites = JSON.parse(process.env.KUBEREWIND_SITES), password = process.env.KUBEREWIND_PASSWORD, evil = process.env.KUBEREWIND_EVIL;
const settings = "resource=configmaps&namespace=shop&name=settings";

/** happen has something happen to the record of a site. */
async function happen(site, what) {
  const answer = await fetch(`${process.env.KUBEREWIND_HAPPEN}/${site}/${what}`, { method: "POST" });
  assert.equal(answer.status, 200, await answer.text());
}

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/** visit gives a tab of a user on a site. */
async function visit(site, fragment = "") {
  const from = sites[site].url.replace(/\/$/, ""), { context: user, faults } = await context(browser, { from, refused: /status of (401|404|410)/ });
  return { user, faults, from, page: await open(user, fragment, true, from) };
}

async function go(page, fragment) {
  await page.evaluate((to) => { location.hash = to; }, fragment);
  await settled(page);
}

/** everything is all that a tab holds on its screen: text, attributes, fields and the draw list. */
const everything = (page) => page.evaluate(() => document.documentElement.outerHTML + [...document.querySelectorAll("input")].map((i) => i.value) + JSON.stringify(globalThis.kuberewind.drawn));
const gone = (page, text) => page.waitForFunction((t) => !document.documentElement.outerHTML.includes(t), text);
const views = ["panel=object&tab=change", "panel=object&tab=yaml", "panel=object&tab=blame", "panel=object&tab=story", "panel=object&tab=versions", "panel=changes", "panel=compare&base=seq:1", "panel=now"];

test("a value that is erased while the page shows it is gone from every view", async (t) => {
  const { user, faults, page } = await visit("erased"), at = `${settings}&at=seq:2`;
  let shown = 0;
  for (const view of views) {
    await go(page, `${at}&${view}`);
    if ((await everything(page)).includes(password)) shown++;
  }
  assert.ok(shown >= 4, `the value was in ${shown} views`);
  await go(page, `${at}&${views[1]}`);
  assert.ok((await everything(page)).includes(password));
  await happen("erased", "erase");
  const erased = performance.now();
  await gone(page, password);
  t.diagnostic(`the value was gone after ${Math.round(performance.now() - erased)} ms`);
  for (let back = 0; back < views.length; back++) {
    await page.goBack();
    await settled(page);
    assert.ok(!(await everything(page)).includes(password), page.url());
  }
  for (const view of views) {
    await go(page, `${at}&${view}`);
    assert.ok(!(await everything(page)).includes(password), view);
  }
  assert.deepEqual(faults, []);
  await user.close();
});

test("a record that is pruned while the page is open begins later, and says so", async () => {
  const { user, faults, page } = await visit("pruned", "panel=changes"), label = () => page.locator(".strip-canvas").getAttribute("aria-label");
  await page.keyboard.press("0");
  await page.getByRole("row").filter({ hasText: "short" }).waitFor();
  await settled(page);
  assert.match(await label(), /2026-03-10 12:00/);
  const drawn = () => page.evaluate(() => globalThis.kuberewind.drawn), before = await drawn();
  await happen("pruned", "prune");
  await page.waitForFunction(() => !document.querySelector(".strip-canvas").getAttribute("aria-label").includes("2026-03-10"));
  await page.waitForFunction(() => globalThis.kuberewind.drawn.hatched.some((h) => h.view === "density" && h.kind === "pruned"));
  await settled(page);
  const after = await drawn(), first = Math.min(...before.strip.map((b) => b.from));
  assert.ok(after.strip.every((b) => b.from > first), "no bar of the day that was dropped");
  assert.equal(await page.getByRole("row").filter({ hasText: "short" }).count(), 0);
  await go(page, `${settings}&at=seq:1`);
  await page.locator(".told.shown, .error").filter({ hasText: "dropped" }).first().waitFor();
  assert.deepEqual(faults, []);
  await user.close();
});

test("a record that is restored from an older copy shows nothing of what came after the copy", async () => {
  for (const fragment of ["panel=changes", `${settings}&at=seq:2&tab=yaml`]) {
    const { user, faults, page } = await visit("setBack", fragment);
    await settled(page);
    await page.getByText("after the copy").first().waitFor();
    await user.close();
    assert.deepEqual(faults, []);
  }
  const live = await visit("setBack", "panel=changes"), past = await visit("setBack", `${settings}&at=seq:2&tab=yaml`), tabs = [live, past];
  for (const { page } of tabs) await page.getByText("after the copy").first().waitFor();
  await happen("setBack", "restore");
  for (const { page } of tabs) await gone(page, "after the copy");
  await past.page.keyboard.press("n");
  await go(live.page, `${settings}&tab=yaml`);
  for (const { page } of tabs) await page.locator(".yaml").getByText("before the copy").first().waitFor();
  for (const { page } of tabs) {
    await settled(page);
    assert.equal(await page.getByRole("row").filter({ hasText: "later" }).count(), 0);
    assert.ok(!(await everything(page)).includes("after the copy"));
  }
  for (const { user } of tabs) await user.close();
});

test("a record that was restored, and has passed its old end since, shows nothing of what came after the copy", async () => {
  const live = await visit("overtaken", "panel=changes"), past = await visit("overtaken", `${settings}&at=seq:2&tab=yaml`), tabs = [live, past], held = [];
  for (const { page } of tabs) {
    await page.getByText("after the copy").first().waitFor();
    await page.waitForResponse((r) => r.url().includes("/tail?head=") || r.url().includes("&head=")); // It knows a commit.
    held.push(await hold(page, "**/timeline/v1/tail?*"));
  }
  for (const h of held) await h.asked;
  await happen("overtaken", "restore");
  for (const h of held) h.free();
  for (const { page } of tabs) await gone(page, "after the copy");
  await live.page.locator(".changes").getByText("of the other history").first().waitFor();
  for (const { page } of tabs) assert.ok(!(await everything(page)).includes("after the copy"));
  for (const { user } of tabs) await user.close();
});

test("a database that is gone is said, and the page goes on by itself when it is back", async () => {
  const { user, page } = await visit("away", settings), away = page.locator(".badge.bad", { hasText: "the database does not answer" });
  await settled(page);
  await happen("away", "go");
  await away.waitFor();
  await page.keyboard.press("y");
  await page.keyboard.press("w");
  await settled(page);
  await happen("away", "return");
  await away.waitFor({ state: "detached" });
  await page.locator(".changes").getByText("plain").first().waitFor();
  await page.keyboard.press("y");
  await page.locator(".yaml").getByText("plain").first().waitFor();
  await settled(page);
  assert.equal(await page.locator(".error").count(), 0);
  await user.close();
});

test("a recorder that ended, was killed, begins or sees nothing is not said to record", async () => {
  const { user, faults, page } = await visit("ended"), text = page.locator(".badges .badge.warn");
  for (const [what, badge, title] of [
    ["silence", "nothing is committed", /^The recorder test has committed nothing for 3m.* Its log says/], ["end", "no recorder", /^No recorder is running\..* Start the recorder\.$/],
    ["kill", "no recorder", /^No recorder is running\./], ["begin", "the recorder begins", /^The recorder test has begun, and has committed nothing yet\./],
  ]) {
    await happen("ended", what);
    await text.filter({ hasText: badge }).waitFor();
    assert.match(await text.getAttribute("title"), title);
    await page.locator(".clock", { hasText: "last commit" }).waitFor();
    await page.getByText("what came then is not known").waitFor();
    await happen("ended", "record");
    await page.locator(".badges .badge.good", { hasText: /^● recording$/ }).waitFor();
    await page.locator(".clock", { hasText: "now" }).waitFor();
  }
  assert.deepEqual(faults, []);
  await user.close();
});

test("changes are marked while the lanes are counted anew, and the lanes stay until that is done", async () => {
  const { user, faults, page } = await visit("busy", "last=1h"), lane = (name) => page.locator("[role=row]", { hasText: name });
  const marked = (seq) => page.waitForFunction((s) => globalThis.kuberewind.drawn.marks.some((m) => m.seq === s), seq);
  await lane("settings").first().waitFor();
  await settled(page);
  const counted = await hold(page, (url) => url.pathname.endsWith("/lanes"));
  await happen("busy", "make");
  await counted.asked;
  for (const seq of [4, 5]) {
    await happen("busy", "change");
    await marked(seq);
  }
  assert.equal(await lane("new").count(), 0);
  assert.equal(await lane("settings").count(), 1);
  counted.free();
  await lane("new").first().waitFor();
  await happen("busy", "change");
  await marked(6);
  assert.deepEqual(faults, []);
  await user.close();
});

test("a tab that slept for a day asks nothing meanwhile, and then shows what came", async () => {
  const from = sites.asleep.url.replace(/\/$/, ""), { context: user, faults } = await context(browser, { from });
  await user.addInitScript(() => {
    globalThis.seen = "visible";
    Object.defineProperty(Document.prototype, "visibilityState", { get: () => globalThis.seen });
  });
  const page = await user.newPage(), see = (how) => page.evaluate((to) => { globalThis.seen = to; document.dispatchEvent(new Event("visibilitychange")); }, how);
  await page.clock.install();
  await page.goto(`${from}/#code=${await code(from)}&panel=changes`);
  await page.getByText("evening").first().waitFor();
  await settled(page);
  await see("hidden");
  await page.clock.fastForward(1000);
  let asked = 0;
  page.on("request", () => { asked++; });
  await happen("asleep", "day");
  await page.clock.fastForward("24:00:00");
  assert.equal(asked, 0, "a tab that nobody sees asks nothing");
  assert.equal(await page.getByText("morning").count(), 0);
  await see("visible");
  await page.clock.fastForward(1000);
  await page.getByText("morning").first().waitFor();
  await page.getByRole("row").filter({ hasText: "overnight" }).waitFor();
  await page.locator(".clock", { hasText: "2026-03-11 12:00" }).waitFor();
  assert.deepEqual(faults, []);
  await user.close();
});

test("what a cluster names and says is text, in every view", async () => {
  const { user, faults, page } = await visit("hostile"), at = "resource=pods&namespace=shop&name=evil&at=seq:3";
  for (const view of [...views, "panel=object&tab=change&base=seq:1", "panel=compare&base=seq:1&at=seq:3"]) {
    await go(page, `${at}&${view}`);
    for (const button of await page.locator(".compared button.link, .yaml ~ button, button.more").all()) if (await button.isVisible()) await button.click();
    await settled(page);
    assert.deepEqual(await page.evaluate(() => [document.images.length, document.querySelectorAll("body script:not([src])").length, globalThis.hostile ?? null]), [0, 0, null], view);
  }
  await go(page, `${at}&panel=object&tab=yaml`);
  assert.ok((await page.locator(".yaml").textContent()).includes(evil.slice(0, 40)));
  const fields = await page.evaluate((text) => { location.hash = `find=${encodeURIComponent(text)}&in=${encodeURIComponent(text)}&label=${encodeURIComponent(text)}&tab=${encodeURIComponent(text)}&cluster=&uid=${encodeURIComponent(text)}`; return true; }, evil);
  assert.ok(fields);
  await page.locator(".error").first().waitFor();
  await settled(page);
  assert.deepEqual(await page.evaluate(() => [document.images.length, globalThis.hostile ?? null]), [0, null]);
  assert.deepEqual(faults.filter((f) => !/status of 400/.test(f)), []);
  await user.close();
});

test("a filter of a mebibyte is refused with a sentence, and the page goes on", async () => {
  const { user, page } = await visit("hostile", "panel=changes");
  await page.locator("#search").evaluate((field) => { field.value = "x".repeat(1 << 20); field.dispatchEvent(new Event("input", { bubbles: true })); });
  await page.locator(".error").first().waitFor();
  assert.match(await page.locator(".error").first().innerText(), /make the filter shorter/);
  await page.locator("#search").fill("evil");
  await page.getByRole("row").filter({ hasText: "evil" }).waitFor();
  await settled(page);
  assert.equal(await page.locator(".error").count(), 0);
  await user.close();
});

for (const [name, fragment, rows] of [
  ["reversed", "from=1773144120000&to=1773144000000", 1], ["empty", "from=1773144000000&to=1773144000000", 1], ["of words", "from=yesterday&to=now", 1],
  ["of a second", "from=1773144000000&to=1773144001000", 1], ["of a century", "from=0&to=4102444800000", 1], ["beyond all times", "from=-1e300&to=1e300", 1], ["before the record", "from=0&to=1000", 0],
]) test(`a window ${name} has an answer, or a sentence`, async () => {
  const { user, faults, page } = await visit("hostile", "panel=changes");
  await go(page, `panel=changes&${fragment}`);
  assert.equal(await page.locator(".rows [role=row]").count(), rows, await page.locator(".lanes").innerText());
  assert.equal(await page.locator(".error").count(), 0);
  for (const key of ["+", "-", "[", "]", "0"]) await page.keyboard.press(key);
  await page.locator(".rows [role=row]").first().waitFor();
  await settled(page);
  assert.deepEqual(faults, []);
  await user.close();
});
