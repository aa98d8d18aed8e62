import { pino } from 'pino';
import t from 'tap';
import { z } from 'zod';
import { call, ignored, type Queries } from '../../../../engine/db/call.ts';
import { CHAT_CHANNEL, chatPayload, markWakes, PULL_CHANNEL, pullPayload } from '../../../../engine/db/channels.ts';
import { openDatabase } from '../../../../engine/db/database.ts';
import { openPool } from '../../../../engine/db/pool.ts';
import { createChat, createChatOrganization, send, startedTurn } from '../../../support/chat_fixtures.ts';
import {
  claimNext,
  createTask,
  createTestOrganization,
  endLease,
  OWNER,
  runNew,
  setWorkDispatch,
  type TestOrganization,
} from '../../../support/fixtures.ts';
import { openSql } from '../../../support/transitions.ts';

const sql = await openSql(t);
const woken: string[] = [];
const notifier = { mark: (channel: string, payload = '') => void woken.push(`${channel} ${payload}`) };

function open(role: 'runner_api' | 'runner_jobs') {
  const db = openDatabase({
    open: () => openPool(sql.url, { role, size: 2 }),
    size: 2,
    maxWaiting: 10,
    responseTimeoutMs: 20_000,
    onWakes: (wakes) => markWakes(notifier, wakes),
  });
  t.teardown(() => db.end());
  return db;
}

const db = open('runner_api');
const jobsDb = open('runner_jobs');

async function wakesOf(work: () => Promise<unknown>): Promise<string[]> {
  woken.length = 0;
  await work();
  return woken.toSorted();
}

const pulls = (org: TestOrganization, kind = 'task') => `${PULL_CHANNEL} ${pullPayload(org.organizationId, kind)}`;
const follows = (org: TestOrganization, chatId: string) => `${CHAT_CHANNEL} ${chatPayload(org.organizationId, chatId)}`;

const newTask = (org: TestOrganization, on: Queries = db) =>
  call(
    on,
    'task_create',
    { organizationId: org.organizationId, task: { title: 'T', ownerAgentProfileId: org.profileId }, actor: OWNER },
    z.object({ task: z.object({ id: z.string() }) }),
  );

t.test('a task that becomes ready wakes pulls of its organization, other changes of it do not', async (t) => {
  const org = await createTestOrganization(sql);
  let id = '';
  t.same(
    await wakesOf(async () => {
      id = (await newTask(org)).task.id;
    }),
    [pulls(org)],
  );
  const args = { organizationId: org.organizationId, taskRef: id, actor: OWNER };
  t.same(
    await wakesOf(() =>
      call(db, 'task_update', { ...args, expectedVersion: null, patch: { title: 'Other' } }, ignored),
    ),
    [],
  );
  t.same(await wakesOf(() => call(db, 'task_cancel', args, ignored)), [], 'nobody held it');
});

t.test('a slot that becomes free wakes pulls, whatever frees it', async (t) => {
  const org = await createTestOrganization(sql);
  const claimed = async () => {
    await createTask(sql, org);
    return claimNext(sql, org);
  };
  const { organizationId } = org;
  const released = await claimed();
  const lease = { organizationId, runRequestId: released.runRequestId, leaseToken: released.leaseToken };
  t.same(await wakesOf(() => call(db, 'run_request_release', lease, ignored)), [pulls(org)], 'released');

  const cancelled = await claimNext(sql, org);
  const task = { organizationId, taskRef: cancelled.task.id, actor: OWNER };
  t.same(await wakesOf(() => call(db, 'task_cancel', task, ignored)), [pulls(org)], 'cancelled');

  const expired = await claimed();
  await endLease(sql, expired);
  const settings = { maxAttempts: 3, backoffSeconds: 15, backoffMaxSeconds: 900 };
  const due = { organizationId, runRequestId: expired.runRequestId, ...settings };
  t.same(await wakesOf(() => call(jobsDb, 'run_request_expire', due, ignored)), [pulls(org)], 'expired');
  t.same(await wakesOf(() => call(jobsDb, 'run_request_expire', due, ignored)), [], 'a repeat');
  await claimNext(sql, org);

  const run = await runNew(sql, org);
  const failure = {
    organizationId,
    runId: run.runId,
    leaseToken: run.leaseToken,
    bodyHash: 'hash',
    error: { code: 'broken', message: 'It broke.', retryable: false },
    report: {},
    ...settings,
  };
  t.same(await wakesOf(() => call(db, 'run_fail', failure, ignored)), [pulls(org)], 'failed');
  t.same(await wakesOf(() => call(db, 'run_fail', failure, ignored)), [], 'a repeat');
});

t.test('a transition that refuses by its result wakes those whom its change of state concerns', async (t) => {
  const org = await createTestOrganization(sql, { maxConcurrentRuns: 1 });
  await createTask(sql, org);
  const claim = await claimNext(sql, org);
  await sql.owner.query('update app.dispatch_lanes set capacity = 0 where organization_id = $1', [org.organizationId]);
  const args = {
    organizationId: org.organizationId,
    runRequestId: claim.runRequestId,
    runId: '0196f000-0000-7000-8000-000000000001',
    leaseToken: claim.leaseToken,
    workerId: 'worker',
    leaseSeconds: 60,
  };
  t.same(
    await wakesOf(() => t.rejects(call(db, 'run_start', args, ignored), { code: 'run_lease_expired' })),
    [pulls(org)],
    'published again',
  );
});

