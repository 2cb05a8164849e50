// Answers that are late, lost or refused: the page never shows them as something else, and says what it waits for.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { at, axe, clusters, code, context, hasty, hold, launch, open, origin, read, settled } from "./browser.mjs";

const web = "resource=deployments.apps&namespace=shop&name=web";
const reaches = (page, seq) => page.waitForFunction((s) => new RegExp(`at=seq:${s}(&|$)`).test(location.hash), seq);
const away = (page) => page.locator(".badge.bad", { hasText: "goes on by itself" });
/** lost are the faults of a user but those of the network, which the test makes. */
const lost = (faults) => faults.filter((f) => !f.includes("net::ERR_FAILED"));

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

test("what the network lost is asked again when the server answers, and the old answer is marked until then", async () => {
  const { context: user, faults } = await context(browser), page = await open(user, web, true);
  await settled(page);
  await page.route("**/timeline/v1/**", (route) => route.abort());
  await away(page).waitFor();
  await page.getByRole("row").filter({ hasText: "ReplicaSet" }).first().focus();
  await page.keyboard.press("Enter");
  await page.locator(".object.stale").waitFor();
  await settled(page);
  assert.equal(await page.locator(".object.stale .whole-name").innerText(), "web");
  await page.unroute("**/timeline/v1/**");
  await page.locator(".object:not(.stale) .whole-name", { hasText: "web-" }).waitFor();
  assert.equal(await away(page).count(), 0);
  assert.deepEqual(lost(faults), []);
  await user.close();
});

test("a page that found no server at first goes on when it answers", async () => {
  const { context: user, faults } = await context(browser), page = await user.newPage();
  await page.route("**/timeline/v1/**", (route) => route.abort());
  await page.goto(`${origin}/#code=${await code()}`);
  await away(page).waitFor();
  await page.unroute("**/timeline/v1/**");
  await page.locator("[role=row]").first().waitFor();
  assert.deepEqual(lost(faults), []);
  await user.close();
});

/** begins says in milliseconds when a tab asked a shape, and when the first answer to it had come. */
const begins = (page, shape) => page.evaluate((name) => {
  const all = performance.getEntriesByType("resource").filter((e) => new URL(e.name).pathname === `/timeline/v1/${name}`);
  return { asked: all.map((e) => e.startTime), answered: all[0]?.responseEnd };
}, shape);

/** waited checks that a tab asked nothing of a shape within three seconds after it knew the record. */
async function waited(page, shape) {
  const { answered } = await begins(page, "meta"), { asked } = await begins(page, shape);
  for (const time of asked) assert.ok(time >= answered + 2950, `${shape} was asked for ${time - answered} ms after the record was known`);
}

test("the overview is asked for when the strip and the marks of the lanes are there", async () => {
  const { context: user, faults } = await context(browser), page = await user.newPage(), asked = [];
  page.on("request", (r) => asked.push(new URL(r.url()).pathname.split("/").at(-1)));
  const held = await hold(page, (url) => url.pathname.endsWith("/ticks"));
  await page.goto(`${origin}/#code=${await code()}`);
  await held.asked;
  await page.locator("[role=row]").first().waitFor();
  await page.waitForFunction(() => globalThis.kuberewind.drawn.strip.length > 0);
  for (const shape of ["trouble", "changes", "states", "tail"]) await waited(page, shape);
  held.free();
  await settled(page);
  for (const shape of ["trouble", "changes"]) assert.equal(asked.filter((s) => s === shape).length, 1, shape);
  assert.deepEqual(faults, []);
  await user.close();
});

test("an object is shown before what belongs to it", async () => {
  const { context: user, faults } = await context(browser), page = await user.newPage(), held = await hold(page, "**/timeline/v1/related?*");
  await page.goto(`${origin}/#code=${await code()}&${web}`);
  await held.asked;
  await page.locator(".object h2", { hasText: "What changed" }).waitFor();
  await page.getByText("Events, owners and owned are looked up").waitFor();
  held.free();
  await page.locator(".object .events").waitFor();
  await page.locator(".object .refs", { hasText: /^owns/ }).waitFor();
  assert.equal(await page.getByText("are looked up").count(), 0);
  assert.deepEqual(faults, []);
  await user.close();
});

