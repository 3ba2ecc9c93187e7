// Pictures of each page for docs/screenshots: light, dark, Korean and on a phone. Run by hand: node shots.mjs [folder]
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { closeBrowser, newPage, ready, startServer, until } from "./harness.mjs";

const folder = process.argv[2] ?? "../../docs/screenshots";
mkdirSync(folder, { recursive: true });

const WAYS = {
  light: { colorScheme: "light", locale: "en-US" },
  dark: { colorScheme: "dark", locale: "en-US" },
  ko: { colorScheme: "light", locale: "ko-KR" },
  phone: { colorScheme: "light", locale: "en-US", viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true },
};
const PAGES = {
  library: "/",
  prompt: "/prompts/incident-triage",
  versions: "/prompts/incident-triage/versions",
  diff: "/prompts/incident-triage/diff",
  connect: "/connect",
  activity: "/activity",
  editor: "/edit/prompts/sre/incident-triage.md",
  new: "/new",
  proposals: "/proposals",
  proposal: "/proposals/1",
  inbox: "/inbox",
  settings: "/settings",
};

const only = process.argv.slice(3);
for (const language of ["en", "ko"]) {
  const server = await startServer({ language });
  const path = "prompts/sre/incident-triage.md";
  const file = server.git("show", `HEAD:${path}`);
  server.publish("Ask for the blast radius first", { [path]: `${file}\nSay first who is affected, and since when.\n` });
  server.publish("Say when to page", { [path]: `${file}\nSay first who is affected, since when, and whether to page.\n`, "labels.toml": '[production]\nincident-triage = "v2"\n' });
  const uses = { "incident-triage": 31, "code-review": 22, postmortem: 9, "security-review": 5, "explain-error": 14 };
  for (const [name, count] of Object.entries(uses)) {
    const { result } = await server.call("prompts/list", {});
    const needed = result.prompts.find((prompt) => prompt.name === name)?.arguments ?? [];
    const values = Object.fromEntries(needed.map((argument) => [argument.name, "x"]));
    for (let i = 0; i < count; i++) await server.call("prompts/get", { name, arguments: values });
  }
  const { tip } = await (await fetch(`${server.url}/readyz`)).json();
  const proposed = `${server.git("show", `HEAD:${path}`)}\nSay what you have ruled out.\n`;
  const body = { title: "Say what was ruled out", base: tip, files: { [path]: proposed } };
  await fetch(`${server.url}/api/v1/proposals`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  // what was used is written by one task beside the requests
  await until(async () => (await (await fetch(`${server.url}/api/v1/usage`)).json()).prompts?.length >= 5);
  for (const [way, options] of Object.entries(WAYS)) {
    if ((way === "ko") !== (language === "ko")) continue;
    for (const [name, address] of Object.entries(PAGES)) {
      if (only.length > 0 && !only.includes(name)) continue;
      const page = await newPage(options);
      const response = await page.goto(server.url + address);
      if (response.status() === 404) continue;
      await ready(page);
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
