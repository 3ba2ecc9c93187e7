// V6: fifty people save at once, from fifty pages.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeBrowser, newPage, openEditor, startServer, textOf, typeAtEnd } from "./harness.mjs";

const COUNT = 50;
const SHARED = "prompts/many/shared.md";
const own = (n) => `prompts/many/own-${n}.md`;
const people = [...Array(COUNT).keys()];
const text = (what) => `---\ndescription: ${what}\n---\nHello.\n`;

let server;
let pages = [];

before(async () => {
  const files = Object.fromEntries(people.map((n) => [own(n), text(`Of ${n}`)]));
  server = await startServer({ files: { ...files, [SHARED]: text("Of all") } });
  // one browser, fifty windows; each keeps to itself what its answers were
  const first = await newPage();
  pages = [first, ...(await Promise.all(people.slice(1).map(() => first.context().newPage())))];
});
after(async () => {
  await closeBrowser();
  await server?.remove();
});

/** Opens the editor of each page, then types a line of its own into each, and waits with the dialog open. */
async function type(pathOf) {
  // one after the other, so that a slow machine is no slow page
  for (const n of people) await openEditor(pages[n], `${server.url}/edit/${pathOf(n)}`);
  for (const n of people) {
    await typeAtEnd(pages[n], `Line of ${n}.\n`);
    await pages[n].keyboard.press("Control+s");
    await pages[n].locator("dialog[open] button[value=publish]").waitFor();
  }
}

/** Presses every button at once; gives what each was answered. */
const save = () =>
  Promise.all(
    pages.map(async (page) => {
      const answer = page.waitForResponse((response) => response.url().endsWith("/api/v1/changes"));
      await page.evaluate(() => document.querySelector("dialog[open] button[value=publish]").click());
      return (await answer).status();
    }),
  );

test("V6: fifty saves of fifty files at once: all are published", async () => {
  await type(own);
  assert.deepEqual(await save(), people.map(() => 200));
  for (const n of people) {
    await pages[n].waitForSelector(".ed-banner.good", { state: "attached" });
    assert.equal(server.onMain(own(n)).toString(), `${text(`Of ${n}`)}Line of ${n}.\n`);
  }
});

test("V6: fifty saves of one file at once: one is published, the others are told and keep their text", async () => {
  await type(() => SHARED);
  const answers = await save();
  const winners = people.filter((n) => answers[n] === 200);
  assert.equal(winners.length, 1, `${answers}`);
  assert.ok(answers.every((status) => status === 200 || status === 409), `${answers}`);
  const [winner] = winners;
  assert.equal(server.onMain(SHARED).toString(), `${text("Of all")}Line of ${winner}.\n`);
  for (const n of people.filter((n) => n !== winner)) {
    const dialog = pages[n].locator("dialog[open].ed-merge");
    await dialog.waitFor();
    const seen = await dialog.textContent();
    assert.ok(seen.includes(`Line of ${n}.`) && seen.includes(`Line of ${winner}.`), `${n} sees both: ${seen}`);
    await pages[n].evaluate(() => document.querySelector("dialog[open].ed-merge .ed-actions [type=button]").click());
    assert.ok((await textOf(pages[n])).includes(`Line of ${n}.`), `${n} has its text`);
  }
});
