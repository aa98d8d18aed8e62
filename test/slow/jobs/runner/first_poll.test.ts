import t from 'tap';
import { dispatching, openJobs, queued } from '../../../jobs/support.ts';
import { openSql } from '../../../support/transitions.ts';
import { until } from '../../../support/wait.ts';

const sql = await openSql(t);

t.test('a process whose queue fails at its first look for a job starts it again', async (t) => {
  // The look asks for the ids of all tasks; dispatch, which is added before, is let through.
  await sql.owner.query(`
    delete from graphile_worker._private_tasks;
    create function public.refuse() returns trigger language plpgsql as $$
      begin
        if new.identifier = 'dispatch' then return new; end if;
        raise exception using errcode = '57P01', message = 'the connection is lost';
      end $$;
    create trigger refuse before insert on graphile_worker._private_tasks for each row execute function public.refuse()`);
  let ready = false;
  const opening = openJobs(t, sql.url).then((jobs) => {
    ready = true;
    return jobs;
  });
  await until('the look has failed, and was tried again', async () => {
    const { rows } = await sql.owner.query(
      'select max(revision)::integer as starts from graphile_worker._private_jobs',
    );
    return rows[0].starts >= 1;
  });
  t.notOk(ready, 'it takes no jobs, and does not say so');
  await sql.owner.query('drop trigger refuse on graphile_worker._private_tasks');
  await opening;
  await dispatching(sql.owner);
});

t.test('a job that leaves off does not take the place of the one that replaced it', async (t) => {
  const jobs = await openJobs(t, sql.url);
  await dispatching(sql.owner);
  await sql.owner.query(
    `select graphile_worker.add_job('dispatch', job_key => 'dispatch', priority => 7, run_at => now() + interval '1 hour')`,
  );
  await jobs.stop();
  t.match(await queued(sql.owner, 'dispatch'), [{ key: 'dispatch', priority: 7, attempts: 0, locked_by: null }]);
});
