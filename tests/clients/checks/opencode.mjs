// opencode, whole, with a stand-in for its model: it lists the starter library's prompts as its
// commands, and a command sends the model what Cuebook rendered.
import fs from 'node:fs';
import path from 'node:path';
import {
  assertContains, assertSame, cleanEnvironment, dataDirectory, expected, fixture, inClients, serve, start,
  temporaryDirectory, until,
} from '../harness.mjs';
import { startModel, textsSent } from '../model.mjs';

const OPENCODE = inClients('node_modules', `opencode-${process.platform}-${process.arch}`, 'bin', 'opencode');

export async function run(binary, report) {
  // A first start makes the starter library.
  const first = await serve(binary, ['--data-dir', path.join(temporaryDirectory(), 'data')]);
  try {
    await report.check('opencode http: the starter prompts are commands', async () => {
      const client = await startOpencode({ type: 'remote', url: first.url });
      try {
        const names = (await client.commands()).map(({ name }) => name);
        for (const name of ['incident-triage', 'code-review']) {
          if (!names.includes(`cuebook:${name}`)) throw new Error(`no cuebook:${name} among ${names}`);
        }
        if (names.length < 16) throw new Error(`fewer than 16 prompts: ${names}`);
      } finally {
        client.stop();
      }
    });
  } finally {
    first.stop();
  }

  const directory = dataDirectory(fixture('clients-library'));
  const second = await serve(binary, ['--data-dir', directory]);
  const http = { type: 'remote', url: second.url };
  const stdio = { type: 'local', command: [binary, 'stdio', '--library', path.join(directory, 'library.git')] };
  try {
    await conversation(report, 'opencode http', http);
    await conversation(report, 'opencode stdio', stdio);
  } finally {
    second.stop();
  }
}

async function conversation(report, name, mcpServer) {
  let client;
  await report.check(`${name}: the prompts are commands, an argument a hint`, async () => {
    client = await startOpencode(mcpServer);
    const commands = (await client.commands()).map((command) => [command.name, command.description, command.hints.length]);
    const wanted = expected.prompts.map((prompt) => [`cuebook:${prompt.name}`, prompt.description, prompt.arguments.length]);
    assertSame(commands.toSorted(), wanted.toSorted());
  });
  if (!client) return;
  try {
    await report.check(`${name}: the text reaches the model, less its last newline`, async () => {
      assertSent(await client.type('cuebook:release-notes', ''), expected.texts['release-notes'].trimEnd());
    });
    await report.check(`${name}: a runbook that needs no argument arrives in the text`, async () => {
      const sent = await client.type('cuebook:search-check', '');
      assertContains(sent.at(-1), expected.texts['runbook://search'].trimEnd());
    });
    await report.check(`${name}: words fill the arguments; texts are joined`, async () => {
      // It renders once, with "$2" for the service, and puts the words in afterwards: no runbook is found.
      const [first, , last] = expected['incident-triage'].messages;
      const sent = await client.type('cuebook:incident-triage', 'INC-9942 payments HIGH');
      assertSent(sent, `${first.text}\n${last.text}`.trimEnd());
    });
  } finally {
    client.stop();
  }
}

/** Starts an opencode that knows one server, with a stand-in for its model. */
async function startOpencode(mcpServer) {
  const model = await startModel();
  const home = temporaryDirectory();
  const config = {
    autoupdate: false,
    share: 'disabled',
    model: 'standin/model',
    small_model: 'standin/model',
    provider: {
      standin: {
        npm: '@ai-sdk/anthropic',
        options: { baseURL: `${model.url}/v1`, apiKey: 'none' },
        models: { model: { name: 'Stand-in' } },
      },
    },
    mcp: { cuebook: mcpServer },
  };
  fs.writeFileSync(path.join(home, 'opencode.json'), JSON.stringify(config));
  const env = cleanEnvironment(home, {
    OPENCODE_CONFIG: path.join(home, 'opencode.json'),
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
  });
  const server = start(OPENCODE, ['serve', '--port', '0', '--hostname', '127.0.0.1'], { env, cwd: home });
  const stop = () => {
    server.stop();
    model.stop();
  };
  const ask = async (address, body) => {
    const headers = { 'content-type': 'application/json' };
    const request = body ? { method: 'POST', headers, body: JSON.stringify(body) } : {};
    const answer = await fetch(address, { ...request, signal: AbortSignal.timeout(60_000) });
    if (!answer.ok) throw new Error(`${address}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  try {
    const address = await until(30_000, 'the start of opencode', () => server.output().match(/http:\/\/127\.0\.0\.1:\d+/)?.[0]);
    return {
      stop,
      commands: async () => (await ask(`${address}/command`)).filter(({ source }) => source === 'mcp'),
      /** Runs a command in a session of its own; gives the texts the model was sent. */
      type: async (command, words) => {
        const before = model.requests.length;
        const { id } = await ask(`${address}/session`, {});
        await ask(`${address}/session/${id}/command`, { command, arguments: words });
        return textsSent(model.requests.slice(before));
      },
    };
  } catch (error) {
    stop();
    throw new Error(`${error.message}\n${server.output().slice(-2000)}`);
  }
}

function assertSent(texts, wanted) {
  if (!texts.includes(wanted)) {
    throw new Error(`the model was not sent ${JSON.stringify(wanted)}\nbut ${JSON.stringify(texts.slice(-3), null, 1)}`);
  }
}
