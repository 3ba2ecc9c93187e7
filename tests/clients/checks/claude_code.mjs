// Claude Code, whole, with a stand-in for its model: the prompts are slash commands, what a command
// sends to the model is what Cuebook rendered, to the byte, and a commit reaches an open session.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  assertContains, assertSame, cleanEnvironment, dataDirectory, expected, fixture, inClients, publish, runProcess,
  serve, start, temporaryDirectory, until,
} from '../harness.mjs';
import { startModel, textsSent } from '../model.mjs';

const TERMINAL = path.join(path.dirname(fileURLToPath(import.meta.url)), 'terminal.py');
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
      assertSent(texts, `[Resource from cuebook at runbook://payments] ${expected.texts['runbook://payments']}`);
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
    await report.check('claude code in a terminal: a new prompt and a new text arrive while it runs', async () => {
      const session = await openSession(http);
      try {
        const { name, description } = expected.prompts.find((prompt) => prompt.name === 'release-notes');
        await session.send(`/mcp__cuebook__${name}`, description, expected.texts[name]);
        for (const text of ['first', 'second']) {
          publish(path.join(directory, 'library.git'), 'arrival', text);
          await session.send('/mcp__cuebook__arrival', 'Arrived while the client was connected', `${text}\n`);
        }
      } finally {
        session.stop();
      }
    });
  } finally {
    server.stop();
  }
}

/** Types `line` into a Claude Code that knows one server; gives its output and what its model was sent. */
async function type(line, mcpServer) {
  const { model, home, options, config } = await prepare(mcpServer);
  const args = ['--print', line, '--output-format', 'stream-json', '--verbose', ...config];
  try {
    const ended = await runProcess(CLAUDE, args, { ...options, cwd: home, timeout: 60_000 });
    return { ...ended, texts: textsSent(model.requests) };
  } finally {
    model.stop();
  }
}

/** Opens a Claude Code as a person does, in a terminal. */
async function openSession(mcpServer) {
  const { model, home, options, config } = await prepare(mcpServer);
  // Past the questions of a first start.
  const answered = {
    hasCompletedOnboarding: true,
    theme: 'dark',
    customApiKeyResponses: { approved: ['none'], rejected: [] },
    projects: { [home]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
  };
  fs.writeFileSync(path.join(home, '.claude.json'), JSON.stringify(answered));
  options.env.TERM = 'xterm-256color';
  const claude = start(inClients('venv', 'bin', 'python'), [TERMINAL, CLAUDE, ...config], {
    ...options,
    cwd: home,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  claude.child.stdin.on('error', () => {}); // it has ended; what waits for its screen says so
  // What the screen showed since `mark`, without colours, cursor moves and blanks.
  const screen = (mark = 0) => claude.output().slice(mark).replaceAll(/\x1b(\[[0-9;?<>=]*[a-zA-Z]|\][^\x07]*\x07|.)|\s/g, '');
  const failed = (error) => new Error(`${error.message}\nthe screen ends with ${screen().slice(-1000)}`);
  const session = {
    /** Types a command, sends it once the menu shows its description, and again until the model gets the text. */
    send: async (line, description, text) => {
      const shown = `(MCP)${description}`.replaceAll(/\s/g, '');
      const soon = (milliseconds, probe) => until(milliseconds, 'it', probe).catch(() => false);
      const attempt = async () => {
        const mark = claude.output().length;
        claude.child.stdin.write(line);
        const found = await soon(1_000, () => screen(mark).includes(shown));
        claude.child.stdin.write(found ? '\r' : '\x15'); // Enter, or Ctrl-U to empty the line
        return found && soon(2_000, () => textsSent(model.requests).includes(text));
      };
      await until(20_000, `${line} sending the model ${JSON.stringify(text)}`, attempt).catch((error) => {
        throw failed(error);
      });
    },
    stop: () => {
      claude.stop();
      model.stop();
    },
  };
  try {
    await until(20_000, 'the prompt of Claude Code', () => screen().includes('❯'));
    return session;
  } catch (error) {
    session.stop();
    throw failed(error);
  }
}

/** A stand-in model, a home of its own, and a configuration with one server. */
async function prepare(mcpServer) {
  const model = await startModel();
  const home = temporaryDirectory();
  const file = path.join(home, 'mcp.json');
  fs.writeFileSync(file, JSON.stringify({ mcpServers: { cuebook: mcpServer } }));
  const env = cleanEnvironment(home, {
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: 'none',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  });
  return { model, home, options: { env }, config: ['--mcp-config', file, '--strict-mcp-config'] };
}

function assertSent(texts, wanted) {
  if (!texts.includes(wanted)) {
    throw new Error(`the model was not sent ${JSON.stringify(wanted)}\nbut ${JSON.stringify(texts.slice(-5), null, 1)}`);
  }
}
