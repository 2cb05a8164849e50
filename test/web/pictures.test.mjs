// The pictures of docs/timeline.md: made anew if KUBEREWIND_DRAW is set, else compared by the text that they show.
import assert from "node:assert/strict";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { context, launch, open, settled, whole } from "./browser.mjs";

const folder = new URL("../../docs/pictures/", import.meta.url), most = 600_000; // bytes of all
const at = (clock) => Date.parse(`2026-11-25T${clock}Z`), time = (clock) => `2026-11-25T${clock}Z`;
const rollout = `from=${at("13:17:30")}&to=${at("13:19:00")}`, web = "resource=deployments.apps&namespace=shop&name=web";

/** pictures are views of the bad rollout, which began at 13:17:57 and was undone at 13:18:37. */
const pictures = {
  overview: { scheme: "light", fragment: `at=${time("13:18:15")}&${rollout}&in=shop` },
  story: { scheme: "dark", fragment: `at=${time("13:18:15")}&${rollout}&in=shop&${web}&tab=story` },
  compare: {
    scheme: "light", fragment: `at=${time("13:18:15")}&${rollout}&in=shop&base=seq:1&panel=compare`,
    begin: async (page) => {
      await page.goto(`${whole}/#at=${time("13:17:50")}&${rollout}&in=shop&panel=compare`);
      await page.waitForFunction(() => location.hash.includes("at=seq:"));
      await page.keyboard.press("a");
      await page.waitForFunction(() => location.hash.includes("base=seq:"));
      const base = await page.evaluate(() => /base=seq:\d+/.exec(location.hash)[0]);
      await page.goto(`${whole}/#at=${time("13:18:15")}&${rollout}&in=shop&panel=compare&${base}`);
      await page.waitForFunction(() => location.hash.includes("at=seq:"));
      await settled(page); // Until then the list is of the instants before.
      await page.locator(".compared button", { hasText: "Deployment" }).first().click();
      await page.locator(".compared .diff li").first().waitFor();
    },
  },
  session: {
    scheme: "dark", fragment: `at=${time("13:18:15")}&${rollout}&in=shop&panel=session`,
    begin: async (page) => {
      await page.getByLabel("name", { exact: true }).fill("night");
      await page.getByRole("button", { name: "make a session at this instant" }).click();
      await page.locator(".session-clock").waitFor();
    },
  },
};

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

for (const [name, { scheme, fragment, begin }] of Object.entries(pictures)) {
  test(`the picture ${name} shows what the page shows`, async () => {
    const { context: user, faults } = await context(browser, { from: whole, scheme }), page = await open(user, fragment, true, whole);
    await page.waitForFunction(() => location.hash.includes("at=seq:"));
    await settled(page);
    await begin?.(page);
    await settled(page);
    const text = await page.evaluate(() => document.getElementById("page").innerText.replace(/[ \t]+$/gm, "").trim()) + "\n";
    const picture = new URL(`${name}.png`, folder), said = new URL(`${name}.txt`, folder);
    if (process.env.KUBEREWIND_DRAW) {
      await page.screenshot({ path: fileURLToPath(picture) });
      await writeFile(said, text);
    } else {
      assert.equal(text, await readFile(said, "utf8"), "the picture is not of this page any more: make pictures draws it again");
      assert.equal((await readFile(picture)).readUInt32BE(16), 1280, "the width of the picture");
    }
    assert.deepEqual(faults, []);
    await user.close();
  });
}

test("there are no other pictures, and all are small", { skip: process.env.KUBEREWIND_DRAW ? "they are being drawn" : false }, async () => {
  const files = await readdir(folder), sizes = await Promise.all(files.map(async (f) => (await stat(new URL(f, folder))).size));
  assert.deepEqual(files.sort(), Object.keys(pictures).flatMap((name) => [`${name}.png`, `${name}.txt`]).sort());
  assert.ok(sizes.reduce((a, b) => a + b, 0) < most);
});
