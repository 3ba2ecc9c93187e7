// Everything that people write is hostile, on every page: nothing of it runs, and what is hidden in it is shown.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { close, closeBrowser, ready } from "./harness.mjs";
import { PAGES, show, startScene } from "./scene.mjs";

const BAD = `"'><script>alert("ran")</script><img src=x onerror=alert("ran")><svg onload=alert("ran")>\u202Etxet\u200B`;
const WORDS = {
  title: BAD,
  text: `${BAD}</pre></textarea></del></ins> [x](javascript:alert("ran")) <a href="javascript:alert('ran')">x</a>`,
  // git takes < and > out of a name
  person: BAD,
  client: '<script>alert("ran")</script><img src=x onerror=alert("ran")>',
  folder: `<img src=x onerror=alert("ran")>\u202E`,
};
// what people wrote stands in these
const SHOWN = [
  "library", "prompt", "version", "versions", "blame", "diff", "restore", "promote", "activity", "proposals", "proposal", "answering", "merged", "closed", "conflicting", "conflicts", "inbox", "answers", "settings", "people",
];

let scene;

before(async () => {
  scene = await startScene(WORDS);
});
after(async () => {
  await closeBrowser();
  await scene?.server.remove();
});

/** Hidden characters where people read: texts and names that are said aloud. What is typed or copied keeps every byte. */
const hidden = (page) =>
  page.evaluate(() => {
    const bad = /[\u200B\u200E\u200F\u202A-\u202E\u2066-\u2069]/;
    const out = bad.test(document.title) ? ["the window's title"] : [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const { data, parentElement } = texts.currentNode;
      if (bad.test(data) && !parentElement.closest("textarea, script")) out.push(`${parentElement.tagName}: ${data.slice(0, 80)}`);
    }
    for (const one of document.querySelectorAll("[title], [aria-label], [alt], [placeholder]")) {
      for (const name of ["title", "aria-label", "alt", "placeholder"]) {
        if (bad.test(one.getAttribute(name) ?? "")) out.push(`${name} of ${one.tagName}: ${one.getAttribute(name).slice(0, 80)}`);
      }
    }
    return out;
  });

async function harmless(page) {
  assert.equal(await page.locator('a[href^="javascript:" i], img[src="x"], body script, svg[onload], [onerror]').count(), 0);
  await close(page);
}

for (const row of PAGES) {
  test(`nothing that people wrote runs: ${row.name}`, async () => {
    const page = await show(scene, row);
    assert.deepEqual(await hidden(page), []);
    if (SHOWN.includes(row.name)) assert.match(await page.locator("main").innerText(), /<U\+202E>/, "it is not shown at all");
    await harmless(page);
  });
}

for (const path of [
  "/?q=%3Cscript%3Ealert(1)%3C/script%3E",
  "/?folder=%3Cimg%20src=x%20onerror=alert(1)%3E&tag=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
  "/prompts/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
  "/proposals?state=%3Cscript%3Ealert(1)%3C/script%3E",
  "/proposals/1?at=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
  "/prompts/scene/versions?done=%3Cscript%3Ealert(1)%3C/script%3E",
  "/login?next=javascript:alert(1)",
  "/setup?code=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
]) {
  test(`nothing of an address runs: ${path}`, async () => {
    const page = await scene.server.page("ana");
    await page.goto(scene.server.url + path);
    await ready(page);
    await harmless(page);
  });
}

test("what is typed into a review, completed and copied stays text", async () => {
  const page = await scene.server.page("ben");
  await page.goto(`${scene.server.url}/proposals/${scene.open}`);
  await ready(page);
  await page.locator("a[data-at]").first().click();
  await page.locator(".new-comment textarea").fill(WORDS.text);
  await page.locator(".new-comment button[value=comment]").click();
  await page.waitForURL(/#t\d+$/);
  await ready(page);
  assert.deepEqual(await hidden(page), []);
  // refused, it comes back in its field, and runs there no more than elsewhere
  await page.evaluate(() => (document.querySelector('#message').form.elements.head.value = "0".repeat(40)));
  await page.locator("#message").fill(WORDS.text);
  await page.locator("button[value=approve]").click();
  await page.waitForSelector('.notice.bad[role="alert"]');
  assert.equal(await page.locator("#message").inputValue(), WORDS.text);
  await page.keyboard.press("Control+k");
  await page.waitForSelector("dialog.palette[open]");
  await page.keyboard.type("scene");
  await page.locator("[role=option]", { hasText: "/scene" }).waitFor();
  assert.deepEqual(await hidden(page), []);
  await harmless(page);
});
