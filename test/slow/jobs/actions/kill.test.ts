// Job processes that are killed while they execute actions: nothing is done twice at the provider, and nothing is lost.
import t, { type Test } from 'tap';
import { KEYS } from '../../../engine/integrations/support.ts';
import { spawnJobs } from '../../../jobs/support.ts';
import { itemsOf, passTime } from '../../../support/action_fixtures.ts';
import { expectSuccess, ownerPath } from '../../../support/api_fixtures.ts';
import { rounds } from '../../../support/full.ts';
import { openGateway, REFUND } from '../../../support/gateway_world.ts';
import { openSession } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const ACTIONS = 12;

const world = await openGateway(t);
const { app, sql, stripe } = world;
const settings = {
  ENCRYPTION_KEYS: KEYS,
  ALLOW_PRIVATE_ADDRESSES: '1',
  PROVIDER_ORIGINS: JSON.stringify({ 'https://api.stripe.com': stripe.origin }),
};

/** So that what a dead process left is due now, and not in minutes. */
async function passTimeOfAll(): Promise<void> {
  await sql.owner.query(`
    update app.actions set due_at = now(), lease_expires_at = case when lease_expires_at is not null then now() end
    where due_at is not null and lease_expires_at is not null`);
}

t.test(
  'whenever job processes die, each action reaches the provider once at most, and all come to an end',
  async (t) => {
    const by = await world.caller({ config: { limits: { maxDailyActions: 1_000 } } });
    const ids: string[] = [];
    for (let number = 0; number < ACTIONS; number += 1) {
      const call = { tool: REFUND, arguments: { charge: `ch_${number}` } };
      ids.push(expectSuccess(await world.execute(by, call)).action?.id ?? '');
    }
    // A provider takes a while, before it has done something and after.
    const pauses = async () => {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 300));
      return false;
    };
    stripe.faults.before = pauses;
    stripe.faults.after = pauses;
    for (const id of ids) await world.approve(by, id);
    for (let round = 0; round < rounds({ short: 3, full: 8 }); round += 1) {
      const jobs = await spawnJobs(t, app.database.url, settings);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 1_500));
      await jobs.kill('SIGKILL');
      await passTimeOfAll();
    }
    stripe.faults.before = undefined;
    stripe.faults.after = undefined;
    const jobs = await spawnJobs(t, app.database.url, settings);
    const statuses = async () => Promise.all(ids.map(async (id) => (await world.action(by, id)).status));
    await until(
      'none is under way',
      async () => {
        // The pauses between look-ups, and not the leases of the process that lives.
        await sql.owner.query(
          'update app.actions set due_at = now() where due_at > now() and lease_expires_at is null and look_up_count > 0',
        );
        await sql.owner.query('update app.actions set look_up_until = now() where look_up_count > 2');
        return (await statuses()).every((status) => status === 'succeeded' || status === 'unknown');
      },
      120_000,
    );
    await jobs.kill('SIGTERM');

    const posts = stripe.calls
      .filter(({ method }) => method === 'POST')
      .map(({ headers }) => headers['idempotency-key']);
    t.same(posts.toSorted(), [...new Set(posts)].toSorted(), 'no action was sent twice');
    for (const [index, status] of (await statuses()).entries()) {
      const id = ids[index] ?? '';
      // The provider shows what was done, so that a person has to find out only what was never done.
      t.equal(status, stripe.refunds.has(id) ? 'succeeded' : 'unknown', id);
    }
    t.ok(stripe.refunds.size > 0);
  },
);

/** Holds what a transaction locks until it is let go. */
async function hold(t: Test, text: string, id: string) {
  const session = await openSession(t, sql, 'owner');
  await session.begin();
  await session.query(text, [id]);
  const { rows } = await session.query('select pg_backend_pid() as pid', []);
  /** The connection that waits for it in a call of this function. */
  const waiting = async (name: string): Promise<number | undefined> => {
    const { rows: found } = await sql.owner.query(
      `select pid from pg_stat_activity where pg_blocking_pids(pid) @> array[$1::integer] and query like $2`,
      [rows[0]?.pid, `%${name}%`],
    );
    return found[0]?.pid;
  };
  return {
    waiting,
    letGo: () => session.rollback(),
    /** Its transaction never commits, also where the server has not noticed yet that nobody awaits it. */
    async end(name: string) {
      const pid = await waiting(name);
      await sql.owner.query('select pg_terminate_backend($1)', [pid]);
      await until('the connection is gone', async () => (await waiting(name)) === undefined);
      await session.rollback();
    },
  };
}

