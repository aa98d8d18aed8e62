import t from 'tap';
import { openSql } from '../../support/transitions.ts';
import { openJobs, queued, runJob } from '../support.ts';

const sql = await openSql(t);
const jobs = await openJobs(t, sql.url);

t.test('a job with a wrong payload fails with its id in the log, and is kept', async (t) => {
  await runJob(sql.owner, 'organizations__delete', { organizationId: 'none' });
  const [job] = await queued(sql.owner, 'organizations__delete');
  t.match(job?.last_error, /^wrong payload of organizations__delete: /);
  t.match(
    jobs.logged.find((line) => line['jobId'] === job?.id),
    { level: 'error', msg: 'a job failed and will run again', task: 'organizations__delete', attempt: 1 },
  );
});

t.test('jobs that nobody will run are told', async (t) => {
  await sql.owner.query(`select graphile_worker.add_job('mistyped', run_at => now() - interval '1 hour')`);
  await sql.owner.query(`select graphile_worker.add_job('mistyped_now')`);
  await sql.owner.query(
    `update graphile_worker._private_jobs set attempts = max_attempts where last_error is not null`,
  );
  // Replaced while it ran, and then failed: as the queue leaves it.
  await sql.owner.query(`select graphile_worker.add_job('storage__clean', run_at => now() + interval '1 hour')`);
  await sql.owner.query(
    `update graphile_worker._private_jobs j set attempts = j.max_attempts, last_error = 'it failed'
     from graphile_worker.jobs l where l.id = j.id and l.task_identifier = 'storage__clean'`,
  );
  await runJob(sql.owner, 'runner__check');
  t.same(await queued(sql.owner, 'storage__clean'), [], 'its successor did the work');
  const told = jobs.logged.filter(({ msg }) => msg.startsWith('jobs w'));
  t.equal(told.length, 2);
  t.match(
    told.find(({ task }) => task === 'mistyped'),
    { level: 'error', jobs: 1, msg: 'jobs wait whose task this version does not have' },
  );
  t.match(
    told.find(({ task }) => task === 'organizations__delete'),
    { level: 'error', jobs: 1, msg: /^jobs were given up/ },
  );
});
