import t from 'tap';
import { DUE_NAMES, dueWork } from '../../support/due_fixtures.ts';
import { rounds } from '../../support/full.ts';
import { brokenInvariants } from '../../support/invariants.ts';
import { openSession, openSql } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';
import { openJobs } from '../support.ts';

/** More than dispatch reads of one kind, of whatever organizations. */
const MANY = 110;

// The reads of every kind are in test/sql/dispatch/due.test.ts.
for (const name of DUE_NAMES.slice(0, rounds({ short: 1, full: DUE_NAMES.length }))) {
  t.test(`${name}: one organization does not wait until another one's are moved`, async (test) => {
    const sql = await openSql(test);
    const work = dueWork(sql, name);
    const large = await work.make(MANY);
    let small = await work.make(1);
    // Whoever reads by ids comes to the large one first.
    while (small.organizationId < large.organizationId) small = await work.make(1);
    await work.fallDue(large, 3_600);
    const session = await openSession(test, sql, 'owner');
    await session.begin();
    await work.hold(session, large);
    const jobs = await openJobs(test, sql.url);
    await work.fallDue(small, 1);
    await until('the small one is served', async () => (await work.left(small)) === 0, 20_000);
    test.equal(await work.left(large), MANY, 'while the large one does not get any further');
    await session.commit();
    await until('the large one is served too', async () => (await work.left(large)) === 0);
    await jobs.stop();
    test.same(await brokenInvariants(sql), {});
    const errors = jobs.logged.filter(({ level }) => level === 'error' || level === 'warn');
    test.same(errors, []);
  });
}
