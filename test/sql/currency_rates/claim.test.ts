import t from 'tap';
import { openSession, openSql, transition } from '../../support/transitions.ts';
import {
  claim,
  claimed,
  endLease,
  FIRST_SECONDS,
  fail,
  LONGEST_SECONDS,
  makeDue,
  reset,
  source,
  store,
} from './support.ts';

const sql = await openSql(t);
t.beforeEach(() => reset(sql));

const secondsUntil = (time: unknown) => (new Date(String(time)).getTime() - Date.now()) / 1_000;
const isAbout = (seconds: number, expected: number) => Math.abs(seconds - expected) < 10;

t.test('what is due is claimed once, and again when the lease is over', async (test) => {
  const first = await claim(sql);
  test.match(first, { claimed: true, newestDay: null, historyLoadedAt: null });
  const again = await claim(sql);
  test.match(again, { claimed: false });
  test.ok(isAbout(secondsUntil(again['leaseExpiresAt']), 60));
  await endLease(sql);
  test.match(await claim(sql), { claimed: true, fence: Number(first['fence']) + 1 });
});

t.test('what is not due is not claimed, and nobody is waited for', async (test) => {
  await sql.owner.query(`update app.currency_rate_sources set due_at = clock_timestamp() + interval '1 minute'`);
  test.same(await claim(sql), { claimed: false, leaseExpiresAt: null });
});

t.test('of two at once one gets it', async (test) => {
  const one = await openSession(test, sql, 'runner_jobs');
  await one.begin();
  test.match(await claim(sql, one), { claimed: true });
  const two = await openSession(test, sql, 'runner_jobs');
  const other = claim(sql, two);
  await two.waits();
  await one.commit();
  test.match(await other, { claimed: false });
});

t.test('the next claim says what is known', async (test) => {
  await store(sql, await claimed(sql), [{ day: '2026-11-27', rates: { USD: '1.1' } }]);
  await makeDue(sql);
  const next = await claim(sql);
  test.match(next, { claimed: true, newestDay: '2026-11-27' });
  test.ok(isAbout(secondsUntil(next['historyLoadedAt']), 0));
});

t.test('a failure ends the lease, and the pause doubles with each in a row', async (test) => {
  const pauses: number[] = [];
  for (let failures = 1; failures <= 5; failures++) {
    const failed = await fail(sql, await claimed(sql));
    test.match(failed, { held: true, isNew: failures === 1, failureCount: failures });
    pauses.push(secondsUntil(failed['dueAt']));
    test.match(await claim(sql), { claimed: false, leaseExpiresAt: null });
    await makeDue(sql);
  }
  const expected = [1, 2, 4].map((times) => times * FIRST_SECONDS);
  for (const [index, seconds] of [...expected, LONGEST_SECONDS, LONGEST_SECONDS].entries()) {
    test.ok(isAbout(pauses[index] ?? 0, seconds), `${pauses[index]} is about ${seconds}`);
  }
  await store(sql, await claimed(sql), [{ day: '2026-11-27', rates: { USD: '1.1' } }]);
  test.match(await source(sql), { failure_count: 0, error_code: null });
});

t.test('another failure is news, and the bank’s own time counts where it is later', async (test) => {
  await fail(sql, await claimed(sql), 'unreachable');
  await makeDue(sql);
  const later = new Date(Date.now() + 7_200_000);
  const failed = await fail(sql, await claimed(sql), 'unavailable', later);
  test.match(failed, { isNew: true, failureCount: 2 });
  test.equal(new Date(String(failed['dueAt'])).getTime(), later.getTime());
  await makeDue(sql);
  const sooner = await fail(sql, await claimed(sql), 'unavailable', new Date(Date.now() + 1_000));
  test.ok(secondsUntil(sooner['dueAt']) > FIRST_SECONDS, 'and the pause where that is');
});

t.test('a failure counts once, and not after the lease is gone', async (test) => {
  const fence = await claimed(sql);
  await fail(sql, fence);
  test.match(await fail(sql, fence), { held: false, failureCount: 1 }, 'a repeat');
  await makeDue(sql);
  const late = await claimed(sql);
  await endLease(sql);
  test.match(await fail(sql, late), { held: false, failureCount: 1 }, 'its lease has ended');
  const next = await claimed(sql);
  test.match(await fail(sql, late), { held: false, failureCount: 1 }, 'another one has a newer lease');
  test.match(await fail(sql, next), { held: true, failureCount: 2 });
});

t.test('nobody but the jobs collects', async (test) => {
  for (const role of [sql.api, sql.admin]) {
    await test.rejects(transition(role, 'currency_rates_claim', { seconds: 60 }), { code: '42501' });
    await test.rejects(store(sql, 1, [], { connection: role }), { code: '42501' });
  }
});
