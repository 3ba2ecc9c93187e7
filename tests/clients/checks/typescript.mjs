// The official TypeScript SDK client: it lists, renders, completes, reads, is refused as the
// protocol says, and sees a commit, over HTTP and stdio, in both eras of the protocol.
import path from 'node:path';
import {
  assertContains, assertSame, cleanEnvironment, dataDirectory, expected, fixture, publish, requireClient,
  serve, until, within, workTree, writePrompt,
} from '../harness.mjs';

const { Client, StreamableHTTPClientTransport } = requireClient('@modelcontextprotocol/client');
const { StdioClientTransport } = requireClient('@modelcontextprotocol/client/stdio');

const MODERN = '2026-07-28';
const LEGACY = '2025-11-25';

// What the client asks for, and what it must end up speaking.
const ERAS = [
  { era: 'legacy', mode: 'legacy', version: LEGACY, resourceNotFound: -32602 },
  { era: 'auto', mode: 'auto', version: MODERN, resourceNotFound: -32602 },
  { era: 'modern', mode: { pin: MODERN }, version: MODERN, resourceNotFound: -32602 },
];

export async function run(binary, report) {
  for (const wanted of ERAS) {
    const directory = dataDirectory(fixture('clients-library'));
    const repository = path.join(directory, 'library.git');
    const server = await serve(binary, ['--data-dir', directory]);
    try {
      const http = () => new StreamableHTTPClientTransport(new URL(server.url));
      await converse(report, `typescript http ${wanted.era}`, wanted, http, (...change) => publish(repository, ...change));
    } finally {
      server.stop();
    }

    const library = path.join(dataDirectory(fixture('clients-library')), 'library.git');
    const stdio = () => stdioTransport(binary, library);
    await converse(report, `typescript stdio ${wanted.era}`, wanted, stdio, (...change) => publish(library, ...change));
  }

  // A plain work tree: what is saved is served, without a commit.
  const watched = workTree(fixture('clients-library'));
  const server = await serve(binary, ['--watch', watched]);
  try {
    const http = () => new StreamableHTTPClientTransport(new URL(server.url));
    await seeChanges(report, 'typescript serve --watch', ERAS[1], http, (...change) => writePrompt(watched, ...change));
  } finally {
    server.stop();
  }
  const tree = workTree(fixture('clients-library'));
  const stdio = () => stdioTransport(binary, tree);
  await seeChanges(report, 'typescript stdio on a work tree', ERAS[1], stdio, (...change) => writePrompt(tree, ...change));
}

function stdioTransport(binary, library) {
  return new StdioClientTransport({
    command: binary,
    args: ['stdio', '--library', library],
    env: cleanEnvironment(),
    stderr: 'ignore',
  });
}

async function connect({ mode, version }, transport) {
  const notices = [];
  const client = new Client(
    { name: 'cuebook-client-checks', version: '1' },
    {
      versionNegotiation: { mode },
      // The client lists again by itself at every notice; keep what it found.
      listChanged: { prompts: { debounceMs: 0, onChanged: (error, prompts) => notices.push({ error, prompts }) } },
    },
  );
  await within(10_000, 'connect', client.connect(transport()));
  assertSame(client.getNegotiatedProtocolVersion(), version, 'protocol version');
  return { client, notices };
}

