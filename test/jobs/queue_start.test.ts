import t from 'tap';
import { openSql } from '../support/transitions.ts';
import { until } from '../support/wait.ts';
import { dispatching, openJobs } from './support.ts';

const sql = await openSql(t);

t.test('a process whose queue fails at its first look for a job starts it again', async (t) => {
  // The look asks for the ids of all tasks; dispatch, which is added before, is let through.
  await sql.owner.query(`
    delete from graphile_worker._private_tasks;
    create function public.refuse() returns trigger language plpgsql as $$
      begin
        if new.identifier = 'dispatch' then return new; end if;
        raise exception 'the connection is lost';
      end $$;
    create trigger refuse before insert on graphile_worker._private_tasks for each row execute function public.refuse()`);
  const { logged } = await openJobs(t, sql.url);
  const again = () => logged.some(({ msg }) => msg === 'the queue could not begin, and is started again');
  await until('the look has failed', again);
  await sql.owner.query('drop trigger refuse on graphile_worker._private_tasks');
  await dispatching(sql.owner);
  t.ok(logged.some(({ msg }) => msg === 'the workers ended by themselves and are started again'));
});
