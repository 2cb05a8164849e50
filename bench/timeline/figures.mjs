// Takes one figure of the page in a browser: node figures.mjs FIGURE OPTIONS, with the variables of test/web/browser.mjs. It prints JSON.
import { readFile } from "node:fs/promises";
import { context, launch, open, settled, code, origin } from "../../test/web/browser.mjs";

const [figure, options] = [process.argv[2], JSON.parse(process.argv[3] ?? "null")];
const say = (value) => process.stdout.write(JSON.stringify(value) + "\n");

/** So high that 40 lanes are seen at once. */
const height = 1420;
/** Of one wait: without kept counts, a strip over a month is counted for minutes. */
const patience = 900_000;
/** Of a browser that has just been started. */
const restPatience = 120_000;

const p95 = (all) => all.toSorted((a, b) => a - b)[Math.ceil(0.95 * all.length) - 1];

/** inPage are functions that the page's own window gets, before its script runs. */
function inPage() {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  globalThis.bench = {
    frame,
    /** painted returns when a frame that shows what the document is now was handed on. */
    painted: async () => { await frame(); await new Promise((done) => setTimeout(done)); },
    rows: () => [...document.querySelectorAll(".rows [role=row]")],
    changes: (row) => Number.parseInt(row.querySelector(".number").textContent.replaceAll(",", ""), 10),
    /** viewed reports whether the whole strip, and the lanes with their marks, are drawn. */
    viewed: () => {
      const drawn = globalThis.kuberewind?.drawn, rows = globalThis.bench.rows(), total = Number(document.querySelector("[role=treegrid]")?.getAttribute("aria-rowcount") ?? -1);
      if (!drawn || total < 0 || drawn.strip.length === 0 || drawn.hatched.some((h) => h.view === "strip" && h.kind === "unread") || rows.length < Math.min(40, total)) return false;
      return new Set(drawn.marks.map((m) => m.lane)).size >= rows.filter((r) => globalThis.bench.changes(r) > 0).length;
    },
    troubled: () => [...document.querySelectorAll(".panel h2")].some((h) => h.textContent.startsWith("Trouble") && h.querySelector(".note")),
  };
}

/** user is a browser of one user, whose faults end the run. */
async function user(browser) {
  const made = await context(browser, { height });
  made.context.setDefaultTimeout(patience);
  await made.context.addInitScript(inPage);
  return made;
}

/** rest opens a window, and waits until the browser does nothing of its own. A new window loads its own interface for seconds; a user's window has done that
 * long ago. */
async function rest(browser, made) {
  await made.newPage();
  const session = await browser.newBrowserCDPSession(), used = async () => (await session.send("SystemInfo.getProcessInfo")).processInfo.reduce((n, p) => n + p.cpuTime, 0);
  for (let before = -Infinity, now = await used(), until = Date.now() + restPatience; now - before > 0.025; [before, now] = [now, await used()]) {
    if (Date.now() > until) throw new Error("the browser does not come to rest: other work on the machine would be in the figures");
    await new Promise((done) => setTimeout(done, 500));
  }
}

