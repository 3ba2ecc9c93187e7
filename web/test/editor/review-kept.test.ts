import assert from "node:assert/strict";
import { test } from "node:test";

import { isFilled, left, placeIn, type Shown } from "../../src/review-kept";

const shown: Shown = { refused: false, conflicts: false, head: "h1", words: ["Said  so.\n"] };
const kept = { say: "Said so.", "thread:3": "later", "file:a.md@h1@m1": "text" };

test("only what the page shows was sent", () => {
  const sent = { places: { say: "Said so." }, head: "h1" };
  assert.deepEqual(left(kept, sent, shown), { "thread:3": "later", "file:a.md@h1@m1": "text" });
  assert.deepEqual(left(kept, sent, { ...shown, words: [] }), kept);
  assert.deepEqual(left(kept, sent, { ...shown, refused: true }), kept);
  assert.deepEqual(left(kept, undefined, shown), kept);
  assert.deepEqual(left({ say: "Said so. And more" }, sent, shown), { say: "Said so. And more" });
});

test("a resolution was saved where the head is another", () => {
  const sent = { places: { "file:a.md@h1@m1": "text" }, head: "h1" };
  assert.deepEqual(left(kept, sent, shown), kept);
  assert.deepEqual(left(kept, sent, { ...shown, conflicts: true, head: "h2" }), kept);
  assert.deepEqual(left(kept, sent, { ...shown, head: "h2" }), { say: "Said so.", "thread:3": "later" });
});

test("a field is for the place that its form names", () => {
  const check = (field: { name: string; id?: string }, form: Record<string, string>, expected: string | undefined) =>
    assert.equal(placeIn({ id: "", ...field }, (name) => form[name] ?? ""), expected);
  check({ name: "message", id: "message" }, { head: "h1" }, "say");
  check({ name: "message" }, { thread: "3" }, "thread:3");
  check({ name: "message" }, { comment: "4" }, "edit:4");
  check({ name: "message" }, { path: "a.md", side: "new", line: "2" }, 'line:["a.md","new","2","",""]');
  check({ name: "file:a.md" }, { head: "h1", main: "m1" }, "file:a.md@h1@m1");
  check({ name: "title" }, { tag: "t1", title: "" }, "rename:title");
  check({ name: "message" }, { tag: "t1", title: "T" }, "rename:message");
  check({ name: "message" }, {}, undefined);
});

test("a title and a description that were refused are kept, and go once they are shown", () => {
  const renamed = { "rename:title": "Better", "rename:message": "Because\nof this." };
  const sent = { places: renamed, head: "h1" };
  assert.deepEqual(left(renamed, sent, { ...shown, refused: true }), renamed);
  assert.deepEqual(left(renamed, sent, shown), renamed);
  assert.deepEqual(left(renamed, sent, { ...shown, words: ["Better", "Because of this."] }), {});
  // they take the place of what stands there
  assert.deepEqual(["rename:title", "edit:4", "say"].map(isFilled), [true, true, false]);
});
