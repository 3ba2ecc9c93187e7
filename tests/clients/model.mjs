// A stand-in for the model behind a client: answers every question with one short sentence and
// keeps what it was asked, so that a check can compare the text that a slash command sent with
// the text Cuebook rendered. Speaks as much of the Anthropic and Gemini APIs as the clients use.
import http from 'node:http';

const ANSWER = 'Understood.';

/** Starts the stand-in on a free port: `{url, requests, stop}`, a request being `{path, body}`. */
export async function startModel() {
  const requests = [];
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const path = request.url.split('?')[0];
    let body;
    try {
      body = JSON.parse(Buffer.concat(chunks).toString());
    } catch {
      body = undefined;
    }
    requests.push({ path, body });
    if (path.endsWith('/messages')) answerAnthropic(response, body);
    else if (path.includes(':streamGenerateContent')) answerGemini(response, true);
    else if (path.includes(':generateContent')) answerGemini(response, false);
    else json(response, path.endsWith('count_tokens') ? { input_tokens: 1 } : {});
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Every text part that `requests` carried to the model, in order. */
export function textsSent(requests) {
  const texts = [];
  const walk = (value) => {
    if (Array.isArray(value)) value.forEach(walk);
    else if (value && typeof value === 'object') {
      if (typeof value.text === 'string') texts.push(value.text);
      if (typeof value.content === 'string') texts.push(value.content);
      Object.values(value).forEach(walk);
    }
  };
  for (const { body } of requests) walk(body?.messages ?? body?.contents);
  return texts;
}

function json(response, value) {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

function events(response, list) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const [name, data] of list) {
    response.write(`${name ? `event: ${name}\n` : ''}data: ${JSON.stringify(data)}\n\n`);
  }
  response.end();
}

function answerAnthropic(response, body) {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: body?.model ?? 'model', usage };
  const end = { stop_reason: 'end_turn', stop_sequence: null };
  if (!body?.stream) {
    return json(response, { ...message, ...end, content: [{ type: 'text', text: ANSWER }] });
  }
  events(response, [
    ['message_start', { type: 'message_start', message: { ...message, content: [], stop_reason: null } }],
    ['content_block_start', { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }],
    ['content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: ANSWER } }],
    ['content_block_stop', { type: 'content_block_stop', index: 0 }],
    ['message_delta', { type: 'message_delta', delta: end, usage }],
    ['message_stop', { type: 'message_stop' }],
  ]);
}

function answerGemini(response, stream) {
  const answer = {
    candidates: [{ content: { role: 'model', parts: [{ text: ANSWER }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  };
  if (stream) events(response, [[undefined, answer]]);
  else json(response, answer);
}
