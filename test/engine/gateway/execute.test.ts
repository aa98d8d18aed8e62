import { Readable } from 'node:stream';
import t from 'tap';
import type { Action } from '../../../api/actions/schema.ts';
import { HIDDEN } from '../../../engine/secret_values.ts';
import { jobOf, passTime } from '../../support/action_fixtures.ts';
import { expectSuccess, ownerPath } from '../../support/api_fixtures.ts';
import {
  endLease,
  expire,
  publishNow,
  runNext,
  sha256,
  updateOrganization,
  updateProfile,
} from '../../support/fixtures.ts';
import { type Caller, openGateway, REFUND } from '../../support/gateway_world.ts';
import { allow } from '../../support/integration_fixtures.ts';
import { json } from '../providers/support.ts';

const world = await openGateway(t);
const { app, sql, stripe, execute, caller } = world;

t.beforeEach(() => {
  stripe.calls.length = 0;
  stripe.faults.before = undefined;
  stripe.faults.after = undefined;
});

async function proposed(by: Caller, charge = 'ch_1', timeoutMs = 60_000): Promise<Action> {
  const { action } = expectSuccess(await execute(by, { tool: REFUND, arguments: { charge, amount: 5 }, timeoutMs }));
  if (!action) throw new Error('no action was proposed');
  return action;
}

async function approved(by: Caller, charge?: string, timeoutMs?: number): Promise<string> {
  const { id } = await proposed(by, charge, timeoutMs);
  await world.approve(by, id);
  return id;
}

t.test('an approved action is sent once, by any number of jobs, with its id as the key', async (t) => {
  const by = await caller();
  const id = await approved(by);
  await Promise.all(Array.from({ length: 5 }, () => world.runAction(by, id)));
  await world.runAction(by, id);
  t.equal(stripe.sent(), 1);
  t.equal(stripe.calls.find(({ method }) => method === 'POST')?.headers['idempotency-key'], id);
  t.match(await world.action(by, id), {
    status: 'succeeded',
    execution: { attempts: 1, result: { status: 'succeeded' }, error: null },
  });
});

for (const [name, isDone] of [
  ['before it was executed', false],
  ['after it was executed', true],
] as const) {
  t.test(`a run that crashes ${name} is tried again and proposes the same: one effect`, async (t) => {
    const by = await caller();
    const id = await approved(by);
    if (isDone) await world.runAction(by, id);
    await endLease(sql, by.run);
    t.equal(await expire(sql.jobs, by.run), 'expired');
    t.equal((await execute(by, { tool: REFUND, arguments: { charge: 'ch_1', amount: 5 } })).status, 401);
    await publishNow(sql, by.org, by.run.taskId);
    const again = await world.resolve(by.org, await runNext(sql, by.org));
    t.match(again.run, { taskId: by.run.taskId, attempt: 2 });
    t.not(again.run.runId, by.run.runId);
    t.match(await proposed(again), { id, runId: by.run.runId, status: isDone ? 'succeeded' : 'approved' });
    await world.runAction(again, id);
    t.equal(stripe.sent(), 1);
    t.match(await world.action(again, id), { status: 'succeeded', execution: { attempts: 1 } });
    const { rows } = await sql.owner.query('select id from app.actions where organization_id = $1', [
      by.org.organizationId,
    ]);
    t.same(rows, [{ id }]);
  });
}

for (const method of ['POST', 'GET']) {
  t.test(
    `the credential that a provider repeats of a ${method === 'GET' ? 'look-up' : 'write'} is not kept`,
    async (t) => {
      const by = await caller();
      const id = await approved(by, 'ch_echo');
      stripe.faults.before = (call, res) => {
        const repeated = String(call.headers['authorization']).slice('Bearer '.length);
        const refund = { id: 're_echo', status: repeated, metadata: { business_runner_action: id } };
        if (call.method !== method) res.destroy();
        else json(res, 200, method === 'GET' ? { data: [refund] } : refund);
        return true;
      };
      await world.runAction(by, id);
      if (method === 'GET') {
        await passTime(sql, id);
        await world.runAction(by, id);
      }
      t.match(await world.action(by, id), {
        status: 'succeeded',
        execution: { result: { id: 're_echo', status: HIDDEN } },
      });
    },
  );
}

