// The page in a real browser: it opens, scrubs, and keeps to its policy.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { at, axe, code, context, launch, open, origin, settled } from "./browser.mjs";

const hostile = process.env.KUBEREWIND_HOSTILE;
let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

test("a link opens the page, its code leaves the URL, and new tabs need none", async () => {
  const { context: user, faults } = await context(browser), page = await open(user, "", true);
  assert.equal(new URL(page.url()).hash.includes("code"), false);
  await settled(page);
  const drawn = await page.evaluate(() => globalThis.kuberewind.drawn);
  assert.ok(drawn.strip.length > 0, "the strip has bars");
  assert.ok(drawn.marks.length > 0, "the lanes have marks");
  await open(user);
  assert.deepEqual(faults, []);
  await user.close();
});

test("a drag moves the instant on release, hover does not, and Back undoes it", async () => {
  const { context: user, faults } = await context(browser), page = await open(user, "", true);
  await settled(page);
  const box = await page.locator(".lanes-canvas").boundingBox(), middle = box.x + box.width / 2, y = box.y + 40;
  await page.mouse.move(middle, y);
  await page.mouse.move(middle + 50, y);
  assert.equal(await at(page), null, "hover only reads");
  await page.mouse.down();
  await page.mouse.move(middle - 80, y, { steps: 6 });
  assert.equal(await at(page), null, "a drag moves nothing but the line");
  await page.mouse.up();
  await page.waitForFunction(() => location.hash.includes("at=seq:"));
  const first = await at(page);
  assert.match(await page.locator(".clock").innerText(), new RegExp(`seq:${first}`));
  await page.goBack();
  await page.waitForFunction(() => !location.hash.includes("at=seq:"));
  await page.goForward();
  await page.waitForFunction((seq) => location.hash.includes(`at=seq:${seq}`), first);
  const again = await open(user, new URL(page.url()).hash.slice(1));
  await again.locator(".clock", { hasText: `seq:${first}` }).waitFor();
  assert.deepEqual(faults, []);
  await user.close();
});

test("a hostile name is text", async () => {
  const { context: user, faults } = await context(browser), page = await open(user, "last=1d", true);
  await page.locator("#search").fill("onerror");
  const row = page.getByRole("row").filter({ hasText: hostile.slice(0, 12) }).first();
  await row.waitFor();
  assert.equal((await row.locator(".start").innerText()) + (await row.locator(".end").innerText()), hostile);
  await row.click();
  await settled(page);
  assert.equal(await page.locator("img").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hostile), undefined);
  assert.deepEqual(faults, []);
  await user.close();
});

test("keys alone find a lane and move through it", async () => {
  const { context: user, faults } = await context(browser), page = await open(user, "", true);
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("search by name").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.keyboard.press("j");
  await page.waitForFunction(() => document.activeElement?.getAttribute("role") === "row");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("uid="));
  await page.keyboard.press("0");
  await page.waitForFunction(() => location.hash.includes("from="));
  await page.keyboard.press("b");
  await page.waitForFunction(() => !location.hash.includes("from="));
  assert.deepEqual(faults, []);
  await user.close();
});

test("a zoom of many moves is one step of Back, and the URL names the window in which it rests", async () => {
  const { context: user, faults } = await context(browser), page = await open(user, "", true);
  await settled(page);
  const before = await page.evaluate(() => location.hash);
  const first = await page.evaluate(() => {
    for (let i = 0; i < 4; i++) document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
    const q = new URLSearchParams(location.hash.slice(1));
    return q.get("to") - q.get("from"); // Nothing else has run in between: the URL has the first move only.
  });
  await page.waitForFunction((w) => { const q = new URLSearchParams(location.hash.slice(1)); return q.get("to") - q.get("from") < w / 2; }, first);
  await page.goBack();
  await page.waitForFunction((hash) => location.hash === hash, before);
  assert.deepEqual(faults, []);
  await user.close();
});

for (const [scheme, width] of [["dark", 1280], ["light", 1280], ["light", 390]]) {
  test(`axe finds nothing serious at ${width} pixels, ${scheme}, and nothing is cut off`, async () => {
    const { context: user, faults } = await context(browser, { scheme, width });
    const page = await user.newPage();
    await page.goto(`${origin}/#code=${await code()}`);
    await page.locator(".complete").waitFor();
    await settled(page);
    assert.deepEqual(await axe(page), []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    if (width < 700) await page.getByRole("button", { name: "Lanes", exact: true }).click();
    await page.locator("[role=row]").first().waitFor();
    await settled(page);
    assert.deepEqual(await axe(page), []);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    const pictures = process.env.KUBEREWIND_PICTURES;
    if (pictures) await page.screenshot({ path: `${pictures}/${scheme}-${width}.png` });
    assert.deepEqual(faults, []);
    await user.close();
  });
}

test("ten windows at once work", async () => {
  const { context: user, faults } = await context(browser);
  await open(user, "", true);
  const pages = await Promise.all(Array.from({ length: 9 }, () => open(user)));
  for (const page of pages) await settled(page);
  assert.equal(user.pages().length, 10);
  assert.deepEqual(faults, []);
  await user.close();
});

test("a code that was used says what to do, and shows no data", async () => {
  const { context: user } = await context(browser), used = await code();
  await fetch(`${origin}/code/v1/exchange`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code: used }) });
  const page = await user.newPage();
  await page.goto(`${origin}/#code=${used}`);
  await page.getByText("replay open").first().waitFor();
  assert.equal(await page.locator("[role=row]").count(), 0);
  await user.close();
});
