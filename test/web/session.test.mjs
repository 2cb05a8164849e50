// The cursor drives a session of the API of the past: what clients of that API see is what the page looks at.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { api, at, axe, code, context, launch, open, placeOf, settled, whole } from "./browser.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/** ask sends a request to the API of the past, as any client of it does. */
async function ask(method, path, body) {
  const { url, token, ca } = await api();
  return new Promise((done, failed) => {
    const sent = request(url + path, { method, ca, headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" } }, (answer) => {
      let text = "";
      answer.on("data", (part) => { text += part; }).on("end", () => done({ code: answer.statusCode, body: JSON.parse(text) }));
    });
    sent.on("error", failed).end(body && JSON.stringify(body));
  });
}

const session = async (name) => (await ask("GET", `/session/v1/${name}`)).body;
/** image is that of the Deployment web, as kubectl gets it from the session. */
async function image(name) {
  const { url, token, ca } = await api(), home = await mkdtemp(join(tmpdir(), "kubectl-"));
  await writeFile(join(home, "ca.crt"), ca);
  const server = [`--server=${url}${(await session(name)).path}`, `--token=${token}`, `--certificate-authority=${join(home, "ca.crt")}`, `--cache-dir=${home}`];
  const get = ["get", "deployment/web", "--namespace=shop", "--output=jsonpath={.spec.template.spec.containers[0].image}"];
  try {
    return await new Promise((done, failed) => {
      execFile(process.env.KUBEREWIND_KUBECTL, [...server, ...get], { env: { HOME: home } }, (error, out, said) => (error ? failed(new Error(`${error}: ${said}`)) : done(out)));
    });
  } finally {
    await rm(home, { recursive: true });
  }
}
const endAll = async () => { for (const s of (await ask("GET", "/session/v1")).body.sessions) await ask("DELETE", `/session/v1/${s.name}`); };

/** tab is a page with the panel of sessions. writes are what it changed on the server. */
async function tab(fragment = "") {
  await endAll();
  const { context: user, faults } = await context(browser, { from: whole }), page = await open(user, `panel=session${fragment}`, true, whole), writes = [];
  page.on("request", (r) => { if (r.method() !== "GET") writes.push(r.postDataJSON()); });
  await settled(page);
  return { user, faults, page, writes };
}

async function make(page, name) {
  await page.getByLabel("name", { exact: true }).fill(name);
  await page.getByRole("button", { name: "make a session at this instant" }).click();
}

async function made(page, name) {
  await make(page, name);
  await page.locator(".driving", { hasText: new RegExp(`^session ${name}$`) }).waitFor();
}

/** back steps to the change before, which shows its object, and returns to the panel of sessions. */
async function back(page, times = 1) {
  for (let i = 0; i < times; i++) await page.keyboard.press("Shift+ArrowLeft");
  await page.waitForFunction(() => location.hash.includes("at=seq:"));
  await settled(page);
  await page.keyboard.press("p");
}

const broken = "2026-11-25T13:18:15Z"; // while the image that is not there was rolled out

test("kubectl's answer follows the cursor: on the release of a drag, and not before", async () => {
  const { user, faults, page, writes } = await tab();
  await made(page, "night");
  assert.match(await page.locator(".panel .command").first().innerText(), /replay exec --session night -- k9s/);
  assert.equal(await image("night"), "registry.example/web:v3");
  const first = await session("night"), begin = await placeOf(page, "2026-11-25T13:22:00Z"), to = await placeOf(page, broken);
  writes.length = 0;
  await page.mouse.move(begin.x, begin.y);
  await page.mouse.down();
  await page.mouse.move(to.x, to.y, { steps: 8 });
  const held = await session("night");
  assert.equal(held.seq, first.seq, "the clock stands while the button is down");
  assert.deepEqual(writes, []);
  await page.mouse.up();
  await page.waitForFunction(() => location.hash.includes("at=seq:"));
  const seq = await at(page);
  await page.locator(".session-clock", { hasText: `seq:${seq}.` }).waitFor();
  const now = await session("night");
  assert.deepEqual([String(now.seq), now.playing], [seq, false]);
  assert.equal(await image("night"), "registry.example/web:v2-broken");
  assert.deepEqual(writes.map((w) => w.at), [`seq:${seq}`], "one release is one move");
  await page.keyboard.press("n");
  await page.locator(".session-clock", { hasText: "waits for the record to grow" }).waitFor();
  assert.equal(await image("night"), "registry.example/web:v3");
  await page.goBack();
  await page.locator(".session-clock", { hasText: `seq:${seq}.` }).waitFor();
  assert.equal(await image("night"), "registry.example/web:v2-broken");
  assert.deepEqual(await axe(page), []);
  assert.deepEqual(faults, []);
  await user.close();
});

