import assert from "node:assert/strict";
import { test } from "node:test";
import { merge3 } from "../../src/editor/lines";
import { merged } from "../../src/editor/merged";

const hunks = merge3(["a", "b", "c"], ["a", "B", "c", "mine"], ["x", "a", "beta", "c"]);

test("until somebody chooses, both sides are kept", () => {
  assert.equal(merged(hunks, []), "x\na\nB\nbeta\nc\nmine");
});

test("a choice takes one side, and leaves what only one side changed", () => {
  assert.equal(merged(hunks, ["mine"]), "x\na\nB\nc\nmine");
  assert.equal(merged(hunks, ["theirs"]), "x\na\nbeta\nc\nmine");
  assert.equal(merged(hunks, ["base"]), "x\na\nb\nc\nmine");
});
