import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeBrowser, newPage, ready, startServer } from "./harness.mjs";

let server;

before(async () => {
  server = await startServer({ language: "ko" });
});
after(async () => {
  await closeBrowser();
  await server.remove();
});

test("someone finds a prompt by Korean initials, fills it in and sees it rendered", async () => {
  const page = await newPage();
  await page.goto(server.url);
  await ready(page);
  await page.getByRole("searchbox").fill("ㅈㅇ ㅊㄷ");
  await page.waitForFunction(() => document.querySelector("[data-row]")?.getAttribute("href") === "/prompts/incident-triage" && location.search.includes("q="));
  await page.locator('[data-row][href="/prompts/incident-triage"]').click();
  await page.waitForURL("**/prompts/incident-triage");
  await ready(page);
  const rendered = page.waitForResponse((response) => response.request().method() === "POST" && response.url().endsWith("/prompts/incident-triage"));
  await page.locator("#a\\.ticketId").fill("INC-7777");
  await rendered;
  await page.waitForFunction(() => document.querySelector("#rendered pre")?.textContent?.includes("INC-7777"));
  assert.match(await page.locator("#commands").innerText(), /INC-7777/);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("values are completed by the server, by keyboard alone", async () => {
  const page = await newPage();
  await page.goto(`${server.url}/prompts/incident-triage`);
  await ready(page);
  const field = page.locator("#a\\.severity");
  await field.focus();
  await field.fill("");
  await page.waitForSelector(".offers:not([hidden]) [role=option]");
  const offered = await page.locator(".offers:not([hidden]) [role=option]").first().innerText();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  assert.equal(await field.inputValue(), offered);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("the keyboard is enough: search, rows, palette, shortcuts", async () => {
  const page = await newPage();
  await page.goto(server.url);
  await ready(page);
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("type")), "search");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  const row = await page.evaluate(() => document.activeElement?.getAttribute("href"));
  assert.match(row, /^\/prompts\//);
  await page.keyboard.press("Enter");
  await page.waitForURL(`**${row}`);
  await ready(page);
  await page.keyboard.press("Control+k");
  await page.waitForSelector("dialog.palette[open]");
  await page.keyboard.type("postmortem");
  await page.waitForFunction(() => document.querySelector('[role=option][aria-selected="true"]')?.textContent?.includes("/postmortem"));
  await page.keyboard.press("Enter");
  await page.waitForURL("**/prompts/postmortem");
  await ready(page);
  await page.keyboard.press("?");
  await page.waitForSelector("dialog[open] .keys");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("the theme and the language are kept", async () => {
  const page = await newPage({ colorScheme: "light" });
  await page.goto(server.url);
  await ready(page);
  await page.locator("[data-theme-switch]").click();
  await page.reload();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.getByRole("button", { name: "한국어" }).click();
  await page.waitForSelector('html[lang="ko"]');
  await page.goto(`${server.url}/prompts/postmortem`);
  assert.equal(await page.evaluate(() => document.documentElement.lang), "ko");
  await page.context().close();
});

test("a roll-back on a phone is three taps", async () => {
  const file = server.git("show", "HEAD:prompts/sre/postmortem.md");
  server.publish("Shorter", { "prompts/sre/postmortem.md": `${file}\nBe brief.\n` });
  const page = await newPage({ viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true });
  await page.goto(`${server.url}/prompts/postmortem`);
  await page.getByRole("link", { name: "Versions", exact: true }).tap();
  await page.waitForURL("**/versions");
  const row = page.locator(".versions > li").nth(1);
  await row.locator("summary", { hasText: "Restore" }).tap();
  await row.getByRole("button", { name: "Publish the text of v1" }).tap();
  await page.waitForSelector("text=Published as commit");
  assert.match(await page.locator(".versions > li").first().innerText(), /v3/);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
  assert.equal(wide, false, "the page is no wider than the phone");
  const got = await server.call("prompts/get", { name: "postmortem", arguments: exampleOf(file) });
  assert.ok(!JSON.stringify(got).includes("Be brief."), JSON.stringify(got).slice(0, 400));
  await page.context().close();
});

function exampleOf(file) {
  const names = [...file.matchAll(/^ {2}- name: (\w+)\n(?:.*\n)*?/gm)].map((found) => found[1]);
  return Object.fromEntries(names.map((name) => [name, "x"]));
}

test("a change is seen side by side, in the source and in what it renders to", async () => {
  const page = await newPage();
  await page.goto(`${server.url}/prompts/postmortem/diff?from=v1&to=v2`);
  const text = await page.locator("main").innerText();
  assert.match(text, /Be brief\./);
  assert.ok((await page.locator(".diff .add").count()) >= 2, "the source and an example");
  await page.context().close();
});

test("without scripts everything is there", async () => {
  const page = await newPage({ javaScriptEnabled: false });
  await page.goto(`${server.url}/?q=postmortem`);
  await page.locator('[data-row][href="/prompts/postmortem"]').click();
  await page.waitForURL("**/prompts/postmortem");
  const field = page.locator("#values textarea").first();
  await field.fill("without scripts");
  await page.getByRole("button", { name: "Render" }).click();
  assert.match(await page.locator("#rendered").innerText(), /without scripts/);
  await page.context().close();
});