test("steps by keys that are faster than the server end where the cursor ends", async () => {
  const { user, faults, page } = await tab();
  await made(page, "steps");
  let answered = 0;
  page.on("requestfinished", (r) => { if (r.url().includes("/timeline/v1/step?")) answered++; });
  await back(page, 6);
  while (answered < 6) await page.waitForEvent("requestfinished");
  await settled(page);
  await page.keyboard.press("p"); // Each step that arrived since showed its object.
  const seq = await at(page);
  await page.locator(".session-clock", { hasText: `seq:${seq}.` }).waitFor();
  assert.equal(String((await session("steps")).seq), seq);
  assert.deepEqual(faults, []);
  await user.close();
});

test("a session that is picked stays where it is, and a move by another tool is told, and followed if wished", async () => {
  const { user, faults, page, writes } = await tab();
  await ask("PUT", "/session/v1/theirs", { at: broken });
  const there = await session("theirs");
  await page.getByRole("button", { name: "Drive session theirs" }).click();
  await page.waitForFunction((seq) => location.hash.includes(`at=seq:${seq}`), there.seq);
  await settled(page);
  assert.deepEqual(writes, [], "to pick moves nothing");
  const moved = (await ask("PUT", "/session/v1/theirs", { at: "2026-11-25T13:20:00Z" })).body;
  await page.getByText("The clock is not where the page is.").waitFor();
  assert.equal(await at(page), String(there.seq), "the page stays");
  await page.getByRole("button", { name: "go to the clock" }).click();
  await page.waitForFunction((seq) => location.hash.includes(`at=seq:${seq}`), moved.seq);
  await page.getByLabel("go along if another tool moves the clock").check();
  const again = (await ask("PUT", "/session/v1/theirs", { at: "2026-11-25T13:17:00Z" })).body;
  await page.waitForFunction((seq) => location.hash.includes(`at=seq:${seq}`), again.seq);
  assert.deepEqual(writes, []);
  await page.reload();
  await page.locator(".driving", { hasText: /^session theirs$/ }).waitFor();
  assert.equal((await session("theirs")).seq, again.seq, "a reload moves nothing");
  await page.getByRole("button", { name: "let go of it" }).click();
  await page.getByText("made by kuberewind:local").waitFor();
  await back(page);
  assert.equal((await session("theirs")).seq, again.seq);
  assert.deepEqual(faults, []);
  await user.close();
});

test("limits, names that are taken, and sessions of others are told in a sentence", async () => {
  const { user, page } = await tab();
  await ask("PUT", "/session/v1/taken", { at: broken });
  await make(page, "taken");
  await page.getByRole("alert").getByText("There is a session taken already").waitFor();
  await make(page, "No Label");
  await page.getByRole("alert").getByText("DNS label").waitFor();
  for (let i = 1; i < 8; i++) await ask("PUT", `/session/v1/more-${i}`, { at: broken });
  await make(page, "ninth");
  await page.getByRole("alert").getByText("you have 8 sessions, the most of a user").waitFor();
  await page.getByRole("button", { name: "End session more-1" }).click();
  await page.getByRole("button", { name: "End session more-1" }).waitFor({ state: "detached" });
  await made(page, "ninth");
  // On loopback all are one user, so that the server never says this here.
  const no = { kind: "Status", apiVersion: "v1", status: "Failure", code: 403, reason: "Forbidden", message: 'it belongs to "carol": only its owner can move or end it' };
  await page.route("**/session/v1/ninth?*", (route) => (route.request().method() === "PUT" ? route.fulfill({ status: 403, json: no }) : route.continue()));
  await back(page);
  await page.getByRole("alert").getByText("it belongs to").waitFor();
  await page.locator(".driving", { hasText: "is elsewhere" }).waitFor();
  assert.equal(await page.locator(".gate").count(), 0, "the record is shown all the same");
  await page.unroute("**/session/v1/ninth?*");
  await page.getByRole("button", { name: "set it to this instant" }).click();
  await page.locator(".session-clock", { hasText: `seq:${await at(page)}.` }).waitFor();
  await user.close();
});

test("a session that ended is told, and is made again only if it is asked for", async () => {
  const { user, page } = await tab();
  await made(page, "short");
  await ask("DELETE", "/session/v1/short");
  await page.getByRole("alert").getByText("ends 30 minutes after its last request").waitFor();
  await back(page);
  assert.equal((await ask("GET", "/session/v1/short")).code, 404, "a move makes nothing");
  await page.getByRole("button", { name: "make it again, at this instant" }).click();
  await page.locator(".driving", { hasText: /^session short$/ }).waitFor();
  assert.equal(String((await session("short")).seq), await at(page));
  await user.close();
});

test("after a restart of the server, the page says what to do, and that the session is gone", async () => {
  const { user, page } = await tab();
  await made(page, "lost");
  await api("POST");
  await page.locator(".gate").getByText("replay open").first().waitFor();
  const other = await user.newPage();
  await other.goto(`${whole}/#code=${await code(whole)}`);
  await other.locator("[role=row]").first().waitFor();
  await page.getByRole("button", { name: "try again" }).click();
  await page.getByRole("alert").getByText("when the server ends").waitFor();
  await page.getByRole("button", { name: "make it again, at this instant" }).click();
  await page.locator(".driving", { hasText: /^session lost$/ }).waitFor();
  await user.close();
});