t.test('an organization or a profile that opens wakes pulls; one that closes does not', async (t) => {
  const org = await createTestOrganization(sql, { limits: { maxConcurrentRuns: 1 }, maxConcurrentRuns: 1 });
  await createTask(sql, org);
  const { organizationId } = org;
  const patch = (change: Record<string, string | object>) => () =>
    call(db, 'organization_update', { organizationId, patch: change, platform: true }, ignored);
  t.same(await wakesOf(patch({ config: { limits: { maxConcurrentRuns: 2 } } })), [pulls(org)], 'a higher limit');
  t.same(await wakesOf(patch({ config: { limits: { maxConcurrentRuns: 1 } } })), [], 'a lower one');
  t.same(await wakesOf(patch({ status: 'suspended' })), []);
  t.same(await wakesOf(patch({ status: 'active' })), [pulls(org)], 'active again');

  const profile = { organizationId, agentProfileId: org.profileId };
  const change = (fields: Record<string, string | object>) => () =>
    call(db, 'agent_profile_update', { ...profile, patch: fields }, ignored);
  t.same(await wakesOf(change({ config: { maxConcurrentRuns: 2 } })), [pulls(org)]);
  t.same(
    await wakesOf(change({ key: `${org.profileKey}-2` })),
    [pulls(org, 'chat'), pulls(org)],
    'a pull may wait for its new key',
  );
  t.same(await wakesOf(change({ status: 'disabled' })), []);
  t.same(await wakesOf(change({ status: 'enabled' })), [pulls(org)]);

  await setWorkDispatch(sql.api, org, true);
  t.same(await wakesOf(() => newTask(org)), [], 'a request that stays parked');
  const resume = { organizationId, stopped: false, actor: OWNER };
  t.same(await wakesOf(() => call(db, 'work_dispatch_set', resume, ignored)), [pulls(org)]);
  t.same(await wakesOf(() => call(db, 'work_dispatch_set', resume, ignored)), [], 'a repeat');
});

t.test('each revision of an assistant message, and the end of a chat, wake those who follow it', async (t) => {
  const org = await createChatOrganization(sql);
  const { organizationId } = org;
  const chat = await createChat(sql, org);
  const ids = { organizationId, chatId: chat.id, actor: OWNER };
  const body = { author: { kind: 'human', displayName: 'Anna' }, parts: [{ kind: 'text', text: 'Hello?' }] };
  t.same(
    await wakesOf(() => call(db, 'message_create', { ...ids, body }, ignored)),
    [follows(org, chat.id), pulls(org, 'chat')],
    'a turn',
  );
  t.same(await wakesOf(() => call(db, 'chat_update', { ...ids, patch: { title: 'Other' } }, ignored)), []);
  t.same(
    await wakesOf(() => call(db, 'chat_delete', ids, ignored)),
    [follows(org, chat.id)],
    'archived, with the turn that nobody held',
  );

  const turn = await startedTurn(sql, org);
  const lease = { organizationId, runId: turn.runId, leaseToken: turn.leaseToken };
  const of = follows(org, turn.sent.assistantMessage.chat_id);
  const revision = { ...lease, baseRevision: 1, parts: null, append: 'Hi' };
  t.same(await wakesOf(() => call(db, 'run_message_write', revision, ignored)), [of]);
  t.same(await wakesOf(() => call(db, 'run_message_write', revision, ignored)), [], 'a repeat');
  const cancel = {
    organizationId,
    chatId: turn.sent.assistantMessage.chat_id,
    messageId: turn.sent.assistantMessage.id,
    actor: OWNER,
  };
  t.same(await wakesOf(() => call(db, 'message_cancel', cancel, ignored)), [of, `runner_stop ${turn.runId}`]);

  const two = [await createChat(sql, org), await createChat(sql, org)];
  for (const { id } of two) await send(sql.api, org, id);
  const disabled = { organizationId, agentProfileId: org.profileId, patch: { status: 'disabled' } };
  const heard = await wakesOf(() => call(db, 'agent_profile_update', disabled, ignored));
  for (const { id } of two) t.ok(heard.includes(follows(org, id)), 'its profile is disabled');
});

t.test('in a transaction: after its commit, each once; nothing when it is rolled back', async (t) => {
  const org = await createTestOrganization(sql);
  const twice = (after: () => void) => () =>
    db.transaction(async (inside) => {
      await newTask(org, inside);
      await newTask(org, inside);
      t.same(woken, []);
      after();
    });
  t.same(await wakesOf(twice(() => {})), [pulls(org)]);
  const broken = new Error('broken');
  const rolledBack = twice(() => {
    throw broken;
  });
  t.same(await wakesOf(() => t.rejects(rolledBack(), broken)), []);
  t.same(await wakesOf(() => call(db, 'dispatch_totals', {}, ignored)), [], 'the next statement knows nothing of it');
});

t.test('what one transaction wakes is bounded, and never twice the same', async (t) => {
  const client = await sql.owner.connect();
  t.teardown(() => client.release());
  await client.query('begin');
  for (const payload of ['a', 'a', 'b']) await client.query('select app.wake($1, $2)', ['runner_chat', payload]);
  const noted = async () =>
    String((await client.query(`select current_setting('app.wakes') as wakes`)).rows[0]?.['wakes']);
  t.equal(await noted(), 'runner_chat a\nrunner_chat b');
  await client.query(`select count(app.wake('runner_chat', n::text)) from generate_series(1, 100000) n`);
  t.ok((await noted()).length < 16_500);
  await client.query('rollback');
  t.equal(await noted(), '');
  const log = pino({ level: 'silent' });
  t.doesNotThrow(() => markWakes({ mark: () => log.debug('') }, 'nonsense'));
});
