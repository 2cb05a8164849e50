// Looks for the cause of each fault on the page, as a user would who knows the namespace, the workload, the symptom and when it was noticed.
//
//     node find.mjs TRIALS.json ANSWERS.json
//
// There is one way for all faults: open the page at the moment of noticing, search the workload by its name, go to it, and ask what changed around it. The first
// change of that list is the answer, unless the page says that no change can be named. All that is read is visible text. Each key and each opening is an action.
import { readFile, writeFile } from "node:fs/promises";
import { context, launch, origin, settled } from "../browser.mjs";

const kinds = ["Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "Pod"]; // of workloads
const [from, to] = process.argv.slice(2), trials = JSON.parse(await readFile(from, "utf8"));

/** A hand does what a user does, and counts. */
class Hand {
  actions = [];
  constructor(page) { this.page = page; }

  async act(name, does) {
    this.actions.push(name);
    await does();
    await settled(this.page);
  }

  press(key) { return this.act(key, () => this.page.keyboard.press(key)); }
  type(text) { return this.act(`type ${text}`, () => this.page.keyboard.type(text)); }
}

/** visible gives the visible text of each element, in one line. */
const visible = async (of, selector) => (await of.locator(selector).allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim());

async function find(user, trial) {
  const page = await user.newPage(), hand = new Hand(page);
  await hand.act(`open ${trial.noticed}`, async () => {
    await page.goto(`${origin}/#at=${trial.noticed}`);
    await page.locator("[role=row]").first().waitFor();
    await page.locator(".clock", { hasText: "seq:" }).waitFor();
  });
  const trouble = (await visible(page, ".troubles li")).filter((text) => text.includes(`${trial.namespace}/${trial.workload}`)).join(" | ");
  await hand.press("/");
  await hand.type(`${trial.workload}*`); // what begins with the name: its own Pods have it, too
  await hand.press("Escape");
  await goTo(hand, trial);
  await hand.press("f");
  await page.locator("#tabpanel .changes, #tabpanel .error").first().waitFor();
  const answer = { actions: hand.actions, trouble, ...(await read(page.locator("#tabpanel"))) };
  await page.close();
  return answer;
}

/** goTo goes to the row of the workload, by arrows. */
async function goTo(hand, trial) {
  const rows = [];
  for (const row of await hand.page.locator(".lanes [role=row]").all())
    rows.push({ kind: (await visible(row, ".kind")).join(""), name: (await visible(row, ".start, .end")).join(""), namespace: (await visible(row, ".space")).join("") });
  const wanted = (r) => kinds.includes(r.kind) && r.name === trial.workload && r.namespace === trial.namespace, place = rows.findIndex(wanted);
  if (place < 0) throw new Error(`no row of ${trial.namespace}/${trial.workload}: ${JSON.stringify(rows)}`);
  await hand.press("ArrowUp"); // the first row
  for (let i = 0; i < place; i++) await hand.press("ArrowDown");
  await hand.press("Enter");
}

/** read reads the list of changes around the workload. */
async function read(list) {
  const unknown = (await visible(list, ".unknown")).join(" ");
  if (unknown) return { unknown };
  const row = list.locator(".changes li").first();
  if ((await row.count()) === 0) return { unknown: (await list.innerText()).trim() };
  const kind = (await visible(row, ".subject .kind")).join(""), subject = (await visible(row, ".subject")).join("");
  const changes = [];
  for (const step of await row.locator(".diff > li").all()) {
    const path = (await visible(step, ".path")).join("").replace(/^[^/]*/, "");
    if (path) changes.push({ path, new: (await step.locator(".side.new .value").allInnerTexts()).join("") });
  }
  return { kind, object: subject.slice(kind.length).replaceAll(" ", ""), changes };
}

const browser = await launch();
try {
  const { context: user, faults } = await context(browser), first = await user.newPage();
  await first.goto(process.env.KUBEREWIND_LINK);
  await first.locator("[role=row]").first().waitFor();
  const answers = [];
  for (const trial of trials) answers.push(await find(user, trial));
  if (faults.length > 0) throw new Error(faults.join("\n"));
  await writeFile(to, JSON.stringify(answers));
} finally {
  await browser.close();
}
