// Writes that time, limits and tokens hold back. GitHub stands in with tokens that rotate.
import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { sealFields } from '../../../engine/integrations/secrets.ts';
import { passTime } from '../../support/action_fixtures.ts';
import { expectSuccess, ownerPath } from '../../support/api_fixtures.ts';
import { createTestOrganization, runNew } from '../../support/fixtures.ts';
import { type Caller, CHARGES, openGateway, REFUND } from '../../support/gateway_world.ts';
import { account, allow, connect } from '../../support/integration_fixtures.ts';
import { openSession, transition } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';
import { json, openServer } from '../providers/support.ts';

/** `accessToken`: the one that is good. A refresh gives `next`; undefined: it is refused, and null: the token endpoint is down. */
const state = { accessToken: '', next: undefined as string | null | undefined, refreshes: 0 };
const tried: string[] = [];

const github = await openServer(t, ({ url, headers }, res) => {
  if (url.pathname === '/login/oauth/access_token') {
    state.refreshes += 1;
    if (state.next === null) return void json(res, 503, {});
    if (state.next === undefined) return { error: 'bad_refresh_token' };
    return {
      access_token: state.next,
      refresh_token: 'refresh-1',
      token_type: 'bearer',
      expires_in: 28_800,
      scope: '',
    };
  }
  tried.push(String(headers.authorization));
  if (headers.authorization !== `Bearer ${state.accessToken}`)
    return void json(res, 401, { message: 'Bad credentials' });
  return { number: 7, html_url: 'https://github.com/acme/site/issues/7' };
});

const world = await openGateway(t, {
  origins: { 'https://github.com': github.origin, 'https://api.github.com': github.origin },
});
const { app, sql, stripe, execute, caller } = world;

t.beforeEach(() => {
  Object.assign(state, { accessToken: 'access-1', next: 'access-1', refreshes: 0 });
  tried.length = 0;
  stripe.calls.length = 0;
  stripe.faults.before = undefined;
  stripe.faults.after = undefined;
});

/** A refund that an owner has approved. */
async function approved(by: Caller, charge = 'ch_1', timeoutMs = 60_000): Promise<string> {
  const { action } = expectSuccess(await execute(by, { tool: REFUND, arguments: { charge, amount: 5 }, timeoutMs }));
  return (await world.approve(by, action?.id ?? '')).id;
}

t.test('a write that takes longer than its time-out is looked up, and never sent again', async (t) => {
  const by = await caller();
  const id = await approved(by, 'ch_late', 1_000);
  const late = Promise.withResolvers<boolean>();
  stripe.faults.after = () => late.promise;
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'executing' });
  late.resolve(false);
  await passTime(sql, id);
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'succeeded', execution: { attempts: 1 } });
  t.equal(stripe.sent(), 1);
});

/** Executes it; `during`: while the intent waits to be committed. */
async function whileIntentWaits(t: Test, by: Caller, id: string, during: () => unknown): Promise<void> {
  const session = await openSession(t, sql, 'owner');
  await session.begin();
  await session.query('select from app.integration_connections where integration_id = $1 for update', [
    by.integrationId,
  ]);
  const done = world.runAction(by, id);
  await until('the intent waits', async () => {
    const { rows } = await sql.owner.query(
      `select from pg_stat_activity where datname = current_database() and query like '%action_begin%'
         and cardinality(pg_blocking_pids(pid)) > 0`,
    );
    return rows.length > 0;
  });
  await during();
  await session.commit();
  await done;
}

t.test('a job whose lease ends before the intent sends nothing: the next one does', async (t) => {
  const by = await caller();
  const id = await approved(by);
  await whileIntentWaits(t, by, id, () => passTime(sql, id));
  t.match(await world.action(by, id), { status: 'approved', reason: null });
  t.equal(stripe.sent(), 0);
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'succeeded', execution: { attempts: 2 } });
  t.equal(stripe.sent(), 1);
});

t.test('what the lease of the intent leaves no time for is not sent', async (t) => {
  const by = await caller();
  const id = await approved(by);
  const now = performance.now.bind(performance);
  t.teardown(() => {
    performance.now = now;
  });
  // All of what is beyond the time-out of the call and what it is begun with.
  await whileIntentWaits(t, by, id, () => {
    performance.now = () => now() + 90_000;
  });
  performance.now = now;
  t.match(await world.action(by, id), { status: 'executing' });
  await passTime(sql, id);
  await world.runAction(by, id);
  t.equal(stripe.sent(), 0);
});

