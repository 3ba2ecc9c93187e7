// Everything with the keyboard alone: the focus is always seen, is never lost, and goes back where it came from.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { close, closeBrowser, ready } from "./harness.mjs";
import { PAGES, show, startScene } from "./scene.mjs";

let scene;
let server;

before(async () => {
  scene = await startScene();
  ({ server } = scene);
});
after(async () => {
  await closeBrowser();
  await server?.remove();
});

/** What has the focus, in words; null where nothing has. */
const focused = (page) =>
  page.evaluate(() => {
    const at = document.activeElement;
    return at && at !== document.body && at !== document.documentElement ? at.outerHTML.slice(0, 160) : null;
  });

/** Presses Tab until what is wanted has the focus. */
async function tabTo(page, selector, key = "Tab") {
  for (let i = 0; i < 300; i++) {
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector)) return;
    await page.keyboard.press(key);
  }
  assert.fail(`${selector} is not reached by ${key}; at ${await focused(page)}`);
}

test("from the search to a proposal", async () => {
  const page = await server.page("ana");
  await page.goto(server.url);
  await ready(page);
  await page.keyboard.press("/");
  await page.keyboard.type("postmor");
  await page.waitForFunction(() => location.search.includes("q=postmor") && document.querySelector("[data-row]")?.getAttribute("href") === "/prompts/postmortem");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/prompts/postmortem");
  await ready(page);
  await tabTo(page, 'a[href^="/edit/"]');
  await page.keyboard.press("Enter");
  await page.waitForSelector("html[data-editor=ready]");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "ed-host", "one can type at once");
  await page.keyboard.press("Control+End");
  await page.keyboard.type("Say who was told, and when.\n");
  await page.keyboard.press("Control+s");
  await page.waitForSelector("dialog[open] .ed-effects");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "ed-message");
  // back to the text, which has the focus again, and once more
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog[open]", { state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement?.id), "ed-host");
  await page.keyboard.press("Control+s");
  await page.waitForSelector("dialog[open]");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("Say who was told");
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector(".ed-banner.good");
  assert.ok(await focused(page), "the focus is lost after a proposal");
  await tabTo(page, '.ed-banner a[href^="/proposals/"]', "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/proposals/*");
  assert.match(await page.locator("h1").innerText(), /Say who was told/);
  await close(page);
});

test("a review: the changes one by one, a comment, an approval, the merge", async () => {
  const { number } = await server.api("/api/v1/proposals", { title: "By keys", base: await server.tip(), files: { "partials/scene.md": "One.\n\nTwo.\n" } }, { who: "ana" });
  const page = await server.page("ben");
  await page.goto(`${server.url}/proposals`);
  await ready(page);
  await page.keyboard.press("j");
  assert.match(await focused(page), new RegExp(`/proposals/${number}"`));
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/proposals/${number}`);
  await ready(page);
  // j and k walk the changed lines
  const at = () => page.evaluate(() => document.activeElement?.getAttribute("data-at"));
  await page.keyboard.press("j");
  const first = await at();
  await page.keyboard.press("j");
  const second = await at();
  assert.ok(first && second && first !== second, `${first} ${second}`);
  await page.keyboard.press("k");
  assert.equal(await at(), first);
  await page.keyboard.press("c");
  assert.equal(await page.evaluate(() => document.activeElement?.closest("form")?.className), "new-comment stack");
  await page.keyboard.type("Why this line?");
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector(".thread");
  await ready(page);
  assert.match(await page.locator(".thread").first().innerText(), /Why this line\?/);
  // one goes on where one was
  await page.keyboard.press("Tab");
  assert.ok(await page.evaluate(() => document.activeElement?.closest(".thread") !== null), `after a comment the focus is at ${await focused(page)}`);
  await tabTo(page, "button[value=approve]");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".verdict.approve");
  await ready(page);
  await page.keyboard.press("Tab");
  assert.ok(await page.evaluate(() => document.activeElement?.closest("#said, aside") !== null), `after an approval the focus is at ${await focused(page)}`);
  await tabTo(page, "button[value=merge]");
  await page.keyboard.press("Enter");
  await page.getByText("Merged by ben").waitFor();
  assert.equal(server.onMain("partials/scene.md").toString(), "One.\n\nTwo.\n");
  await close(page);
});

test("Escape closes what is open, and the focus goes back", async () => {
  const page = await server.page("ana");
  await page.goto(server.url);
  await ready(page);
  await page.keyboard.press("j");
  const row = await focused(page);
  for (const [key, open] of [["Control+k", "dialog.palette[open]"], ["?", "dialog[open] .keys"]]) {
    await page.keyboard.press(key);
    await page.waitForSelector(open);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog[open]", { state: "detached" });
    assert.equal(await focused(page), row, `after ${key}`);
  }
  // the palette opens what is chosen
  await page.keyboard.press("Control+k");
  await page.waitForSelector("dialog.palette[open]");
  await page.keyboard.type("/activity");
  await page.waitForFunction(() => document.querySelector('[role=option][aria-selected="true"]')?.textContent?.includes("/activity"));
  await page.keyboard.press("Enter");
  await page.waitForURL("**/activity");
  await page.goto(`${server.url}/edit/prompts/sre/postmortem.md`);
  await page.waitForSelector("html[data-editor=ready]");
  await tabTo(page, "#ed-rename", "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#ed-rename-dialog[open]");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog[open]", { state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement?.id), "ed-rename");
  await close(page);
});

for (const row of PAGES.filter(({ then }) => !then)) {
  test(`the first Tab skips to the content, and each after it is seen: ${row.name}`, async () => {
    const page = await show(scene, row);
    // the editor has begun with the focus in its text
    await page.evaluate(() => document.activeElement?.blur());
    const isSkip = () => page.evaluate(() => document.activeElement?.matches(".skip") ?? false);
    if (row.go) await page.evaluate(() => document.querySelector(".skip").focus());
    else await page.keyboard.press("Tab");
    assert.ok(await isSkip(), `the first is ${await focused(page)}`);
    await page.waitForFunction(() => document.activeElement.getBoundingClientRect().top >= 0);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement?.id === "main");
    const unseen = [];
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press("Tab");
      const [isEnd, what] = await page.evaluate(() => {
        const at = document.activeElement;
        if (!at || at === document.body) return [true, ""];
        const shows = (one) => {
          const style = getComputedStyle(one);
          return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
        };
        // the frame of the text is drawn around it
        const seen = shows(at) || (at.id === "ed-host" && shows(at.closest(".ed-text")));
        const { width, height } = at.getBoundingClientRect();
        return [false, seen && width > 0 && height > 0 ? "" : at.outerHTML.slice(0, 160)];
      });
      if (isEnd) break;
      if (what) unseen.push(what);
    }
    assert.deepEqual(unseen, []);
    await close(page);
  });
}
