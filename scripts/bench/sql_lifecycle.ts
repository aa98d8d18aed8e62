import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { z } from 'zod';
import { roleUrl } from '../../engine/db/pool.ts';
import { PGBENCH, run } from './commits.ts';
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

const RESULT = { kind: 'completed', summary: 'done', artifacts: [] };
const REPORT = { usage: { inputTokens: 1 }, logState: 'complete' };

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
  const lease = { p_organization_id: item.organizationId, p_run_id: runId, p_lease_token: item.leaseToken };
  await transition(client, 'run_start', {
    ...lease,
    p_run_request_id: item.runRequestId,
    p_worker_id: `w${worker}`,
    p_lease_seconds: 60,
  });
  await transition(client, 'run_running', { ...lease, p_harness: 'bench', p_model: 'none', p_workspace_uri: null });
  await transition(client, 'run_heartbeat', { ...lease, p_lease_seconds: 60 });
  await transition(client, 'run_logs_append', { ...lease, p_entries: JSON.stringify(logEntries) });
  await transition(client, 'run_complete', {
    ...lease,
    p_body_hash: runId,
    p_result: JSON.stringify(RESULT),
    p_report: JSON.stringify(REPORT),
    p_checks: null,
    p_evaluation_digest: null,
  });
  return 1;
}

/** Whole lifecycles a second, from Node: its own processor time is in it. */
async function fromNode(url: string, workers: number, seconds: number): Promise<number> {
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

/** The same six transactions as a script of pgbench, each one round trip. */
const SCRIPT = `
select coalesce(item->>'organizationId', '') as org, coalesce(item->>'runRequestId', '') as request,
  coalesce(item->>'leaseToken', '') as token, gen_random_uuid() as run, (item is not null)::integer as found
  from (select app.run_requests_pull(p_worker_ids => array['w' || (:client_id)::text], p_organization_ids => null,
    p_profile_keys => null, p_kinds => null, p_claim_seconds => 30) #> '{items,0}' as item offset 0) pulled \\gset
\\if :found
select app.run_start(p_organization_id => (:org)::uuid, p_run_request_id => (:request)::uuid, p_run_id => (:run)::uuid,
  p_lease_token => (:token)::text, p_worker_id => 'w' || (:client_id)::text, p_lease_seconds => 60);
select app.run_running(p_organization_id => (:org)::uuid, p_run_id => (:run)::uuid, p_lease_token => (:token)::text,
  p_harness => 'bench', p_model => 'none', p_workspace_uri => null);
select app.run_heartbeat(p_organization_id => (:org)::uuid, p_run_id => (:run)::uuid, p_lease_token => (:token)::text,
  p_lease_seconds => 60);
select app.run_logs_append(p_organization_id => (:org)::uuid, p_run_id => (:run)::uuid, p_lease_token => (:token)::text,
  p_entries => '${JSON.stringify(logEntries)}');
select app.run_complete(p_organization_id => (:org)::uuid, p_run_id => (:run)::uuid, p_lease_token => (:token)::text,
  p_body_hash => (:run)::text, p_result => '${JSON.stringify(RESULT)}', p_report => '${JSON.stringify(REPORT)}',
  p_checks => null, p_evaluation_digest => null);
\\endif
`;
/** A new connection compiles and plans each function once, which takes the processors a while: that is not measured. */
const warmUpSeconds = (workers: number) => 1 + workers / 4;

async function byPgbench(tool: string, url: string, workers: number, seconds: number): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-'));
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  try {
    const script = join(folder, 'lifecycle.sql');
    await writeFile(script, SCRIPT);
    const time = String(seconds + Math.ceil(warmUpSeconds(workers)));
    const options = ['-n', '-M', 'prepared', '-f', script, '-c', String(workers), '-j', '2', '-T', time];
    const { rows: began } = await db.query(`select clock_timestamp() + make_interval(secs => $1::float8) as since`, [
      warmUpSeconds(workers),
    ]);
    // libpq takes no plus for a space.
    const { stderr } = await run(tool, [...options, roleUrl(url, { role: 'runner_api' }).replaceAll('+', '%20')]);
    if (/aborted/.test(stderr)) throw new Error(stderr);
    const { rows } = await db.query<{ rate: number }>(
      `select (count(*) / extract(epoch from max(finished_at) - $1::timestamptz))::float8 as rate from app.runs
       where finished_at >= $1::timestamptz`,
      [began[0].since],
    );
    return rows[0]?.rate ?? Number.NaN;
  } finally {
    await db.end();
    await rm(folder, { recursive: true });
  }
}

/**
 * Whole lifecycles a second by the SQL functions alone, each worker on a connection of its own. By pgbench where it is
 * installed, as the commits that they are compared with: so that both have the same client.
 */
export function measureSqlLifecycles(url: string, workers: number, seconds: number): Promise<number> {
  return PGBENCH ? byPgbench(PGBENCH, url, workers, seconds) : fromNode(url, workers, seconds);
}