t.test('what nobody has approved is not sent', async (t) => {
  const by = await caller();
  const { id } = await proposed(by);
  await world.runAction(by, id);
  t.equal(stripe.sent(), 0);
  t.match(await world.action(by, id), { status: 'awaiting_approval' });
});

t.test('what the provider refuses has failed, and says by what', async (t) => {
  const by = await caller();
  for (const [status, code] of [
    [400, 'failed'],
    [403, 'forbidden'],
    [404, 'not_found'],
    [429, 'rate_limited'],
  ] as const) {
    const id = await approved(by, `ch_${status}`);
    stripe.faults.before = (_call, res) => {
      json(res, status, { error: { type: 'planted secret sentence', code: 'charge_already_refunded' } });
      return true;
    };
    await world.runAction(by, id);
    stripe.faults.before = undefined;
    const action = await world.action(by, id);
    t.match(action, { status: 'failed', execution: { error: { code } } });
    t.notMatch(JSON.stringify(action), /planted/);
    await sql.owner.query('delete from app.rate_limit_buckets');
  }
});

t.test('a credential that is refused fails it, and its connection says so', async (t) => {
  const by = await caller();
  const id = await approved(by);
  stripe.faults.before = (_call, res) => {
    json(res, 401, {});
    return true;
  };
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'failed', execution: { error: { code: 'rejected' } } });
  t.match(expectSuccess(await app.owner.get(ownerPath(by.org, '/integrations/shop'))), {
    readiness: 'needs_reauthorization',
  });
});

for (const [name, fault, outcome] of [
  [
    'the response of what was done is lost',
    'after',
    { status: 'succeeded', execution: { result: { status: 'succeeded' } } },
  ],
  ['the request is lost before anything is done', 'before', { status: 'unknown' }],
] as const) {
  t.test(`${name}: it is looked up, and never sent again`, async (t) => {
    const by = await caller();
    const id = await approved(by);
    stripe.faults[fault] = (_call, res) => {
      res.destroy();
      return true;
    };
    await world.runAction(by, id);
    stripe.faults[fault] = undefined;
    t.match(await world.action(by, id), { status: 'executing' });
    await world.runAction(by, id);
    t.match(await world.action(by, id), { status: 'executing' }, 'not before its time');
    await passTime(sql, id);
    await world.runAction(by, id);
    if (outcome.status === 'unknown') {
      t.match(await world.action(by, id), { status: 'executing' }, 'a list may show it later');
      await sql.owner.query('update app.actions set look_up_until = now() where id = $1', [id]);
      await passTime(sql, id);
      await world.runAction(by, id);
    }
    t.match(await world.action(by, id), outcome);
    t.equal(stripe.sent(), 1);
  });
}

t.test('a process that dies: before the intent it is executed, after it looked up', async (t) => {
  const by = await caller();
  const [early, late] = [await approved(by, 'ch_1'), await approved(by, 'ch_2')];
  await jobOf(sql.jobs, by.org, early).lease();
  const dying = jobOf(sql.jobs, by.org, late);
  await dying.lease();
  await dying.begin();
  for (const id of [early, late]) {
    await world.runAction(by, id);
    t.match(await world.action(by, id), { status: id === early ? 'approved' : 'executing' }, 'its lease is another’s');
    await passTime(sql, id);
    await world.runAction(by, id);
  }
  t.match(await world.action(by, early), { status: 'succeeded', execution: { attempts: 2 } });
  t.match(await world.action(by, late), { status: 'executing' });
  t.equal(stripe.sent(), 1);
});

