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

/**
 * Starts a server on a free port with the starter library of a language, or with `files` as its first commit.
 *
 * With `people`, each with roles and paths, access control is on; `root` administers, pushes and is asked for by default.
 */
export async function startServer({ language = "en", files, people } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "cuebook-e2e-"));
  const data = join(folder, "data");
  const locale = language === "ko" ? "ko_KR.UTF-8" : "en_US.UTF-8";
  const args = ["serve", "--data-dir", data, "--listen", "127.0.0.1:0"];
  if (files) args.push("--empty");
  const env = { ...process.env, LANG: locale, LC_ALL: locale };
  if (people) env.CUEBOOK_ACCESS_ENABLED = "true";
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
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
  const tokens = {};
  const sessions = {};
  const bearer = (who) => (tokens[who] ? { Authorization: `Bearer ${tokens[who]}` } : {});
  // who has written what is pushed
  const author = { name: "Mina Seo", email: "mina@example.com" };
  const server = {
    url,
    folder,
    data,
    author,
    tokens,
    /** What browsers that sign in say they are; their own where it is not set. */
    agent: undefined,
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
          GIT_AUTHOR_NAME: author.name,
          GIT_AUTHOR_EMAIL: author.email,
          GIT_COMMITTER_NAME: author.name,
          GIT_COMMITTER_EMAIL: author.email,
        },
        stdio: ["ignore", "pipe", "pipe"],
      });
    },
    clone() {
      mkdirSync(join(folder, "clone"));
      const login = tokens.root ? `e2e:${tokens.root}@` : "";
      server.git("clone", "--quiet", `${url.replace("//", `//${login}`)}/library.git`, ".");
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
    /** Asks the API, as somebody; a refusal fails. */
    async api(path, body, { who = "root", method = body === undefined ? "GET" : "POST" } = {}) {
      const headers = { ...bearer(who), "Content-Type": "application/json" };
      const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      return text ? JSON.parse(text) : null;
    },
    /** The commit of main. */
    async tip() {
      return (await server.api("/readyz")).tip;
    },
    /** A file as main has it, in bytes. */
    onMain: (path) => execFileSync("git", ["-C", join(data, "library.git"), "show", `main:${path}`], { stdio: ["ignore", "pipe", "ignore"] }),
    /** A page of somebody's own browser, signed in by the link that an admin gives; nobody's without a name. */
    async page(who, options = {}) {
      if (!who) return newPage(options);
      if (!sessions[who]) {
        const { url: link } = await server.api(`/api/v1/access/people/${who}/invite`, {});
        const first = await newPage({ userAgent: server.agent });
        await first.goto(`${url}/setup${new URL(link).search}`);
        await first.getByLabel("Password").fill(`a few words for ${who}`);
        await first.getByRole("button", { name: "Save and sign in" }).click();
        await first.waitForURL((at) => at.pathname !== "/setup");
        sessions[who] = await first.context().storageState();
        await first.context().close();
      }
      return newPage({ storageState: sessions[who], ...options });
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
          ...bearer("root"),
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      });
      const text = await response.text();
      const data = text.startsWith("{") ? text : text.split("\n").find((line) => line.startsWith("data: {"))?.slice(6);
      return JSON.parse(data);
    },
  };
  if (people) {
    const cuebook = (...words) => execFileSync(program, [...words, "--data-dir", data], { encoding: "utf8" });
    cuebook("access", "add-person", "root", "--admin");
    tokens.root = /cbk_[\w-]+/.exec(cuebook("token", "create", "root"))[0];
    for (const [name, grants] of Object.entries(people)) {
      await server.api("/api/v1/access/people", { name });
      for (const [role, path] of grants) await server.api("/api/v1/access/grants", { who: name, role, path });
      tokens[name] = (await server.api("/api/v1/access/tokens", { owner: name, label: "e2e" })).token;
    }
  }
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

/** Opens the editor of a file; what is typed goes into its text. */
export async function openEditor(page, address) {
  await page.goto(address);
  await page.waitForSelector("html[data-editor=ready]");
  return page;
}

export async function typeAtEnd(page, text) {
  await page.locator("#ed-host .cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.insertText(text);
}

/** What stands in the editor. */
export const textOf = (page) =>
  page.evaluate(() => {
    const lines = document.querySelector("#ed-host").shadowRoot.querySelectorAll(".cm-line");
    return [...lines].map((line) => line.textContent).join("\n");
  });

/** Ends a page in which nothing of an author may have run and no policy was broken. */
export async function close(...pages) {
  for (const page of pages) {
    const { faults } = page;
    await page.context().close();
    if (faults.length > 0) throw new Error(faults.join("\n"));
  }
}
