import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { separable } from "../../src/editor/form";
import { type Edit, type Fresh, FrontMatter, type Path, apply, setTexts } from "../../src/editor/front-matter";

const TEXT = `---
# who answers first
title: "장애 초동 조치"   # quoted on purpose
description: First response
tags: [sre, incident] # two

arguments:
  # from the pager
  - name: ticketId
    description: 'It''s the ticket'
    required: true
  - name: service   # which one
    values: { resource: "runbook://{service}" }

  - name: severity
    values: [CRITICAL, HIGH]
    default: HIGH
resources:
  - name: runbook
    uri: "runbook://{{ service }}"
    required: false
examples:
  - name: outage
    arguments: { ticketId: INC-1, service: payments }
    expect:
      - "INC-1"
      - connection pool
---
Body: {{ ticketId }}
`;

/** The lines that an edit took away and put in; every other line is as it was. */
function lines(edits: Edit[], text = TEXT): string {
  const after = apply(text, edits);
  const [a, b] = [text.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const marked = (mark: string, list: string[]) => list.slice(start, list.length - end).map((line) => `${mark}${line}`);
  return [...marked("-", a), ...marked("+", b)].join("\n");
}

const set = (path: Path, value: string | boolean) => lines(FrontMatter.read(TEXT).set(path, value));
const add = (path: Path, value: Fresh) => lines(FrontMatter.read(TEXT).add(path, value));
const remove = (path: Path) => lines(FrontMatter.read(TEXT).remove(path));

test("a text keeps its quotes and the comment beside it", () => {
  assert.equal(
    set(["title"], 'New "one"'),
    '-title: "장애 초동 조치"   # quoted on purpose\n+title: "New \\"one\\""   # quoted on purpose',
  );
  assert.equal(set(["description"], "Second: a response"), '-description: First response\n+description: "Second: a response"');
  assert.equal(set(["arguments", 0, "description"], "It's"), "-    description: 'It''s the ticket'\n+    description: 'It''s'");
  assert.equal(set(["arguments", 0, "required"], false), "-    required: true\n+    required: false");
  assert.equal(
    set(["examples", 0, "arguments", "ticketId"], "INC-2, 3"),
    '-    arguments: { ticketId: INC-1, service: payments }\n+    arguments: { ticketId: "INC-2, 3", service: payments }',
  );
});

test("what is said already changes nothing", () => {
  assert.equal(set(["title"], "장애 초동 조치"), "");
  assert.equal(set(["arguments", 0, "required"], true), "");
  assert.deepEqual(FrontMatter.read(TEXT).setTexts(["tags"], ["sre", "incident"]), []);
});

test("a new key is one new line, where it belongs", () => {
  assert.equal(set(["arguments", 1, "description"], "Which"), "+    description: Which");
  assert.ok(apply(TEXT, FrontMatter.read(TEXT).set(["arguments", 1, "description"], "Which")).includes("# which one\n    description: Which\n    values"));
  assert.equal(set(["arguments", 2, "required"], true), "+    required: true");
  assert.equal(
    add(["arguments", 1, "values", "recent"], true),
    '-    values: { resource: "runbook://{service}" }\n+    values: { resource: "runbook://{service}", recent: true }',
  );
  assert.equal(add(["resources", 0, "as"], "text"), "+    as: text");
});

test("an item is put in and taken away with its own lines", () => {
  const item = { name: "team", description: "Who: me" };
  assert.equal(lines(FrontMatter.read(TEXT).append(["arguments"], item)), '+  - name: team\n+    description: "Who: me"');
  assert.equal(lines(FrontMatter.read(TEXT).append(["examples", 0, "expect"], "- x")), '+      - "- x"');
  assert.equal(remove(["arguments", 1]), '-  - name: service   # which one\n-    values: { resource: "runbook://{service}" }');
  assert.equal(remove(["examples", 0, "arguments", "service"]), "-    arguments: { ticketId: INC-1, service: payments }\n+    arguments: { ticketId: INC-1 }");
  assert.equal(remove(["examples", 0, "arguments", "ticketId"]), "-    arguments: { ticketId: INC-1, service: payments }\n+    arguments: { service: payments }");
  assert.equal(remove(["examples", 0, "expect", 0]), '-      - "INC-1"');
  assert.equal(remove(["resources", 0]), '-resources:\n-  - name: runbook\n-    uri: "runbook://{{ service }}"\n-    required: false');
});

test("lists of texts reach what is wanted", () => {
  const tags = (wanted: string[]) => lines([{ from: 0, to: TEXT.length, insert: setTexts(TEXT, ["tags"], wanted) }]);
  assert.equal(tags(["sre", "incident", "on-call"]), "-tags: [sre, incident] # two\n+tags: [sre, incident, on-call] # two");
  assert.equal(tags(["incident"]), "-tags: [sre, incident] # two\n+tags: [incident] # two");
  assert.equal(tags(["sre", "결제"]), "-tags: [sre, incident] # two\n+tags: [sre, 결제] # two");
  assert.equal(tags([]), "-tags: [sre, incident] # two");
});

test("two arguments change places", () => {
  const after = FrontMatter.read(apply(TEXT, FrontMatter.read(TEXT).swap(["arguments"], 0)));
  assert.equal(after.fault, undefined);
  assert.deepEqual([0, 1, 2].map((i) => after.value(["arguments", i, "name"])), ["service", "ticketId", "severity"]);
});

test("front matter that is not there is made, and one that cannot be read is left alone", () => {
  assert.equal(apply("Hello\n", FrontMatter.read("Hello\n").set(["title"], "Hi")), "---\ntitle: Hi\n---\nHello\n");
  assert.equal(apply("---\n---\nHello\n", FrontMatter.read("---\n---\nHello\n").set(["title"], "Hi")), "---\ntitle: Hi\n---\nHello\n");
  assert.equal(
    apply("---\ntitle:\n---\n", FrontMatter.read("---\ntitle:\n---\n").set(["title"], "Hi")),
    "---\ntitle: Hi\n---\n",
  );
  assert.equal(
    apply("---\ntitle: x\narguments:\n---\n", FrontMatter.read("---\ntitle: x\narguments:\n---\n").append(["arguments"], { name: "a" })),
    "---\ntitle: x\narguments: [{ name: a }]\n---\n",
  );
  for (const text of ["---\ntitle: x\n", "---\n- a\n---\n", "---\na: [\n---\n", "---\na: 1\na: 2\n---\n"]) {
    assert.notEqual(FrontMatter.read(text).fault, undefined, text);
  }
});

test("texts of several lines keep their block", () => {
  const text = "---\ndescription: |\n  One\n  two\ntitle: x # y\n---\n";
  const after = apply(text, FrontMatter.read(text).set(["description"], "Three\nfour\nfive"));
  assert.equal(after, "---\ndescription: |\n  Three\n  four\n  five\ntitle: x # y\n---\n");
  const made = apply("---\ntitle: x\n---\n", FrontMatter.read("---\ntitle: x\n---\n").set(["description"], "a\n\nb"));
  assert.equal(made, "---\ntitle: x\ndescription: |-\n  a\n\n  b\n---\n");
});

test("any text comes back as it was given", () => {
  const hard = ["", " ", "null", "~", "- a", "a: b", "a #b", "#a", "{x}", "[x", "*a", "&a", "!x", "%x", "@x", "`x", "'", '"', "\\", "a:", "1.10", "true",
    "a\tb", "a\u0007b", "\u2028", "---", "...", "? x", "한글: #값", "a, b", "x]", "runbook://{{ service }}"];
  for (const value of hard) {
    for (const path of [["title"], ["description"], ["arguments", 0, "description"], ["arguments", 1, "description"], ["examples", 0, "arguments", "service"], ["examples", 0, "expect", 1], ["tags", 0]]) {
      const after = FrontMatter.read(apply(TEXT, FrontMatter.read(TEXT).set(path, value)));
      assert.equal(after.fault, undefined, `${path} ${value}`);
      assert.equal(after.value(path), value, `${path}`);
    }
    const added = FrontMatter.read(apply(TEXT, FrontMatter.read(TEXT).append(["tags"], value)));
    assert.deepEqual(added.texts(["tags"]), ["sre", "incident", value]);
    const whole = apply(TEXT, FrontMatter.read(TEXT).append(["arguments"], { name: "x", values: [value, "b"] }));
    assert.equal(parse(whole.split("---\n")[1] as string, { schema: "failsafe" }).arguments[3].values[0], value);
  }
});

test("an empty block of a nested key is filled behind its key", () => {
  for (const blank of ["", "\n"]) {
    const text = `---\narguments:\n  - name: a\n    description: |\n${blank}    required: true\n---\n`;
    const after = FrontMatter.read(apply(text, FrontMatter.read(text).set(["arguments", 0, "description"], "One\ntwo")));
    assert.equal(after.fault, undefined);
    assert.equal(after.value(["arguments", 0, "description"])?.trimEnd(), "One\ntwo");
    assert.equal(after.value(["arguments", 0, "required"]), "true");
  }
  const first = "---\narguments:\n  - description: >\n    name: a\n---\n";
  const after = apply(first, FrontMatter.read(first).set(["arguments", 0, "description"], "One"));
  assert.equal(after, "---\narguments:\n  - description: >\n      One\n    name: a\n---\n");
});

test("a block is typed empty and full again", () => {
  let text = "---\narguments:\n  - name: a\n    description: |\n      One\n    required: true\n---\n";
  for (const value of ["", "T", "Two", "Two\n\nthree"]) {
    text = apply(text, FrontMatter.read(text).set(["arguments", 0, "description"], value));
    const read = FrontMatter.read(text);
    assert.equal(read.fault, undefined, text);
    assert.equal(read.value(["arguments", 0, "description"])?.trimEnd(), value);
    assert.equal(read.value(["arguments", 0, "required"]), "true");
  }
});

test("a block whose indent is written out, or would have to be, keeps its text", () => {
  for (const [header, value] of [["|2 # why", "One"], ["|", "  One\ntwo"], [">", "One\n  two"]] as const) {
    const text = `---\ndescription: ${header}\n    Zero\ntitle: x\n---\n`;
    const read = FrontMatter.read(apply(text, FrontMatter.read(text).set(["description"], value)));
    assert.equal(read.fault, undefined);
    assert.equal(read.value(["description"]), value);
    assert.equal(read.value(["title"]), "x");
  }
});

test("front matter that cannot be read takes no edits", () => {
  const read = FrontMatter.read("---\ntitle: x\ntitle: y\ntags: [a]\n---\n");
  assert.notEqual(read.fault, undefined);
  assert.deepEqual([read.set(["title"], "z"), read.add(["description"], "d"), read.append(["tags"], "b"), read.remove(["tags"]), read.setTexts(["tags"], ["c"])].flat(), []);
});

test("a key that holds nothing yet takes a list", () => {
  const text = "---\ntitle: x\ntags:\n---\n";
  assert.equal(setTexts(text, ["tags"], ["a", "b"]), "---\ntitle: x\ntags: [a, b]\n---\n");
});

test("only texts without what stands between them share a field", () => {
  assert.ok(separable(["sre", "on call"], ","));
  assert.ok(separable([], ","));
  assert.ok(separable(["a, b", " c"], "\n"));
  for (const texts of [["a, b"], ["a", ""], [" a"], ["a\nb"]]) assert.ok(!separable(texts, ","), JSON.stringify(texts));
  for (const texts of [["a\nb"], ["a", ""]]) assert.ok(!separable(texts, "\n"), JSON.stringify(texts));
});