const figures = {
  /** first is from the begin of the navigation until what is named is painted, by a clock of the page. */
  async first(made) {
    await made.addInitScript(() => {
      const seen = {}, look = () => {
        if (!seen.view && globalThis.bench.viewed()) seen.view = performance.now();
        if (!seen.trouble && globalThis.bench.troubled()) seen.trouble = performance.now();
        if (seen.view && seen.trouble) globalThis.bench.first = seen; else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    });
    const page = await made.newPage();
    await page.goto(`${origin}/#code=${await code()}`, { waitUntil: "commit" });
    const seen = await (await page.waitForFunction(() => globalThis.bench.first)).jsonValue();
    say({ "strip and 40 lanes": seen.view, "list of troubles": seen.trouble });
  },

  /** frames has one event in each frame: pans to and fro, zooms in and out. */
  async frames(made) {
    const page = await open(made, "last=6h", true);
    await settled(page);
    const found = await page.evaluate(async () => {
      const canvas = document.querySelector(".lanes-canvas"), box = canvas.getBoundingClientRect(), at = { clientX: box.x + box.width / 2, clientY: box.y + 100, bubbles: true, cancelable: true };
      const times = [], scripts = [];
      let before = 0;
      for (let i = 0; i < 480; i++) {
        const now = await globalThis.bench.frame(), way = i % 120 < 60 ? 1 : -1;
        if (before) times.push(now - before);
        before = now;
        const began = performance.now();
        canvas.dispatchEvent(new WheelEvent("wheel", i % 240 < 120 ? { ...at, deltaX: -12 * way } : { ...at, ctrlKey: true, deltaY: -10 * way }));
        scripts.push(performance.now() - began);
      }
      return { times, scripts };
    });
    say({ "p95 of a frame": p95(found.times), "p95 of the script of a move": p95(found.scripts) });
  },

  /** clicks open the objects of the lanes, each once: half of them with what changed, and half with their YAML. */
  async clicks(made) {
    const page = await open(made, "last=6h", true), took = { change: [], yaml: [] };
    await settled(page);
    for (const [of, tab] of Object.keys(took).entries()) {
      await page.keyboard.press(tab === "yaml" ? "y" : "d");
      for (let i = 0; i < 20; i++) {
        await settled(page);
        took[tab].push(await page.evaluate(async (index) => {
          const rows = globalThis.bench.rows(), began = performance.now();
          rows[index % rows.length].click();
          const uid = new URLSearchParams(location.hash.slice(1)).get("uid"), shown = () => document.querySelector(".object:not(.stale) [title^=UID]")?.textContent === uid;
          while (!shown()) await globalThis.bench.frame();
          await globalThis.bench.painted();
          return performance.now() - began;
        }, 2 * i + of));
      }
    }
    say({ "p95 with what changed": p95(took.change), "p95 with the YAML": p95(took.yaml) });
  },

  /** marks gives what is drawn of a window, with all classes. The ticks that were asked for say which lanes are on the screen. */
  async marks(made) {
    const classes = ["change", "added", "deleted", "status", "event", "sync", "heartbeat"].map((c) => `class=${c}`).join("&"), page = await made.newPage();
    let asked = "";
    page.on("request", (r) => { const url = new URL(r.url()); if (url.pathname.endsWith("/ticks")) asked = url.searchParams.get("lanes"); });
    await page.goto(`${origin}/#code=${await code()}&from=${options.from}&to=${options.to}&${classes}`);
    await page.locator("[role=row]").first().waitFor();
    await settled(page);
    const drawn = await page.evaluate(() => {
      // What is dated before the record is in no bar. It is a number, beside the strip and below the lanes.
      const older = (where) => Number((/([\d,]+) (?:changes are )?dated before/.exec(document.querySelector(where).textContent)?.[1] ?? "0").replaceAll(",", ""));
      const { strip, density, marks } = globalThis.kuberewind.drawn, sum = (bars) => bars.reduce((n, b) => n + Object.values(b.counts).reduce((a, c) => a + c, 0), 0);
      return { strip: sum(strip) + older(".strip-note"), density: sum(density) + older(".lanes > .read"), marks: marks.map((m) => [m.lane, m.count]), rows: globalThis.bench.rows().length };
    });
    const lanes = Object.fromEntries(asked.split(",").slice(0, drawn.rows).map((id) => [id, 0]));
    for (const [lane, n] of drawn.marks) lanes[lane] += n;
    say({ from: options.from, to: options.to, strip: drawn.strip, density: drawn.density, lanes });
  },

  /** scrub drags on the strip and on the lanes, steps, zooms and opens objects, for as long as it is told. */
  async scrub(made, browser) {
    const page = await open(made, "last=6h", true), until = Date.now() + options.Seconds * 1000, canvas = page.locator(".lanes-canvas"), strip = page.locator(".strip-canvas");
    let moves = 0;
    const drag = async (where) => {
      const box = await where.boundingBox(), y = box.y + Math.min(30, box.height / 2), at = () => box.x + box.width * (0.05 + 0.9 * (((moves * 7919) % 1000) / 1000));
      await page.mouse.move(at(), y);
      await page.mouse.down();
      moves++;
      await page.mouse.move(at(), y, { steps: 12 });
      await page.mouse.up();
    };
    while (Date.now() < until) {
      await drag(strip);
      await drag(canvas);
      await page.keyboard.press(moves % 3 ? "ArrowLeft" : "ArrowRight");
      await page.keyboard.press(moves % 5 ? "-" : "6");
      const rows = page.locator(".rows [role=row]"), n = await rows.count();
      if (n > 0) await rows.nth(moves % Math.min(n, 10)).click({ force: true, timeout: 5000 }).catch(() => undefined); // The lanes may have changed under it.
      moves += 3;
    }
    await settled(page);
    const tab = await made.newCDPSession(page);
    await tab.send("HeapProfiler.collectGarbage");
    const heap = await tab.send("Runtime.getHeapUsage"), whole = await browser.newBrowserCDPSession();
    const renderers = (await whole.send("SystemInfo.getProcessInfo")).processInfo.filter((p) => p.type === "renderer");
    const resident = await Promise.all(renderers.map(async (p) => Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${p.id}/status`, "utf8").catch(() => ""))?.[1] ?? 0)));
    say({ heap: (heap.usedSize + (heap.embedderHeapUsedSize ?? 0) + (heap.backingStorageSize ?? 0)) / 1e6, "resident memory of the tab": (Math.max(...resident) * 1024) / 1e6, "drags, steps and clicks": moves });
  },

  /** commits tells when the marks of a lane were drawn, until its input ends and all is still. */
  async commits(made) {
    const page = await open(made, "last=1h", true);
    await settled(page);
    await page.evaluate((lane) => {
      const seen = (globalThis.bench.seen = []);
      let last = globalThis.kuberewind.drawn.marks.reduce((most, m) => (m.lane === lane ? Math.max(most, m.seq) : most), 0);
      const look = () => {
        const now = globalThis.kuberewind.drawn.marks.reduce((most, m) => (m.lane === lane ? Math.max(most, m.seq) : most), 0);
        if (now > last) seen.push({ Seq: (last = now), At: performance.timeOrigin + performance.now() });
        requestAnimationFrame(look);
      };
      look();
    }, options.lane);
    say("ready");
    for await (const _ of process.stdin) { /* It only ends. */ }
    for (let same = 0, n = -1; same < 4;) { // The tail is asked for each 500 ms.
      await new Promise((done) => setTimeout(done, 500));
      await settled(page);
      const now = await page.evaluate(() => globalThis.bench.seen.length);
      same = now === n ? same + 1 : 0;
      n = now;
    }
    say(await page.evaluate(() => globalThis.bench.seen));
  },
};

const browser = await launch();
try {
  const made = await user(browser);
  await rest(browser, made.context);
  await figures[figure](made.context, browser);
  if (made.faults.length > 0) throw new Error(`the page has faults: ${made.faults.join("\n")}`);
} finally {
  await browser.close();
}