const HOLD_CONNECTION = 'select from app.integration_connections where integration_id = $1 for update';
const HOLD_ACTION = 'select from app.actions where id = $1 for update';

t.test('a process dies at each line of an execution: once at the provider at most, and nothing is lost', async (t) => {
  async function approved(charge: string) {
    const by = await world.caller();
    const { action } = expectSuccess(await world.execute(by, { tool: REFUND, arguments: { charge } }));
    return { by, id: action?.id ?? '' };
  }
  const before = await approved('ch_before_intent');
  const unsent = [await approved('ch_unsent_1'), await approved('ch_unsent_2'), await approved('ch_unsent_3')];
  const unread = await approved('ch_unread');
  const unrecorded = await approved('ch_unrecorded');
  const all = [before, ...unsent, unread, unrecorded];

  const intent = await hold(t, HOLD_CONNECTION, before.by.integrationId);
  const intents = await Promise.all(unsent.map(({ by }) => hold(t, HOLD_CONNECTION, by.integrationId)));
  const done = Promise.withResolvers<void>();
  const killed = Promise.withResolvers<void>();
  let record: Awaited<ReturnType<typeof hold>> | undefined;
  stripe.faults.after = async (call, res) => {
    if (call.body.includes('ch_unrecorded')) record = await hold(t, HOLD_ACTION, unrecorded.id);
    if (!call.body.includes('ch_unread')) return false;
    done.resolve();
    await killed.promise;
    res.destroy();
    return true;
  };
  for (const { by, id } of all) await world.approve(by, id);
  // Those that wait have a connection each, of a quarter of these.
  const jobs = await spawnJobs(t, app.database.url, { ...settings, DATABASE_POOL_SIZE: '40' });
  await until('each is at its line', async () => {
    const waiting = await Promise.all([intent, ...intents].map((one) => one.waiting('action_begin')));
    return waiting.every((pid) => pid !== undefined) && (await record?.waiting('action_finish')) !== undefined;
  });
  await done.promise;
  await jobs.kill('SIGKILL');
  killed.resolve();
  stripe.faults.after = undefined;
  await intent.end('action_begin');
  await record?.end('action_finish');
  // What a dead process has asked for is committed all the same.
  for (const one of intents) await one.letGo();
  const status = async ({ by, id }: (typeof all)[number]) => (await world.action(by, id)).status;
  await until('the intents are committed', async () =>
    (await Promise.all(unsent.map(status))).every((one) => one === 'executing'),
  );
  t.same(
    [await status(before), await status(unread), await status(unrecorded)],
    ['approved', 'executing', 'executing'],
  );
  t.same(
    [...stripe.refunds.keys()].filter((id) => all.some((one) => one.id === id)).sort(),
    [unread.id, unrecorded.id].sort(),
  );

  for (const { by, id } of all) {
    await passTime(sql, id);
    await world.runAction(by, id);
  }
  t.match(await world.action(before.by, before.id), { status: 'succeeded', execution: { attempts: 2 } });
  for (const { by, id } of [unread, unrecorded]) {
    const refund = stripe.refunds.get(id)?.id;
    t.match(await world.action(by, id), { status: 'succeeded', execution: { attempts: 1, result: { id: refund } } });
  }
  for (const [index, outcome] of (['succeeded', 'failed', 'not_executed'] as const).entries()) {
    const { by, id } = unsent[index] ?? before;
    await sql.owner.query('update app.actions set look_up_until = now() where id = $1', [id]);
    await passTime(sql, id);
    await world.runAction(by, id);
    t.match(await world.action(by, id), { status: 'unknown' });
    const items = async () => (await itemsOf(sql, id)).map(({ purpose, status }) => `${purpose} ${status}`);
    t.same(await items(), ['approval resolved', 'reconciliation open']);
    const said = { outcome, note: 'The provider says so' };
    expectSuccess(await app.owner.post(ownerPath(by.org, `/actions/${id}/reconcile`), said));
    t.match(await world.action(by, id), { status: outcome, reconciliation: { outcome } });
    t.same(await items(), ['approval resolved', 'reconciliation resolved']);
    await world.runAction(by, id);
  }
  const keys = stripe.calls.filter(({ method }) => method === 'POST').map(({ headers }) => headers['idempotency-key']);
  const times = (id: string) => keys.filter((key) => key === id).length;
  t.same(
    all.map(({ id }) => times(id)),
    [1, 0, 0, 0, 1, 1],
    'how often each was sent',
  );
});
