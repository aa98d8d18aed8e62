import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const page = (title: string, description: string, body: string) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="description" content="${description}"></head><body><h1>${title}</h1>${body}
<nav><a href="/">Home</a> <a href="/lamps">Lamps</a> <a href="/repairs">Repairs</a></nav></body></html>`;

const PAGES: Readonly<Record<string, string>> = {
  '/': page('Demo Lamp Studio', 'Reading lamps, made to order since 1998.', '<p>Three people and a workshop.</p>'),
  '/lamps': page('Lamps', 'Two lamps, any colour.', '<p>The desk lamp costs 180 EUR, the floor lamp 320 EUR.</p>'),
  '/repairs': page('Repairs', 'Every lamp is repaired.', '<p>Free of charge for five years.</p>'),
};

export type Website = Readonly<{ origin: string; close: () => void }>;

/** Serves the website of the demo's second organization on a loopback port. */
export async function serveWebsite(): Promise<Website> {
  const server = createServer((req, res) => {
    const found = PAGES[req.url ?? ''];
    res.writeHead(found === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' }).end(found);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
