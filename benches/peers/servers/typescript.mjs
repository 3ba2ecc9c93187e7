// The TypeScript SDK's server under node:http, as its documentation runs it: a server and a transport a session, or, stateless,
// a request.
//
// node typescript.mjs PORT LIBRARY stateful|stateful-json|stateless-json
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { localhostHostValidation, localhostOriginValidation, NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { Server } from '@modelcontextprotocol/server';

const [port, file, mode] = process.argv.slice(2);
const library = JSON.parse(readFileSync(file, 'utf8'));
const listed = library.prompts.map(({ name, description, arguments: declared }) => ({ name, description, arguments: declared }));
const prompts = new Map(library.prompts.map(prompt => [prompt.name, prompt]));
const json = mode.endsWith('-json');
const sessions = new Map();

function book() {
    const server = new Server(
        { name: 'peer', version: '1' },
        { capabilities: { prompts: { listChanged: true }, completions: {} } }
    );
    server.setRequestHandler('prompts/list', () => ({ prompts: listed }));
    server.setRequestHandler('prompts/get', request => {
        const prompt = prompts.get(request.params.name);
        const values = request.params.arguments ?? {};
        const text = prompt.parts.map(part => part.text ?? values[part.arg] ?? '').join('');
        const messages = [{ role: 'user', content: { type: 'text', text } }];
        const runbook = prompt.runbook ? library.runbooks[values.service] : undefined;
        if (runbook) messages.push({ role: 'user', content: { type: 'resource', resource: runbook } });
        return { description: prompt.description, messages };
    });
    server.setRequestHandler('completion/complete', request => {
        const values = library.services.filter(service => service.startsWith(request.params.argument.value));
        return { completion: { values: values.slice(0, 100), total: values.length, hasMore: values.length > 100 } };
    });
    return server;
}

const hostIsRight = localhostHostValidation();
const originIsRight = localhostOriginValidation();
createServer(async (request, response) => {
    if (request.url === '/notify') {
        await Promise.all([...sessions.values()].map(({ server }) => server.sendPromptListChanged().catch(() => {})));
        response.writeHead(204).end();
        return;
    }
    if (!hostIsRight(request, response) || !originIsRight(request, response)) return;
    if (mode.startsWith('stateless')) {
        const server = book();
        const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: json });
        response.on('close', () => void server.close());
        await server.connect(transport);
        await transport.handleRequest(request, response);
        return;
    }
    const known = sessions.get(request.headers['mcp-session-id']);
    if (known) {
        await known.transport.handleRequest(request, response);
        return;
    }
    const server = book();
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        enableJsonResponse: json,
        onsessioninitialized: id => void sessions.set(id, { server, transport })
    });
    transport.onclose = () => void sessions.delete(transport.sessionId);
    await server.connect(transport);
    await transport.handleRequest(request, response);
}).listen(Number(port), '127.0.0.1');
