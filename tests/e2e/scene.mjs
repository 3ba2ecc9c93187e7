// A team at work, for tests that look at every page: three people, versions, labels, and proposals in each state, with `words`
// everywhere that people may write something. And the table of all pages.
import { readFileSync } from "node:fs";
import { openEditor, ready, startServer } from "./harness.mjs";

const PLAIN = {
  title: "Ask what happened first",
  text: "Say what you have ruled out, and what you would look at next.",
  person: "Mina Seo",
  client: undefined,
  folder: "nothing",
};

const prompt = ({ title, text }, line) => {
  const quoted = JSON.stringify(title);
  return `---
title: ${quoted}
description: ${quoted}
tags: [${quoted}]
arguments:
  - name: who
    description: ${quoted}
    values: [${quoted}, "javascript:alert('ran')"]
examples:
  - name: ${quoted}
    arguments: { who: ${quoted} }
---
{% include "scene.md" %}

${text} For {{ who }}.

${line}
`;
};

/**
 * Starts the server of the scene. ana writes, ben reviews and publishes, root administers; eve sees one folder, and zoe is
 * invited.
 */
export async function startScene(words = PLAIN) {
  const server = await startServer({
    people: { ana: [["author", "**"]], ben: [["publisher", "**"]], eve: [["reader", `prompts/${words.folder}/**`]], zoe: [] },
  });
  const { title, text } = words;
  const scene = "prompts/team/scene.md";
  const other = "prompts/team/other.md";
  const partial = "partials/scene.md";
  server.author.name = words.person;
  server.agent = words.client;
  server.publish(`${title}\n\n${text}`, { [scene]: prompt(words, "One."), [partial]: `${text}\n`, [other]: prompt(words, "One.") });
  const base = await server.tip();
  server.publish(title, { [scene]: prompt(words, "Two."), "labels.toml": '[production]\nscene = "v1"\n' });
  const policy = server.git("show", "HEAD:cuebook.toml").replace(/^title = .*$/m, `title = ${JSON.stringify(title)}`);
  server.publish(title, { [other]: prompt(words, "Two."), "cuebook.toml": `${policy}\n[[approval]]\npaths = ["prompts/team/**"]\nrollback = true\n` });

  const propose = async (files, from) =>
    (await server.api("/api/v1/proposals", { title, message: text, base: from ?? (await server.tip()), files }, { who: "ana" })).number;
  const proposal = (number) => server.api(`/api/v1/proposals/${number}`);
  const does = async (number, what, body, who) => server.api(`/api/v1/proposals/${number}/${what}`, body, { who });
  const judge = async (number, verdict) => does(number, "reviews", { verdict, head: (await proposal(number)).head, message: text }, "ben");

  // open: with words on lines, on what an example renders to, about the whole, and a verdict on an earlier revision
  const changed = prompt(words, "Three.");
  const open = await propose({ [scene]: changed, [partial]: `${text}\n\n${text}\n` });
  const last = changed.split("\n").length - 1;
  await does(open, "comments", { message: text, place: { path: scene, side: "new", line: last } }, "ben");
  await does(open, "comments", { message: text, place: { path: scene, side: "new", line: 1, example: title, message: 0 } }, "ben");
  const whole = await does(open, "comments", { message: text }, "ben");
  await server.api(`/api/v1/proposals/${open}/comments/${whole.thread}`, { resolved: true }, { who: "ben", method: "PATCH" });
  await does(open, "comments", { message: text }, "ben");
  await judge(open, "request-changes");
  const { head } = await proposal(open);
  await does(open, "revisions", { base: head, files: { [scene]: prompt(words, "Four.") }, message: title }, "ana");
  await does(open, "comments", { message: text }, "ben");

  const conflict = await propose({ [other]: prompt(words, "Mine.") }, base);
  const merged = await propose({ "values/scene.txt": `${title}\n` });
  await judge(merged, "approve");
  await does(merged, "merge", { head: (await proposal(merged)).head }, "ben");
  const closed = await propose({ [partial]: "Closed.\n" });
  await does(closed, "close", {}, "ana");

  await server.api("/api/v1/access/tokens", { label: title.slice(0, 100) }, { who: "ana" });
  await server.api("/api/v1/access/groups", { group: "sre", add: ["ben"] });
  await server.api("/api/v1/access/grants", { who: "group:sre", role: "admin", path: `prompts/${words.folder}/**` });
  const { url } = await server.api("/api/v1/access/people/zoe/invite", {});
  await server.call("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: title, version: title } });
  return { server, open, conflict, merged, closed, invited: `/setup${new URL(url).search}` };
}

/** Opens every `details` of a page. */
const opened = async (page) => {
  await page.locator("main summary").evaluateAll((all) => all.forEach((one) => (one.parentElement.open = true)));
};

const inEditor = (path) => ({ route: "/edit/{*path}", path: () => `/edit/${path}`, go: (page, address) => openEditor(page, address) });

/**
 * Every page: its route, who looks (nobody without a name), where it is and, where it takes more than an address, how one gets
 * there. A page of the server without a row fails.
 */
export const PAGES = [
  { name: "library", route: "/", who: "ana", path: () => "/" },
  { name: "nothing found", route: "/", who: "ana", path: () => "/?q=zzzzzz" },
  { name: "prompt", route: "/prompts/{name}", who: "ben", path: () => "/prompts/scene" },
  { name: "version", route: "/prompts/{name}", who: "ana", path: () => "/prompts/scene?at=v1" },
  { name: "versions", route: "/prompts/{name}/versions", who: "ana", path: () => "/prompts/scene/versions" },
  { name: "blame", route: "/prompts/{name}/blame", who: "ana", path: () => "/prompts/scene/blame" },
  { name: "diff", route: "/prompts/{name}/diff", who: "ana", path: () => "/prompts/scene/diff?from=v1&to=v2" },
  { name: "restore", route: "/prompts/{name}/restore", who: "ben", path: () => "/prompts/scene/versions", then: opened },
  { name: "promote", route: "/prompts/{name}/promote", who: "root", path: () => "/prompts/scene/versions", then: opened },
  { name: "reference", route: "/api", who: "ana", path: () => "/api" },
  { name: "connect", route: "/connect", who: "ana", path: () => "/connect" },
  { name: "activity", route: "/activity", who: "root", path: () => "/activity" },
  { name: "editor", who: "ana", ...inEditor("prompts/team/scene.md") },
  { name: "editor of labels", who: "ana", ...inEditor("labels.toml") },
  { name: "editor of a partial", who: "ben", ...inEditor("partials/scene.md") },
  { name: "new", route: "/new", who: "ana", path: () => "/new" },
  { name: "proposals", route: "/proposals", who: "ana", path: () => "/proposals?state=all" },
  { name: "no proposals", route: "/proposals", who: "eve", path: () => "/proposals" },
  { name: "proposal", route: "/proposals/{number}", who: "ben", path: ({ open }) => `/proposals/${open}` },
  { name: "answering", route: "/proposals/{number}", who: "ana", path: ({ open }) => `/proposals/${open}`, then: opened },
  { name: "merged", route: "/proposals/{number}", who: "ben", path: ({ merged }) => `/proposals/${merged}`, then: opened },
  { name: "closed", route: "/proposals/{number}", who: "ana", path: ({ closed }) => `/proposals/${closed}` },
  { name: "conflicting", route: "/proposals/{number}", who: "ana", path: ({ conflict }) => `/proposals/${conflict}` },
  { name: "conflicts", route: "/proposals/{number}/conflicts", who: "ana", path: ({ conflict }) => `/proposals/${conflict}/conflicts` },
  { name: "inbox", route: "/inbox", who: "ben", path: () => "/inbox" },
  { name: "answers", route: "/inbox", who: "ana", path: () => "/inbox" },
  { name: "login", route: "/login", path: () => "/login" },
  { name: "setup", route: "/setup", path: ({ invited }) => invited },
  { name: "setup that is over", route: "/setup", path: () => "/setup?code=over" },
  { name: "settings", route: "/settings", who: "ana", path: () => "/settings" },
  { name: "people", route: "/settings/people", who: "root", path: () => "/settings/people" },
  { name: "not allowed", route: "/settings/people", who: "ana", path: () => "/settings/people" },
  { name: "not there", route: "/", who: "ana", path: () => "/nothing-here" },
];

/** Shows a page of the table. */
export async function show(scene, row, options = {}) {
  const { server } = scene;
  const page = await server.page(row.who, options);
  const address = server.url + row.path(scene);
  if (row.go) await row.go(page, address);
  else await page.goto(address);
  await ready(page);
  await row.then?.(page);
  return page;
}

// URLs that show nobody a page: what programs ask, what pages load or send
const NO_PAGES = [
  /^\/api\//,
  /^\/(mcp|library\.git|assets|hooks|\.well-known|editor)(\/|$)/,
  /^\/(healthz|readyz|favicon\.ico|language|logout)$/,
  /^\/login\/oidc/,
  /^\/prompts\/\{name\}\/complete$/,
];

/** The routes of pages, as the server's own table has them. */
export function pageRoutes() {
  const table = readFileSync(new URL("../../src/access/routes.rs", import.meta.url), "utf8");
  const [, rows] = table.split("pub static ROUTES");
  const all = [...rows.matchAll(/\b(?:row|both)\(\s*"([^"]+)"/g)].map(([, path]) => path);
  return all.filter((path) => !NO_PAGES.some((no) => no.test(path)));
}