/** Stripe is not called for this organization before then. */
async function holdBack(by: Caller, ms: number): Promise<void> {
  await sql.owner.query('delete from app.rate_limit_buckets');
  expectSuccess(await execute(by, { tool: CHARGES, arguments: {} }));
  await sql.owner.query(
    `update app.rate_limit_buckets set retry_not_before = now() + $1::integer * interval '1 millisecond'`,
    [ms],
  );
}

t.test('what a budget of ours holds back waits while the lease leaves the time, and is sent once', async (t) => {
  const by = await caller();
  const [soon, late] = [await approved(by, 'ch_1'), await approved(by, 'ch_2')];
  await holdBack(by, 300);
  let spareS: unknown;
  stripe.faults.after = async () => {
    const { rows } = await sql.owner.query(
      `select extract(epoch from lease_expires_at - execution_started_at)::integer - timeout_ms / 1000 as spare
       from app.actions where id = $1`,
      [soon],
    );
    spareS = rows[0].spare;
    return false;
  };
  await world.runAction(by, soon);
  t.match(await world.action(by, soon), { status: 'succeeded', execution: { attempts: 1 } });
  t.equal(stripe.sent(), 1);
  t.equal(spareS, 95, 'a minute, for which what others share may be held back, and what comes before and after');
  await holdBack(by, 300_000);
  await world.runAction(by, late);
  t.match(await world.action(by, late), { status: 'failed', execution: { error: { code: 'rate_limited' } } });
  t.equal(stripe.sent(), 1);
  await sql.owner.query('delete from app.rate_limit_buckets');
});

t.test('a limit that the provider has told puts it off before the intent', async (t) => {
  const by = await caller();
  const id = await approved(by);
  stripe.faults.before = (_call, res) => {
    json(res, 429, {}, { 'retry-after': '600' });
    return true;
  };
  t.equal((await execute(by, { tool: CHARGES, arguments: {} })).status, 503);
  stripe.faults.before = undefined;
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'approved', execution: null });
  const { rows } = await sql.owner.query(
    `select due_at > now() + interval '9 minutes' as off, lease_expires_at from app.actions where id = $1`,
    [id],
  );
  t.same(rows, [{ off: true, lease_expires_at: null }]);
  t.equal(stripe.sent(), 0);
  await sql.owner.query('delete from app.rate_limit_buckets');
  await sql.owner.query('update app.integration_connections set check_due_at = now() where integration_id = $1', [
    by.integrationId,
  ]);
  await passTime(sql, id);
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'succeeded' });
  t.equal(stripe.sent(), 1);
});

/** An issue that an owner has approved, with a token that seems good for a day. */
async function approvedIssue() {
  const org = await createTestOrganization(sql);
  const at = (rest = '') => ownerPath(org, `/integrations${rest}`);
  const { id } = expectSuccess(await app.owner.post<{ id: string }>(at(), { key: 'shop', provider: 'github' }), 201);
  const target = { organizationId: org.organizationId, integrationId: id, revision: 1 };
  const tokens = new Map(Object.entries({ access_token: 'access-0', refresh_token: 'refresh-0' }));
  const tokenExpiresAt = new Date(Date.now() + 86_400_000).toISOString();
  await connect(sql.api, org, id, account(id, { kind: 'oauth2', grantedScopes: [], tokenExpiresAt }), {
    secrets: sealFields(app.config.integrations.encryptionKeys, 'github', target, tokens),
  });
  const settings = { kind: 'github', owner: 'acme', repositories: ['site'] };
  const change = { settings, connectionRevision: 1, disconnect: false, forgetTools: false };
  await transition(sql.api, 'integration_settings_put', {
    organizationId: org.organizationId,
    integrationRef: id,
    ...change,
  });
  expectSuccess(await app.owner.put(at('/shop/tools'), { accessMode: 'full' }));
  await allow(sql, org, 'integrations.read', 'integrations.propose');
  const by = await world.resolve(org, await runNew(sql, org));
  const given = { owner: 'acme', repo: 'site', title: 'Broken' };
  const { action } = expectSuccess(await world.execute(by, { tool: 'github.issues.create', arguments: given }));
  const actionId = (await world.approve(by, action?.id ?? '')).id;
  const readiness = async () => expectSuccess(await app.owner.get<{ readiness: string }>(at('/shop'))).readiness;
  return { by, id: actionId, readiness };
}

