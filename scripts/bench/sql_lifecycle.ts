import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { z } from 'zod';
import { roleUrl } from '../../engine/db/pool.ts';
import { rate } from './measure.ts';

/** Transactions of one lifecycle: pull, start, running, one heartbeat, one log batch, complete. */
export const STEPS = 6;

const pulled = z.object({
  items: z.array(z.object({ organizationId: z.string(), runRequestId: z.string(), leaseToken: z.string() })),
});

export const logEntries = [
  {
    sequence: 1,
    category: 'execution',
    status: 'completed',
    label: 'step',
    detail: 'one log batch of one entry',
    occurredAt: '2026-01-01T00:00:00.000Z',
  },
];

async function transition(client: pg.Client, name: string, args: Record<string, unknown>): Promise<unknown> {
  const keys = Object.keys(args);
  const list = keys.map((key, index) => `${key} => $${index + 1}`).join(', ');
  const result = await client.query({
    name,
    text: `select app.${name}(${list}) as result`,
    values: Object.values(args),
  });
  return result.rows[0].result;
}

/** @returns 1 when a request was there to be worked on, else 0 */
async function lifecycle(client: pg.Client, worker: number): Promise<number> {
  const { items } = pulled.parse(
    await transition(client, 'run_requests_pull', {
      p_worker_ids: [`w${worker}`],
      p_organization_ids: null,
      p_profile_keys: null,
      p_kinds: null,
      p_claim_seconds: 30,
    }),
  );
  const item = items[0];
  if (!item) return 0;
  const runId = randomUUID();
  const run = { p_organization_id: item.organizationId, p_run_id: runId, p_lease_token: item.leaseToken };
  await transition(client, 'run_start', {
    ...run,
    p_run_request_id: item.runRequestId,
    p_worker_id: `w${worker}`,
    p_lease_seconds: 60,
  });
  await transition(client, 'run_running', { ...run, p_harness: 'bench', p_model: 'none', p_workspace_uri: null });
  await transition(client, 'run_heartbeat', { ...run, p_lease_seconds: 60 });
  await transition(client, 'run_logs_append', { ...run, p_entries: JSON.stringify(logEntries) });
  await transition(client, 'run_complete', {
    ...run,
    p_body_hash: runId,
    p_result: JSON.stringify({ kind: 'completed', summary: 'done', artifacts: [] }),
    p_report: JSON.stringify({ usage: { inputTokens: 1 }, logState: 'complete' }),
    p_checks: null,
    p_judged: null,
  });
  return 1;
}

/** Whole lifecycles a second by the SQL functions alone, each worker on a connection of its own. */
export async function measureSqlLifecycles(url: string, workers: number, seconds: number): Promise<number> {
  const connections = await Promise.all(
    Array.from({ length: workers }, async () => {
      const client = new pg.Client({ connectionString: roleUrl(url, { role: 'runner_api' }) });
      await client.connect();
      return client;
    }),
  );
  // A new connection compiles and plans each function once: that is not what is measured.
  await Promise.all(connections.map((client, worker) => lifecycle(client, worker)));
  const result = await rate(workers, seconds, (worker) => lifecycle(connections[worker] as pg.Client, worker));
  await Promise.all(connections.map((client) => client.end()));
  return result;
}
