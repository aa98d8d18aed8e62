import t, { type Test } from 'tap';
import { z } from 'zod';
import { call } from '../../../../engine/db/call.ts';
import { expectSuccess, ownerPath, sqlOf } from '../../../support/api_fixtures.ts';
import { startTestApp, type TestApp } from '../../../support/app.ts';
import { createTestDatabase } from '../../../support/database.ts';
import { createTestOrganization, type TestOrganization } from '../../../support/fixtures.ts';
import type { Client } from '../../../support/http.ts';
import { startIssuer } from '../../../support/jwt.ts';
import { until } from '../../../support/wait.ts';

const CONNECTIONS = 8;
const SHARE = 6;
const SHARE_OF_CALLER = 7;
const CALLS = 200;

const database = await createTestDatabase(t);
const start = (ownerAuth?: TestApp['config']['ownerAuth']) =>
  startTestApp(t, { database, config: { databasePoolSize: CONNECTIONS, ...(ownerAuth && { ownerAuth }) } });
const app = await start();
const sql = sqlOf(app);

const newTask = (org: TestOrganization, client: Client) =>
  client.post<{ id: string }>(ownerPath(org, '/tasks'), { title: 'x', ownerProfileKey: org.profileKey });

/** Two hundred calls of the client that wait for locks, in these organizations by turns; `end` lets them go. */
async function blocked(t: Test, client: Client, orgs: readonly TestOrganization[]) {
  const holder = await database.owner.connect();
  t.teardown(async () => holder.release());
  const paths: string[] = [];
  await holder.query('begin');
  for (const org of orgs) {
    const { id } = expectSuccess(await newTask(org, client), 201);
    await holder.query('select from app.tasks where organization_id = $1 and id = $2 for update', [
      org.organizationId,
      id,
    ]);
    paths.push(ownerPath(org, `/tasks/${id}/cancel`));
  }
  const state = { over: 0 };
  const calls = Array.from({ length: CALLS }, async (_, index) => {
    // Keyed ones hold a transaction, the others a statement.
    const headers = Math.floor(index / orgs.length) % 2 === 0 ? { 'idempotency-key': `k${index}` } : undefined;
    const reply = await client.post(paths[index % paths.length] ?? '', {}, headers && { headers });
    state.over += 1;
    return reply.status;
  });
  const end = async () => {
    await holder.query('commit');
    return new Set(await Promise.all(calls));
  };
  return { state, end };
}

/** How many of the two hundred have a connection, once each of these waits for a lock and all the others for a connection. */
async function running({ services: { db } }: TestApp): Promise<number> {
  await until('as many wait for the locks as may', async () => {
    const { rows } = await database.owner.query<{ locked: number }>(
      "select count(*)::int as locked from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    const { running, waiting } = db.load();
    return running >= SHARE && running === rows[0]?.locked && waiting === CALLS - running;
  });
  return db.load().running;
}

/** Reads and writes, within the second that is promised. */
async function serves(t: Test, org: TestOrganization, client: Client): Promise<void> {
  const began = performance.now();
  expectSuccess(await client.get(ownerPath(org, '/tasks')));
  t.ok(performance.now() - began < 1_000, 'the list is there within a second');
  expectSuccess(await client.get(ownerPath(org)));
  expectSuccess(await newTask(org, client), 201);
}

t.test('calls of one organization that wait for a lock leave connections to others', async (t) => {
  const [org, other] = [await createTestOrganization(sql), await createTestOrganization(sql)];
  expectSuccess(await newTask(other, app.owner), 201);
  const { state, end } = await blocked(t, app.owner, [org]);
  t.equal(await running(app), SHARE, 'and the rest of the connections is free');
  await serves(t, other, app.owner);
  t.equal(state.over, 0, 'while none of the calls that wait is over');
  const statuses = await end();
  // On a machine that is busy some of them wait for longer than a call may.
  t.ok(statuses.delete(200), 'which are served in turn');
  t.ok([...statuses].every((status) => status === 503));
  await until('nothing is left', () => app.services.db.load().running + app.services.db.load().waiting === 0);
});

t.test('a person with several organizations leaves connections to others', async (t) => {
  const issuer = await startIssuer(t);
  const jwt = await start(issuer.ownerAuth);
  const [anna, berta] = [jwt.owner.as(await issuer.token('anna')), jwt.owner.as(await issuer.token('berta'))];
  async function createOf(subject: string) {
    const org = await createTestOrganization(sql);
    const member = { organizationId: org.organizationId, subject, role: 'owner' };
    await call(jwt.services.db, 'organization_member_put', member, z.unknown());
    return org;
  }
  const hers = [await createOf('anna'), await createOf('anna'), await createOf('anna')];
  const other = await createOf('berta');
  const { state, end } = await blocked(t, anna, hers);
  t.equal(await running(jwt), SHARE_OF_CALLER, 'more than one organization has, and not all');
  await serves(t, other, berta);
  t.equal(state.over, 0, 'while none of the calls that wait is over');
  t.ok((await end()).has(200));
});

t.test('an operator leaves connections to others, and of its own to its other organizations', async (t) => {
  const tokens = ['token-of-the-one-operator-0123456789', 'token-of-the-other-operator-01234567'] as const;
  const operated = await start({ mode: 'token', tokens });
  const [one, two] = [operated.owner.as(tokens[0]), operated.owner.as(tokens[1])];
  const orgs = [await createTestOrganization(sql), await createTestOrganization(sql)] as const;
  const other = await createTestOrganization(sql);
  const single = await blocked(t, one, [orgs[0]]);
  t.equal(await running(operated), SHARE);
  await serves(t, other, one);
  t.ok((await single.end()).has(200));
  const several = await blocked(t, one, orgs);
  t.equal(await running(operated), SHARE_OF_CALLER);
  await serves(t, other, two);
  t.equal(several.state.over, 0, 'while none of the calls that wait is over');
  t.ok((await several.end()).has(200));
});
