// The page for users of a live cluster: who may not list everything sees nothing, also if the right is withdrawn while the page is open.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { context, launch, settled } from "../browser.mjs";

const from = JSON.parse(process.env.KUBEREWIND_SITES).shared.url.replace(/\/$/, ""), { KUBEREWIND_LISTER: lister, KUBEREWIND_VIEWER: viewer } = process.env;
const needs = 'it needs the right to list "*.*"';

async function happen(what) {
  const answer = await fetch(`${process.env.KUBEREWIND_HAPPEN}/shared/${what}`, { method: "POST" });
  assert.equal(answer.status, 200, await answer.text());
}

let browser;
// The certificate is of no authority that a browser knows. Of this one key, and of no other, it is taken.
before(async () => { browser = await launch([`--ignore-certificate-errors-spki-list=${process.env.KUBEREWIND_KEY}`]); });
after(() => browser?.close());

/** enter gives a tab of a user who gave a token. */
async function enter(token) {
  const { context: user, faults } = await context(browser, { from, refused: /status of (401|403)/ }), page = await user.newPage();
  await page.goto(`${from}/`);
  await page.locator(".gate input[type=password]").fill(token);
  await page.getByRole("button", { name: "go on" }).click();
  return { user, faults, page };
}

/** nothing asserts that a tab shows why it may not read, and no data. */
async function nothing(page) {
  await page.locator(".gate .error", { hasText: needs }).waitFor();
  assert.equal(await page.locator("[role=row], canvas, .panel, .filters").count(), 0);
  assert.doesNotMatch(await page.evaluate(() => document.documentElement.outerHTML), /shop|checkout|kube-system/);
}

const shapes = ["meta", "tail", "instant", "strip", "lanes", "ticks", "states", "trouble", "changes", "object", "related", "nearby", "versions", "blame", "story", "step", "compare", "no-such-shape"];
const queries = ["", "?from=0&to=1", "?namespace=default", "?uid=nobody", "?at=seq:1", "?resource=pods&namespace=shop&name=checkot", "?cluster=nobody"];

/** answers are those that the server gives to a token, whatever is asked. */
const answers = (page, token) => page.evaluate(async ([all, asked, bearer]) => {
  const codes = new Set();
  for (const shape of all) for (const query of asked) codes.add((await fetch(`/timeline/v1/${shape}${query}`, { headers: { Authorization: `Bearer ${bearer}` } })).status);
  for (const name of ["", "/night"]) codes.add((await fetch(`/session/v1${name}`, { headers: { Authorization: `Bearer ${bearer}` } })).status);
  return [...codes];
}, [shapes, queries, token]);

test("who may not list everything sees nothing, whatever is asked", async () => {
  const { user, faults, page } = await enter(viewer);
  await nothing(page);
  assert.deepEqual(await answers(page, viewer), [403]);
  assert.deepEqual(faults, []);
  await user.close();
});

test("a right that is withdrawn while the page is open takes the data from the screen, and it comes back with the right", async () => {
  const { user, faults, page } = await enter(lister);
  await page.locator("[role=row]").first().waitFor();
  await settled(page);
  await happen("withdraw");
  await nothing(page);
  assert.deepEqual(await answers(page, lister), [403]);
  await page.getByRole("button", { name: "try again" }).click();
  await nothing(page);
  await happen("grant");
  await page.waitForFunction(() => {
    [...document.querySelectorAll("button")].find((b) => b.textContent === "try again")?.click();
    return document.querySelector("[role=row]") !== null;
  }, undefined, { polling: 500 });
  assert.deepEqual(faults, []);
  await user.close();
});
