import { randomUUID } from 'node:crypto';
import t from 'tap';
import { openSql, transition } from '../../support/transitions.ts';

const sql = await openSql(t);

/** So slow that nothing comes back while a test runs. */
const SLOW = 1 / 86_400;

function take(buckets: readonly Readonly<{ key: string; capacity: number; perSecond: number }>[]) {
  return transition(sql.api, 'rate_limit_take', { buckets });
}

t.test('a bucket gives its capacity, and then says how long to wait', async (test) => {
  const bucket = { key: randomUUID(), capacity: 3, perSecond: SLOW };
  for (let taken = 0; taken < 3; taken++) test.match(await take([bucket]), { granted: true, retryAfterMs: 0 });
  const refused = await take([bucket]);
  test.equal(refused['granted'], false);
  const wait = Number(refused['retryAfterMs']);
  test.ok(wait > 86_000_000 && wait <= 86_400_000, 'until one token is back');
  await sql.owner.query(`update app.rate_limit_buckets set full_at = full_at - interval '1 day' where key = $1`, [
    bucket.key,
  ]);
  test.match(await take([bucket]), { granted: true });
  test.match(await take([bucket]), { granted: false });
});

t.test('of several buckets all give, or none does', async (test) => {
  const wide = { key: randomUUID(), capacity: 2, perSecond: SLOW };
  const narrow = { key: randomUUID(), capacity: 1, perSecond: SLOW };
  test.match(await take([wide, narrow]), { granted: true });
  test.match(await take([narrow, wide]), { granted: false });
  test.match(await take([wide]), { granted: true }, 'the refusal has taken nothing');
  test.match(await take([wide]), { granted: false });
});

t.test(
  'of many at once as many are granted as there are tokens, in whatever order they name the buckets',
  async (test) => {
    const first = { key: randomUUID(), capacity: 7, perSecond: SLOW };
    const second = { key: randomUUID(), capacity: 9, perSecond: SLOW };
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, index) => take(index % 2 ? [first, second] : [second, first])),
    );
    test.equal(results.filter((result) => result['granted'] === true).length, 7);
  },
);

t.test('what a provider asks for holds for all, the latest of it, and for a day at most', async (test) => {
  const bucket = { key: randomUUID(), capacity: 5, perSecond: 5 };
  const hold = (until: number) =>
    transition(sql.jobs, 'rate_limit_hold', { keys: [bucket.key], until: new Date(until).toISOString() });
  await hold(Date.now() + 3_600_000);
  await hold(Date.now() + 60_000);
  const refused = await take([bucket]);
  test.equal(refused['granted'], false);
  const wait = Number(refused['retryAfterMs']);
  test.ok(wait > 3_500_000 && wait <= 3_600_000, 'an earlier one changes nothing');
  await hold(Date.now() + 365 * 86_400_000);
  test.ok(Number((await take([bucket]))['retryAfterMs']) <= 86_400_000);
  await sql.owner.query('update app.rate_limit_buckets set retry_not_before = now() where key = $1', [bucket.key]);
  test.match(await take([bucket]), { granted: true });
});

t.test('only what says nothing is removed', async (test) => {
  const [idle, held, used] = [randomUUID(), randomUUID(), randomUUID()];
  for (const key of [idle, held, used]) await take([{ key, capacity: 2, perSecond: 1 }]);
  await sql.owner.query(
    `update app.rate_limit_buckets
     set full_at = now() - interval '2 hours', retry_not_before = case when key = $2 then now() + interval '1 hour' end
     where key in ($1, $2)`,
    [idle, held],
  );
  await transition(sql.jobs, 'rate_limit_buckets_clean', { rows: 1000 });
  const { rows } = await sql.owner.query('select key from app.rate_limit_buckets where key = any ($1)', [
    [idle, held, used],
  ]);
  test.same(rows.map(({ key }) => key).sort(), [held, used].sort());
});
