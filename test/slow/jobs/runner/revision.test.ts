import t from 'tap';
import { addJob, dispatching, openJobs, queued } from '../../../jobs/support.ts';
import { openSql } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const sql = await openSql(t);
const jobs = await openJobs(t, sql.url);
const tell = () => sql.owner.query(`select pg_notify('worker:migrate', '{"breaking": true, "migrationNumber": 1000}')`);

t.test('who only says that the queue has changed stops no job', async (test) => {
  const pool = await dispatching(sql.owner);
  await tell();
  // Notifications come in their order, so this job is begun after the other was heard.
  await addJob(sql.owner, 'idempotency_keys__clean', {}, 'after');
  await until('the job has run', async () => (await queued(sql.owner, 'idempotency_keys__clean')).length === 0);
  test.equal(await dispatching(sql.owner), pool);
  test.notOk(jobs.logged.some(({ msg }) => msg.includes('breaking migration') || msg.includes('ended by themselves')));
});

t.test('a queue that has changed ends the workers, which begin anew', async (test) => {
  const pool = await dispatching(sql.owner);
  // The last one, that this version knows, takes the place of one that it does not.
  await sql.owner.query(
    'update graphile_worker.migrations set breaking = true where id = (select max(id) from graphile_worker.migrations)',
  );
  await tell();
  await until('the workers ended', () => jobs.logged.some(({ msg }) => msg.includes('ended by themselves')));
  test.ok(await dispatching(sql.owner, (owner) => owner !== pool));
});