t.test('what has changed between approval and execution cancels it, with the reason', async (t) => {
  const at = (by: Caller, rest = '') => ownerPath(by.org, `/integrations/shop${rest}`);
  const changes: Readonly<Record<string, (by: Caller) => Promise<unknown>>> = {
    disabled: (by) => app.owner.patch(at(by, '/status'), { status: 'disabled' }),
    tool_disabled: (by) =>
      app.owner
        .put(at(by, '/tools'), { accessMode: 'full', tools: [] })
        .then(() =>
          sql.owner.query(`update app.integration_tools set enabled = false where integration_id = $1`, [
            by.integrationId,
          ]),
        ),
    tool_changed: (by) =>
      sql.owner.query(`update app.integration_tools set digest = $2 where integration_id = $1`, [
        by.integrationId,
        'a'.repeat(64),
      ]),
    suspended: (by) => updateOrganization(sql.api, by.org, { status: 'suspended' }),
    tool_policy: (by) => allow(sql, by.org, 'integrations.read'),
    department: async (by) => {
      expectSuccess(await app.owner.patch(at(by), { departments: ['support'] }));
      await updateProfile(sql.api, by.org, { kind: 'department', department: 'growth' });
    },
    provider_forbidden: (by) =>
      updateOrganization(sql.api, by.org, { constraints: { allowedIntegrations: ['github'] } }),
    read_only: (by) =>
      sql.owner.query(`update app.integrations set access_mode = 'read_only' where id = $1`, [by.integrationId]),
  };
  for (const [code, change] of Object.entries(changes)) {
    const by = await caller();
    const id = await approved(by);
    await change(by);
    await world.runAction(by, id);
    const action = await world.action(by, id);
    t.match(action, { status: 'cancelled', reason: { code } }, code);
  }
  t.equal(stripe.sent(), 0);
});

t.test('what lies in the storage is hashed again: a file that is another one by now cancels it', async (t) => {
  const { storage } = app.services;
  for (const [name, change, reason] of [
    ['as it was', async () => {}, null],
    ['other bytes', (key: string) => storage.put(key, Readable.from([Buffer.from('jello')])), 'file_changed'],
    ['gone', (key: string) => storage.delete(key), 'file_changed'],
  ] as const) {
    stripe.calls.length = 0;
    const by = await caller();
    const { id } = await proposed(by);
    const key = `files/${id}`;
    await storage.put(key, Readable.from([Buffer.from('hello')]));
    await sql.owner.query(
      `insert into app.action_files (organization_id, action_id, argument, name, content_type, size_bytes, sha256, storage_key)
        values ($1, $2, 'note', 'note.txt', 'text/plain', 5, $3, $4)`,
      [by.org.organizationId, id, sha256('hello'), key],
    );
    await world.approve(by, id);
    await change(key);
    await world.runAction(by, id);
    t.match(
      await world.action(by, id),
      { status: reason ? 'cancelled' : 'succeeded', reason: reason && { code: reason } },
      name,
    );
    t.equal(stripe.sent(), reason ? 0 : 1, name);
  }
});

t.test('a connection that is replaced or removed cancels it at once', async (t) => {
  const by = await caller();
  const id = await approved(by);
  expectSuccess(await app.owner.delete(ownerPath(by.org, '/integrations/shop/credential')));
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'cancelled', reason: { code: 'connection_replaced' } });
  t.equal(stripe.sent(), 0);
});

t.test('an approval that is required by now sends it back', async (t) => {
  const by = await caller({ constraints: { approvalRequiredForRisk: [] } });
  const { id } = await proposed(by);
  await updateOrganization(sql.api, by.org, { constraints: { approvalRequiredForRisk: ['high'] } });
  await world.runAction(by, id);
  t.match(await world.action(by, id), { status: 'awaiting_approval', reason: { code: 'approval_required' } });
  t.equal(stripe.sent(), 0);
});
