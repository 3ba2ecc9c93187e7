// Pictures of each page for docs/screenshots: light, dark, Korean and on a phone. Run by hand: node shots.mjs [folder]
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { closeBrowser, ready, startServer, until } from "./harness.mjs";

const folder = process.argv[2] ?? "../../docs/screenshots";
mkdirSync(folder, { recursive: true });

const WAYS = {
  light: { colorScheme: "light", locale: "en-US" },
  dark: { colorScheme: "dark", locale: "en-US" },
  ko: { colorScheme: "light", locale: "ko-KR" },
  phone: { colorScheme: "light", locale: "en-US", viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true },
};
const opens = (n) => async (page) => page.locator("main details").nth(n).evaluate((one) => (one.open = true));
// who looks, at what, and what is opened there
const PAGES = {
  library: ["mina", "/"],
  prompt: ["mina", "/prompts/incident-triage"],
  versions: ["mina", "/prompts/incident-triage/versions"],
  restore: ["mina", "/prompts/incident-triage/versions", opens(3)],
  blame: ["mina", "/prompts/incident-triage/blame"],
  diff: ["mina", "/prompts/incident-triage/diff"],
  connect: ["mina", "/connect"],
  activity: ["root", "/activity"],
  editor: ["jun", "/edit/prompts/sre/incident-triage.md"],
  new: ["jun", "/new"],
  proposals: ["mina", "/proposals"],
  proposal: ["mina", "/proposals/1"],
  conflicts: ["jun", "/proposals/2/conflicts"],
  inbox: ["mina", "/inbox"],
  settings: ["mina", "/settings"],
  people: ["root", "/settings/people"],
  login: [undefined, "/login"],
};

const only = process.argv.slice(3);
for (const language of ["en", "ko"]) {
  const server = await startServer({ language, people: { mina: [["publisher", "**"]], jun: [["author", "**"]] } });
  const path = "prompts/sre/incident-triage.md";
  const file = server.git("show", `HEAD:${path}`);
  const write = (message, line, more = {}) => server.publish(message, { [path]: `${file}\n${line}\n`, ...more });
  write("Ask for the blast radius first", "Say first who is affected, and since when.");
  const base = await server.tip();
  write("Say when to page", "Say first who is affected, since when, and whether to page.", { "labels.toml": '[production]\nincident-triage = "v2"\n' });
  const uses = { "incident-triage": 31, "code-review": 22, postmortem: 9, "security-review": 5, "explain-error": 14 };
  const { prompts } = (await server.call("prompts/list", {})).result;
  for (const [name, count] of Object.entries(uses)) {
    const needed = prompts.find((prompt) => prompt.name === name)?.arguments ?? [];
    const values = Object.fromEntries(needed.map((argument) => [argument.name, "x"]));
    for (let i = 0; i < count; i++) await server.call("prompts/get", { name, arguments: values });
  }
  const propose = async (title, from, text) =>
    (await server.api("/api/v1/proposals", { title, base: from, files: { [path]: text } }, { who: "jun" })).number;
  const proposed = `${server.git("show", `HEAD:${path}`)}\nSay what you have ruled out.\n`;
  const number = await propose("Say what was ruled out", await server.tip(), proposed);
  const place = { path, side: "new", line: proposed.trimEnd().split("\n").length };
  const { thread } = await server.api(`/api/v1/proposals/${number}/comments`, { message: "And how?", place }, { who: "mina" });
  await server.api(`/api/v1/proposals/${number}/comments`, { message: "By which graph or log line.", thread }, { who: "jun" });
  await propose("Say who is on call", base, `${file}\nSay first who is affected, since when, and who is on call.\n`);
  // what was used is written by one task beside the requests
  await until(async () => (await server.api("/api/v1/usage")).prompts?.length >= 5);
  for (const [way, options] of Object.entries(WAYS)) {
    if ((way === "ko") !== (language === "ko")) continue;
    for (const [name, [who, address, then]] of Object.entries(PAGES)) {
      if (only.length > 0 && !only.includes(name)) continue;
      const page = await server.page(who, options);
      const response = await page.goto(server.url + address);
      if (response.status() === 404) continue;
      await ready(page);
      await then?.(page);
      writeFileSync(join(folder, `${name}-${way}.png`), await page.screenshot());
      await page.context().close();
    }
  }
  await server.remove();
}
await closeBrowser();
try {
  execFileSync("pngquant", ["--force", "--ext", ".png", "--speed", "1", "64", ...execFileSync("sh", ["-c", `ls ${folder}/*.png`], { encoding: "utf8" }).trim().split("\n")]);
} catch {
  console.error("pngquant is not there, so the pictures are as the browser made them");
}
