import assert from "node:assert/strict";
import { test } from "node:test";
import { visible } from "../../src/visible";

test("what hides is shown by its number, and the rest stays", () => {
  assert.equal(visible("a\u202eb\u200b\ufeff\u{e0041}\x07\x7f\x85"), "a<U+202E>b<U+200B><U+FEFF><U+E0041>␇␡<U+0085>");
  const plain = "장애 é 👩‍🚒 क्‍ष\tx\n\r\n<b>";
  assert.equal(visible(plain), plain);
});
