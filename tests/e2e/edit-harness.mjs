// What the tests of the editor need: the built server on a data directory of its own, and Chromium.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const root = resolve(fileURLToPath(import.meta.url), '../../..');
const program = process.env.CUEBOOK ?? join(root, 'target/debug/cuebook');

/** Starts the server with the starter library: `{url, data, stop}`. */
export async function startServer() {
  const folder = await mkdtemp(join(tmpdir(), 'cuebook-e2e-'));
  const data = join(folder, 'data');
  const env = { PATH: process.env.PATH, LC_ALL: 'C' };
  const child = spawn(program, ['serve', '--data-dir', data, '--listen', '127.0.0.1:0'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const url = await new Promise((done, fail) => {
    const hear = (chunk) => {
      said += chunk;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said);
      if (found) done(found[0]);
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.once('exit', () => fail(new Error(said)));
  });
  return {
    url,
    data,
    stop: async () => {
      if (child.exitCode === null) {
        const gone = new Promise((done) => child.once('exit', done));
        child.kill('SIGKILL');
        await gone;
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The browser of the machine. */
export function startBrowser() {
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}
