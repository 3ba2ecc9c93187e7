// What every check needs: a server on a temporary data directory, commits to its library,
// processes that are ended with all their children, and one line of report a check.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const CLIENTS = path.resolve(process.env.CUEBOOK_CLIENTS_DIR);

/** Loads a package that setup.sh installed. */
export const requireClient = createRequire(path.join(CLIENTS, 'package.json'));

/** A path below the directory that setup.sh installed into. */
export const inClients = (...parts) => path.join(CLIENTS, ...parts);

/** A path below tests/fixtures. */
export const fixture = (name) => path.join(HERE, '..', 'fixtures', name);

/** What clients-library must give; read by the Python checks too. */
export const expected = JSON.parse(fs.readFileSync(path.join(HERE, 'expected.json')));

/** Counts the checks and prints a line for each. */
export class Report {
  passed = 0;
  failures = 0;

  /** Runs `body`; the check passes unless it throws. */
  async check(name, body) {
    try {
      await body();
      this.ok(name);
    } catch (error) {
      this.failed(name, error);
    }
  }

  ok(name) {
    this.passed += 1;
    console.log(`ok   ${name}`);
  }

  failed(name, error) {
    this.failures += 1;
    const reason = String(error?.message ?? error).trim().replaceAll('\n', '\n       ');
    console.log(`FAIL ${name}\n       ${reason}`);
  }

  /** Prints the closing line and gives the exit code. */
  finish() {
    console.log(`${this.passed} passed, ${this.failures} failed`);
    return this.failures > 0 ? 1 : 0;
  }
}

/** Fails unless the two are the same when written as JSON with sorted keys. */
export function assertSame(actual, wanted, what = 'answer') {
  const [left, right] = [actual, wanted].map((value) => JSON.stringify(sorted(value), null, 1) ?? 'nothing');
  if (left !== right) throw new Error(`wrong ${what}\nwanted ${right}\ngot    ${left}`);
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

/** Fails unless `text` contains `part`. */
export function assertContains(text, part, what = 'text') {
  if (!text.includes(part)) throw new Error(`${what} lacks ${JSON.stringify(part)}: ${JSON.stringify(text)}`);
}

/** Rejects when `promise` takes longer than `milliseconds`. */
export function within(milliseconds, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${milliseconds} ms`)), milliseconds);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Calls `probe` until it gives something truthy, which is returned. */
export async function until(milliseconds, what, probe) {
  const deadline = Date.now() + milliseconds;
  for (;;) {
    const found = await probe();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`${what} did not happen within ${milliseconds} ms`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

const groups = new Set();
const directories = new Set();

/** Ends every process and removes every directory of this run, however it ends. */
export function cleanUpOnExit() {
  process.on('exit', () => {
    groups.forEach(endGroup);
    directories.forEach(removeDirectory);
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));
}

function endGroup(pid) {
  groups.delete(pid);
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

function removeDirectory(directory) {
  try {
    // Again when something is still being written: what was ended just now may take a moment to go.
    fs.rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
  } catch (error) {
    console.error(`${directory} is left behind: ${error.message}`);
  }
}

export function temporaryDirectory() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'cuebook-clients-'));
  directories.add(directory);
  return directory;
}

/** An environment with nothing of the caller's in it: clients must not find real settings or keys. */
export function cleanEnvironment(home = temporaryDirectory(), more = {}) {
  const PATH = [inClients('node'), '/usr/local/bin', '/usr/bin', '/bin'].join(path.delimiter);
  return { PATH, HOME: home, LANG: 'C.UTF-8', NO_COLOR: '1', ...more };
}

/** Starts a process in a group of its own; `output()` is all it has printed so far. */
export function start(command, args, options = {}) {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: cleanEnvironment(),
    ...options,
    detached: true,
  });
  if (child.pid) groups.add(child.pid);
  const printed = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', (text) => (printed[stream] += text));
  }
  const ended = new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, ...printed }));
  });
  ended.catch(() => {});
  return { child, ended, output: () => printed.stdout + printed.stderr, stop: () => child.pid && endGroup(child.pid) };
}

/** Runs a process to its end: `{code, stdout, stderr}`. */
export async function runProcess(command, args, { timeout = 30_000, ...options } = {}) {
  const running = start(command, args, options);
  try {
    return await within(timeout, `${path.basename(command)} ${args.join(' ')}`, running.ended);
  } catch (error) {
    throw new Error(`${error.message}\n${running.output().slice(-2000)}`);
  } finally {
    running.stop();
  }
}

function mustRun(program, args) {
  const { status, stderr, error } = spawnSync(program, args, { env: cleanEnvironment(), encoding: 'utf8', timeout: 20_000 });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? stderr}`);
}

/** A data directory whose library.git holds one commit of the library in `source`. */
export function dataDirectory(source) {
  const directory = temporaryDirectory();
  const tree = path.join(directory, 'tree');
  const git = (...args) => mustRun('git', ['-c', 'user.name=checks', '-c', 'user.email=checks@example.com', ...args]);
  fs.cpSync(source, tree, { recursive: true });
  git('-C', tree, 'init', '--quiet', '--initial-branch=main');
  git('-C', tree, 'add', '--all');
  git('-C', tree, 'commit', '--quiet', '--message', 'Start the library');
  git('clone', '--quiet', '--bare', tree, path.join(directory, 'library.git'));
  fs.rmSync(tree, { recursive: true });
  return directory;
}

/** A copy of the library in `source` that is no repository. */
export function workTree(source) {
  const tree = path.join(temporaryDirectory(), 'library');
  fs.cpSync(source, tree, { recursive: true });
  return tree;
}

/** Commits a prompt `name` that says `text` to the bare repository, by its path. */
export function publish(repository, name, text) {
  mustRun(path.join(HERE, 'publish.sh'), [repository, name, text]);
}

/** Saves a prompt `name` that says `text` in a work tree, without a commit. */
export function writePrompt(tree, name, text) {
  const file = path.join(tree, 'prompts', 'review', `${name}.md`);
  fs.writeFileSync(file, `---\ndescription: Arrived while the client was connected\n---\n${text}\n`);
}

/** Starts `cuebook serve` with `args` on a free port and waits until it is ready. */
export async function serve(binary, args) {
  const server = start(binary, ['serve', '--listen', '127.0.0.1:0', ...args]);
  let exit;
  server.ended.then(
    ({ code }) => (exit = `it ended with ${code}`),
    (error) => (exit = error.message),
  );
  try {
    const address = await until(20_000, 'the line with the address of cuebook serve', () => {
      if (exit) throw new Error(`cuebook serve: ${exit}`);
      return server.output().match(/http:\/\/127\.0\.0\.1:\d+/)?.[0];
    });
    await until(20_000, 'GET /readyz with 200', async () => {
      const answer = await fetch(`${address}/readyz`).catch(() => undefined);
      return answer?.status === 200;
    });
    return { address, url: `${address}/mcp`, stop: server.stop };
  } catch (error) {
    server.stop();
    throw new Error(`${error.message}\n${server.output().slice(-2000)}`);
  }
}
