// Every page of the server: nothing serious for axe in light and dark, nothing wider than a phone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { close, closeBrowser, serious } from "./harness.mjs";
import { PAGES, pageRoutes, show, startScene } from "./scene.mjs";

const PHONE = { viewport: { width: 390, height: 780 }, hasTouch: true };
let scene;

before(async () => {
  scene = await startScene();
});
after(async () => {
  await closeBrowser();
  await scene?.server.remove();
});

test("the table has every page of the server", () => {
  const routes = pageRoutes();
  assert.ok(routes.length > 15, `${routes}`);
  const known = new Set(PAGES.map(({ route }) => route));
  assert.deepEqual(routes.filter((route) => !known.has(route)), [], "pages without a row in scene.mjs");
  assert.deepEqual([...known].filter((route) => !routes.includes(route)), [], "rows of pages that are gone");
});

/** What is wider than the screen, and does not scroll by itself. */
const wide = (page) =>
  page.evaluate(() => {
    const { clientWidth, scrollWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const out = [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > clientWidth + 1);
    return [`${scrollWidth} px`, ...out.slice(0, 5).map((one) => one.outerHTML.slice(0, 120))];
  });

for (const row of PAGES) {
  test(`axe finds nothing serious, and a phone is wide enough: ${row.name}`, async () => {
    const page = await show(scene, row, { bypassCSP: true, colorScheme: "light" });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await serious(page), [], colorScheme);
    }
    await close(page);
    for (const locale of ["en-US", "ko-KR"]) {
      const phone = await show(scene, row, { ...PHONE, locale });
      assert.deepEqual(await wide(phone), [], locale);
      await close(phone);
    }
  });
}
