// Drags the cursor of the page for tests of other programs: node drag.mjs LINK NAME. It makes a session of that name, and says so in a line.
// Then it drags the cursor to each time that a line of its input names, and answers with the seq at which the clock of the session stands.
import { createInterface } from "node:readline";
import { at, launch, patience, placeOf, settled } from "./browser.mjs";

const [link, name] = process.argv.slice(2), browser = await launch();

/** drag moves the cursor as a hand does, and waits until the clock is where it was released. */
async function drag(page, from, to) {
  const before = await at(page);
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(to.x, to.y, { steps: 8 });
  await page.mouse.up();
  await page.waitForFunction((seq) => { const found = /[#&]at=seq:(\d+)/.exec(location.hash); return found && found[1] !== seq; }, before);
  await page.locator(".session-clock", { hasText: `seq:${await at(page)}.` }).waitFor();
  return at(page);
}

try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(patience);
  await page.goto(`${link}&panel=session`);
  await page.locator("[role=row]").first().waitFor();
  await settled(page);
  await page.getByLabel("name", { exact: true }).fill(name);
  await page.getByRole("button", { name: "make a session at this instant" }).click();
  await page.locator(".driving", { hasText: name }).waitFor();
  console.log("made");
  for await (const time of createInterface({ input: process.stdin })) {
    const to = await placeOf(page, time);
    console.log(await drag(page, { x: to.x + 40, y: to.y }, to));
  }
} finally {
  await browser.close();
}
