import assert from "node:assert/strict";
import { test } from "node:test";
import { Text } from "@codemirror/state";
import { Loop } from "../../src/editor/loop";
import { newPath } from "../../src/editor/place";
import { type Problem, changes, offset, range } from "../../src/editor/problems";

/** A loop whose answers come when the test says. */
function loop() {
  const running: Array<{ question: string; answer: (text: string) => void; refuse: (error: Error) => void }> = [];
  const shown: Array<[string, boolean]> = [];
  const failed: string[] = [];
  const made = new Loop<string, string>(
    (question) => new Promise((answer, refuse) => running.push({ question, answer, refuse })),
    5,
    (answer, _, newest) => shown.push([answer, newest]),
    (error) => failed.push(String(error)),
  );
  const until = async (ready: () => boolean) => {
    while (!ready()) await new Promise((next) => setTimeout(next, 1));
  };
  return { made, running, shown, failed, until };
}

test("one runs at a time, and of those that wait the newest", async () => {
  const { made, running, shown, until } = loop();
  made.ask("a", true);
  await until(() => running.length === 1);
  for (const question of ["b", "c", "d"]) made.ask(question, true);
  running[0]?.answer("A");
  await until(() => running.length === 2);
  assert.equal(running[1]?.question, "d");
  running[1]?.answer("D");
  await until(() => shown.length === 2);
  assert.deepEqual(shown, [["A", false], ["D", true]]);
  assert.equal(running.length, 2);
});

test("what is refused for now is asked again, and by then the newest", async () => {
  const { made, running, failed, until } = loop();
  made.ask("a", true);
  await until(() => running.length === 1);
  running[0]?.refuse(Object.assign(new Error("wait"), { retryAfter: 0.02 }));
  await until(() => failed.length === 1);
  made.ask("b");
  await until(() => running.length === 2);
  assert.equal(running[1]?.question, "b");
  made.stop();
  running[1]?.answer("B");
});

test("columns are characters, whatever they take in memory", () => {
  const doc = Text.of(["한글 x", "👍👍 {{ y }}", ""]);
  assert.equal(offset(doc, 1, 4), 3);
  assert.equal(offset(doc, 2, 4), 5 + 5);
  assert.equal(offset(doc, 9, 9), doc.length);
  const problem: Problem = { severity: "error", code: "c", path: "p", line: 2, column: 4, width: 7, message: "m" };
  const { from, to } = range(doc, problem);
  assert.equal(doc.sliceString(from, to), "{{ y }}");
  assert.deepEqual(range(doc, { ...problem, line: 0, column: 0 }), { from: 0, to: 4 });
});

test("a fix is put in once, in its place", () => {
  const doc = Text.of(["a {{ .b }} c"]);
  const fix = [{ line: 1, column: 3, text: "{% raw %}" }, { line: 1, column: 11, text: "{% endraw %}" }];
  const problem: Problem = { severity: "error", code: "c", path: "p", line: 1, column: 3, width: 8, message: "m", fix };
  assert.deepEqual(changes(doc, [problem, problem]), [{ from: 2, insert: "{% raw %}" }, { from: 10, insert: "{% endraw %}" }]);
});

test("a new file goes where its kind is, as the server says", () => {
  assert.equal(newPath("prompt", " /sre/ ", "triage"), "prompts/sre/triage.md");
  assert.equal(newPath("partial", "", "x.md"), "partials/x.md");
  assert.equal(newPath("values", "", "services"), "values/services.txt");
  assert.equal(newPath("resource", "image", "a.png"), "resources/image/a.png");
  assert.equal(newPath("resource", "runbook", "payments"), "resources/runbook/payments.md");
});
