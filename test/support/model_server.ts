import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TearDown } from './database.ts';

export type ModelRequest = Readonly<{
  path: string;
  authorization: string | undefined;
  body: { model: string; stream: boolean; messages: { role: string; content: string }[] };
}>;

export type ModelServer = Readonly<{ url: string; requests: ModelRequest[] }>;

/** One chat completion as a stream of events, a few characters each. */
export function streamWords(res: ServerResponse, text: string): void {
  res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  res.write(': begun\n\n');
  const event = (choice: object) =>
    res.write(`data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, ...choice }] })}\n\n`);
  event({ delta: { role: 'assistant', content: null } });
  for (const part of text.match(/.{1,7}/gs) ?? []) event({ delta: { content: part } });
  event({ delta: {}, finish_reason: 'stop' });
  res.end('data: [DONE]\n\n');
}

/** A stand-in for an OpenAI-compatible model: a real server on loopback that streams what `reply` says. */
export async function openModel(
  t: TearDown,
  reply: (request: ModelRequest, res: ServerResponse, req: IncomingMessage) => unknown,
): Promise<ModelServer> {
  const requests: ModelRequest[] = [];
  const server = createServer(async (req, res) => {
    let text = '';
    for await (const chunk of req) text += chunk;
    const request = { path: req.url ?? '', authorization: req.headers.authorization, body: JSON.parse(text) };
    requests.push(request);
    const words = await reply(request, res, req);
    if (typeof words === 'string') streamWords(res, words);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, requests };
}
