// Runs the checks in checks/ against a Cuebook binary. Started by run.sh.
import fs from 'node:fs';
import path from 'node:path';
import { Report, cleanUpOnExit } from './harness.mjs';

const GROUPS = ['inspector', 'typescript', 'python', 'opencode', 'gemini', 'claude_code'];

const [binary, ...wanted] = process.argv.slice(2);
const unknown = wanted.filter((name) => !GROUPS.includes(name));
if (!fs.existsSync(binary) || unknown.length > 0) {
  console.error(unknown.length > 0 ? `no checks named ${unknown}; there are ${GROUPS}` : `no file ${binary}`);
  process.exit(2);
}

cleanUpOnExit();
const report = new Report();
for (const name of GROUPS.filter((group) => wanted.length === 0 || wanted.includes(group))) {
  const group = await import(`./checks/${name}.mjs`);
  try {
    await group.run(path.resolve(binary), report);
  } catch (error) {
    report.failed(`${name}: the checks can run`, error);
  }
}
process.exit(report.finish());
