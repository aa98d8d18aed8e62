import { randomUUID } from 'node:crypto';
import t from 'tap';
import { sharedBudgets } from '../../../engine/rate_limits/budgets.ts';
import { createTestDatabase } from '../../support/database.ts';

const { api, jobs, owner } = await createTestDatabase(t);

/** So slow that nothing comes back while a test runs. */
const SLOW = 1 / 86_400;

t.test('the processes share a bucket, and learn when to come back', async (test) => {
  const bucket = { key: `stripe:account:${randomUUID()}`, capacity: 2, perSecond: SLOW };
  test.equal(await sharedBudgets(api).take([bucket]), undefined);
  test.equal(await sharedBudgets(jobs).take([bucket]), undefined);
  const until = await sharedBudgets(api).take([bucket]);
  test.ok(until && until.getTime() > Date.now());
  const { rows } = await owner.query('select key from app.rate_limit_buckets');
  test.notMatch(JSON.stringify(rows), /stripe/, 'accounts are stored by digest');
});

t.test('what one process is told holds for the others', async (test) => {
  const bucket = { key: `google:client:${randomUUID()}`, capacity: 100, perSecond: 100 };
  const until = new Date(Date.now() + 3_600_000);
  await sharedBudgets(jobs).postpone([bucket], until);
  const refused = await sharedBudgets(api).take([{ key: randomUUID(), capacity: 1, perSecond: 1 }, bucket]);
  test.ok(refused && Math.abs(refused.getTime() - until.getTime()) < 60_000);
});

t.test('no bucket limits nothing', async (test) => {
  test.equal(await sharedBudgets(api).take([]), undefined);
  await sharedBudgets(api).postpone([], new Date());
});
