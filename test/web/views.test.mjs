// Each view of the page, in both themes: it has its answer, and axe finds nothing serious.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axe, context, launch, open, settled } from "./browser.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

for (const scheme of ["dark", "light"]) {
  test(`each view of an object and of two instants has its answer, ${scheme}`, async () => {
    const { context: user, faults } = await context(browser, { scheme }), page = await open(user, "resource=deployments.apps&namespace=shop&name=web", true);
    for (const [key, shows] of [["d", "What changed"], ["f", "Changed around it"], ["y", "kind: Deployment"], ["m", "kind: Deployment"], ["r", "Rollouts"], ["v", "on record"], ["w", "Changes in the window"]]) {
      await page.keyboard.press(key);
      await page.locator(".panel").getByText(shows).first().waitFor();
      await settled(page);
      assert.equal(await page.locator(".error").count(), 0, key);
      assert.deepEqual(await axe(page), [], key);
    }
    await page.keyboard.press("d");
    await page.keyboard.press("ArrowLeft");
    await page.waitForFunction(() => location.hash.includes("at=seq:"));
    const paths = page.locator(".part .diff:not(.short) .path"), folded = page.getByRole("button", { name: /^bookkeeping of the API server/ });
    await folded.waitFor();
    const kept = paths.filter({ hasText: /metadata.(managedFields|generation|resourceVersion)/ });
    assert.equal(await kept.count(), 0);
    await folded.click();
    await kept.first().waitFor();
    await page.keyboard.press("a");
    await page.keyboard.press("n");
    await page.locator(".sums").getByText("changed").first().waitFor();
    await page.locator(".compared button").first().click();
    await page.locator(".compared .diff li").first().waitFor();
    assert.equal(await page.locator(".error").count(), 0);
    assert.deepEqual(await axe(page), []);
    assert.deepEqual(faults, []);
    await user.close();
  });
}
