// A server with a data directory of its own, git beside it, and a browser: what every test of the pages uses.
// Nothing waits for a time to pass: it waits for what it needs.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const program = process.env.CUEBOOK ?? join(here, "../../target/debug/cuebook");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Starts a server on a free port with the starter library of a language, or with `files` as its first commit. */
export async function startServer({ language = "en", files } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "cuebook-e2e-"));
  const data = join(folder, "data");
  const locale = language === "ko" ? "ko_KR.UTF-8" : "en_US.UTF-8";
  const args = ["serve", "--data-dir", data, "--listen", "127.0.0.1:0"];
  if (files) args.push("--empty");
  const child = spawn(program, args, { env: { ...process.env, LANG: locale, LC_ALL: locale }, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const url = await new Promise((resolve, reject) => {
    const read = (chunk) => {
      output += chunk;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(output);
      if (found) resolve(found[0]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", () => reject(new Error(`the server ended:\n${output}`)));
  });
  await until(async () => (await fetch(`${url}/healthz`)).ok);
  const server = {
    url,
    folder,
    data,
    output: () => output,
    /** Ends it in good order. */
    async stop() {
      const ended = new Promise((resolve) => child.on("exit", resolve));
      child.kill("SIGTERM");
      await ended;
    },
    /** Ends it and removes what it has written. */
    async remove() {
      if (child.exitCode === null && child.signalCode === null) await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
    /** Runs git in a clone of the library. */
    git(...words) {
      return execFileSync("git", words, {
        cwd: join(folder, "clone"),
        encoding: "utf8",
        env: {
          ...process.env,
          GIT_CONFIG_GLOBAL: "/dev/null",
          GIT_CONFIG_NOSYSTEM: "1",
          GIT_AUTHOR_NAME: "Mina Seo",
          GIT_AUTHOR_EMAIL: "mina@example.com",
          GIT_COMMITTER_NAME: "Mina Seo",
          GIT_COMMITTER_EMAIL: "mina@example.com",
        },
        stdio: ["ignore", "pipe", "pipe"],
      });
    },
    clone() {
      mkdirSync(join(folder, "clone"));
      server.git("clone", "--quiet", `${url}/library.git`, ".");
      server.git("checkout", "--quiet", "-B", "main");
    },
    /** Writes files of the clone, commits and pushes them. */
    publish(message, contents) {
      for (const [path, content] of Object.entries(contents)) {
        const file = join(folder, "clone", path);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, content);
      }
      server.git("add", "--all");
      server.git("commit", "--quiet", "-m", message);
      server.git("push", "--quiet", "origin", "HEAD:main");
    },
    /** Calls an MCP method, as a client of a name. */
    async call(method, params, client = "e2e") {
      const response = await fetch(`${url}/mcp`, {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          Accept: "application/json, text/event-stream",
          "MCP-Protocol-Version": "2025-06-18",
          "User-Agent": client,
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      });
      const text = await response.text();
      const data = text.startsWith("{") ? text : text.split("\n").find((line) => line.startsWith("data: {"))?.slice(6);
      return JSON.parse(data);
    },
  };
  server.clone();
  if (files) server.publish("First prompts", files);
  return server;
}

/** Waits until something is so; says what was seen last where it is not within half a minute. */
export async function until(check, what = "what was waited for") {
  const end = Date.now() + 30_000;
  let last;
  while (Date.now() < end) {
    try {
      last = await check();
      if (last) return last;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`${what} did not come: ${last}`);
}

let browser;

/** The browser of this process. */
export async function theBrowser() {
  browser ??= await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
  });
  return browser;
}

export async function closeBrowser() {
  await browser?.close();
  browser = undefined;
}

/** A page that fails the test when a script of an author runs or the policy is broken. */
export async function newPage(options = {}) {
  const context = await (await theBrowser()).newContext({ locale: "en-US", viewport: { width: 1280, height: 860 }, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]).catch(() => undefined);
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    if (/Content Security Policy|Refused to/.test(message.text())) faults.push(message.text());
  });
  page.faults = faults;
  return page;
}

/** Waits until the scripts of the page are there. */
export async function ready(page) {
  await page.waitForSelector("html[data-ready]", { state: "attached" });
}

/** What axe finds that is serious, a line each. */
export async function serious(page) {
  // past the policy of the page, as an extension would be
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations
    .filter((violation) => ["serious", "critical"].includes(violation.impact))
    .flatMap((violation) => violation.nodes.map((node) => `${violation.id}: ${node.target.join(" ")} ${node.failureSummary ?? ""}`));
}
