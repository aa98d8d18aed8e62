import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

// The least that an event-stream server can be: what the streams of the API are compared with. Run by streams.ts.
const clients: ServerResponse[] = [];
const server = createServer((_req, res) => {
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  res.write('retry: 2000\n\n');
  clients.push(res);
  res.on('close', () => void clients.splice(clients.indexOf(res), 1));
});

function send(n: number): void {
  const message = { text: 'x'.repeat(400), updatedAt: new Date().toISOString() };
  clients[n % clients.length]?.write(`id: ${n}\nevent: chat.message\ndata: ${JSON.stringify({ message })}\n\n`);
}

let timer: NodeJS.Timeout | undefined;
process.on('message', (ask: { everyMs: number }) => {
  clearInterval(timer);
  let n = 0;
  timer = setInterval(() => send(n++), ask.everyMs);
});
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.send?.({ url: `http://127.0.0.1:${port}` });
});
