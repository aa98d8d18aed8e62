import t from 'tap';
import { newestOf, settingsFor, workingDays } from '../../../jobs/currency_rates/support.ts';
import { addJob, openJobs, queued, spawnJobs } from '../../../jobs/support.ts';
import { createTestDatabase } from '../../../support/database.ts';
import { openRatesBank } from '../../../support/rates_bank.ts';
import { until } from '../../../support/wait.ts';

const TASK = 'currency_rates__collect';

t.test(
  'a process that dies between its claim and the rates leaves them to another, which reads all of them',
  async (test) => {
    const bank = await openRatesBank(test);
    const { url, owner } = await createTestDatabase(test);
    const days = workingDays(700);
    bank.publish(days);
    const source = async () => (await owner.query('select * from app.currency_rate_sources')).rows[0];

    const asking = Promise.withResolvers<void>();
    bank.respond(() => asking.resolve());
    const dying = await spawnJobs(test, url, settingsFor(bank));
    await asking.promise;
    await dying.kill('SIGKILL');
    const { fence, lease_expires_at: leaseExpiresAt } = await source();
    test.ok(leaseExpiresAt.getTime() > Date.now(), 'its lease outlives it');

    bank.respond(undefined);
    const jobs = await openJobs(test, url, settingsFor(bank));
    await until('the job of the end of the lease', async () => {
      const found = await queued(owner, TASK);
      return found.length === 1 && found.find(({ run_at: runAt }) => runAt.getTime() === leaseExpiresAt.getTime());
    });
    test.same(bank.asked, ['history'], 'nobody else asks while it lasts');

    await owner.query('update app.currency_rate_sources set lease_expires_at = now()');
    await addJob(owner, TASK, {}, TASK);
    await until('the history', async () => (await source()).history_loaded_at !== null);
    const { rows } = await owner.query('select count(*)::int as n, max(day)::text as newest from app.currency_rates');
    test.same(rows, [{ n: 700 * 3, newest: newestOf(days) }]);
    test.match(await source(), { fence: fence + 1, lease_expires_at: null });
    await jobs.stop();
  },
);
