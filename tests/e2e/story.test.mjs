// The whole way of a change: written, proposed, reviewed by somebody else, merged, and told to a client that was connected all along.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { close, closeBrowser, ready, startServer, textOf, typeAtEnd, until } from "./harness.mjs";

const POLICY = '[[approval]]\npaths = ["prompts/**"]\n';
const HELLO = "---\ndescription: Says hello\n---\nHello.\n";
let server;

before(async () => {
  server = await startServer({
    files: { "prompts/hello.md": HELLO, "cuebook.toml": POLICY },
    people: { ana: [["author", "**"]], ben: [["publisher", "**"]], ide: [["reader", "**"]] },
  });
});
after(async () => {
  await closeBrowser();
  await server?.remove();
});

/** A client of an editor, connected until the end, with the lists it was told of. */
async function connect(mode) {
  const told = [];
  const client = new Client(
    { name: "somebody's editor", version: "1" },
    {
      versionNegotiation: { mode },
      listChanged: { prompts: { debounceMs: 0, onChanged: (error, prompts) => told.push(error ?? prompts.map(({ name }) => name).sort()) } },
    },
  );
  const headers = { Authorization: `Bearer ${server.tokens.ide}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { requestInit: { headers } }));
  return { client, told };
}

test("a prompt is written, proposed, reviewed, merged, and a client that was connected is told and gets it", async () => {
  const clients = [await connect("legacy"), await connect("auto")];
  for (const { client } of clients) assert.deepEqual((await client.listPrompts()).prompts.map(({ name }) => name), ["hello"]);
  const [author, reviewer] = [await server.page("ana"), await server.page("ben")];

  // the author writes, and sees what it renders to
  await author.goto(`${server.url}/new`);
  await author.getByLabel("Name", { exact: true }).fill("ask-first");
  await author.getByRole("button", { name: "Begin to write" }).click();
  await author.waitForSelector("html[data-editor=ready]");
  await typeAtEnd(author, "Ask first what changed about {{ topic }}.\n");
  await author.waitForFunction(() => document.querySelector(".ed-messages")?.textContent.includes("Ask first what changed about the checkout service."));
  // what the check refuses is proposed to nobody: it is under its line, and the text and its message are there
  const wrong = "{{ nmae }}\n";
  await typeAtEnd(author, wrong);
  await author.keyboard.press("Control+s");
  await author.locator("dialog[open] #ed-message").fill("Ask by name");
  await author.locator("dialog[open] button[value=propose]").click();
  await author.waitForFunction(() => !document.querySelector("dialog[open]"));
  await author.locator("#ed-host .cm-lintRange-error", { hasText: "nmae" }).waitFor();
  assert.match(await textOf(author), /\{\{ nmae \}\}/);
  assert.deepEqual((await server.api("/api/v1/proposals")).proposals, []);
  await typeAtEnd(author, "");
  for (let n = 0; n < wrong.length; n += 1) await author.keyboard.press("Backspace");
  await author.waitForFunction(() => document.querySelector("#ed-count").dataset.state !== "error");
  await author.keyboard.press("Control+s");
  assert.equal(await author.locator("dialog[open] #ed-message").inputValue(), "Ask by name");
  await author.locator("dialog[open] .ed-effects", { hasText: "ask-first" }).waitFor();
  assert.equal(await author.locator("dialog[open] button[value=publish]").count(), 0, "an author proposes");
  await author.locator("dialog[open] #ed-message").fill("Ask what changed\n\nIt is the change, most of the time.");
  await author.locator("dialog[open] button[value=propose]").click();
  await author.getByRole("link", { name: "Open it" }).click();
  await author.waitForURL("**/proposals/1");
  await ready(author);
  assert.match(await author.locator("main").innerText(), /Ask first what changed about the checkout service\./);
  assert.equal(await author.getByRole("button", { name: "Approve" }).count(), 0, "nobody approves their own");
  assert.ok(await author.getByRole("button", { name: "Merge into main" }).isDisabled());

  // a title and a description that are refused stay in their fields, also when the page is opened again
  const title = author.locator("input[name=title]");
  const description = author.locator("form:has(input[name=tag]) textarea");
  await author.getByText("Edit title and description").click();
  await author.evaluate(() => (document.querySelector("input[name=tag]").value = "stale"));
  await title.fill("Ask what changed, first");
  await description.fill("Most of the time\nit is the change.");
  await author.locator("button[value=rename]").click();
  await author.waitForSelector('.notice.bad[role="alert"]');
  await author.goto(`${server.url}/proposals/1`);
  await ready(author);
  assert.equal(await title.inputValue(), "Ask what changed, first");
  assert.equal(await description.inputValue(), "Most of the time\nit is the change.");
  await author.locator("button[value=rename]").click();
  await author.locator("h1", { hasText: "Ask what changed, first" }).waitFor();
  await ready(author);
  assert.equal(await author.evaluate(() => sessionStorage.length), 0, "what is shown is not kept");

  // the reviewer is told by the inbox, and comments on a line
  await reviewer.goto(`${server.url}/inbox`);
  await reviewer.locator("[data-row]", { hasText: "Ask what changed" }).click();
  await reviewer.waitForURL("**/proposals/1");
  await ready(reviewer);
  assert.ok(await reviewer.getByRole("button", { name: "Merge into main" }).isDisabled(), "without an approval");
  const line = reviewer.locator('article[data-path="prompts/ask-first.md"] .line', { hasText: "Ask first what changed" }).last();
  await line.locator("a[data-at]").click();
  await reviewer.locator(".new-comment textarea").fill("And since when?");
  await reviewer.locator(".new-comment button[value=comment]").click();
  await reviewer.locator(".thread", { hasText: "And since when?" }).waitFor();

  // the author finds the answer, answers it, and resolves it
  await author.goto(`${server.url}/inbox`);
  await author.locator("[data-row]", { hasText: "Ask what changed" }).click();
  const thread = author.locator(".thread", { hasText: "And since when?" });
  await thread.locator("> details > summary").click();
  await thread.locator("textarea").fill("They say so by themselves.");
  await thread.locator("button[value=comment]").click();
  await thread.locator("p", { hasText: "They say so by themselves." }).waitFor();
  await thread.locator("> details > summary").click();
  await thread.locator("button[value=resolve]").click();
  await author.getByText("Resolved by ana").waitFor();

  // the reviewer approves, and merges
  await reviewer.reload();
  await reviewer.locator(".thread p", { hasText: "They say so by themselves." }).waitFor({ state: "attached" });
  await reviewer.locator("#message").fill("Good.");
  await reviewer.getByRole("button", { name: "Approve" }).click();
  await reviewer.locator(".verdict.approve", { hasText: "Good." }).waitFor();
  for (const { told } of clients) assert.deepEqual(told, [], "nothing is published yet");
  await reviewer.getByRole("button", { name: "Merge into main" }).click();
  await reviewer.getByText("Merged by ben").waitFor();
  assert.match(server.onMain("prompts/ask-first.md").toString(), /Ask first what changed/);

  for (const { client, told } of clients) {
    assert.deepEqual(await until(() => told[0], "a notice"), ["ask-first", "hello"]);
    const { messages } = await client.getPrompt({ name: "ask-first", arguments: { topic: "the queue" } });
    assert.match(messages[0].content.text, /Ask first what changed about the queue\./);
    await client.close();
  }
  await close(author, reviewer);
});

test("without a script, what was typed outlives its session and is sent from the page that says so", async () => {
  const page = await server.page("ana", { javaScriptEnabled: false });
  await page.goto(`${server.url}/edit/prompts/hello.md`);
  await page.locator("textarea[name=text]").fill(HELLO.replace("Hello.", "Hello, all."));
  await page.locator("input[name=message]").fill("Greet all");
  const session = await page.context().cookies();
  await page.context().clearCookies();
  await page.locator("button[value=propose]").click();
  await page.getByRole("heading", { name: "Please say who you are" }).waitFor();
  assert.match(await page.locator("textarea[name=text]").inputValue(), /Hello, all\./);
  // signed in again, in another tab; the token of the form was nobody's
  await page.context().addCookies(session);
  await page.getByRole("button", { name: "Send it again" }).click();
  await page.getByRole("heading", { name: "That is not allowed" }).waitFor();
  await page.getByRole("button", { name: "Send it again" }).click();
  await page.waitForURL(/\/proposals\/\d+$/);
  assert.match(await page.locator("main").innerText(), /Hello, all\./);
  await close(page);
});