/** One conversation; a connection that fails is one failed check. */
async function converse(report, name, wanted, transport, change) {
  let connection;
  await report.check(`${name}: connects and speaks ${wanted.version}`, async () => {
    connection = await connect(wanted, transport);
  });
  if (!connection) return;
  const { client } = connection;
  const check = (what, body) => report.check(`${name}: ${what}`, () => within(10_000, what, body()));

  await check('lists the prompts', async () => assertSame(listed((await client.listPrompts()).prompts), expected.prompts));
  await check('renders without arguments', async () => {
    const { messages } = await client.getPrompt({ name: 'release-notes' });
    assertSame(messages, [{ role: 'user', content: { type: 'text', text: expected.texts['release-notes'] } }]);
  });
  await check('renders with arguments, a runbook and an assistant message', async () => {
    const { messages } = await client.getPrompt({
      name: 'incident-triage',
      arguments: expected['incident-triage'].arguments,
    });
    assertSame(messages.map(brief), expected['incident-triage'].messages, 'messages');
    assertSame(messages[1].content.resource.text, expected.texts['runbook://payments'], 'runbook');
    assertSame(messages[1].content.resource.mimeType, 'text/markdown', 'type of the runbook');
  });
  await check('completes', async () => {
    const complete = async (argument, value) => {
      const ref = { type: 'ref/prompt', name: 'incident-triage' };
      const { completion } = await client.complete({ ref, argument: { name: argument, value } });
      return completion.values;
    };
    assertSame(await complete('service', 'pay'), ['payments']);
    assertSame((await complete('service', '')).toSorted(), ['payments', 'search']);
    assertSame((await complete('severity', 'cri'))[0], 'CRITICAL');
    assertSame(await complete('nothing', 'x'), [], 'completion of an unknown argument');
  });
  await check('lists and reads the resources', async () => {
    const { resources } = await client.listResources();
    assertSame(resources.map(({ uri }) => uri).toSorted(), expected.resources);
    const { resourceTemplates } = await client.listResourceTemplates();
    assertSame(resourceTemplates.map(({ uriTemplate }) => uriTemplate), ['runbook://{service}']);
    const { contents } = await client.readResource({ uri: 'runbook://payments' });
    assertSame(contents.map(({ uri, text }) => ({ uri, text })), [{ uri: 'runbook://payments', text: expected.texts['runbook://payments'] }]);
  });
  await check('is refused what there is not', async () => {
    assertSame((await refusal(client.getPrompt({ name: 'nothing-of-the-kind' }))).code, -32602, 'code');
    const missing = await refusal(client.getPrompt({ name: 'incident-triage', arguments: { ticketId: '' } }));
    assertSame(missing.code, -32602, 'code');
    assertContains(missing.message, 'ticketId', 'message');
    const unread = await refusal(client.readResource({ uri: 'runbook://nothing' }));
    // on the wire it is -32002 in the legacy era; this SDK hands both codes on as one
    assertSame(unread.code, wanted.resourceNotFound, 'code of a resource that is not there');
  });
  await seeChangesOn(report, name, connection, change);
  await report.check(`${name}: closes`, () => within(5_000, 'close', client.close()));
}

async function seeChanges(report, name, wanted, transport, change) {
  let connection;
  await report.check(`${name}: connects`, async () => {
    connection = await connect(wanted, transport);
  });
  if (!connection) return;
  await seeChangesOn(report, name, connection, change);
  await connection.client.close();
}

async function seeChangesOn(report, name, { client, notices }, change) {
  const said = async () => (await client.getPrompt({ name: 'arrival' })).messages[0].content.text;
  await report.check(`${name}: is told of a new prompt, and the list has it`, async () => {
    change('arrival', 'first');
    const { error, prompts } = await until(5_000, 'list_changed', () => notices.pop());
    if (error) throw error;
    assertSame(prompts.map((prompt) => prompt.name).toSorted(), ['arrival', ...expected.prompts.map((prompt) => prompt.name)].toSorted());
    assertSame(await said(), 'first\n');
  });
  await report.check(`${name}: is told of a new text, and gets it`, async () => {
    notices.length = 0;
    change('arrival', 'second');
    await until(5_000, 'list_changed', () => notices.pop());
    assertSame(await said(), 'second\n');
  });
}

/** The entries of a list as expected.json has them; absent and empty are the same. */
function listed(prompts) {
  return prompts
    .map(({ name, title, description, arguments: all = [] }) => {
      const args = all.map((one) => ({ name: one.name, description: one.description, required: one.required ?? false }));
      return { name, title, description, arguments: args };
    })
    .toSorted((left, right) => left.name.localeCompare(right.name));
}

function brief({ role, content }) {
  return content.type === 'resource' ? { role, resource: content.resource.uri } : { role, text: content.text };
}

async function refusal(promise) {
  let answer;
  try {
    answer = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`an answer instead of an error: ${JSON.stringify(answer)}`);
}
