import assert from "node:assert/strict";
import { test } from "node:test";
import { open, save } from "../../src/editor/bytes";
import { matches, merge3 } from "../../src/editor/lines";
import { estimate } from "../../src/editor/tokens";

/** Every pair is equal, pairs are in order, and as many as a plain table of the longest common subsequence finds. */
function isLongest(a: string[], b: string[]) {
  let [x, y, many] = [0, 0, 0];
  for (const match of matches(a, b)) {
    assert.ok(match.a >= x && match.b >= y, "in order");
    for (let i = 0; i < match.length; i += 1) assert.equal(a[match.a + i], b[match.b + i]);
    [x, y, many] = [match.a + match.length, match.b + match.length, many + match.length];
  }
  const table = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (let i = 1; i <= a.length; i += 1)
    for (let j = 1; j <= b.length; j += 1)
      table[i]![j] = a[i - 1] === b[j - 1] ? table[i - 1]![j - 1]! + 1 : Math.max(table[i - 1]![j]!, table[i]![j - 1]!);
  assert.equal(many, table[a.length]![b.length], `${a} ${b}`);
}

/** Numbers that look random and are the same every time. */
function random(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
}

test("what two texts have in common is the longest there is", () => {
  isLongest([], []);
  isLongest(["a"], []);
  isLongest(["a", "b", "c"], ["a", "x", "c"]);
  const next = random(7);
  for (let round = 0; round < 400; round += 1) {
    const text = () => Array.from({ length: next(14) }, () => "abcd"[next(4)]!);
    isLongest(text(), text());
  }
});

test("a merge holds what both changed, and a conflict where both changed the same", () => {
  const base = ["one", "two", "three", "four", "five"];
  const hunks = merge3(base, ["ONE", "two", "three", "four", "5 mine"], ["one", "two", "three", "and", "four", "5 theirs"]);
  assert.deepEqual(
    hunks.map((hunk) => [hunk.kind, hunk.mine.join(), hunk.theirs.join()]),
    [
      ["mine", "ONE", "one"],
      ["same", "two,three", "two,three"],
      ["theirs", "", "and"],
      ["same", "four", "four"],
      ["conflict", "5 mine", "5 theirs"],
    ],
  );
});

test("a merge loses no line of either side", () => {
  const next = random(11);
  for (let round = 0; round < 300; round += 1) {
    const base = Array.from({ length: next(12) }, (_, i) => `${i}`);
    const changed = (mark: string) => base.flatMap((line) => [[line], [], [`${mark}${line}`], [line, `${mark}new`]][next(4)]!);
    const [mine, theirs] = [changed("m"), changed("t")];
    const hunks = merge3(base, mine, theirs);
    assert.deepEqual(hunks.flatMap((hunk) => hunk.base), base);
    assert.deepEqual(hunks.flatMap((hunk) => hunk.mine), mine);
    assert.deepEqual(hunks.flatMap((hunk) => hunk.theirs), theirs);
  }
});

test("what was opened and not changed is what was stored", () => {
  for (const raw of ["", "\ufeff", "a", "a\n", "\ufeffa\r\nb\r\n", "a\rb", "a\r\r\nb\n\rc", "\ufeff\ufeffa\n", "\n\n"]) {
    const stored = open(raw);
    assert.equal(save(stored, stored.text), raw, JSON.stringify(raw));
    assert.ok(!stored.text.includes("\r"));
  }
});

test("a change keeps the line ends, also where they differ", () => {
  const changed = (raw: string, from: string, to: string) => save(open(raw), open(raw).text.replace(from, to));
  assert.equal(changed("\ufeffa\r\nb\r\n", "b", "b\nc"), "\ufeffa\r\nb\r\nc\r\n");
  assert.equal(changed("a\rb\r", "a", "x"), "x\rb\r");
  assert.equal(changed("a\r\nb\nc\rd", "b", "B"), "a\r\nB\r\nc\rd");
  assert.equal(changed("a\r\nb\nc\rd", "b\n", ""), "a\r\nc\rd");
  assert.equal(open("a\r\nb\n").endings, "mixed");
});

test("tokens are estimated by script", () => {
  assert.equal(estimate("결제 장애"), 5);
  assert.equal(estimate("12345678"), 2);
  assert.equal(estimate(""), 0);
});
