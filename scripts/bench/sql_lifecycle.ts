import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { z } from 'zod';
import { functionQuery, functionText } from '../../engine/db/function_text.ts';
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

const PULL = { organizationIds: null, profileKeys: null, kinds: null, claimSeconds: 30 };
const RUNNING = { harness: 'bench', model: 'none', workspaceUri: null };

/** Prepared by the name of its function, as the pools of the product prepare theirs. */
async function send(client: pg.Client, query: pg.QueryConfig): Promise<unknown> {
  const name = /app\.(\w+)/.exec(query.text)?.[1] ?? '';
  return (await client.query({ name, ...query })).rows[0].result;
}

/** @returns 1 when a request was there to be worked on, else 0 */
async function lifecycle(client: pg.Client, worker: number): Promise<number> {
  const pull = functionQuery('run_requests_pull', { workerIds: [`w${worker}`], ...PULL });
  const [item] = pulled.parse(await send(client, pull)).items;
  if (!item) return 0;
  const { organizationId, runRequestId, leaseToken } = item;
  const lease = { organizationId, runId: randomUUID(), leaseToken };
  const start = { ...lease, runRequestId, workerId: `w${worker}`, leaseSeconds: 60 };
  const end = { bodyHash: lease.runId, result: RESULT, report: REPORT, checks: null, evaluationDigest: null };
  await send(client, functionQuery('run_start', start));
  await send(client, functionQuery('run_running', { ...lease, ...RUNNING }));
  await send(client, functionQuery('run_heartbeat', { ...lease, leaseSeconds: 60 }));
  await send(client, functionQuery('run_logs_append', { ...lease, entries: logEntries }));
  await send(client, functionQuery('run_complete', { ...lease, ...end }));
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

const LEASE = { organizationId: '(:org)::uuid', runId: '(:run)::uuid', leaseToken: '(:token)::text' };
const WORKER = `'w' || (:client_id)::text`;
const quoted = (value: unknown) => `'${JSON.stringify(value)}'`;

/** The same six transactions as a script of pgbench, each one round trip. */
const SCRIPT = `
select coalesce(item->>'organizationId', '') as org, coalesce(item->>'runRequestId', '') as request,
  coalesce(item->>'leaseToken', '') as token, gen_random_uuid() as run, (item is not null)::integer as found
  from (select ${functionText('run_requests_pull', {
    workerIds: `array[${WORKER}]`,
    organizationIds: 'null',
    profileKeys: 'null',
    kinds: 'null',
    claimSeconds: '30',
  })} #> '{items,0}' as item offset 0) pulled \\gset
\\if :found
select ${functionText('run_start', { ...LEASE, runRequestId: '(:request)::uuid', workerId: WORKER, leaseSeconds: '60' })};
select ${functionText('run_running', { ...LEASE, harness: `'bench'`, model: `'none'`, workspaceUri: 'null' })};
select ${functionText('run_heartbeat', { ...LEASE, leaseSeconds: '60' })};
select ${functionText('run_logs_append', { ...LEASE, entries: quoted(logEntries) })};
select ${functionText('run_complete', {
  ...LEASE,
  bodyHash: '(:run)::text',
  result: quoted(RESULT),
  report: quoted(REPORT),
  checks: 'null',
  evaluationDigest: 'null',
})};
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
