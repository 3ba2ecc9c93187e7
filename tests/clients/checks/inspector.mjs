// The official Inspector's command line, a process a question: HTTP and stdio, each era.
import path from 'node:path';
import {
  assertContains, assertSame, cleanEnvironment, dataDirectory, expected, fixture, inClients, runProcess, serve,
} from '../harness.mjs';

const INSPECTOR = inClients('node_modules', '@modelcontextprotocol', 'inspector', 'clients', 'launcher', 'build', 'index.js');

export async function run(binary, report) {
  const directory = dataDirectory(fixture('clients-library'));
  const server = await serve(binary, ['--data-dir', directory]);
  const stdio = [binary, 'stdio', '--library', path.join(directory, 'library.git')];
  try {
    // Every question over HTTP; over stdio those that show that the transport works.
    for (const era of ['legacy', 'auto', 'modern']) {
      const inspect = inspector([server.url, '--transport', 'http', '--protocol-era', era]);
      await askForPrompts(report, `inspector http ${era}`, inspect);
      await askForTheRest(report, `inspector http ${era}`, inspect);
    }
    for (const era of ['legacy', 'modern']) {
      const inspect = inspector([...stdio, '--transport', 'stdio', '--protocol-era', era]);
      await askForPrompts(report, `inspector stdio ${era}`, inspect);
    }
  } finally {
    server.stop();
  }
}

/** Asks one question of the target and gives how the process ended. */
function inspector(target) {
  return (method, ...more) => {
    const args = [INSPECTOR, '--cli', ...target, '--method', method, ...more, '--format', 'json', '--quiet'];
    return runProcess(process.execPath, args, { env: cleanEnvironment() });
  };
}

async function answer(ended) {
  const { code, stdout, stderr } = await ended;
  if (code !== 0) throw new Error(`exit code ${code}: ${stderr || stdout}`);
  return JSON.parse(stdout).result;
}

async function askForPrompts(report, name, inspect) {
  await report.check(`${name}: prompts/list`, async () => {
    const { prompts } = await answer(inspect('prompts/list'));
    assertSame(prompts.map((prompt) => prompt.name).toSorted(), expected.prompts.map((prompt) => prompt.name));
  });
  await report.check(`${name}: prompts/get`, async () => {
    // The Inspector takes no empty values.
    const given = Object.entries(expected['incident-triage'].arguments).filter(([, value]) => value !== '');
    const args = given.map((pair) => pair.join('='));
    const { messages } = await answer(inspect('prompts/get', '--prompt-name', 'incident-triage', '--prompt-args', ...args));
    assertSame(messages[0].content.text, expected['incident-triage'].messages[0].text);
    assertSame(messages[1].content.resource.text, expected.texts['runbook://payments']);
  });
}

async function askForTheRest(report, name, inspect) {
  await report.check(`${name}: prompts/get of a prompt that is not there fails`, async () => {
    const { code, stdout, stderr } = await inspect('prompts/get', '--prompt-name', 'nothing-of-the-kind');
    if (code === 0) throw new Error(`exit code 0: ${stdout}`);
    assertContains(stderr, 'nothing-of-the-kind', 'the error');
  });
  await report.check(`${name}: resources/list`, async () => {
    const { resources } = await answer(inspect('resources/list'));
    assertSame(resources.map(({ uri }) => uri).toSorted(), expected.resources);
  });
  await report.check(`${name}: resources/templates/list`, async () => {
    const { resourceTemplates } = await answer(inspect('resources/templates/list'));
    assertSame(resourceTemplates.map(({ uriTemplate }) => uriTemplate), ['runbook://{service}']);
  });
  await report.check(`${name}: resources/read`, async () => {
    const { contents } = await answer(inspect('resources/read', '--uri', 'runbook://payments'));
    assertSame(contents[0].text, expected.texts['runbook://payments']);
  });
  await report.check(`${name}: tools/list`, async () => {
    const { tools } = await answer(inspect('tools/list'));
    if (!Array.isArray(tools)) throw new Error('no list of tools');
  });
}
