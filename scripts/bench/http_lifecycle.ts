import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { z } from 'zod';
import { rate } from './measure.ts';
import { SERVICE_TOKEN } from './server.ts';
import { logEntries } from './sql_lifecycle.ts';

export type Post = (path: string, body: unknown) => Promise<{ status: number; body: unknown }>;

/** JSON requests over kept connections, with as little of a client as there can be. */
export function client(url: string, connections: number): { post: Post; get: Post; close: () => void } {
  const agent = new http.Agent({ keepAlive: true, maxSockets: connections });
  const { hostname, port } = new URL(url);
  const send = (method: string, path: string, body: unknown) => {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: unknown }>();
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const headers = {
      authorization: `Bearer ${SERVICE_TOKEN}`,
      ...(payload ? { 'content-type': 'application/json', 'content-length': String(payload.length) } : {}),
    };
    const request = http.request({ agent, hostname, port, method, path, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) });
      });
    });
    request.on('error', reject);
    request.end(payload);
    return promise;
  };
  return {
    post: (path, body) => send('POST', path, body),
    get: (path) => send('GET', path, undefined),
    close: () => agent.destroy(),
  };
}

const pulled = z.object({
  data: z.object({
    items: z.array(z.object({ organizationId: z.string(), runRequestId: z.string(), leaseToken: z.string() })),
  }),
});

async function expectOk(call: ReturnType<Post>): Promise<unknown> {
  const { status, body } = await call;
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return body;
}

async function lifecycle(post: Post, worker: number): Promise<number> {
  const pull = { workerId: `w${worker}`, limit: 1, waitMs: 1000 };
  const item = pulled.parse(await expectOk(post('/internal/run-requests/pull', pull))).data.items[0];
  if (!item) return 0;
  const runId = randomUUID();
  const lease = { organizationId: item.organizationId, leaseToken: item.leaseToken };
  await expectOk(
    post(`/internal/run-requests/${item.runRequestId}/start`, { ...lease, runId, workerId: `w${worker}` }),
  );
  await expectOk(post(`/internal/runs/${runId}/running`, { ...lease, harness: 'bench', model: 'none' }));
  await expectOk(post(`/internal/runs/${runId}/heartbeat`, lease));
  await expectOk(post(`/internal/runs/${runId}/logs`, { ...lease, entries: logEntries }));
  const output = { kind: 'task_result', result: { kind: 'completed', summary: 'done', artifacts: [] } };
  await expectOk(
    post(`/internal/runs/${runId}/complete`, { ...lease, output, usage: { inputTokens: 1 }, logState: 'complete' }),
  );
  return 1;
}

const WARM_UP_SECONDS = 2;

/** Whole lifecycles a second over HTTP; the client's own work is part of it, on the same two cores. */
export async function measureHttpLifecycles(url: string, workers: number, seconds: number): Promise<number> {
  const { post, close } = client(url, workers);
  // Long enough for the connections of the pool to have compiled and planned each function.
  await rate(workers, WARM_UP_SECONDS, (worker) => lifecycle(post, worker));
  const result = await rate(workers, seconds, (worker) => lifecycle(post, worker));
  close();
  return result;
}
