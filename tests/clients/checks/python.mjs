// The Python clients: the official SDK (`mcp`) and FastMCP. The conversation is in python_clients.py.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { dataDirectory, fixture, inClients, runProcess, serve } from '../harness.mjs';

const SCRIPT = path.join(path.dirname(fileURLToPath(import.meta.url)), 'python_clients.py');

export async function run(binary, report) {
  for (const client of ['mcp', 'fastmcp']) {
    for (const mode of ['legacy', 'auto']) {
      for (const transport of ['http', 'stdio']) {
        const directory = dataDirectory(fixture('clients-library'));
        const repository = path.join(directory, 'library.git');
        const server = transport === 'http' ? await serve(binary, ['--data-dir', directory]) : undefined;
        const target = server ? [server.url] : [binary, 'stdio', '--library', repository];
        try {
          const args = [SCRIPT, client, mode, repository, ...target];
          const { code, stdout, stderr } = await runProcess(inClients('venv', 'bin', 'python'), args, { timeout: 60_000 });
          // A line of JSON a check: its name, and what went wrong or null.
          for (const [name, error] of stdout.split('\n').filter(Boolean).map((line) => JSON.parse(line))) {
            if (error === null) report.ok(`${client} ${transport} ${mode}: ${name}`);
            else report.failed(`${client} ${transport} ${mode}: ${name}`, error);
          }
          if (code !== 0) throw new Error(`exit code ${code}\n${stderr.slice(-2000)}`);
        } catch (error) {
          report.failed(`${client} ${transport} ${mode}: runs to its end`, error);
        } finally {
          server?.stop();
        }
      }
    }
  }
}
