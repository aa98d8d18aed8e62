import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import { listen } from '../http_listen.ts';
import { metricsAccess } from './access.ts';

export type Monitor = Readonly<{ url: string; close(): Promise<void> }>;

export type MonitorOptions = Readonly<{
  host: string;
  /** 0: a free one. */
  port: number;
  registry: Registry;
  /** With any, `/metrics` takes one of them. */
  metricsTokens: readonly string[];
  /** Why the process cannot do its work now; undefined: it can. Without it there is no `/readyz`. */
  notReady?: () => Promise<string | undefined>;
}>;

type Page = (req: IncomingMessage) => Promise<Readonly<{ status: number; type: string; body: string }>>;

// Whoever connects here is a probe: it asks at once, and there are few.
const REQUEST_MS = 10_000;
const MAX_CONNECTIONS = 100;

const json = (status: number, value: unknown) => ({
  status,
  type: 'application/json',
  body: `${JSON.stringify(value)}\n`,
});

/**
 * A port for probes alone, apart from what the process does: `/healthz` (it lives), `/readyz` (it does its work) and `/metrics`.
 * @throws what keeps it from listening
 */
export async function startMonitor(options: MonitorOptions): Promise<Monitor> {
  const { host, port, registry, metricsTokens, notReady } = options;
  const refusal = metricsAccess(metricsTokens, { ownPort: true });
  const pages = new Map<string, Page>([
    ['/healthz', async () => json(200, { status: 'ok' })],
    [
      '/metrics',
      async (req) => {
        const refused = refusal(req);
        if (refused !== undefined) return json(401, { error: refused });
        return { status: 200, type: registry.contentType, body: await registry.metrics() };
      },
    ],
  ]);
  if (notReady) {
    pages.set('/readyz', async () => {
      const reason = await notReady();
      return reason === undefined ? json(200, { status: 'ready' }) : json(503, { error: reason });
    });
  }

  async function respond(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const page = pages.get(req.url?.split('?', 1)[0] ?? '');
    const isRead = req.method === 'GET' || req.method === 'HEAD';
    const { status, type, body } = !page
      ? json(404, { error: `There are ${[...pages.keys()].join(', ')}.` })
      : isRead
        ? await page(req)
        : json(405, { error: 'GET alone.' });
    if (status === 401) res.setHeader('WWW-Authenticate', 'Bearer realm="business-runner metrics"');
    res.writeHead(status, { 'Content-Type': type, 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' });
    res.end(req.method === 'HEAD' ? '' : body);
  }

  const server = createServer({ headersTimeout: REQUEST_MS, requestTimeout: REQUEST_MS }, (req, res) => {
    req.resume();
    respond(req, res).catch((error: unknown) => {
      // Metrics that cannot be collected, for instance: the probe fails, the process does not.
      if (!res.headersSent) res.writeHead(500);
      res.end(error instanceof Error ? error.message : '');
    });
  });
  server.maxConnections = MAX_CONNECTIONS;
  const url = await listen(server, host, port);
  return {
    url,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
