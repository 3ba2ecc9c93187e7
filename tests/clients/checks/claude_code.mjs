// Claude Code, whole, with a stand-in for its model: the prompts are slash commands, and what a
// command sends to the model is what Cuebook rendered, to the byte.
import fs from 'node:fs';
import path from 'node:path';
import {
  assertContains, assertSame, cleanEnvironment, dataDirectory, expected, fixture, inClients, runProcess, serve,
  temporaryDirectory,
} from '../harness.mjs';
import { startModel, textsSent } from '../model.mjs';

const CLAUDE = inClients('node_modules', '@anthropic-ai', `claude-code-${process.platform}-${process.arch}`, 'claude');

export async function run(binary, report) {
  const directory = dataDirectory(fixture('clients-library'));
  const server = await serve(binary, ['--data-dir', directory]);
  const http = { type: 'http', url: server.url };
  const stdio = { command: binary, args: ['stdio', '--library', path.join(directory, 'library.git')] };
  try {
    await report.check('claude code http: the prompts are slash commands', async () => {
      const { stdout } = await type('/mcp__cuebook__release-notes', http);
      const start = stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line)).find((line) => line.subtype === 'init');
      const commands = start.slash_commands.filter((name) => name.startsWith('mcp__cuebook__'));
      assertSame(commands.toSorted(), expected.prompts.map(({ name }) => `mcp__cuebook__${name}`));
    });
    await report.check('claude code http: the text reaches the model to the byte', async () => {
      const { texts } = await type('/mcp__cuebook__release-notes', http);
      assertSent(texts, expected.texts['release-notes']);
    });
    await report.check('claude code stdio: the text reaches the model to the byte', async () => {
      const { texts } = await type('/mcp__cuebook__release-notes', stdio);
      assertSent(texts, expected.texts['release-notes']);
    });
    await report.check('claude code http: words fill the arguments, the runbook and every message arrive', async () => {
      const { texts } = await type('/mcp__cuebook__incident-triage INC-9942 payments HIGH', http);
      const [first, , last] = expected['incident-triage'].messages;
      assertSent(texts, first.text);
      assertSent(texts, `[Resource from cuebook at runbook://payments] ${expected.texts.runbook}`);
      assertSent(texts, last.text);
    });
    await report.check('claude code http: an argument is one word, whatever the prompt wants', async () => {
      const { texts } = await type('/mcp__cuebook__explain-error index out of bounds', http);
      assertSent(texts, expected.texts['explain-error']);
    });
    await report.check('claude code http: a missing argument is named', async () => {
      const { stdout, texts } = await type('/mcp__cuebook__incident-triage', http);
      assertContains(stdout, 'ticketId', 'what Claude Code says');
      assertSame(texts, [], 'text for the model');
    });
  } finally {
    server.stop();
  }
}

/** Types `line` into a Claude Code that knows one server; gives its output and what its model was sent. */
async function type(line, mcpServer) {
  const model = await startModel();
  const home = temporaryDirectory();
  const config = path.join(home, 'mcp.json');
  fs.writeFileSync(config, JSON.stringify({ mcpServers: { cuebook: mcpServer } }));
  const env = cleanEnvironment(home, {
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: 'none',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  });
  const args = ['--print', line, '--output-format', 'stream-json', '--verbose', '--mcp-config', config, '--strict-mcp-config'];
  try {
    const ended = await runProcess(CLAUDE, args, { env, cwd: home, timeout: 60_000 });
    return { ...ended, texts: textsSent(model.requests) };
  } finally {
    model.stop();
  }
}

function assertSent(texts, wanted) {
  if (!texts.includes(wanted)) {
    throw new Error(`the model was not sent ${JSON.stringify(wanted)}\nbut ${JSON.stringify(texts.slice(-5), null, 1)}`);
  }
}
