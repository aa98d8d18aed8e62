import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import pg from 'pg';
import { rate } from './measure.ts';

export const run = promisify(execFile);
/** Where it is installed. */
export const PGBENCH = ['/usr/lib/postgresql/15/bin/pgbench', '/usr/bin/pgbench'].find(existsSync);
const SCALE = 10;

async function prepare(db: pg.Pool): Promise<void> {
  await db.query(`
    create schema if not exists pgbench;
    create table pgbench.accounts as select n as aid, 0 as abalance, repeat(' ', 84) as filler
      from generate_series(1, ${SCALE * 100_000}) n;
    alter table pgbench.accounts add primary key (aid);
    create table pgbench.history (aid integer, delta integer, mtime timestamptz)`);
}

/** The five statements of pgbench's simple update from Node, one round trip each, as pgbench sends them. */
async function fromNode(url: string, clients: number, seconds: number): Promise<number> {
  const connections = await Promise.all(
    Array.from({ length: clients }, async () => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      return client;
    }),
  );
  const result = await rate(clients, seconds, async (worker) => {
    const client = connections[worker] as pg.Client;
    const aid = 1 + Math.floor(Math.random() * SCALE * 100_000);
    await client.query('begin');
    await client.query({
      name: 'u',
      text: 'update pgbench.accounts set abalance = abalance + $1 where aid = $2',
      values: [1, aid],
    });
    await client.query({ name: 's', text: 'select abalance from pgbench.accounts where aid = $1', values: [aid] });
    await client.query({ name: 'i', text: 'insert into pgbench.history values ($1, $2, now())', values: [aid, 1] });
    await client.query('end');
    return 1;
  });
  await Promise.all(connections.map((client) => client.end()));
  return result;
}

export type Commits = Readonly<{ tool: string; byClients: ReadonlyMap<number, number> }>;

/** Transactions a second of pgbench's simple update (`pgbench -N`): the limit that the rest is compared with. */
export async function measureCommits(url: string, clientCounts: readonly number[], seconds: number): Promise<Commits> {
  const byClients = new Map<number, number>();
  if (!PGBENCH) {
    const db = new pg.Pool({ connectionString: url });
    await prepare(db);
    await db.end();
    for (const clients of clientCounts) byClients.set(clients, await fromNode(url, clients, seconds));
    return { tool: 'pgbench -N, from Node', byClients };
  }
  await run(PGBENCH, ['-i', '-q', '-s', String(SCALE), url]);
  for (const clients of clientCounts) {
    const { stdout } = await run(PGBENCH, [
      '-N',
      '-n',
      '-M',
      'prepared',
      '-c',
      String(clients),
      '-j',
      '2',
      '-T',
      String(seconds),
      url,
    ]);
    byClients.set(clients, Number(/tps = ([\d.]+)/.exec(stdout)?.[1]));
  }
  return { tool: 'pgbench -N', byClients };
}