test("the overview says what it waits for, and comes also if the marks of the lanes never do", async () => {
  const { context: user, faults } = await context(browser), page = await user.newPage(), overview = page.locator(".now");
  const record = await hold(page, (url) => url.pathname.endsWith("/meta")), marks = await hold(page, (url) => url.pathname.endsWith("/ticks"));
  await page.goto(`${origin}/#code=${await code()}`);
  await record.asked;
  await overview.getByText("The strip and the lanes come first").waitFor();
  assert.equal(await overview.getByText("All objects are looked at").count(), 0);
  record.free();
  await marks.asked;
  await overview.locator(".troubles li").or(overview.getByText("Nothing is in trouble")).first().waitFor();
  await overview.getByText("heartbeats are not shown").waitFor();
  for (const shape of ["trouble", "changes"]) await waited(page, shape);
  assert.deepEqual(faults, []);
  await user.close();
});

test("another cluster begins at its own end, without instants and filters of the one before", async () => {
  const { context: user, faults } = await context(browser, { from: clusters }), page = await open(user, "cluster=another&find=web&base=seq:1", true, clusters);
  await settled(page);
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => location.hash.includes("at=seq:"));
  await settled(page);
  const select = page.getByLabel("Cluster", { exact: true }), other = (await select.locator("option").evaluateAll((all) => all.map((o) => o.value))).find((uid) => uid !== "another");
  const held = await hold(page, (url) => url.pathname.endsWith("/meta") && url.searchParams.get("cluster") === other);
  await select.selectOption(other);
  await held.asked;
  await page.locator(".clock", { hasText: /^…$/ }).waitFor();
  const left = new Map(new URLSearchParams(new URL(page.url()).hash.slice(1)));
  assert.deepEqual([...left.keys()].sort(), ["cluster", "from", "to"], "only the window stays");
  assert.equal(await page.locator("[role=row]").count(), 0, "no lanes of the cluster before");
  held.free();
  await page.locator("[role=row]").first().waitFor();
  await page.locator(".clock", { hasText: /^last commit/ }).waitFor();
  assert.equal(await select.inputValue(), other);
  assert.deepEqual(faults, []);
  await user.close();
});

test("a URL without a cluster offers those of the server, and Back returns to the choice", async () => {
  const { context: user, faults } = await context(browser, { from: clusters }), page = await user.newPage();
  await page.goto(`${clusters}/#code=${await code()}`);
  await page.getByText("the records of 2 clusters").waitFor();
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "another" }).click();
  await page.locator("[role=row]").first().waitFor();
  assert.equal(new URL(page.url()).hash.includes("cluster=another"), true);
  await page.goBack();
  await page.getByText("the records of 2 clusters").waitFor();
  assert.equal(await page.locator("[role=row]").count(), 0);
  assert.deepEqual(faults, []);
  await user.close();
});

test("two quick presses are two steps", async () => {
  const { context: user, faults } = await context(browser), slow = await open(user, web, true);
  await settled(slow);
  await slow.keyboard.press("ArrowLeft");
  await slow.waitForFunction(() => location.hash.includes("at=seq:"));
  const first = await at(slow);
  await slow.keyboard.press("ArrowLeft");
  await slow.waitForFunction((seq) => !new RegExp(`at=seq:${seq}(&|$)`).test(location.hash), first);
  const second = await at(slow), quick = await open(user, web);
  await settled(quick);
  const held = await hold(quick, "**/timeline/v1/step?*");
  await quick.keyboard.press("ArrowLeft");
  await quick.keyboard.press("ArrowLeft");
  await held.asked;
  held.free();
  await reaches(quick, second);
  assert.deepEqual(faults, []);
  await user.close();
});

test("a late answer does not move the instant that was chosen after it", async () => {
  const { context: user, faults } = await context(browser), page = await open(user, web, true);
  await settled(page);
  const held = await hold(page, "**/timeline/v1/instant?*"), box = await page.locator(".lanes-canvas").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 - 80, box.y + 40, { steps: 6 });
  await page.mouse.up();
  await held.asked;
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => location.hash.includes("at=seq:"));
  const chosen = await at(page), answered = page.waitForEvent("requestfinished", (r) => r.url().includes("/instant?"));
  held.free();
  await answered;
  await read(page);
  assert.equal(await at(page), chosen);
  assert.deepEqual(faults, []);
  await user.close();
});

