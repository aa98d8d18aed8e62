// Job processes that are killed while they execute actions: nothing is done twice at the provider, and nothing is lost.
import t from 'tap';
import { KEYS } from '../../../engine/integrations/support.ts';
import { spawnJobs } from '../../../jobs/support.ts';
import { expectSuccess } from '../../../support/api_fixtures.ts';
import { rounds } from '../../../support/full.ts';
import { openGateway, REFUND } from '../../../support/gateway_world.ts';
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
async function passTime(): Promise<void> {
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
      await passTime();
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
