import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Test } from 'tap';

export type Asked = Readonly<{
  path: string;
  headers: IncomingMessage['headers'];
  body: { model: string; messages: { role: string; content: unknown }[]; stream: boolean; stream_options?: object };
}>;

/** One reply of the model, sent piece by piece by the test. */
export type ModelReply = Readonly<{
  asked: Asked;
  res: ServerResponse;
  /** Sends an event, after the headers where these have not gone yet. */
  event: (data: object | string) => void;
  /** A piece of text, as chat completions stream it. */
  say: (content: string, finishReason?: string | null) => void;
  /** Whether the other side has gone before the end. */
  aborted: () => boolean;
}>;

/** A server on loopback that streams chat completions as OpenAI does. */
export async function startModel(t: Test, serve: (reply: ModelReply) => void | Promise<void>) {
  const asked: Asked[] = [];

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const request = { path: req.url ?? '', headers: req.headers, body: JSON.parse(await text(req)) };
    asked.push(request);
    const event = (data: object | string) => {
      if (!res.headersSent) res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
      res.write(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
    };
    const say = (content: string, finishReason: string | null = null) =>
      event({ id: 'x', choices: [{ index: 0, delta: { content }, finish_reason: finishReason }], usage: null });
    await serve({ asked: request, res, event, say, aborted: () => res.destroyed && !res.writableFinished });
  }

  const server = createServer((req, res) => void handle(req, res).catch(() => res.destroy()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, asked, stop: () => server.close() };
}