test("writers of one object never stand under the name of another", async () => {
  const { context: user, faults } = await context(browser), page = await open(user, `${web}&tab=blame`, true);
  await page.locator(".blame").getByText("kind: Deployment").waitFor();
  await settled(page);
  const held = await hold(page, "**/timeline/v1/blame?*");
  await page.getByRole("row").filter({ hasText: "ReplicaSet" }).first().focus();
  await page.keyboard.press("Enter");
  await held.asked;
  await page.locator(".object .whole-name", { hasText: "web-" }).waitFor();
  await page.getByText("The versions are folded…").waitFor();
  assert.equal(await page.locator(".blame").count(), 0);
  held.free();
  await page.locator(".blame").getByText("kind: ReplicaSet").waitFor();
  assert.deepEqual(faults, []);
  await user.close();
});

for (const [wanted, says] of [["nonsense", "nonsense is no instant"], ["1970-01-02T00:00:00Z", "1970"]]) {
  test(`a link to ${wanted}, which cannot be resolved, says so, and shows the end of the record`, async () => {
    const { context: user } = await context(browser), page = await user.newPage();
    await page.goto(`${origin}/#code=${await code()}&at=${wanted}`);
    await page.locator(".told.shown", { hasText: says }).waitFor();
    await page.locator(".clock", { hasText: /^last commit/ }).waitFor();
    await page.locator("[role=row]").first().waitFor();
    assert.equal(new URL(page.url()).hash.includes("at="), false);
    await user.close();
  });
}

test("what was not counted in time is asked on for, until it is the whole", async () => {
  const seen = [];
  for (const from of [origin, hasty]) {
    const { context: user, faults } = await context(browser, { from }), page = await open(user, "", true, from), asked = new Set();
    page.on("request", (r) => { const url = new URL(r.url()); if (url.searchParams.has("cursor")) asked.add(url.pathname.split("/").pop()); });
    await page.keyboard.press("0");
    await settled(page);
    assert.deepEqual([...asked].sort(), from === hasty ? ["lanes", "strip", "ticks"] : []);
    seen.push(await page.locator(".lanes [role=row], .lanes .more").allInnerTexts());
    assert.deepEqual(faults, []);
    await user.close();
  }
  assert.ok(seen[0].length > 10);
  assert.deepEqual(seen[1], seen[0]);
});

test("while deltas are read that nobody counted ahead, the strip says that it takes longer, and what it cannot show", async () => {
  const { context: user, faults } = await context(browser, { from: hasty }), page = await user.newPage(), note = page.locator(".strip-note");
  const held = await hold(page, (url) => url.pathname.endsWith("/strip") && url.searchParams.has("cursor"));
  await page.goto(`${hasty}/#code=${await code()}`);
  await held.asked;
  await note.getByText("deltas here are not counted ahead, and are read one by one").waitFor();
  await note.getByText("not all is counted yet").waitFor();
  held.free();
  await note.getByText("not counted ahead").waitFor({ state: "detached" });
  await note.getByText("188 dated before it began").waitFor();
  assert.deepEqual(faults, []);
  await user.close();
});

test("an instant that is typed is gone to, in the zone of the labels, and what is no instant stays in its field", async () => {
  const { context: user, faults } = await context(browser, { refused: /status of (400|401|404|410)/, timezone: "Europe/Berlin" }), page = await open(user, "", true);
  await settled(page);
  const field = page.getByLabel("Go to an instant"), type = async (text) => { await page.keyboard.press("@"); await page.keyboard.type(text); await page.keyboard.press("Enter"); };
  const wrong = page.locator(".wrong");
  await type("sometime");
  await wrong.getByText("not an instant").waitFor();
  assert.deepEqual([await field.inputValue(), await at(page)], ["sometime", null]);
  assert.deepEqual(await axe(page), []);
  await field.fill("1999-01-01");
  await page.keyboard.press("Enter");
  await wrong.getByText("before the record began").waitFor();
  await page.keyboard.press("Escape");
  await wrong.waitFor({ state: "detached" });
  await type("2026-11-25 13:18:15");
  await page.waitForFunction(() => location.hash.includes("at=seq:"));
  const chosen = await at(page);
  assert.equal(await field.inputValue(), "");
  await page.goBack();
  await page.waitForFunction(() => !location.hash.includes("at=seq:"));
  await page.keyboard.press("u");
  await type("2026-11-25 14:18:15");
  await reaches(page, chosen);
  await type("seq:7");
  await reaches(page, 7);
  assert.deepEqual(faults, []);
  await user.close();
});