t.test('a token that is refused is exchanged, and the request sent again, once', async (t) => {
  const { by, id, readiness } = await approvedIssue();
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'succeeded', execution: { attempts: 1, result: { number: 7 } } });
  t.same(tried, ['Bearer access-0', 'Bearer access-1']);
  t.equal(state.refreshes, 1);
  t.equal(await readiness(), 'ready');
});

t.test('a new token that is refused too ends it: it is not sent a third time', async (t) => {
  const { by, id, readiness } = await approvedIssue();
  state.accessToken = 'another';
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'failed', execution: { error: { code: 'rejected' } } });
  t.same(tried, ['Bearer access-0', 'Bearer access-1']);
  t.equal(state.refreshes, 1);
  t.equal(await readiness(), 'needs_reauthorization');
});

for (const [name, next, health] of [
  ['is refused', undefined, 'needs_reauthorization'],
  ['gets no response', null, 'degraded'],
] as const) {
  t.test(`a token that is refused, and whose refresh ${name}: it has failed, for nothing was done`, async (t) => {
    const { by, id, readiness } = await approvedIssue();
    state.next = next;
    await world.runAction(by, id);
    t.match(await world.action(by, id), { status: 'failed', execution: { error: { code: 'rejected' } } });
    t.same(tried, ['Bearer access-0']);
    t.equal(await readiness(), health);
    await world.runAction(by, id);
    t.same(tried, ['Bearer access-0'], 'and is not sent again');
  });
}

/** A file of an action, as it is stored. @returns its key */
async function addFile({ org }: Caller, actionId: string, sizeBytes?: number): Promise<string> {
  const storageKey = `files/${actionId}`;
  const { size, sha256 } = await app.services.storage.put(storageKey, Readable.from([Buffer.from('a file')]));
  await sql.owner.query(
    `insert into app.action_files (organization_id, action_id, argument, name, content_type, size_bytes, sha256, storage_key)
       values ($1, $2, 'file', 'a.txt', 'text/plain', $3, $4, $5)`,
    [org.organizationId, actionId, sizeBytes ?? size, sha256, storageKey],
  );
  return storageKey;
}

const leaseOf = async (id: string) => {
  const { rows } = await sql.owner.query(
    `select extract(epoch from lease_expires_at - now())::integer as seconds, due_at > now() as "isLater",
        execution_attempts as attempts
       from app.actions where id = $1`,
    [id],
  );
  return rows[0] as { seconds: number | null; isLater: boolean; attempts: number };
};

t.test('the lease is as long as the files take to read from a slow storage', async (t) => {
  const by = await caller();
  for (const [sizeBytes, from, to] of [
    [6, 60, 121],
    [1024 ** 3, 316, 376],
  ] as const) {
    const id = await approved(by, `ch_${sizeBytes}`);
    await addFile(by, id, sizeBytes);
    let lease: Awaited<ReturnType<typeof leaseOf>> | undefined;
    const { storage } = app.services;
    const get: typeof storage.get = async (...given) => {
      lease = await leaseOf(id);
      return storage.get(...given);
    };
    await world.runAction(by, id, { storage: { ...storage, get } });
    const { seconds = null, attempts } = lease ?? {};
    t.ok(seconds !== null && seconds > from && seconds <= to, `${sizeBytes} bytes: ${seconds} s`);
    t.equal(attempts, 1, 'and taken once');
  }
});

t.test('reading files that takes longer than the lease gives it back, and the log says so', async (t) => {
  const by = await caller();
  const id = await approved(by, 'ch_slow');
  await addFile(by, id);
  const { storage } = app.services;
  const get: typeof storage.get = (_key, { signal } = {}) => {
    const stalled = Promise.withResolvers<never>();
    if (!signal) throw new Error('it would be read for ever');
    signal.addEventListener('abort', () => stalled.reject(signal.reason));
    return stalled.promise;
  };
  await world.runAction(by, id, { storage: { ...storage, get }, prepareSeconds: 1 });
  t.match(await world.action(by, id), { status: 'approved' });
  t.match(await leaseOf(id), { seconds: null, isLater: true, attempts: 1 });
  const told = JSON.stringify(app.logged.filter((line) => JSON.stringify(line).includes(id)));
  t.match(told, /TimeoutError/);
  t.match(told, /an action is put off/);
  t.equal(stripe.sent(), 0);
  await passTime(sql, id);
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'succeeded' });
  t.equal(stripe.sent(), 1);
});
