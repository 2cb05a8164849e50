// What is drawn is what SQL counts, and what the command line prints. The test's server chooses at random what is looked at, and judges what was drawn.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { context, hasty, hold, launch, open, origin, settled } from "../browser.mjs";

const seed = process.env.KUBEREWIND_SEED, windows = Number(process.env.KUBEREWIND_WINDOWS);

async function ask(what, question = {}) {
  const answer = await fetch(`${process.env.KUBEREWIND_JUDGE}/${what}`, { method: "POST", body: JSON.stringify(question) }), text = await answer.text();
  assert.equal(answer.status, 200, `${what}: ${text}`);
  return JSON.parse(text);
}

/** gone is what the server answers of days that are not on record. */
const gone = /status of (401|404|410)/;

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/** begin gives a tab on one of the records. */
async function begin(from = origin) {
  const { context: user, faults } = await context(browser, { from, refused: gone }), { cluster } = await ask("known");
  return { user, faults, page: await open(user, `cluster=${cluster}`, true, from) };
}

/** go sets the fragment, as a link does. */
async function go(page, fragment) {
  await page.evaluate((to) => { location.hash = to; }, fragment);
  await settled(page);
}

/** scroll moves the lanes to a part of their height. A browser tells of it with the next frame. */
async function scroll(page, part) {
  await page.locator(".lanes-body").evaluate((box, to) => {
    box.scrollTop = to * (box.scrollHeight - box.clientHeight);
    return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  }, part);
  await settled(page);
}

/** look reads what was drawn: the draw list, and the text of the page. */
const look = (page) => page.evaluate(() => {
  const { drawn } = globalThis.kuberewind, number = (text) => Number((/[\d,]+/.exec(text ?? "")?.[0] ?? "").replaceAll(",", ""));
  const text = (of) => document.querySelector(of)?.textContent ?? "", q = new URLSearchParams(location.hash.slice(1)), beats = text(".c-heartbeat");
  return {
    ...drawn, frames: undefined, bars: undefined, from: Number(q.get("from")), to: Number(q.get("to")),
    rows: [...document.querySelectorAll(".rows [role=row]")].map((r) => ({ lane: Number(r.dataset.lane), changes: number(r.querySelector(".number").textContent) })),
    total: Number(document.querySelector("[role=treegrid]").getAttribute("aria-rowcount")),
    left: Object.fromEntries([...document.querySelectorAll(".left button")].map((b) => [b.textContent.split(" ")[1], number(b.textContent)])),
    hidden: beats.endsWith("hidden") ? number(beats) : null, changes: number(text(".total")),
  };
});

test("bars, rows, marks and what is not known are those of SQL", async () => {
  const { user, faults, page } = await begin(), wrong = [];
  for (let n = 0; n < windows && wrong.length < 5; n++) {
    const view = await ask("view", { n });
    await go(page, view.fragment);
    for (const key of view.keys) await page.keyboard.press(key);
    await settled(page);
    await scroll(page, view.scroll);
    const differs = await ask("judge", { n, shown: await look(page) });
    if (differs.length > 0) wrong.push({ n, at: `${decodeURIComponent(view.fragment)} keys ${view.keys} then ${page.url()}`, differs });
  }
  assert.deepEqual(wrong, [], `-seed ${seed}`);
  assert.deepEqual(faults, []);
  await user.close();
});

test("a stretch that is not counted yet is drawn as such, and what was counted by then stays", async () => {
  const { user, faults, page } = await begin(hasty), { cluster, from, to } = await ask("known"), window = `cluster=${cluster}&panel=changes&from=${from}&to=${to}`;
  const held = await hold(page, (url) => url.searchParams.has("cursor"));
  await page.evaluate((fragment) => { location.hash = fragment; }, window);
  await held.asked;
  await page.waitForFunction(() => globalThis.kuberewind.drawn.hatched.some((h) => h.view === "strip" && h.kind === "unread"));
  const part = await look(page), unread = part.hatched.find((h) => h.view === "strip" && h.kind === "unread");
  await ask("met", { shown: part });
  held.free();
  await settled(page);
  const whole = await look(page), patient = await begin();
  await go(patient.page, window);
  const answered = await look(patient.page), later = (s) => s.strip.filter((b) => b.from >= unread.to);
  assert.deepEqual(later(part), later(answered));
  const sorted = (all) => all.map((one) => JSON.stringify(one)).sort();
  for (const name of ["strip", "density", "rows", "marks", "hatched"]) assert.deepEqual(sorted(whole[name]), sorted(answered[name]), name);
  assert.deepEqual([...faults, ...patient.faults], []);
  await user.close();
  await patient.user.close();
});

