// Gemini CLI, whole, with a stand-in for its model. It keeps the text of the first message alone and
// hands it to the model as a JSON string, so this compares with that.
import fs from 'node:fs';
import path from 'node:path';
import {
  assertContains, cleanEnvironment, dataDirectory, expected, fixture, inClients, runProcess, serve, temporaryDirectory,
} from '../harness.mjs';
import { startModel, textsSent } from '../model.mjs';

const GEMINI = inClients('node_modules', '@google', 'gemini-cli', 'bundle', 'gemini.js');

export async function run(binary, report) {
  const directory = dataDirectory(fixture('clients-library'));
  const server = await serve(binary, ['--data-dir', directory]);
  const http = { httpUrl: server.url, trust: true };
  const stdio = { command: binary, args: ['stdio', '--library', path.join(directory, 'library.git')], trust: true };
  try {
    for (const [transport, target] of Object.entries({ http, stdio })) {
      await report.check(`gemini cli ${transport}: the text reaches the model to the byte`, async () => {
        assertSent(await type('/release-notes', target), expected.texts['release-notes']);
      });
    }
    await report.check('gemini cli http: the line fills the one required argument', async () => {
      assertSent(await type('/explain-error index', http), expected.texts['explain-error']);
    });
    await report.check('gemini cli http: named arguments arrive, and the runbook in the first message', async () => {
      const sent = await type('/incident-triage --ticketId="INC-9942" --service="payments"', http);
      const last = JSON.parse(sent.at(-1));
      assertContains(last, expected['incident-triage'].messages[0].text);
      assertContains(last, expected.texts['runbook://payments']);
    });
  } finally {
    server.stop();
  }
}

/** Types `line` into a Gemini CLI that knows one server; gives the texts its model was sent. */
async function type(line, mcpServer) {
  const model = await startModel();
  const home = temporaryDirectory();
  const project = path.join(home, 'project');
  fs.mkdirSync(project);
  fs.mkdirSync(path.join(home, '.gemini'));
  const settings = {
    mcpServers: { cuebook: mcpServer },
    security: { auth: { selectedType: 'gemini-api-key' } },
    general: { enableAutoUpdate: false },
    privacy: { usageStatisticsEnabled: false },
  };
  fs.writeFileSync(path.join(home, '.gemini', 'settings.json'), JSON.stringify(settings));
  const env = cleanEnvironment(home, {
    GEMINI_API_KEY: 'none',
    GOOGLE_GEMINI_BASE_URL: model.url,
    GEMINI_CLI_TRUST_WORKSPACE: 'true',
  });
  try {
    // A named model, else it asks its model first which model to ask.
    const args = [GEMINI, '--model', 'gemini-2.5-flash', '--prompt', line];
    const { code, stdout, stderr } = await runProcess(process.execPath, args, { env, cwd: project, timeout: 60_000 });
    const texts = textsSent(model.requests);
    if (texts.length === 0) throw new Error(`nothing reached the model; exit code ${code}: ${stdout}${stderr}`);
    return texts;
  } finally {
    model.stop();
  }
}

function assertSent(texts, wanted) {
  if (!texts.includes(JSON.stringify(wanted))) {
    throw new Error(`the model was not sent ${JSON.stringify(wanted)}\nbut ${JSON.stringify(texts.slice(-2), null, 1)}`);
  }
}
