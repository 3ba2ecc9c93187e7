import assert from "node:assert/strict";
import { test } from "node:test";

import { left, type Shown } from "../../src/review-kept";

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