test("a version that cannot be read is drawn as such, and the one that is folded on it", async () => {
  const { user, faults, page } = await begin(), { cluster, label, hurt } = await ask("known");
  await go(page, `cluster=${cluster}&panel=changes&from=${hurt - 600_000}&to=${hurt + 600_000}&label=${encodeURIComponent(label)}`);
  const shown = await look(page);
  await ask("met", { shown });
  for (const view of ["strip", "density"]) assert.deepEqual(shown.hatched.filter((h) => h.view === view && h.kind === "damaged").map((h) => [h.from, h.to]), [[hurt, hurt], [hurt + 60_000, hurt + 60_000]], view);
  assert.deepEqual(faults, []);
  await user.close();
});

/** run runs the command that stands beside a view. */
async function run(page, n, ...more) {
  const command = await page.locator(".panel [data-copy]").first().getAttribute("data-copy");
  assert.match(command, /^replay [^'"]+$/);
  return { command, ...(await ask("replay", { n, args: [...command.split(" ").slice(1), ...more] })) };
}

/** refused reports whether the page has no answer. Then the command has none either, for the same reason. */
async function refused(page, n, args, at) {
  if (await page.locator(".panel [data-copy]").count() > 0) return false;
  const told = await ask("replay", { n, args }), says = await page.locator(".panel-body").innerText();
  assert.notEqual(told.code, 0, `${at}: the page says: ${says}`);
  assert.ok(told.err.includes(await page.locator(".panel .error").first().innerText()), `${at}: the page says: ${says}. The command says: ${told.err}`);
  return true;
}

test("the YAML is that of replay get, with managedFields and without", async () => {
  const { user, faults, page } = await begin();
  for (let n = 0; n < 30; n++) {
    const { cluster, uid, seq, args } = await ask("version", { n }), at = `-seed ${seed}, object ${n}: cluster=${cluster}&uid=${uid}&at=seq:${seq}`;
    await go(page, `cluster=${cluster}&panel=object&tab=yaml&uid=${encodeURIComponent(uid)}&at=seq:${seq}`);
    if (await refused(page, n, args, at)) continue;
    const folded = await run(page, n), whole = await run(page, n, "--show-managed-fields"), fold = page.locator(".panel button[aria-expanded]");
    assert.match(folded.command, new RegExp(`--at seq:${seq}$`));
    assert.equal(folded.code, 0, `${at}: ${folded.err}`);
    assert.equal(await page.locator(".yaml").textContent(), folded.out, at);
    if (await fold.count() > 0) await fold.click();
    assert.equal(await page.locator(".yaml").textContent(), whole.out, at);
  }
  assert.deepEqual(faults, []);
  await user.close();
});

/** noise is what the page only counts. */
const noise = ["Event", "Lease", "Endpoints", "EndpointSlice"];

test("a comparison is that of replay diff", async () => {
  const { user, faults, page } = await begin(), found = { added: 0, removed: 0, changed: 0 };
  for (let n = 0; n < 20; n++) {
    const { cluster, a, b, filter, args } = await ask("pair", { n }), at = `-seed ${seed}, pair ${n}: seq:${a} to seq:${b} ${filter}`;
    await go(page, `cluster=${cluster}&panel=compare&base=seq:${a}&at=seq:${b}${filter}`);
    if (await refused(page, n, args, at)) continue;
    const told = await run(page, n, "-o", "json"), lines = told.out.split("\n").filter(Boolean).map((l) => JSON.parse(l));
    assert.ok(told.code < 2, `${at}: ${told.err}`);
    const seen = await page.evaluate(() => ({
      sums: [...document.querySelectorAll(".sums span")].map((s) => Number(/[\d,]+/.exec(s.textContent)[0].replaceAll(",", ""))),
      objects: [...document.querySelectorAll(".compared > li > button.link")].map((o) => ({
        what: [o.querySelector(".class").textContent, o.querySelector(".kind").textContent, o.querySelector("b").textContent].join(" "), paths: Number(/(\d+) paths?/.exec(o.textContent)?.[1] ?? 0),
      })),
    }));
    const [added, removed, changed, quiet] = seen.sums, kept = lines.filter((l) => !noise.includes(l.kind)), more = Number(/(\d+) more objects? differs? only in bookkeeping/.exec(told.err)?.[1] ?? 0);
    assert.equal(added + removed + changed + quiet, lines.length + more, at);
    const words = { added: "added", removed: "deleted", changed: "change" }, what = (l) => `${words[l.change]} ${l.kind} ${l.namespace ? `${l.namespace}/` : ""}${l.name}`;
    assert.deepEqual(seen.objects.map((o) => o.what).sort(), kept.map(what).sort(), at);
    for (const o of seen.objects) {
      const line = kept.find((l) => what(l) === o.what && (l.change !== "changed" || l.changes.length === o.paths));
      assert.ok(line, `${at}: ${o.what} has ${o.paths} paths`);
      found[line.change]++;
    }
  }
  for (const [change, times] of Object.entries(found)) assert.ok(times > 0, `no ${change} object was compared`);
  assert.deepEqual(faults, []);
  await user.close();
});
