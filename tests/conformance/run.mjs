// Runs the conformance suite against a URL or a Cuebook binary. Started by run.sh.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Report, cleanUpOnExit, dataDirectory, fixture, inClients, runProcess, serve } from '../clients/harness.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const SUITE = inClients('node_modules', '@modelcontextprotocol', 'conformance', 'dist', 'index.js');
const REVISIONS = ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];

const [target] = process.argv.slice(2);
cleanUpOnExit();

let url = `${target.replace(/\/$/, '').replace(/\/mcp$/, '')}/mcp`;
if (!/^https?:/.test(target)) {
  url = (await serve(path.resolve(target), ['--data-dir', dataDirectory(fixture('conformance-library'))])).url;
}

const report = new Report();
for (const revision of REVISIONS) {
  await report.check(`conformance suite, ${revision}`, async () => {
    const results = path.resolve(process.env.CUEBOOK_CONFORMANCE_DIR, revision);
    fs.rmSync(results, { recursive: true, force: true });
    const args = [SUITE, 'server', '--url', url, '--suite', 'all', '--spec-version', revision, '--output-dir', results];
    const excuses = path.join(HERE, 'expected-failures', `${revision}.yaml`);
    const { code, stdout, stderr } = await runProcess(process.execPath, [...args, '--expected-failures', excuses], {
      timeout: 300_000,
    });
    const summary = stdout.slice(Math.max(0, stdout.indexOf('=== SUMMARY')));
    console.log(summary.replaceAll(/\x1b\[\d+m/g, ''));
    if (code !== 0) throw new Error(`exit code ${code}\n${stderr}${failures(results)}`);
  });
}
process.exit(report.finish());

/** What every failed check of a run said. */
function failures(results) {
  const lines = [];
  for (const scenario of fs.existsSync(results) ? fs.readdirSync(results).toSorted() : []) {
    const checks = JSON.parse(fs.readFileSync(path.join(results, scenario, 'checks.json')));
    for (const { id, status, errorMessage } of checks) {
      if (status === 'FAILURE' || status === 'WARNING') lines.push(`${scenario}: ${id}: ${errorMessage}`);
    }
  }
  return lines.join('\n');
}
