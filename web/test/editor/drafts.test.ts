import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

/** What one server has of drafts, by path, and what was asked of it. */
const server = new Map<string, { base: string | null; text: string; saved_at: number }>();
const asked: string[] = [];
let clock = 0;
/** Set to hold answers of the server back. */
let held: Promise<void> | undefined;

/** A browser of its own, whose clock says something else. */
function browser(): Map<string, string> {
  const items = new Map<string, string>();
  Object.assign(globalThis, {
    localStorage: {
      getItem: (key: string) => items.get(key) ?? null,
      setItem: (key: string, value: string) => items.set(key, value),
      removeItem: (key: string) => items.delete(key),
    },
  });
  return items;
}

Object.assign(globalThis, {
  document: { querySelector: () => null, documentElement: { lang: "en" } },
  fetch: async (url: string, { method, body }: { method: string; body?: string }) => {
    asked.push(`${method} ${url}`);
    if (method === "PUT") {
      const { path, base, text, on } = JSON.parse(body ?? "") as { path: string; base: string | null; text: string; on?: number };
      clock += 1;
      const saved_at = clock;
      const before = server.get(path)?.saved_at;
      server.set(path, { base, text, saved_at });
      await held;
      return new Response(JSON.stringify({ saved_at, elsewhere: on !== undefined && before !== undefined && before !== on }));
    }
    const query = new URL(url, "http://here").searchParams;
    const path = query.get("path") ?? "";
    if (server.get(path)?.saved_at === Number(query.get("saved_at"))) server.delete(path);
    return new Response(null, { status: 204 });
  },
});

beforeEach(() => {
  server.clear();
  asked.length = 0;
  held = undefined;
});

/** The drafts of a page that is opened at a path; `said` settles when the server has what was kept. */
async function page(path: string) {
  const { Drafts } = await import("../../src/editor/drafts");
  let ready = () => {};
  const said = () => new Promise<void>((settle) => (ready = settle));
  const seen = { elsewhere: 0 };
  const drafts = new Drafts(path, true, (where) => where === "server" && ready(), () => (seen.elsewhere += 1));
  const found = drafts.find(server.get(path) ?? null, "published");
  const put = async (text: string) => {
    const done = said();
    drafts.keep("c1", text);
    drafts.send();
    await done;
  };
  return { drafts, put, seen, texts: [found.draft?.text, ...found.others.map(({ text }) => text)] };
}

test("what this browser made on the server's draft is newer, whatever the clocks say", async () => {
  browser();
  // the server's clock is far ahead of this one
  clock = Date.now() + 3_600_000;
  const first = await page("prompts/a.md");
  await first.put("one");
  first.drafts.keep("c1", "two");
  assert.deepEqual((await page("prompts/a.md")).texts, ["two"]);
  await first.drafts.forget();
});

test("two drafts that know nothing of each other are both there, until one is given up", async () => {
  const here = browser();
  const mine = await page("prompts/a.md");
  await mine.put("one");
  mine.drafts.keep("c1", "mine, not sent");
  browser();
  const other = await page("prompts/a.md");
  assert.deepEqual(other.texts, ["one"]);
  await other.put("theirs");
  Object.assign(globalThis, { localStorage: { getItem: (key: string) => here.get(key) ?? null, setItem: (key: string, value: string) => here.set(key, value), removeItem: (key: string) => here.delete(key) } });
  const again = await page("prompts/a.md");
  assert.deepEqual(again.texts, ["mine, not sent", "theirs"]);
  // going on with one does not lose the other
  await again.put("mine, and more");
  const third = await page("prompts/a.md");
  assert.deepEqual(third.texts, ["mine, and more", "theirs"]);
  await third.drafts.forget();
  assert.deepEqual((await page("prompts/a.md")).texts, ["theirs"]);
  assert.deepEqual((await page("prompts/a.md")).texts, ["theirs"]);
  await mine.drafts.forget();
});

test("a draft that the server had is shown behind what took its place there", async () => {
  browser();
  const mine = await page("prompts/a.md");
  await mine.put("one");
  clock += 1;
  server.set("prompts/a.md", { base: "c1", text: "one, and more", saved_at: clock });
  assert.deepEqual((await page("prompts/a.md")).texts, ["one, and more", "one"]);
});

test("a draft that holds what is published is forgotten", async () => {
  const items = browser();
  server.set("prompts/a.md", { base: "c1", text: "published", saved_at: 7 });
  const { drafts, texts } = await page("prompts/a.md");
  assert.deepEqual(texts, [undefined]);
  await drafts.forget();
  assert.equal(server.size, 0);
  assert.equal(items.size, 0);
});

test("a draft goes on at the new path, and nothing is left at the old one", async () => {
  const items = browser();
  const { drafts, put } = await page("prompts/old.md");
  await put("one");
  let free = () => {};
  held = new Promise((settle) => (free = settle));
  drafts.keep("c1", "two");
  drafts.send();
  // the move does not wait for what is on its way
  const moved = drafts.move("prompts/new.md");
  assert.deepEqual([...items.keys()], ["cuebook-draft:prompts/new.md"]);
  drafts.keep("c2", "three");
  assert.deepEqual([...items.keys()], ["cuebook-draft:prompts/new.md"]);
  free();
  held = undefined;
  await moved;
  await put("four");
  assert.deepEqual([...server].map(([path, { text }]) => [path, text]), [["prompts/new.md", "four"]]);
  await drafts.forget();
  assert.equal(server.size, 0);
  assert.equal(items.size, 0);
});

test("two pages that write the same file are told of each other, each once", async () => {
  const items = browser();
  const key = "cuebook-draft:prompts/two.md";
  const first = await page("prompts/two.md");
  const second = await page("prompts/two.md");
  await first.put("one");
  assert.deepEqual([first.seen.elsewhere, second.seen.elsewhere], [0, 0]);
  // as a browser tells its other tabs
  second.drafts.stored(key, items.get(key) ?? null);
  second.drafts.stored("cuebook-draft:prompts/other.md", "{}");
  assert.equal(second.seen.elsewhere, 1);
  await second.put("two");
  assert.equal(second.seen.elsewhere, 1);
  // in another browser it is the server that says so
  browser();
  await first.put("three");
  assert.equal(first.seen.elsewhere, 1);
  await first.put("four");
  assert.equal(first.seen.elsewhere, 1);
  assert.equal(server.get("prompts/two.md")?.text, "four");
  // what this page stored itself, and what was removed, is nothing of another
  const alone = await page("prompts/alone.md");
  await alone.put("mine");
  alone.drafts.stored("cuebook-draft:prompts/alone.md", "{}");
  alone.drafts.stored("cuebook-draft:prompts/alone.md", null);
  assert.equal(alone.seen.elsewhere, 0);
});
